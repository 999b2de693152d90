extension Timestamp {
    /// Reads RFC 3339: a date, `T`, a time with up to nine fractional digits, and `Z` or an offset.
    ///
    /// Returns nil for anything else, for a day that the month doesn't have, for a time without a zone, and for one
    /// that in UTC is outside the years 0 to 9999, which could not be written again.
    /// A leap second (`:60`) reads as the second after it.
    public init?(rfc3339 text: String) {
        var scanner = DigitScanner(text)
        guard let year = scanner.digits(4), scanner.skip("-"), let month = scanner.digits(2), scanner.skip("-"),
            let day = scanner.digits(2), scanner.skip("T") || scanner.skip("t") || scanner.skip(" "),
            let hour = scanner.digits(2), scanner.skip(":"), let minute = scanner.digits(2), scanner.skip(":"),
            let second = scanner.digits(2), (1...12).contains(month),
            (1...CivilDate.days(inMonth: month, of: year)).contains(day), hour < 24, minute < 60, second <= 60
        else { return nil }
        var nanoseconds = 0
        if scanner.skip(".") {
            guard let fraction = scanner.fraction() else { return nil }
            nanoseconds = fraction
        }
        var offsetSeconds = 0
        if !(scanner.skip("Z") || scanner.skip("z")) {
            let sign = scanner.skip("+") ? 1 : scanner.skip("-") ? -1 : 0
            guard sign != 0, let hours = scanner.digits(2), scanner.skip(":"), let minutes = scanner.digits(2),
                hours < 24, minutes < 60
            else { return nil }
            offsetSeconds = sign * (hours * 3600 + minutes * 60)
        }
        guard scanner.isAtEnd else { return nil }
        let days = CivilDate(year: year, month: month, day: day).daysSince1970
        let seconds = Int64(days * 86_400 + hour * 3600 + minute * 60 + second - offsetSeconds)
        guard Timestamp.writableSeconds.contains(seconds) else { return nil }
        self.init(seconds: seconds, nanoseconds: Int32(nanoseconds))
    }

    /// 0000-01-01T00:00:00Z to 9999-12-31T23:59:59Z.
    private static let writableSeconds: ClosedRange<Int64> = -62_167_219_200...253_402_300_799

    /// RFC 3339 in UTC, with three, six or nine fractional digits where the time has them, none otherwise. A time before
    /// the year 0 or after 9999, which has no such form, is written as the first or the last second that has one.
    public var rfc3339: String {
        let daySeconds = 86_400
        let writable = Timestamp.writableSeconds
        let total = Int(min(max(seconds, writable.lowerBound), writable.upperBound))
        let days = total >= 0 ? total / daySeconds : (total - daySeconds + 1) / daySeconds
        let inDay = total - days * daySeconds
        let date = CivilDate(daysSince1970: days)
        let nanos = Int(nanoseconds)
        return String(unsafeUninitializedCapacity: 30) { buffer in
            var text = DigitWriter(buffer)
            text.write(date.year, 4)
            text.write("-")
            text.write(date.month, 2)
            text.write("-")
            text.write(date.day, 2)
            text.write("T")
            text.write(inDay / 3600, 2)
            text.write(":")
            text.write(inDay / 60 % 60, 2)
            text.write(":")
            text.write(inDay % 60, 2)
            if nanos != 0 {
                text.write(".")
                if nanos % 1_000_000 == 0 {
                    text.write(nanos / 1_000_000, 3)
                } else if nanos % 1000 == 0 {
                    text.write(nanos / 1000, 6)
                } else {
                    text.write(nanos, 9)
                }
            }
            text.write("Z")
            return text.count
        }
    }
}

/// Writes digits into a buffer that is large enough.
private struct DigitWriter {
    private let buffer: UnsafeMutableBufferPointer<UInt8>
    private(set) var count = 0

    init(_ buffer: UnsafeMutableBufferPointer<UInt8>) { self.buffer = buffer }

    mutating func write(_ character: Unicode.Scalar) {
        buffer[count] = UInt8(ascii: character)
        count += 1
    }

    /// The number's last `width` decimal digits, with zeros before it.
    mutating func write(_ number: Int, _ width: Int) {
        var rest = number
        for place in stride(from: count + width - 1, through: count, by: -1) {
            buffer[place] = 0x30 + UInt8(rest % 10)
            rest /= 10
        }
        count += width
    }
}

/// A day of the Gregorian calendar, without a zone.
public struct CivilDate: Hashable, Sendable {
    /// 0 to 9999.
    public let year: Int
    /// 1 to 12.
    public let month: Int
    /// 1 to 31.
    public let day: Int

    public init(year: Int, month: Int, day: Int) {
        self.year = year
        self.month = month
        self.day = day
    }

    /// How many days the month has: 28 to 31.
    public static func days(inMonth month: Int, of year: Int) -> Int {
        switch month {
        case 2: (year % 4 == 0 && year % 100 != 0) || year % 400 == 0 ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }

    /// Days since 1970-01-01, by counting in years that begin in March, so that a leap day comes last.
    public var daysSince1970: Int {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    public init(daysSince1970 days: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        self.init(
            year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month: month,
            day: dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }
}

/// Walks over the ASCII of a fixed-width text.
private struct DigitScanner {
    private var rest: Substring.UTF8View

    init(_ text: String) { rest = Substring(text).utf8 }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func skip(_ character: Unicode.Scalar) -> Bool {
        guard let first = rest.first, first == UInt8(ascii: character) else { return false }
        rest.removeFirst()
        return true
    }

    mutating func digits(_ count: Int) -> Int? {
        var value = 0
        for _ in 0..<count {
            guard let digit = digit() else { return nil }
            value = value * 10 + digit
        }
        return value
    }

    /// One to nine digits, as nanoseconds.
    mutating func fraction() -> Int? {
        var value = 0
        var count = 0
        while let digit = digit() {
            count += 1
            guard count <= 9 else { return nil }
            value = value * 10 + digit
        }
        guard count > 0 else { return nil }
        for _ in count..<9 { value *= 10 }
        return value
    }

    private mutating func digit() -> Int? {
        guard let first = rest.first, (0x30...0x39).contains(first) else { return nil }
        rest.removeFirst()
        return Int(first) - 0x30
    }
}
