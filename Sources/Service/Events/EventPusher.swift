import Basics
import Foundation
import Lockstep
import Store

/// Sends the feed to the shop, event by event. Any number of processes do it together on one database.
///
/// At least once, and in the feed's order for each checkout: an event is sent when the one before it was accepted or is
/// dead. Whoever dies between sending and writing down leaves a lease, and after it the event is sent again under the
/// same `webhook-id`.
struct EventPusher: Sendable {
    let store: PaymentStore
    let sender: EventSender
    let schedule: DeliverySchedule
    /// How long an attempt and the writing down of its answer may take.
    let lease: Duration
    /// Attempts at once.
    let concurrency: Int
    /// How often what other processes queued, and what is due again, is looked for.
    let poll: Duration
    let metrics: DeliveryMetrics
    let log: Log
    /// Until when nothing new is sent, because the shop asked for it.
    private let rest = Rest()
    /// Rung when something was queued here; not the process's own, which would wake everybody for each event.
    private let queued = Bell()

    init(
        store: PaymentStore, sender: EventSender, schedule: DeliverySchedule, lease: Duration, concurrency: Int,
        poll: Duration, metrics: DeliveryMetrics, log: Log
    ) {
        self.store = store
        self.sender = sender
        self.schedule = schedule
        self.lease = lease
        self.concurrency = concurrency
        self.poll = poll
        self.metrics = metrics
        self.log = log
    }

    /// Queues what is new in the feed. How much it was.
    func queue() async throws -> Int {
        let count = try await store.queueDeliveries(limit: 500)
        if count > 0 { queued.ring() }
        if metrics.isStale() { metrics.show(try await store.readDeliveryBacklog()) }
        return count
    }

    /// Nothing new is taken any more; what is in flight is finished.
    func close() { queued.close() }

    /// Sends what is due until it is closed, then finishes what is in flight (invariant M13).
    func send() async {
        await withTaskGroup(of: Step.self) { group in
            var free = concurrency
            var isListening = false
            var failures = 0
            while true {
                let rung = queued.count
                if !queued.isClosed, free > 0, rest.isOver {
                    do {
                        let claimed = try await store.claimDeliveries(limit: free, lease: lease)
                        for delivery in claimed { group.addTask { await attempt(delivery) } }
                        free -= claimed.count
                        failures = 0
                    } catch {
                        failures += 1
                        log.error("events could not be taken for sending", .error(error), .count("failures", failures))
                    }
                }
                if !queued.isClosed, !isListening {
                    let pause = poll * min(1 + failures, 10)
                    group.addTask { [queued] in
                        await queued.wait(since: rung, atMost: pause)
                        return .woken
                    }
                    isListening = true
                }
                switch await group.next() {
                case .woken: isListening = false
                case .attempted: free += 1
                case nil: return
                }
            }
        }
        await sender.client.shutdown()
    }

    private enum Step { case woken, attempted }

    private func attempt(_ delivery: ClaimedDelivery) async -> Step {
        let began = ContinuousClock.now
        let answer = await sender.send(delivery.event)
        guard let answer else { return .attempted }
        metrics.count(answer, took: .now - began)
        rest.heed(answer)
        let verdict = schedule.verdict(on: answer, attempt: delivery.attempt, jitter: .random(in: 0...255))
        tell(delivery, answer, verdict)
        await writeDown(delivery, answer, verdict, until: began + lease)
        return .attempted
    }

    /// A database that is away for a moment must not make the shop get everything twice.
    private func writeDown(
        _ delivery: ClaimedDelivery, _ answer: DeliveryAnswer, _ verdict: DeliveryVerdict,
        until end: ContinuousClock.Instant
    ) async {
        while true {
            do {
                if try await !store.finishDelivery(delivery, answer, verdict) {
                    log.warning("an event took longer than its lease; it is sent again", .event(delivery.event.id))
                }
                return
            } catch {
                guard !Task.isCancelled, .now + poll < end else {
                    return log.error(
                        "what became of an event could not be written down; it is sent again",
                        .event(delivery.event.id), .error(error))
                }
                try? await Task.sleep(for: poll)
            }
        }
    }

    private func tell(_ delivery: ClaimedDelivery, _ answer: DeliveryAnswer, _ verdict: DeliveryVerdict) {
        let log = log.with(.event(delivery.event.id), .count("attempt", delivery.attempt))
        let why: LogField =
            if let failure = answer.failure { .word("failure", failure) } else { .status(answer.status ?? 0) }
        switch verdict {
        case .delivered: log.debug("the shop took an event", why)
        // A receiver that is down refuses by the thousand; the metrics tell how many.
        case .retry(let after): log.info("the shop did not take an event; it is sent again", why, .after(after))
        case .dead: log.error("the shop did not take an event; it is dead, see lockstep events", why)
        }
    }
}
