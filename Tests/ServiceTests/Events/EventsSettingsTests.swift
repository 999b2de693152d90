import Basics
import Lockstep
import TestKit
import Testing

@testable import Service

@Suite("What events are sent with")
struct EventsSettingsTests {
    @Test("the patience is ten attempts within three days, or little more")
    func patience() throws {
        let retries = try Settings(environment: SettingsTests.least).events.retries
        #expect(retries.count == 9 && retries == retries.sorted() && retries.first == .seconds(5))
        let total = retries.reduce(.zero, +)
        #expect(total >= .seconds(3 * 86_400) && total <= .seconds(4 * 86_400))
    }

    @Test("the address is called as it was written, a slash at its end included")
    func exact() throws {
        for url in ["https://shop.example/hook/", "https://shop.example/hook", "https://shop.example/hook?key=1"] {
            let events = try Settings(
                environment: SettingsTests.least.merging([
                    "LOCKSTEP_EVENTS_URL": url, "LOCKSTEP_EVENTS_SECRET": PushHarness.secret,
                ]) { $1 }
            ).events
            #expect(events.url?.exact == url)
        }
    }

    @Test("an authority that can't be read stops the start with the setting's name")
    func authority() async throws {
        let shop = try ShopReceiver()
        let lockstep = try await PushHarness.start(shop, ["LOCKSTEP_EVENTS_CA": "/nowhere/ca.pem"], parts: nil)
        do {
            try await lockstep.startService()
            Issue.record("it started")
        } catch let refusal as StartRefusal {
            #expect(refusal.message.contains("LOCKSTEP_EVENTS_CA"))
        }
        await lockstep.stop()
        await shop.stop()
    }

    @Test("a shop for which it is too much is left alone as long as it says, a minute at most")
    func rest() {
        let now = ContinuousClock.now
        func isResting(_ answer: DeliveryAnswer) -> Bool {
            let rest = Rest()
            rest.heed(answer, now: now)
            return !rest.isOver
        }
        #expect(isResting(.refused(status: 429, retryAfter: .seconds(30))))
        #expect(isResting(.refused(status: 429, retryAfter: nil)))
        #expect(isResting(.refused(status: 503, retryAfter: .seconds(30))))
        #expect(!isResting(.refused(status: 503, retryAfter: nil)))
        #expect(!isResting(.refused(status: 500, retryAfter: .seconds(30))))
        #expect(!isResting(.accepted(status: 200)) && !isResting(.unanswered(.timedOut)))
        let rest = Rest()
        rest.heed(.refused(status: 429, retryAfter: .seconds(86_400)), now: now - Rest.longest)
        #expect(rest.isOver)
    }
}
