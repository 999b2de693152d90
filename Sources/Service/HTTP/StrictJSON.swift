import Basics
import Foundation

/// Reads JSON exactly as RFC 8259 writes it. Foundation's reader takes more: a comma before a bracket, UTF-16, the same
/// member twice. Of two `amount`s each reader may take another one, so a doubled member is an error here.
///
/// Numbers keep the digits that were sent.
struct StrictJSON {
    /// Arrays and objects inside one another, at most.
    static let maximumDepth = 64

    /// What is wrong, and at which byte; never a part of the input.
    struct Failure: Error, Hashable {
        let reason: String
    }

    private let bytes: [UInt8]
    private var index = 0

    /// One document, nothing after it.
    static func parse(_ data: Data) throws(Failure) -> JSON {
        guard String(validating: data, as: UTF8.self) != nil else { throw Failure(reason: "it is not UTF-8") }
        var reader = StrictJSON(bytes: [UInt8](data))
        let value = try reader.value(depth: 0)
        reader.skipBlanks()
        guard reader.index == reader.bytes.count else { throw reader.failure("there is something after the end") }
        return value
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private func failure(_ what: String) -> Failure { Failure(reason: "\(what), at byte \(index)") }

    private var current: UInt8? { index < bytes.count ? bytes[index] : nil }

    private mutating func skipBlanks() {
        while let byte = current, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { index += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard current == byte else { return false }
        index += 1
        return true
    }

    private mutating func value(depth: Int) throws(Failure) -> JSON {
        skipBlanks()
        guard depth <= Self.maximumDepth else { throw failure("it is nested too deep") }
        switch current {
        case UInt8(ascii: "{"): return try object(depth: depth)
        case UInt8(ascii: "["): return try array(depth: depth)
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        case .some(UInt8(ascii: "0")...UInt8(ascii: "9")), UInt8(ascii: "-"): return .number(try number())
        default: throw failure("a value is missing")
        }
    }

    private mutating func word(_ word: String, _ value: JSON) throws(Failure) -> JSON {
        guard bytes[index...].starts(with: word.utf8) else { throw failure("a value is missing") }
        index += word.utf8.count
        return value
    }

    private mutating func array(depth: Int) throws(Failure) -> JSON {
        index += 1
        var items: [JSON] = []
        skipBlanks()
        if take(UInt8(ascii: "]")) { return .array(items) }
        while true {
            items.append(try value(depth: depth + 1))
            skipBlanks()
            if take(UInt8(ascii: "]")) { return .array(items) }
            guard take(UInt8(ascii: ",")) else { throw failure("a comma or a bracket is missing") }
        }
    }

    private mutating func object(depth: Int) throws(Failure) -> JSON {
        index += 1
        var members: [String: JSON] = [:]
        skipBlanks()
        if take(UInt8(ascii: "}")) { return .object(members) }
        while true {
            skipBlanks()
            guard current == UInt8(ascii: "\"") else { throw failure("a member's name is missing") }
            let name = try string()
            skipBlanks()
            guard take(UInt8(ascii: ":")) else { throw failure("a colon is missing") }
            let member = try value(depth: depth + 1)
            guard members.updateValue(member, forKey: name) == nil else { throw failure("a member stands twice") }
            skipBlanks()
            if take(UInt8(ascii: "}")) { return .object(members) }
            guard take(UInt8(ascii: ",")) else { throw failure("a comma or a brace is missing") }
        }
    }

    /// `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`, and not beyond the largest double. How small or how long
    /// it may be is for whoever keeps it to say.
    private mutating func number() throws(Failure) -> String {
        let start = index
        _ = take(UInt8(ascii: "-"))
        if !take(UInt8(ascii: "0")) { try digits() }
        if take(UInt8(ascii: ".")) { try digits() }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            try digits()
        }
        let text = String(decoding: bytes[start..<index], as: UTF8.self)
        guard let double = Double(text), double.isFinite else { throw failure("a number is out of range") }
        return text
    }

    private mutating func digits() throws(Failure) {
        let start = index
        while let byte = current, (0x30...0x39).contains(byte) { index += 1 }
        guard index > start else { throw failure("a digit is missing") }
    }

    private mutating func string() throws(Failure) -> String {
        index += 1
        var out: [UInt8] = []
        while let byte = current {
            index += 1
            switch byte {
            case UInt8(ascii: "\""): return String(decoding: out, as: UTF8.self)
            case UInt8(ascii: "\\"): try escape(into: &out)
            case 0..<0x20: throw failure("a control character stands in a string")
            default: out.append(byte)
            }
        }
        throw failure("a string has no end")
    }

    private mutating func escape(into out: inout [UInt8]) throws(Failure) {
        guard let byte = current else { throw failure("a string has no end") }
        index += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): out.append(byte)
        case UInt8(ascii: "b"): out.append(0x08)
        case UInt8(ascii: "f"): out.append(0x0C)
        case UInt8(ascii: "n"): out.append(0x0A)
        case UInt8(ascii: "r"): out.append(0x0D)
        case UInt8(ascii: "t"): out.append(0x09)
        case UInt8(ascii: "u"):
            var code = try hexadecimal()
            if (0xD800..<0xDC00).contains(code) {
                guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else { throw failure("half a character") }
                let low = try hexadecimal()
                guard (0xDC00..<0xE000).contains(low) else { throw failure("half a character") }
                code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
            }
            guard let scalar = Unicode.Scalar(code) else { throw failure("half a character") }
            out.append(contentsOf: String(Character(scalar)).utf8)
        default: throw failure("an escape is unknown")
        }
    }

    private mutating func hexadecimal() throws(Failure) -> UInt32 {
        var code: UInt32 = 0
        for _ in 0..<4 {
            guard let byte = current, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else {
                throw failure("an escape is unknown")
            }
            index += 1
            code = code << 4 | UInt32(digit)
        }
        return code
    }
}
