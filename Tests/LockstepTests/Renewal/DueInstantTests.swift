import Basics
import Foundation
import Testing

@testable import Lockstep

@Suite("The moment at which a period is due")
struct DueInstantTests {
    /// On both sides of the date line, with clock changes at two, at three, at midnight, by half an hour, and with none.
    static let zones = [
        "Pacific/Kiritimati", "Pacific/Pago_Pago", "Pacific/Apia", "Pacific/Auckland", "Europe/Berlin",
        "America/New_York", "America/Los_Angeles", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Cairo",
        "Asia/Beirut", "America/Santiago", "UTC",
    ]

    @Test(
        "D4: midnight is the subscription's own, so one moment in UTC is another day elsewhere",
        arguments: [
            ("2026-12-31", "Pacific/Kiritimati", 0, "2026-12-30T10:00:00Z"),
            ("2026-12-31", "Pacific/Pago_Pago", 0, "2026-12-31T11:00:00Z"),
            ("2026-12-31", "Europe/Berlin", 0, "2026-12-30T23:00:00Z"),
            ("2026-07-01", "Europe/Berlin", 0, "2026-06-30T22:00:00Z"),
            ("2026-07-01", "America/New_York", 23, "2026-07-02T03:00:00Z"),
            ("2026-07-01", "Asia/Kolkata", 6, "2026-07-01T00:30:00Z"),
        ])
    func midnight(_ day: String, _ zone: String, _ hour: Int, _ moment: String) throws {
        try expect(day, zone, hour, moment)
    }

    @Test(
        "D9: an hour that clocks leave out is the moment of their change; one that comes twice is the first of the two",
        arguments: [
            // 02:00 becomes 03:00 at 01:00 UTC.
            ("2026-03-29", "Europe/Berlin", 1, "2026-03-29T00:00:00Z"),
            ("2026-03-29", "Europe/Berlin", 2, "2026-03-29T01:00:00Z"),
            ("2026-03-29", "Europe/Berlin", 3, "2026-03-29T01:00:00Z"),
            ("2026-03-29", "Europe/Berlin", 4, "2026-03-29T02:00:00Z"),
            // 03:00 becomes 02:00 at 01:00 UTC.
            ("2026-10-25", "Europe/Berlin", 1, "2026-10-24T23:00:00Z"),
            ("2026-10-25", "Europe/Berlin", 2, "2026-10-25T00:00:00Z"),
            ("2026-10-25", "Europe/Berlin", 3, "2026-10-25T02:00:00Z"),
            ("2026-03-08", "America/New_York", 2, "2026-03-08T07:00:00Z"),
            ("2026-11-01", "America/New_York", 1, "2026-11-01T05:00:00Z"),
            // Half an hour: 02:00 becomes 02:30, and back.
            ("2026-10-04", "Australia/Lord_Howe", 2, "2026-10-03T15:30:00Z"),
            ("2026-10-04", "Australia/Lord_Howe", 3, "2026-10-03T16:00:00Z"),
            // The day itself begins at one o'clock.
            ("2026-04-24", "Africa/Cairo", 0, "2026-04-23T22:00:00Z"),
            ("2026-04-24", "Africa/Cairo", 1, "2026-04-23T22:00:00Z"),
            // A day that a country left out when it changed its side of the date line.
            ("2011-12-29", "Pacific/Apia", 12, "2011-12-29T22:00:00Z"),
            ("2011-12-30", "Pacific/Apia", 12, "2011-12-30T10:00:00Z"),
            ("2011-12-31", "Pacific/Apia", 0, "2011-12-30T10:00:00Z"),
        ])
    func clockChanges(_ day: String, _ zone: String, _ hour: Int, _ moment: String) throws {
        try expect(day, zone, hour, moment)
    }

    private func expect(_ day: String, _ zone: String, _ hour: Int, _ moment: String) throws {
        let date = try #require(CivilDate(day))
        let zone = try #require(TimeZone(identifier: zone))
        #expect(date.moment(atHour: hour, in: zone).rfc3339 == moment)
    }

    @Test("D7 D8: on every day of eighteen months in every zone, each hour is one moment, neither skipped nor repeated")
    func everyDay() throws {
        for name in Self.zones {
            let zone = try #require(TimeZone(identifier: name))
            var foundation = Calendar(identifier: .gregorian)
            foundation.timeZone = zone
            var day = CivilDate(year: 2026, month: 1, day: 1)
            var last: [Int: Timestamp] = [:]
            for _ in 0..<550 {
                for hour in [0, 1, 2, 3, 23] {
                    let moment = day.moment(atHour: hour, in: zone)
                    if let before = last[hour] { #expect(before < moment) }
                    last[hour] = moment
                    // Read back by another implementation: that hour, or right after a change that left it out.
                    let shown = foundation.dateComponents(
                        [.year, .month, .day, .hour, .minute],
                        from: Date(timeIntervalSince1970: TimeInterval(moment.seconds)))
                    let justBefore = foundation.dateComponents(
                        [.day, .hour, .minute],
                        from: Date(timeIntervalSince1970: TimeInterval(moment.seconds - 1)))
                    let isShown = shown.hour == hour && shown.minute == 0
                    let isBefore = justBefore.day != day.day || (justBefore.hour ?? 0) < hour
                    let isLeftOut = isBefore && (shown.hour ?? 0, shown.minute ?? 0) > (hour, 0)
                    #expect(isShown || isLeftOut, "\(name) \(day) \(hour)")
                    #expect(shown.day == day.day && shown.month == day.month && shown.year == day.year)
                    #expect(CivilDate(of: moment, in: zone) == day)
                }
                day = day.adding(days: 1)
            }
        }
    }

    @Test("periods of every anchor day tile in time too, in every zone, 2024 to 2032")
    func tiling() throws {
        for name in Self.zones {
            let zone = try #require(TimeZone(identifier: name))
            for day in 1...31 {
                let calendar = BillingCalendar(
                    anchor: CivilDate(year: 2024, month: 1, day: day), interval: try BillingInterval("P1M"), zone: zone,
                    hour: 2)
                var last = calendar.dueAt(1)
                for index in 2...108 {
                    let due = calendar.dueAt(index)
                    #expect(last < due)
                    // 28 to 31 days, an hour more or less.
                    let hours = (due - last).components.seconds / 3600
                    #expect((28 * 24 - 1...31 * 24 + 1).contains(hours))
                    last = due
                }
            }
        }
    }
}
