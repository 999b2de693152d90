import Basics
import Foundation
import Testing

@testable import Lockstep

@Suite("When a period is tried again")
struct DunningScheduleTests {
    static func at(_ text: String) throws -> Timestamp { try #require(Timestamp(rfc3339: text)) }

    @Test("days after the due day, at an hour of the zone, through a clock change, and then no more")
    func steps() throws {
        let berlin = try #require(TimeZone(identifier: "Europe/Berlin"))
        let due = CivilDate(year: 2026, month: 3, day: 24)
        let schedule = DunningSchedule.standard
        var last = try Self.at("2026-03-23T23:00:00Z")
        var times: [String] = []
        var attempts = 1
        while let next = schedule.next(dueDay: due, attempts: attempts, last: last, zone: berlin) {
            times.append(next.rfc3339)
            last = next
            attempts += 1
        }
        #expect(
            times == [
                "2026-03-27T08:00:00Z", "2026-03-29T07:00:00Z", "2026-04-03T07:00:00Z", "2026-04-10T07:00:00Z",
            ])
    }

    @Test("the limit ends it before the schedule does")
    func limit() throws {
        let schedule = DunningSchedule(
            steps: [.init(day: 1, hour: 0), .init(day: 2, hour: 0), .init(day: 3, hour: 0)], limit: 2, windowDays: 3,
            configurationRetryHours: 1, caps: [:])
        let due = CivilDate(year: 2026, month: 1, day: 1)
        let last = due.moment(atHour: 0, in: .gmt)
        #expect(schedule.next(dueDay: due, attempts: 1, last: last, zone: .gmt) != nil)
        #expect(schedule.next(dueDay: due, attempts: 2, last: last, zone: .gmt) == nil)
    }

    @Test("a late attempt isn't followed by another one on the same day, and steps that have passed are over")
    func late() throws {
        let due = CivilDate(year: 2026, month: 1, day: 1)
        let schedule = DunningSchedule.standard
        let onThird = try Self.at("2026-01-04T23:59:59Z")
        #expect(
            schedule.next(dueDay: due, attempts: 2, last: onThird, zone: .gmt)?.rfc3339 == "2026-01-06T09:00:00Z")
        let aWeekLate = try Self.at("2026-01-08T04:00:00Z")
        #expect(
            schedule.next(dueDay: due, attempts: 1, last: aWeekLate, zone: .gmt)?.rfc3339 == "2026-01-11T09:00:00Z")
        let aMonthLate = try Self.at("2026-02-08T04:00:00Z")
        #expect(schedule.next(dueDay: due, attempts: 1, last: aMonthLate, zone: .gmt) == nil)
    }

    @Test("no more than 15 declined attempts in 30 days for a card, whatever the subscriptions")
    func cap() throws {
        let now = try Self.at("2026-06-30T12:00:00Z")
        let cap = DunningSchedule.standard.cap(of: "Visa")
        #expect(cap == DunningSchedule.Cap(attempts: 15, days: 30))
        #expect(DunningSchedule.standard.cap(of: nil) == cap)
        #expect(DunningSchedule.standard.cap(of: "unheardOf") == cap)
        let declines = (0..<15).map { now - .seconds(Int64($0 + 1) * 86_400) }
        #expect(cap.freeAt(after: Array(declines.prefix(14)), now: now) == nil)
        #expect(cap.freeAt(after: declines, now: now) == now + .seconds(15 * 86_400))
        #expect(cap.freeAt(after: declines.shuffled(), now: now) == now + .seconds(15 * 86_400))
        // A sixteenth, which should not have been: the second oldest has to leave too.
        #expect(cap.freeAt(after: declines + [now - .seconds(60)], now: now) == now + .seconds(16 * 86_400))
        // What lies more than 30 days back counts no more.
        #expect(cap.freeAt(after: declines.map { $0 - .seconds(30 * 86_400) }, now: now) == nil)
    }

    @Test("a network's own cap counts for it")
    func ownCap() throws {
        let table = """
            {"attempts": [{"day": 1, "hour": 0}], "limit": 2, "windowDays": 5, "configurationRetryHours": 1,
             "networkCaps": {"default": {"attempts": 15, "days": 30}, "Mastercard": {"attempts": 2, "days": 1}}}
            """
        let schedule = try DunningSchedule(table: Data(table.utf8))
        #expect(schedule.cap(of: "mastercard") == DunningSchedule.Cap(attempts: 2, days: 1))
        #expect(schedule.cap(of: "MASTERCARD") == DunningSchedule.Cap(attempts: 2, days: 1))
        #expect(schedule.cap(of: "visa").attempts == 15)
    }

    @Test(
        "a bad table is refused with what is wrong and where",
        arguments: [
            ("nothing", "JSON"),
            (#"{"attempts": []}"#, "attempts"),
            (#"{"attempts": [{"day": 0, "hour": 9}]}"#, "attempts/0: day"),
            (#"{"attempts": [{"day": 1, "hour": 24}]}"#, "attempts/0: hour"),
            (#"{"attempts": [{"day": 3, "hour": 9}, {"day": 3, "hour": 10}]}"#, "attempts/1: day"),
            (#"{"attempts": [{"day": 3, "hour": 9}], "windowDays": 2}"#, "windowDays"),
            (
                #"{"attempts": [{"day": 3, "hour": 9}], "windowDays": 3, "limit": 0, "configurationRetryHours": 1, "networkCaps": {"default": {"attempts": 1, "days": 1}}}"#,
                "limit"
            ),
            (
                #"{"attempts": [{"day": 3, "hour": 9}], "windowDays": 3, "limit": 1, "configurationRetryHours": 1, "networkCaps": {"visa": {"attempts": 1, "days": 1}}}"#,
                "default"
            ),
        ])
    func bad(_ table: String, _ wording: String) {
        let fault = #expect(throws: TableFault.self) { try DunningSchedule(table: Data(table.utf8)) }
        #expect(fault?.detail.contains(wording) == true, "\(String(describing: fault?.detail))")
    }

    @Test("the table that is compiled in is the one in config, and is readable")
    func compiledIn() {
        #expect(DunningSchedule.standard.steps.count == 4)
        #expect(DunningSchedule.standard.limit == 5)
        #expect(DunningSchedule.standard.windowDays == 21)
    }
}
