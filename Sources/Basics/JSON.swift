import Foundation

/// A JSON value, read or built to be written.
///
/// Numbers keep their digits as text, so that nothing that might be money ever passes through a floating-point type.
public enum JSON: Sendable {
    case null
    case bool(Bool)
    /// The digits as they were written.
    case number(String)
    case string(String)
    case array([JSON])
    case object([String: JSON])
}

/// Two values are equal when they are written with the same bytes. (Swift's own equality of texts is looser: it takes
/// a composed letter for a decomposed one, which a database and a signature don't.)
extension JSON: Hashable {
    public static func == (left: JSON, right: JSON) -> Bool { left.bytes == right.bytes }
    public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}

extension JSON {
    /// The member of an object by its name; nil for anything else, and for a member that is not there.
    public subscript(_ name: String) -> JSON? {
        guard case .object(let members) = self else { return nil }
        return members[name]
    }

    /// The element of an array by its index; nil when out of range, and for anything else.
    public subscript(_ index: Int) -> JSON? {
        guard case .array(let items) = self, items.indices.contains(index) else { return nil }
        return items[index]
    }

    public var string: String? { if case .string(let value) = self { value } else { nil } }
    public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
    public var array: [JSON]? { if case .array(let value) = self { value } else { nil } }
    public var object: [String: JSON]? { if case .object(let value) = self { value } else { nil } }
    /// A number without a fraction that fits 64 bits.
    public var integer: Int64? { if case .number(let digits) = self { Int64(digits) } else { nil } }
    public var isNull: Bool { if case .null = self { true } else { false } }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
    public init(stringLiteral value: String) { self = .string(value) }
    public init(booleanLiteral value: Bool) { self = .bool(value) }
    public init(integerLiteral value: Int64) { self = .number(String(value)) }
    public init(arrayLiteral elements: JSON...) { self = .array(elements) }
    public init(dictionaryLiteral elements: (String, JSON)...) {
        self = .object(Dictionary(elements, uniquingKeysWith: { _, last in last }))
    }

    /// A number.
    public init(_ value: some BinaryInteger) { self = .number(String(value)) }

    /// An object without the members that have no value.
    public static func compact(_ members: KeyValuePairs<String, JSON?>) -> JSON {
        var object: [String: JSON] = [:]
        for (name, value) in members { if let value { object[name] = value } }
        return .object(object)
    }
}

extension JSON {
    /// The document as compact UTF-8, members sorted by name, so that equal values give equal bytes.
    public var bytes: Data {
        var out: [UInt8] = []
        write(into: &out)
        return Data(out)
    }

    /// ``bytes`` as a string.
    public var text: String {
        var out: [UInt8] = []
        write(into: &out)
        return String(decoding: out, as: UTF8.self)
    }

    private func write(into out: inout [UInt8]) {
        switch self {
        case .null: out.append(contentsOf: "null".utf8)
        case .bool(let value): out.append(contentsOf: (value ? "true" : "false").utf8)
        case .number(let digits): out.append(contentsOf: digits.utf8)
        case .string(let value): JSON.write(value, into: &out)
        case .array(let items):
            out.append(UInt8(ascii: "["))
            for (index, item) in items.enumerated() {
                if index > 0 { out.append(UInt8(ascii: ",")) }
                item.write(into: &out)
            }
            out.append(UInt8(ascii: "]"))
        case .object(let members):
            out.append(UInt8(ascii: "{"))
            for (index, member) in members.sorted(by: { $0.key < $1.key }).enumerated() {
                if index > 0 { out.append(UInt8(ascii: ",")) }
                JSON.write(member.key, into: &out)
                out.append(UInt8(ascii: ":"))
                member.value.write(into: &out)
            }
            out.append(UInt8(ascii: "}"))
        }
    }

    private static func write(_ string: String, into out: inout [UInt8]) {
        out.append(UInt8(ascii: "\""))
        // Nearly every text goes out as it is.
        if string.utf8.allSatisfy({ $0 >= 0x20 && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\") }) {
            out.append(contentsOf: string.utf8)
            out.append(UInt8(ascii: "\""))
            return
        }
        for byte in string.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"): out.append(contentsOf: [UInt8(ascii: "\\"), byte])
            case 0x0A: out.append(contentsOf: "\\n".utf8)
            case 0x0D: out.append(contentsOf: "\\r".utf8)
            case 0x09: out.append(contentsOf: "\\t".utf8)
            case 0..<0x20:
                let hex = String(byte, radix: 16)
                out.append(contentsOf: ("\\u00" + (hex.count == 1 ? "0" : "") + hex).utf8)
            default: out.append(byte)
            }
        }
        out.append(UInt8(ascii: "\""))
    }
}
