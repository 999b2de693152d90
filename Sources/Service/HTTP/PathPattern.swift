import Foundation

/// A path with names in braces: `/v1/checkouts/{id}/session`.
public struct PathPattern: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    enum Segment: Hashable, Sendable {
        case literal(String)
        case parameter(String)
    }
    let segments: [Segment]
    public let description: String

    public init(stringLiteral text: String) {
        description = text
        segments = text.split(separator: "/").map { part in
            part.hasPrefix("{") && part.hasSuffix("}")
                ? .parameter(String(part.dropFirst().dropLast())) : .literal(String(part))
        }
    }

    /// The names in braces, from left to right.
    public var parameterNames: [String] {
        segments.compactMap { if case .parameter(let name) = $0 { name } else { nil } }
    }

    /// The parameters, if the decoded segments fit; a parameter is never empty.
    func match(_ path: [String]) -> [String: String]? {
        guard path.count == segments.count else { return nil }
        var parameters: [String: String] = [:]
        for (segment, text) in zip(segments, path) {
            switch segment {
            case .literal(let literal): guard literal == text else { return nil }
            case .parameter(let name):
                guard !text.isEmpty else { return nil }
                parameters[name] = text
            }
        }
        return parameters
    }

    /// How many segments are literal; the pattern with the most is the best fit.
    var literalCount: Int { segments.count { if case .literal = $0 { true } else { false } } }
}

/// Percent-decoding that refuses what it doesn't understand.
enum PercentDecoding {
    /// The segments of a path, decoded; nil for a broken escape, for bytes that aren't UTF-8, and for control
    /// characters. Decoding comes after splitting, so that `%2F` stays inside its segment.
    static func segments(of path: String) -> [String]? {
        guard path.utf8.first == UInt8(ascii: "/") else { return nil }
        var out: [String] = []
        for part in path.utf8.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            guard let decoded = decode(Substring(part)) else { return nil }
            out.append(decoded)
        }
        return out
    }

    /// Name and value pairs of a query in their order; nil where an escape is broken.
    static func pairs(of query: String) -> [(name: String, value: String)]? {
        var out: [(String, String)] = []
        for part in query.split(separator: "&") {
            let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = decode(sides[0], plusIsSpace: true),
                let value = decode(sides.count > 1 ? sides[1] : "", plusIsSpace: true)
            else { return nil }
            out.append((name, value))
        }
        return out
    }

    static func decode(_ text: Substring, plusIsSpace: Bool = false) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8.makeIterator()
        while let byte = rest.next() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let high = rest.next().flatMap(hexValue), let low = rest.next().flatMap(hexValue) else {
                    return nil
                }
                bytes.append(high << 4 | low)
            case UInt8(ascii: "+") where plusIsSpace: bytes.append(0x20)
            default: bytes.append(byte)
            }
        }
        guard !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case 0x30...0x39: byte - 0x30
        case 0x41...0x46: byte - 0x41 + 10
        case 0x61...0x66: byte - 0x61 + 10
        default: nil
        }
    }
}
