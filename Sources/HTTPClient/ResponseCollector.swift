import Basics
import Foundation

/// Puts a response together from libcurl's callbacks, and stops it when it is too long or not HTTP.
///
/// libcurl hands over every header line of every response it meets: interim ones (1xx), the final one, and the
/// trailers after the body. Only the final response's fields are kept.
struct ResponseCollector {
    enum Refusal: Equatable { case headersTooLarge, bodyTooLarge, notHTTP }

    private enum Phase { case statusLine, fields, finalFieldsComplete }

    private(set) var status = 0
    private(set) var body = Data()
    /// Why the last callback said no.
    private(set) var refusal: Refusal?

    private var fields: [HTTPHeaders.Field] = []
    private var phase = Phase.statusLine
    private var headerBytes = 0
    private let maximumHeaderBytes: Int
    private let maximumBodyBytes: Int

    init(maximumHeaderBytes: Int, maximumBodyBytes: Int) {
        self.maximumHeaderBytes = maximumHeaderBytes
        self.maximumBodyBytes = maximumBodyBytes
    }

    var headers: HTTPHeaders { HTTPHeaders(fields) }

    /// Whether a final response's header section came to its end.
    var hasFinalHeaders: Bool { phase == .finalFieldsComplete }

    /// One line, with its line end. False stops the transfer.
    mutating func takeHeaderLine(_ line: UnsafeRawBufferPointer) -> Bool {
        headerBytes += line.count
        guard headerBytes <= maximumHeaderBytes else { return refuse(.headersTooLarge) }
        let text = line.trimmedOfLineEnd
        switch phase {
        case .statusLine: return takeStatusLine(text)
        case .fields where text.isEmpty:
            phase = (100..<200).contains(status) ? .statusLine : .finalFieldsComplete
        case .fields: takeField(text)
        case .finalFieldsComplete: break  // A trailer: it comes after the decisions that a header is for.
        }
        return true
    }

    /// A piece of the body. False stops the transfer.
    mutating func takeBody(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard bytes.count <= maximumBodyBytes - body.count else { return refuse(.bodyTooLarge) }
        body.append(contentsOf: bytes)
        return true
    }

    private mutating func refuse(_ reason: Refusal) -> Bool {
        refusal = reason
        return false
    }

    private mutating func takeStatusLine(_ text: UnsafeRawBufferPointer.SubSequence) -> Bool {
        // "HTTP/1.1 200 Fine" and "HTTP/2 200 "
        let words = text.split(separator: UInt8(ascii: " "), maxSplits: 2, omittingEmptySubsequences: false)
        guard text.starts(with: "HTTP/".utf8), words.count >= 2, words[1].count == 3,
            let status = Int(String(decoding: words[1], as: UTF8.self)), status >= 100
        else { return refuse(.notHTTP) }
        self.status = status
        fields = []
        phase = .fields
        return true
    }

    private mutating func takeField(_ text: UnsafeRawBufferPointer.SubSequence) {
        if let first = text.first, first == 0x20 || first == 0x09, let previous = fields.popLast() {
            // A folded line (RFC 9112, 5.2) goes on with the value before it.
            let value = previous.value + " " + String(decoding: text.trimmedOfBlanks, as: UTF8.self)
            fields.append(HTTPHeaders.Field(name: previous.name, value: value))
            return
        }
        guard let colon = text.firstIndex(of: UInt8(ascii: ":")) else { return }
        let name = String(decoding: text[..<colon].trimmedOfBlanks, as: UTF8.self)
        let value = String(decoding: text[(colon + 1)...].trimmedOfBlanks, as: UTF8.self)
        fields.append(HTTPHeaders.Field(name: name, value: value))
    }
}

extension UnsafeRawBufferPointer {
    fileprivate var trimmedOfLineEnd: SubSequence {
        var text = self[...]
        while let last = text.last, last == 0x0D || last == 0x0A { text.removeLast() }
        return text
    }
}

extension Slice where Base == UnsafeRawBufferPointer {
    fileprivate var trimmedOfBlanks: Self {
        var text = self
        while let first = text.first, first == 0x20 || first == 0x09 { text.removeFirst() }
        while let last = text.last, last == 0x20 || last == 0x09 { text.removeLast() }
        return text
    }
}
