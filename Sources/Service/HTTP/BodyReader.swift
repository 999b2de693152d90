import Basics
import Foundation
import Lockstep

/// Turns a body's bytes into JSON that is safe to go on with.
enum BodyReader {
    /// JSON bodies are at most this long: 256 KiB.
    static let maximumBytes = 262_144

    /// Of a number's text, and of its exponent either way. PostgreSQL's numbers have up to 131,072 digits before the point
    /// and 16,383 after it, and `1e-16384`, written in nine bytes, is beyond that. These are beyond every double, and keep
    /// such a number from being read back as thousands of digits.
    private static let maximumDigits = 1000
    private static let maximumExponent = 400

    /// - Throws: 413, 415, 400 `not-json`, 422 for NULs and for numbers without measure, 422 `card-number`.
    static func json(_ incoming: IncomingRequest, mayBeEmpty: Bool) throws(Problem) -> JSON? {
        guard incoming.body.count <= maximumBytes else { throw tooLarge(maximumBytes) }
        if incoming.body.isEmpty, mayBeEmpty { return nil }
        guard isJSON(incoming.headers) else {
            throw Problem(.unsupportedMediaType, "Content-Type must be application/json")
        }
        let json: JSON
        do {
            json = try StrictJSON.parse(incoming.body)
        } catch {
            throw Problem(.notJSON, "the body is not JSON in UTF-8: \(error.reason)")
        }
        try inspect(json)
        return json
    }

    static func tooLarge(_ maximum: Int) -> Problem {
        Problem(.tooLarge, "the body must be up to \(maximum) bytes")
    }

    /// `application/json`, alone or with `charset=utf-8`, exactly once.
    static func isJSON(_ headers: HTTPHeaders) -> Bool {
        let values = headers.all("Content-Type")
        guard values.count == 1 else { return false }
        let parts = values[0].split(separator: ";", omittingEmptySubsequences: false).map { trimmed($0) }
        guard parts[0].equalsIgnoringASCIICase("application/json") else { return false }
        return parts.dropFirst().allSatisfy { part in
            let lower = part.lowercased()
            return lower.isEmpty || lower == "charset=utf-8" || lower == "charset=\"utf-8\""
        }
    }

    private static func trimmed(_ text: Substring) -> String {
        let rest = text.drop { $0 == " " || $0 == "\t" }
        return String(rest.reversed().drop { $0 == " " || $0 == "\t" }.reversed())
    }

    /// Refuses card numbers, anywhere and of any type, and what PostgreSQL can't hold: one character, and numbers without
    /// measure.
    private static func inspect(_ json: JSON) throws(Problem) {
        var cards: [Fault] = []
        let faults = FaultCollector()
        func visit(_ value: JSON, _ pointer: String) {
            switch value {
            case .string(let text):
                if CardNumber.appears(in: text) { cards.append(Fault(pointer, "must not hold a card number")) }
                if text.utf8.contains(0) { faults.add(Fault(pointer, "must not hold control characters")) }
            case .number(let digits):
                if CardNumber.appears(in: integerDigits(digits)) {
                    cards.append(Fault(pointer, "must not hold a card number"))
                } else if !isMeasured(digits) {
                    faults.add(
                        Fault(
                            pointer,
                            "must be a number of up to \(maximumDigits) digits, its exponent from -\(maximumExponent) to \(maximumExponent)"
                        ))
                }
            case .array(let items):
                for (index, item) in items.enumerated() { visit(item, "\(pointer)/\(index)") }
            case .object(let members):
                for (name, member) in members {
                    // The name is part of the pointer, so a name that is a card number isn't written into it.
                    if CardNumber.appears(in: name) {
                        cards.append(Fault(pointer, "must not hold a card number in a member's name"))
                    } else if name.utf8.contains(0) {
                        faults.add(Fault(pointer, "must not hold control characters in a member's name"))
                    } else {
                        visit(member, Fault.pointer(pointer, name))
                    }
                }
            case .bool, .null: break
            }
        }
        visit(json, "")
        guard cards.isEmpty else {
            let sorted = cards.sorted { $0.pointer < $1.pointer }.prefix(100)
            throw Problem(.cardNumber, "card numbers are neither taken nor kept here", faults: Array(sorted))
        }
        try faults.throwIfAny()
    }

    /// Whether a number can be kept and shown.
    private static func isMeasured(_ number: String) -> Bool {
        guard number.utf8.count <= maximumDigits else { return false }
        let parts = number.split { $0 == "e" || $0 == "E" }
        guard parts.count == 2 else { return true }
        return Int(parts[1]).map { $0.magnitude <= maximumExponent } ?? false
    }

    /// The digits of a number that is whole, also where it was written with a point or an exponent.
    private static func integerDigits(_ digits: String) -> String {
        if digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) { return digits }
        return Double(digits).flatMap { UInt64(exactly: $0.magnitude) }.map(String.init) ?? digits
    }
}
