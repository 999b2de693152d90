import Foundation
import Testing

@testable import Basics

@Suite("Times are exact to the nanosecond")
struct TimestampTests {
    @Test(
        "RFC 3339 is read with zero to nine digits, with offsets, and a leap second",
        arguments: [
            ("1970-01-01T00:00:00Z", Int64(0), Int32(0)),
            ("1970-01-01T00:00:00.1Z", 0, 100_000_000),
            ("1970-01-01T00:00:00.12Z", 0, 120_000_000),
            ("1970-01-01T00:00:00.123Z", 0, 123_000_000),
            ("1970-01-01T00:00:00.1234Z", 0, 123_400_000),
            ("1970-01-01T00:00:00.12345Z", 0, 123_450_000),
            ("1970-01-01T00:00:00.123456Z", 0, 123_456_000),
            ("1970-01-01T00:00:00.1234567Z", 0, 123_456_700),
            ("1970-01-01T00:00:00.12345678Z", 0, 123_456_780),
            ("1970-01-01T00:00:00.123456789Z", 0, 123_456_789),
            ("1970-01-01T00:00:00.000000001Z", 0, 1),
            ("1970-01-01t00:00:00z", 0, 0), ("1970-01-01 00:00:00Z", 0, 0),
            ("1970-01-01T02:00:00+02:00", 0, 0), ("1969-12-31T19:00:00-05:00", 0, 0),
            ("1970-01-01T05:45:00+05:45", 0, 0), ("1970-01-01T00:00:00-00:00", 0, 0),
            ("1969-12-31T00:01:00-23:59", 0, 0),
            ("1969-12-31T23:59:59.999999999Z", -1, 999_999_999),
            ("2016-12-31T23:59:60Z", 1_483_228_800, 0), ("2016-12-31T23:59:60.5Z", 1_483_228_800, 500_000_000),
            ("2000-02-29T00:00:00Z", 951_782_400, 0), ("2024-02-29T12:00:00Z", 1_709_208_000, 0),
            ("2026-09-01T10:00:05.123456789Z", 1_788_256_805, 123_456_789),
            ("0000-01-01T00:00:00Z", -62_167_219_200, 0), ("9999-12-31T23:59:59Z", 253_402_300_799, 0),
        ])
    func reading(text: String, seconds: Int64, nanoseconds: Int32) throws {
        let time = try #require(Timestamp(rfc3339: text))
        #expect(time.seconds == seconds)
        #expect(time.nanoseconds == nanoseconds)
    }

    @Test(
        "what is no time is not read",
        arguments: [
            "", "Z", "2026", "2026-09-01", "2026-09-01T10:00:05", "2026-09-01T10:00Z", "2026-9-1T10:00:05Z",
            "2026-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2026-04-31T00:00:00Z",
            "2026-00-01T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-32T00:00:00Z",
            "2026-09-01T24:00:00Z", "2026-09-01T10:60:00Z", "2026-09-01T10:00:61Z", "2026-09-01T10:00:05.Z",
            "2026-09-01T10:00:05.1234567890Z", "2026-09-01T10:00:05,5Z", "2026-09-01T10:00:05+2:00",
            "2026-09-01T10:00:05+0200", "2026-09-01T10:00:05+02", "2026-09-01T10:00:05+24:00",
            "2026-09-01T10:00:05+02:60", "2026-09-01T10:00:05ZZ", "2026-09-01T10:00:05Z ", " 2026-09-01T10:00:05Z",
            "2026-09-01T10:00:05Z\n", "-026-09-01T10:00:05Z", "+2026-09-01T10:00:05Z", "12026-09-01T10:00:05Z",
            "２０２６-09-01T10:00:05Z", "2026–09–01T10:00:05Z", "2026-09-01T10:00:05−02:00", "2026-09-01X10:00:05Z",
            "2026-09-01T10:00:05\u{0}Z", "1788256805", "1788256805.5", "Tue, 01 Sep 2026 10:00:05 GMT",
            // Neither year 10,000 nor the year before 0 can be written in this form.
            "9999-12-31T23:59:59-00:01", "0000-01-01T00:00:00+00:01", "9999-12-31T23:59:60Z",
        ])
    func refused(text: String) {
        #expect(Timestamp(rfc3339: text) == nil)
    }

