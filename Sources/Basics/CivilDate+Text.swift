extension CivilDate {
    /// 0 for the same day, negative for an earlier one.
    public func days(since other: CivilDate) -> Int { daysSince1970 - other.daysSince1970 }

    public func adding(days: Int) -> CivilDate { CivilDate(daysSince1970: daysSince1970 + days) }
}

extension CivilDate: Comparable {
    public static func < (left: CivilDate, right: CivilDate) -> Bool {
        (left.year, left.month, left.day) < (right.year, right.month, right.day)
    }
}

/// `2026-12-31`.
extension CivilDate: CustomStringConvertible {
    public var description: String {
        func padded(_ value: Int, _ width: Int) -> String {
            let digits = String(value)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))"
    }

    /// Nil unless it is a day of the calendar, written as `2026-12-31`.
    public init?(_ text: some StringProtocol) {
        let parts = text.utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.map(\.count) == [4, 2, 2], parts.joined().allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        let numbers = parts.map { $0.reduce(0) { $0 * 10 + Int($1 - 0x30) } }
        guard (1...12).contains(numbers[1]),
            (1...CivilDate.days(inMonth: numbers[1], of: numbers[0])).contains(numbers[2])
        else { return nil }
        self.init(year: numbers[0], month: numbers[1], day: numbers[2])
    }
}
