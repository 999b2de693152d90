import Basics
import Foundation
import Lockstep

/// What a value must look like. A wrong type is refused, as Payrails does; so is a member that no schema knows.
indirect enum Shape: Sendable {
    case anything
    case text
    case uuid
    case boolean
    case integer
    /// An `https` or `http` address with a host.
    case address
    case duration
    case date
    case oneOf([String])
    /// `{value, currency}`, more than zero.
    case money
    case list(Shape)
    /// An object whose members all have this shape.
    case map(Shape)
    case object([Field], isOpen: Bool)

    struct Field: Sendable {
        let name: String
        let shape: Shape
        let isRequired: Bool
    }

    struct Fault: Sendable {
        let detail: String
        var isMissing = false
    }

    static func closed(required: KeyValuePairs<String, Shape> = [:], _ optional: KeyValuePairs<String, Shape> = [:])
        -> Shape
    {
        .object(
            required.map { Field(name: $0.key, shape: $0.value, isRequired: true) }
                + optional.map { Field(name: $0.key, shape: $0.value, isRequired: false) }, isOpen: false)
    }

    static func open(_ optional: KeyValuePairs<String, Shape>) -> Shape {
        .object(optional.map { Field(name: $0.key, shape: $0.value, isRequired: false) }, isOpen: true)
    }
}

extension Shape {
    /// Every fault of the value, with the path of the member that has it.
    func faults(in value: JSON, at path: String, refusingUnknown: Bool) -> [Fault] {
        func wrong(_ expectation: String) -> [Fault] { [Fault(detail: "\(path) \(expectation)")] }
        switch self {
        case .anything: return []
        case .text: return value.string.map { $0.isEmpty } == false ? [] : wrong("must be a non-empty string")
        case .uuid: return value.string.flatMap(Shape.parseUUID) == nil ? wrong("must be a UUID") : []
        case .boolean: return value.bool == nil ? wrong("must be a boolean") : []
        case .integer: return value.integer == nil ? wrong("must be an integer") : []
        case .address: return value.string.map(Shape.isAddress) == true ? [] : wrong("must be an absolute URL")
        case .duration:
            return value.string.flatMap(ISODuration.parse) == nil ? wrong("must be an ISO 8601 duration") : []
        case .date:
            let isDate = value.string.flatMap { Timestamp(rfc3339: $0) ?? Timestamp(rfc3339: $0 + "T00:00:00Z") } != nil
            return isDate ? [] : wrong("must be a date")
        case .oneOf(let words):
            return value.string.map(words.contains) == true
                ? [] : wrong("must be one of \(words.joined(separator: ", "))")
        case .money: return Shape.moneyFaults(in: value, at: path, refusingUnknown: refusingUnknown)
        case .list(let item):
            guard let items = value.array else { return wrong("must be an array") }
            return items.enumerated().flatMap {
                item.faults(in: $1, at: "\(path)[\($0)]", refusingUnknown: refusingUnknown)
            }
        case .map(let item):
            guard let members = value.object else { return wrong("must be an object") }
            return members.sorted { $0.key < $1.key }.flatMap {
                item.faults(in: $0.value, at: "\(path).\($0.key)", refusingUnknown: refusingUnknown)
            }
        case .object(let fields, let isOpen):
            guard let members = value.object else { return wrong("must be an object") }
            let prefix = path.isEmpty ? "" : path + "."
            var faults: [Fault] = []
            for field in fields {
                if let member = members[field.name] {
                    faults += field.shape.faults(
                        in: member, at: prefix + field.name, refusingUnknown: refusingUnknown)
                } else if field.isRequired {
                    faults.append(Fault(detail: "\(prefix)\(field.name) is required", isMissing: true))
                }
            }
            if !isOpen, refusingUnknown {
                let known = Set(fields.map(\.name))
                for name in members.keys.sorted() where !known.contains(name) {
                    faults.append(Fault(detail: "\(prefix)\(name) is not a known field"))
                }
            }
            return faults
        }
    }