    @Test("every time that is written reads back the same, and order in text is order in time")
    func roundTrip() throws {
        var generator = Seeded(seed: 20_260_901)
        let range = try #require(Timestamp(rfc3339: "0000-01-01T00:00:00Z")).seconds
        let end = try #require(Timestamp(rfc3339: "9999-12-31T23:59:59Z")).seconds
        for round in 0..<20_000 {
            let digits: Int32 = [1, 1000, 1_000_000, 1_000_000_000][round % 4]
            let nanoseconds = Int32.random(in: 0...999_999_999, using: &generator) / digits * digits
            let time = Timestamp(seconds: .random(in: range...end, using: &generator), nanoseconds: nanoseconds)
            #expect(Timestamp(rfc3339: time.rfc3339) == time)
        }
    }

    @Test(
        "times are written with as many digits as they need, by threes",
        arguments: [
            (Timestamp(seconds: 0), "1970-01-01T00:00:00Z"),
            (Timestamp(seconds: 0, nanoseconds: 100_000_000), "1970-01-01T00:00:00.100Z"),
            (Timestamp(seconds: 0, nanoseconds: 1_000), "1970-01-01T00:00:00.000001Z"),
            (Timestamp(seconds: 0, nanoseconds: 1), "1970-01-01T00:00:00.000000001Z"),
            (Timestamp(seconds: -1, nanoseconds: 999_999_999), "1969-12-31T23:59:59.999999999Z"),
            (Timestamp(seconds: -86_400), "1969-12-31T00:00:00Z"),
            (Timestamp(seconds: -62_167_219_200), "0000-01-01T00:00:00Z"),
            (Timestamp(seconds: -62_167_219_201), "0000-01-01T00:00:00Z"),
            (Timestamp(seconds: .max - 1), "9999-12-31T23:59:59Z"),
            (Timestamp(seconds: .min), "0000-01-01T00:00:00Z"),
        ])
    func writing(time: Timestamp, text: String) {
        #expect(time.rfc3339 == text)
    }

    @Test("microseconds cut downwards, before 1970 too, and come back")
    func microseconds() {
        #expect(Timestamp(seconds: 1, nanoseconds: 999_999_999).microseconds == 1_999_999)
        #expect(Timestamp(seconds: -1, nanoseconds: 999_999_999).microseconds == -1)
        #expect(Timestamp(seconds: -1, nanoseconds: 999_999_000).microseconds == -1)
        #expect(Timestamp(microseconds: -1) == Timestamp(seconds: -1, nanoseconds: 999_999_000))
        #expect(Timestamp(microseconds: -1_000_000) == Timestamp(seconds: -1))
        #expect(Timestamp(microseconds: -1_000_001) == Timestamp(seconds: -2, nanoseconds: 999_999_000))
        var generator = Seeded(seed: 7)
        for _ in 0..<10_000 {
            let micros = Int64.random(in: -62_167_219_200_000_000...253_402_300_799_999_999, using: &generator)
            let time = Timestamp(microseconds: micros)
            #expect(time.microseconds == micros)
            #expect((0...999_999_999).contains(time.nanoseconds))
        }
    }

