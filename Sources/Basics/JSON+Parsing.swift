import Foundation

extension JSON {
    /// Bytes that aren't JSON.
    public struct Malformed: Error, Sendable {
        /// What is wrong, without any of the input.
        public let reason: String
    }

    /// How many arrays and objects may stand inside each other.
    public static let deepestNesting = 128

    /// Reads one JSON document (RFC 8259), strictly: UTF-8 only, no comma too many, no half of a surrogate pair. A byte
    /// order mark before it is skipped. Of a member that comes twice the last one counts.
    ///
    /// Foundation's reader isn't used: it takes trailing commas and UTF-16, and changes the digits of numbers.
    ///
    /// - Throws: ``Malformed`` when the bytes are not one JSON value, or one that is nested deeper than
    ///   ``deepestNesting``.
    public init(parsing bytes: Data) throws(Malformed) {
        let value = bytes.withUnsafeBytes { buffer -> JSON? in
            var reader = JSONReader(bytes: buffer)
            return reader.document()
        }
        guard let value else { throw Malformed(reason: "the body is not valid JSON in UTF-8") }
        self = value
    }
}

/// Walks over the bytes of a document. Every step answers nothing for what the grammar doesn't have; written `.none`
/// where it is about a ``JSON``, since a bare `nil` there may also mean `.null`.
private struct JSONReader {
    let bytes: UnsafeRawBufferPointer
    private var index = 0
    private var depth = 0

    init(bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

    mutating func document() -> JSON? {
        if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
        skipBlanks()
        let value = value()
        skipBlanks()
        guard index == bytes.count else { return .none }
        return value
    }

    private mutating func value() -> JSON? {
        switch next {
        case UInt8(ascii: "{"): nested { $0.object() }
        case UInt8(ascii: "["): nested { $0.array() }
        case UInt8(ascii: "\""): string().map(JSON.string)
        case UInt8(ascii: "t"): word("true") ? .some(.bool(true)) : .none
        case UInt8(ascii: "f"): word("false") ? .some(.bool(false)) : .none
        case UInt8(ascii: "n"): word("null") ? .some(.null) : .none
        default: number()
        }
    }

    private mutating func nested(_ read: (inout JSONReader) -> JSON?) -> JSON? {
        guard depth < JSON.deepestNesting else { return .none }
        depth += 1
        defer { depth -= 1 }
        return read(&self)
    }

    private mutating func object() -> JSON? {
        var members: [String: JSON] = [:]
        let isComplete = list(until: UInt8(ascii: "}")) { reader in
            guard reader.next == UInt8(ascii: "\""), let name = reader.string() else { return false }
            reader.skipBlanks()
            guard reader.skip(UInt8(ascii: ":")) else { return false }
            reader.skipBlanks()
            guard let value = reader.value() else { return false }
            members[name] = value
            return true
        }
        return isComplete ? .some(.object(members)) : .none
    }

    private mutating func array() -> JSON? {
        var items: [JSON] = []
        let isComplete = list(until: UInt8(ascii: "]")) { reader in
            guard let value = reader.value() else { return false }
            items.append(value)
            return true
        }
        return isComplete ? .some(.array(items)) : .none
    }

    /// An opening bracket, elements with commas between them, and the closing one. Whether it was all there.
    private mutating func list(until end: UInt8, _ element: (inout JSONReader) -> Bool) -> Bool {
        index += 1
        skipBlanks()
        if skip(end) { return true }
        while true {
            guard element(&self) else { return false }
            skipBlanks()
            if skip(end) { return true }
            guard skip(UInt8(ascii: ",")) else { return false }
            skipBlanks()
        }
    }

    private mutating func number() -> JSON? {
        let start = index
        _ = skip(UInt8(ascii: "-"))
        let isZero = next == UInt8(ascii: "0")
        let whole = digits()
        guard whole > 0, !isZero || whole == 1 else { return .none }
        if skip(UInt8(ascii: ".")), digits() == 0 { return .none }
        if skip(UInt8(ascii: "e")) || skip(UInt8(ascii: "E")) {
            if !skip(UInt8(ascii: "+")) { _ = skip(UInt8(ascii: "-")) }
            guard digits() > 0 else { return .none }
        }
        return .number(String(decoding: bytes[start..<index], as: UTF8.self))
    }

    private mutating func string() -> String? {
        index += 1
        var start = index
        var text = ""
        while let byte = next {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                guard let plain = String(validating: bytes[start..<index], as: UTF8.self) else { return nil }
                index += 1
                if byte == UInt8(ascii: "\"") { return text.isEmpty ? plain : text + plain }
                text += plain
                guard let character = escaped() else { return nil }
                text.unicodeScalars.append(character)
                start = index
            case 0..<0x20: return nil
            default: index += 1
            }
        }
        return nil
    }

    /// What stands after a backslash.
    private mutating func escaped() -> Unicode.Scalar? {
        guard let byte = next else { return nil }
        index += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"):
            guard let first = fourHexDigits() else { return nil }
            guard (0xD800...0xDBFF).contains(first) else { return Unicode.Scalar(first) }
            guard skip(UInt8(ascii: "\\")), skip(UInt8(ascii: "u")), let second = fourHexDigits(),
                (0xDC00...0xDFFF).contains(second)
            else { return nil }
            return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
        default: return nil
        }
    }

    private mutating func fourHexDigits() -> UInt32? {
        guard index + 4 <= bytes.count else { return nil }
        var value: UInt32 = 0
        for byte in bytes[index..<index + 4] {
            switch byte {
            case 0x30...0x39: value = value << 4 | UInt32(byte - 0x30)
            case 0x41...0x46, 0x61...0x66: value = value << 4 | UInt32((byte | 0x20) - 0x61 + 10)
            default: return nil
            }
        }
        index += 4
        return value
    }

    private mutating func digits() -> Int {
        let start = index
        while let byte = next, (0x30...0x39).contains(byte) { index += 1 }
        return index - start
    }

    private mutating func word(_ word: StaticString) -> Bool {
        let expected = UnsafeRawBufferPointer(start: word.utf8Start, count: word.utf8CodeUnitCount)
        guard bytes[index...].starts(with: expected) else { return false }
        index += expected.count
        return true
    }

    private mutating func skip(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        index += 1
        return true
    }

    private mutating func skipBlanks() {
        while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
    }
}
