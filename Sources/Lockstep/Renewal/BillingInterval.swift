/// How far apart charges are: an ISO 8601 duration of exactly one unit, `P1D` to `P365D`, `P1W` to `P52W`, `P1M` to
/// `P36M`, `P1Y` to `P5Y`.
public struct BillingInterval: Hashable, Sendable, CustomStringConvertible {
    public enum Unit: Character, Hashable, Sendable, CaseIterable {
        case days = "D"
        case weeks = "W"
        case months = "M"
        case years = "Y"

        /// How many of it are an interval at most.
        public var limit: Int {
            switch self {
            case .days: 365
            case .weeks: 52
            case .months: 36
            case .years: 5
            }
        }
    }

    public let unit: Unit
    /// 1 to the unit's limit.
    public let count: Int

    /// Nil outside the unit's range.
    public init?(_ count: Int, _ unit: Unit) {
        guard (1...unit.limit).contains(count) else { return nil }
        self.count = count
        self.unit = unit
    }

    /// Why a text is not an interval.
    public enum Fault: Error, Hashable, Sendable {
        case notDuration
        case severalUnits
        case zero
        case tooLong(Unit)

        /// A sentence for the caller.
        public var detail: String {
            switch self {
            case .notDuration:
                "must be a duration of ISO 8601 in days, weeks, months or years, like \"P1M\""
            case .severalUnits: "must be of one unit: months or days, not both"
            case .zero: "must be more than zero"
            case .tooLong(let unit): "must be P\(unit.limit)\(unit.rawValue) at most"
            }
        }
    }

    /// Reads `P1M`. No fraction, no sign, no leading zero, no time of day.
    public init(_ text: String) throws(Fault) {
        guard text.first == "P" else { throw .notDuration }
        var rest = text.dropFirst()
        var parts: [(digits: Substring, unit: Unit)] = []
        while !rest.isEmpty {
            let digits = rest.prefix { $0.isASCII && $0.isNumber }
            rest = rest.dropFirst(digits.count)
            guard !digits.isEmpty, let letter = rest.first, let unit = Unit(rawValue: letter) else {
                throw .notDuration
            }
            rest = rest.dropFirst()
            parts.append((digits, unit))
        }
        guard let (digits, unit) = parts.first else { throw .notDuration }
        guard parts.count == 1 else { throw .severalUnits }
        if digits.allSatisfy({ $0 == "0" }) { throw .zero }
        guard digits.first != "0" else { throw .notDuration }
        // More digits than any limit has; so the number below always fits.
        guard digits.count <= 3, let count = Int(digits), let interval = BillingInterval(count, unit) else {
            throw .tooLong(unit)
        }
        self = interval
    }

    public var description: String { "P\(count)\(unit.rawValue)" }
}

extension BillingInterval {
    /// The one that most have.
    public static let monthly = BillingInterval(unit: .months, count: 1)

    private init(unit: Unit, count: Int) {
        self.unit = unit
        self.count = count
    }
}
