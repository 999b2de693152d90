import Basics
import Foundation
import Lockstep
import Store

extension API {
    /// `GET /v1/events?after=&limit=&wait=`
    func readEvents(_ request: Request) async throws -> Answer {
        guard case .merchantKey(let key, _, let scopes) = try request.authenticated() else { throw Problem(.forbidden) }
        let query = try request.readQuery { query in
            (
                after: query.parsed("after", "must be a cursor that the feed gave out") { FeedCursor($0) } ?? .start,
                limit: query.limit(maximum: 500, default: 50), wait: query.integer("wait", in: 0...30) ?? 0
            )
        }
        let deadline = ContinuousClock.now + .seconds(query.wait)
        let bell = bells.feed
        var isChecked = false
        while true {
            let rung = bell.count
            let events = try await store.readEvents(after: query.after, scopes: scopes, limit: query.limit)
            if events.isEmpty, !isChecked {
                isChecked = true
                guard try await !store.isBeyondFeed(query.after) else {
                    throw Problem.invalid("/after", "is beyond the end of this feed; was the database restored?")
                }
            }
            let left = deadline - .now
            if !events.isEmpty || left <= .zero || bell.isClosed {
                // Whoever waits was believed up to half a minute ago; a key that was revoked since then reads nothing more.
                if query.wait > 0, !events.isEmpty, try await !store.isInForce(key) {
                    throw Problem(.unauthorized, "Authorization must be a Bearer token that is in force")
                }
                return .ok([
                    "events": .array(events.map(\.json)),
                    "next": .string((events.last?.cursor ?? query.after).description),
                ])
            }
            // Another process may write too, so the bell is not enough: look again after a moment at the latest.
            await bell.wait(since: rung, atMost: min(left, .milliseconds(500)))
        }
    }
}
