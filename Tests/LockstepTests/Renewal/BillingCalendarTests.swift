import Basics
import Foundation
import Testing

@testable import Lockstep

@Suite("When periods begin")
struct BillingCalendarTests {
    /// Days of each month, written down. 2024, 2028 and 2032 are leap years.
    static func lastDay(_ month: Int, _ year: Int) -> Int {
        [31, [2024, 2028, 2032].contains(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month - 1]
    }

    static func calendar(
        _ anchor: String, _ interval: String, _ zone: String = "Europe/Berlin", hour: Int = 0
    ) throws -> BillingCalendar {
        BillingCalendar(
            anchor: try #require(CivilDate(anchor)), interval: try BillingInterval(interval),
            zone: try #require(TimeZone(identifier: zone)), hour: hour)
    }

    static func starts(_ calendar: BillingCalendar, _ count: Int) -> [String] {
        (1...count).map { calendar.start(of: $0).description }
    }

    @Test("D1: the anchor's day comes back after a short month")
    func anchorKept() throws {
        #expect(
            Self.starts(try Self.calendar("2026-01-31", "P1M"), 14) == [
                "2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30", "2026-05-31", "2026-06-30", "2026-07-31",
                "2026-08-31", "2026-09-30", "2026-10-31", "2026-11-30", "2026-12-31", "2027-01-31", "2027-02-28",
            ])
        #expect(
            Self.starts(try Self.calendar("2027-11-30", "P1M"), 5) == [
                "2027-11-30", "2027-12-30", "2028-01-30", "2028-02-29", "2028-03-30",
            ])
        #expect(
            Self.starts(try Self.calendar("2026-08-31", "P3M"), 4) == [
                "2026-08-31", "2026-11-30", "2027-02-28", "2027-05-31",
            ])
    }

    @Test("D2: 29 February yearly is the 28th in common years, and the 29th again in leap years")
    func leapDay() throws {
        #expect(
            Self.starts(try Self.calendar("2024-02-29", "P1Y"), 9) == [
                "2024-02-29", "2025-02-28", "2026-02-28", "2027-02-28", "2028-02-29", "2029-02-28", "2030-02-28",
                "2031-02-28", "2032-02-29",
            ])
    }

    @Test("weeks and days are counted, whatever the months")
    func weeksAndDays() throws {
        #expect(
            Self.starts(try Self.calendar("2028-02-22", "P1W"), 3) == ["2028-02-22", "2028-02-29", "2028-03-07"])
        #expect(
            Self.starts(try Self.calendar("2026-12-30", "P2W"), 3) == ["2026-12-30", "2027-01-13", "2027-01-27"])
        #expect(
            Self.starts(try Self.calendar("2027-12-31", "P365D"), 3) == ["2027-12-31", "2028-12-30", "2029-12-30"])
    }

    @Test(
        "D2: every anchor day, monthly, quarterly and yearly, from 2024 to 2032: the day, or its month's last",
        arguments: [("P1M", 1), ("P3M", 3), ("P1Y", 12), ("P5M", 5), ("P36M", 36)])
    func allAnchors(_ interval: String, _ months: Int) throws {
        for anchorMonth in 1...12 {
            for anchorDay in 1...Self.lastDay(anchorMonth, 2024) {
                let calendar = BillingCalendar(
                    anchor: CivilDate(year: 2024, month: anchorMonth, day: anchorDay),
                    interval: try BillingInterval(interval), zone: .gmt)
                var (year, month, index) = (2024, anchorMonth, 1)
                while year <= 2032 {
                    let expected = CivilDate(
                        year: year, month: month, day: min(anchorDay, Self.lastDay(month, year)))
                    let period = calendar.period(index)
                    #expect(period.start == expected)
                    #expect(period.index == index)
                    #expect(period.end == calendar.period(index + 1).start, "no gap and no overlap")
                    #expect(period.start < period.end)
                    month += months
                    while month > 12 { (year, month) = (year + 1, month - 12) }
                    index += 1
                }
            }
        }
    }

    @Test("a new anchor goes on with the numbers, from whichever period begins there")
    func newAnchor() throws {
        let calendar = BillingCalendar(
            anchor: CivilDate(year: 2026, month: 5, day: 31), anchorIndex: 4, interval: try BillingInterval("P1M"),
            zone: .gmt)
        #expect(calendar.start(of: 4).description == "2026-05-31")
        #expect(calendar.start(of: 5).description == "2026-06-30")
        #expect(calendar.start(of: 1).description == "2026-02-28")
    }

    @Test("the newest due period, around the second at which each is due")
    func newestDue() throws {
        for zone in ["Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Berlin", "UTC"] {
            for interval in ["P1D", "P1W", "P1M", "P3M", "P1Y"] {
                let calendar = try Self.calendar("2024-01-31", interval, zone, hour: 3)
                for index in [1, 2, 3, 12, 50, 400] {
                    let due = calendar.dueAt(index)
                    #expect(calendar.newestDue(at: due) == index)
                    #expect(calendar.newestDue(at: due - .nanoseconds(1)) == index - 1)
                    #expect(calendar.newestDue(at: due + .seconds(3600)) == index)
                }
            }
        }
    }
}
