/// A `timestamptz`: a moment in UTC to the microsecond, which is all that PostgreSQL keeps.
public struct PostgresTimestamp: Hashable, Comparable, Sendable {
    /// Microseconds since 1970-01-01T00:00:00Z. The two extremes stand for PostgreSQL's infinities.
    public var microsecondsSince1970: Int64

    public init(microsecondsSince1970: Int64) { self.microsecondsSince1970 = microsecondsSince1970 }

    public static let infinity = PostgresTimestamp(microsecondsSince1970: .max)
    public static let negativeInfinity = PostgresTimestamp(microsecondsSince1970: .min)

    public static func < (left: Self, right: Self) -> Bool {
        left.microsecondsSince1970 < right.microsecondsSince1970
    }

    /// PostgreSQL counts from 2000-01-01.
    private static let microsecondsFrom1970To2000: Int64 = 946_684_800_000_000
}

extension PostgresTimestamp: PostgresEncodable, PostgresArrayElement {
    public static var postgresType: PostgresType { .timestamptz }
    public static var postgresArrayType: PostgresType { .timestamptzArray }

    public func encode(into buffer: inout PostgresBuffer) throws {
        guard self != .infinity, self != .negativeInfinity else { return buffer.append(microsecondsSince1970) }
        let (value, overflow) = microsecondsSince1970.subtractingReportingOverflow(Self.microsecondsFrom1970To2000)
        if overflow || value == .min { throw PostgresError(.encoding, "a time out of range") }
        buffer.append(value)
    }
}

extension PostgresTimestamp: PostgresDecodable {
    public init(postgres value: PostgresValue) throws {
        try value.expect(.timestamptz)
        let raw: Int64 = try value.integer()
        let (sum, overflow) = raw.addingReportingOverflow(Self.microsecondsFrom1970To2000)
        if raw == .min || raw == .max {
            self.init(microsecondsSince1970: raw)
        } else if overflow {
            throw PostgresError(.decoding, "a time out of range")
        } else {
            self.init(microsecondsSince1970: sum)
        }
    }
}