    @Test("adding and taking away durations is exact, with parts of either sign")
    func arithmetic() {
        let time = Timestamp(seconds: 10, nanoseconds: 500_000_000)
        #expect(time + .milliseconds(500) == Timestamp(seconds: 11))
        #expect(time + .milliseconds(-500) == Timestamp(seconds: 10))
        #expect(time + .milliseconds(-501) == Timestamp(seconds: 9, nanoseconds: 999_000_000))
        #expect(time - .seconds(11) == Timestamp(seconds: -1, nanoseconds: 500_000_000))
        #expect(time - Timestamp(seconds: 11, nanoseconds: 600_000_000) == .milliseconds(-1100))
        #expect(Timestamp(seconds: 0) - Timestamp(seconds: 0, nanoseconds: 1) == .nanoseconds(-1))
        #expect(Timestamp(seconds: 0) - .nanoseconds(1) == Timestamp(seconds: -1, nanoseconds: 999_999_999))
        var generator = Seeded(seed: 11)
        for _ in 0..<20_000 {
            let start = Timestamp(
                seconds: .random(in: -4_000_000_000...4_000_000_000, using: &generator),
                nanoseconds: .random(in: 0...999_999_999, using: &generator))
            let step = Duration.nanoseconds(Int64.random(in: -5_000_000_000...5_000_000_000, using: &generator))
            let end = start + step
            #expect((0...999_999_999).contains(end.nanoseconds))
            #expect(end - start == step)
            #expect(end - step == start)
            #expect((end < start) == (step < .zero) && (start < end) == (step > .zero))
        }
    }

    @Test("nanoseconds out of range are carried over, so that equal moments are equal")
    func carry() {
        #expect(Timestamp(seconds: 1, nanoseconds: 1_000_000_000) == Timestamp(seconds: 2))
        #expect(Timestamp(seconds: 1, nanoseconds: -1) == Timestamp(seconds: 0, nanoseconds: 999_999_999))
        #expect(Timestamp(seconds: 0, nanoseconds: .min).nanoseconds >= 0)
    }

    @Test("the system's clock is this year's")
    func systemClock() {
        let now = Timestamp.systemNow
        #expect(abs(Date().timeIntervalSince1970 - Double(now.seconds)) < 60)
        #expect(WallClock.system.now() >= now)
        #expect(WallClock { Timestamp(seconds: 5) }.now() == Timestamp(seconds: 5))
    }
}

@Suite("Days of the calendar")
struct CivilDateTests {
    @Test("every day of 1600 to 2400 is where counting day by day finds it")
    func everyDay() throws {
        // By the rule of the calendar itself: months of a table, a leap year by division.
        var year = 1600
        var month = 1
        var day = 1
        let lengths = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        var expected = try #require(Timestamp(rfc3339: "1600-01-01T00:00:00Z")).seconds / 86_400
        #expect(expected == -135_140)
        while year <= 2400 {
            let date = CivilDate(year: year, month: month, day: day)
            if Int64(date.daysSince1970) != expected || CivilDate(daysSince1970: Int(expected)) != date {
                Issue.record("\(year)-\(month)-\(day) is \(date.daysSince1970), not \(expected)")
                return
            }
            expected += 1
            day += 1
            let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
            if day > lengths[month - 1] + (month == 2 && leap ? 1 : 0) {
                day = 1
                month += 1
                if month > 12 {
                    month = 1
                    year += 1
                }
            }
        }
        #expect(CivilDate(year: 1970, month: 1, day: 1).daysSince1970 == 0)
    }

    @Test("it agrees with Foundation's calendar")
    func foundation() throws {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(secondsFromGMT: 0))
        var generator = Seeded(seed: 3)
        for _ in 0..<500 {
            let days = Int.random(in: -100_000...150_000, using: &generator)
            let parts = calendar.dateComponents(
                [.year, .month, .day], from: Date(timeIntervalSince1970: Double(days) * 86_400))
            let date = CivilDate(daysSince1970: days)
            #expect(date.year == parts.year && date.month == parts.month && date.day == parts.day)
        }
    }

    @Test(
        "February has the days that the rule of 400 years gives it",
        arguments: [(1600, 29), (1700, 28), (1900, 28), (2000, 29), (2023, 28), (2024, 29), (2100, 28), (2400, 29)])
    func february(year: Int, days: Int) {
        #expect(CivilDate.days(inMonth: 2, of: year) == days)
    }
}
