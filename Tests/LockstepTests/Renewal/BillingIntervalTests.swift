import Testing

@testable import Lockstep

@Suite("How far apart charges are")
struct BillingIntervalTests {
    @Test(
        "one unit within the contract's ranges is read, and written the same",
        arguments: ["P1D", "P365D", "P1W", "P52W", "P1M", "P3M", "P36M", "P1Y", "P5Y"])
    func read(_ text: String) throws {
        #expect(try BillingInterval(text).description == text)
    }

    @Test(
        "an interval of zero, of both months and days, or too long is refused with what is wrong",
        arguments: [
            ("P0M", BillingInterval.Fault.zero), ("P00D", .zero), ("P1M1D", .severalUnits), ("P1Y6M", .severalUnits),
            ("P366D", .tooLong(.days)), ("P53W", .tooLong(.weeks)), ("P37M", .tooLong(.months)),
            ("P6Y", .tooLong(.years)), ("P99999999999999999999D", .tooLong(.days)),
        ])
    func refused(_ text: String, _ fault: BillingInterval.Fault) {
        #expect(throws: fault) { try BillingInterval(text) }
    }

    @Test(
        "what isn't such a duration is refused",
        arguments: [
            "", "P", "1M", "PM", "P1", "p1m", "P1m", "P-1M", "-P1M", "P+1M", "P1.5M", "P1,5M", "P01M", "PT1H", "P1DT0H",
            "P1M ", " P1M", "P１M", "P1H", "month",
        ])
    func unreadable(_ text: String) {
        #expect(throws: BillingInterval.Fault.notDuration) { try BillingInterval(text) }
    }
}