    private static func moneyFaults(in value: JSON, at path: String, refusingUnknown: Bool) -> [Fault] {
        let parts = Shape.closed(required: ["value": .text, "currency": .text])
        let faults = parts.faults(in: value, at: path, refusingUnknown: refusingUnknown)
        guard faults.isEmpty else { return faults }
        do {
            guard try Money(wire: value).minor > 0 else {
                return [Fault(detail: "\(path).value \(Money.Fault.zero.detail)")]
            }
            return []
        } catch {
            return [
                Fault(detail: "\(path).\(error == .unknownCurrency ? "currency" : "value") \(error.detail)")
            ]
        }
    }

    static func parseUUID(_ text: String) -> UUID? { UUID(canonical: text) }

    static func isAddress(_ text: String) -> Bool {
        guard let url = URL(string: text), let scheme = url.scheme, ["http", "https"].contains(scheme) else {
            return false
        }
        return url.host()?.isEmpty == false
    }

    /// Whether the address names its host by number, which Payrails refuses with 403 (section 10, item 11).
    static func hasNumericHost(_ text: String) -> Bool {
        guard let host = URL(string: text)?.host() ?? URL(string: "//" + text)?.host() else { return false }
        return host.contains(":") || host.allSatisfy { $0.isNumber || $0 == "." } && host.contains(".")
    }
}

extension Money {
    /// Reads `{value, currency}`.
    init(wire json: JSON) throws(Money.Fault) {
        try self.init(value: json["value"]?.string ?? "", currencyCode: json["currency"]?.string ?? "")
    }

    /// `{value, currency}` with exactly the currency's decimals.
    var wire: JSON { ["value": .string(value), "currency": .string(currency.code)] }
}

extension JSON {
    /// The same document, its amounts with zeros up to so many decimals.
    func amounts(withDecimals minimum: Int) -> JSON {
        switch self {
        case .array(let items): return .array(items.map { $0.amounts(withDecimals: minimum) })
        case .object(var members):
            if case .string(let value)? = members["value"], members["currency"]?.string != nil {
                members["value"] = .string(value.decimal(withDigits: minimum))
                return .object(members)
            }
            return .object(members.mapValues { $0.amounts(withDecimals: minimum) })
        case .null, .bool, .number, .string: return self
        }
    }
}

extension String {
    fileprivate func decimal(withDigits minimum: Int) -> String {
        let digits = split(separator: ".").dropFirst().first?.count ?? 0
        guard minimum > digits else { return self }
        return (digits == 0 ? self + "." : self) + String(repeating: "0", count: minimum - digits)
    }
}

/// `PT10M`, `P1D`, `PT1H30M5S`: days, hours, minutes and seconds, which have a fixed length.
enum ISODuration {
    static func parse(_ text: String) -> Duration? {
        guard text.first == "P", text.count > 2 else { return nil }
        var seconds: Int64 = 0
        var digits = ""
        var inTime = false
        for character in text.dropFirst() {
            switch character {
            case "0"..."9" where digits.count < 9: digits.append(character)
            case "T" where !inTime && digits.isEmpty: inTime = true
            default:
                guard let count = Int64(digits), let unit = unit(character, inTime: inTime) else { return nil }
                seconds += count * unit
                digits = ""
            }
        }
        return digits.isEmpty ? .seconds(seconds) : nil
    }

    /// Seconds; months and years count as 30 and 365 days, which is near enough for a stand-in.
    private static func unit(_ character: Character, inTime: Bool) -> Int64? {
        switch (character, inTime) {
        case ("S", true): 1
        case ("M", true): 60
        case ("H", true): 3600
        case ("D", false): 86_400
        case ("W", false): 7 * 86_400
        case ("M", false): 30 * 86_400
        case ("Y", false): 365 * 86_400
        default: nil
        }
    }
}
