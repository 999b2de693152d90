import Basics
import Foundation
import HTTPClient
import Synchronization

/// Follows the feed, as a shop does, and tells who waits that an order is paid.
final class FeedWatcher: Sendable {
    private struct State {
        var paid: Set<String> = []
        var waiting: [String: CheckedContinuation<Bool, Never>] = [:]
        var seen: Set<String> = []
    }
    private let state = Mutex(State())
    private let rig: Rig
    private let figures: Figures

    init(_ rig: Rig, _ figures: Figures) {
        self.rig = rig
        self.figures = figures
    }

    /// Until its task is cancelled.
    func follow() async {
        var cursor = ""
        while !Task.isCancelled {
            let url = "\(rig.service.url)/v1/events?limit=500&wait=10&after=\(cursor)"
            let request = HTTPClientRequest(
                method: "GET", url: url, headers: ["Authorization": "Bearer \(rig.key)"], timeout: .seconds(30))
            guard let answer = try? await rig.client.send(request), answer.status == 200,
                let body = try? JSON(parsing: answer.body)
            else {
                if !Task.isCancelled { figures.fail("feed: no answer") }
                try? await Task.sleep(for: .milliseconds(100))
                continue
            }
            for event in body["events"]?.array ?? [] { take(event) }
            cursor = body["next"]?.string ?? cursor
        }
    }

    private func take(_ event: JSON) {
        let id = event["id"]?.string ?? ""
        guard event["type"]?.string == "checkout.paid", let checkout = event["data"]?["checkout"]?["id"]?.string else {
            return
        }
        let continuation = state.withLock { state in
            if !state.seen.insert(id).inserted { figures.fail("feed: an event twice") }
            if let waiting = state.waiting.removeValue(forKey: checkout) { return Optional(waiting) }
            if !state.paid.insert(checkout).inserted { figures.fail("feed: an order paid twice") }
            return nil
        }
        continuation?.resume(returning: true)
    }

    /// Whether the feed told in time that the checkout is paid.
    func wait(for checkout: String, atMost limit: Duration) async -> Bool {
        await withCheckedContinuation { continuation in
            let isPaid = state.withLock { state in
                if state.paid.remove(checkout) != nil { return true }
                state.waiting[checkout] = continuation
                return false
            }
            guard !isPaid else { return continuation.resume(returning: true) }
            Task {
                try? await Task.sleep(for: limit)
                state.withLock { $0.waiting.removeValue(forKey: checkout) }?.resume(returning: false)
            }
        }
    }
}
