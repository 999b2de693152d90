import Basics
import Foundation
import Lockstep
import Payrails
import Store

/// The background work of a process: applying notifications, finishing operations, asking about what should have been
/// told, and settling what time alone changes. Any number of processes may do it on one database.
public struct Workers: Sendable {
    let orchestrator: Orchestrator
    let authenticator: StoreAuthenticator
    let bells: Bells
    let notifications: NotificationMetrics
    /// See ``PaymentStore/oldestSnapshotAge()``.
    let oldestSnapshot: GaugeFamily?
    /// How many discrepancies are open, by class.
    let discrepancies: GaugeFamily?
    let renewals: RenewalMetrics?
    /// Nil where no address is set: the shop reads the feed.
    let events: EventPusher?
    let log: Log
    let pace: Pace
    /// Only notes when keys were used; another process does the work (`--no-workers`).
    let isIdle: Bool

    /// How often each kind of work is looked for when nothing rings.
    public struct Pace: Sendable {
        public var notifications: Duration = .milliseconds(500)
        public var operations: Duration = .milliseconds(500)
        public var readings: Duration = .seconds(1)
        public var settling: Duration = .seconds(1)
        public var tidying: Duration = .seconds(60)
        /// What has become a discrepancy by its age alone.
        public var ageing: Duration = .seconds(10)
        /// When it was counted what waits.
        public var counting: Duration = .seconds(10)
        /// When it was noted that a key was used.
        public var noting: Duration = .seconds(10)
        /// Renewals; nil: only `lockstep renew` makes them.
        public var renewals: Duration?
        /// How many calls to the provider each kind of work makes at once.
        public var concurrency = 8
        /// How many subscriptions a run deals with at once.
        public var renewalConcurrency = 8

        public init() {}
    }

    init(
        orchestrator: Orchestrator, authenticator: StoreAuthenticator, bells: Bells, notifications: NotificationMetrics,
        oldestSnapshot: GaugeFamily? = nil, discrepancies: GaugeFamily? = nil, renewals: RenewalMetrics? = nil,
        events: EventPusher? = nil, log: Log, pace: Pace = Pace(), isIdle: Bool = false
    ) {
        self.orchestrator = orchestrator
        self.authenticator = authenticator
        self.bells = bells
        self.notifications = notifications
        self.oldestSnapshot = oldestSnapshot
        self.discrepancies = discrepancies
        self.renewals = renewals
        self.events = events
        self.log = log
        self.pace = pace
        self.isIdle = isIdle
    }

    /// Runs until the bell is closed; what is in flight then is finished first (invariant M13).
    public func run() async {
        await withTaskGroup { group in
            group.addTask {
                await loop(every: pace.noting, orWhen: bells.time) {
                    try await authenticator.flush()
                    return 0
                }
                // What was seen since the last time isn't lost with the process that ends in order.
                try? await authenticator.flush()
            }
            group.addTask {
                await loop(every: pace.counting, orWhen: bells.time) {
                    try await countNotifications()
                    oldestSnapshot?.set(try await orchestrator.store.oldestSnapshotAge())
                    try await countDiscrepancies()
                    renewals?.show(try await orchestrator.store.renewalStanding())
                    return 0
                }
            }
            guard !isIdle else { return }
            group.addTask {
                await loop(every: pace.notifications, orWhen: bells.notifications) {
                    let count = try await applyNotifications()
                    if count >= Self.applyBatch { bells.backlog.ring() }
                    return count
                }
            }
            // While one batch is decided here, the database can work on another. Only where more waits than one batch:
            // two that share little cost more than one that has it all.
            group.addTask {
                await loop(every: pace.counting, orWhen: bells.backlog) {
                    let count = try await applyNotifications()
                    return count >= Self.applyBatch ? count : 0
                }
            }
            group.addTask {
                await loop(every: pace.operations, orWhen: bells.operations) { try await advanceOperations() }
            }
            group.addTask {
                await loop(every: pace.operations, orWhen: bells.operations) { try await advanceCharges() }
            }
            if let renewals = pace.renewals {
                group.addTask { await loop(every: renewals, orWhen: bells.time) { try await renew() } }
            }
            group.addTask { await loop(every: pace.readings, orWhen: bells.time) { try await readExecutions() } }
            group.addTask {
                await loop(every: pace.settling, orWhen: bells.time) {
                    try await orchestrator.store.settleDue(limit: 200)
                }
            }
            group.addTask {
                await loop(every: pace.ageing, orWhen: bells.time) {
                    let opened = try await orchestrator.store.openAgedDiscrepancies(limit: 200)
                    if opened > 0 { bells.feed.ring() }
                    return opened
                }
            }
            group.addTask {
                await loop(every: pace.tidying, orWhen: bells.time) {
                    try await orchestrator.store.tidy(limit: 1000)
                }
            }
            guard let events else { return }
            group.addTask {
                await loop(every: pace.operations, orWhen: bells.feed) { try await events.queue() }
                events.close()
            }
            group.addTask { await events.send() }
        }
    }

    /// Does one kind of work again and again: at once while there is some, else when rung or after the pace.
    private func loop(every pace: Duration, orWhen bell: Bell, _ work: @Sendable () async throws -> Int) async {
        var failures = 0
        while !bell.isClosed {
            let rung = bell.count
            var found = 0
            do {
                found = try await work()
                failures = 0
            } catch {
                failures += 1
                log.error("background work failed; it will be tried again", .error(error), .count("failures", failures))
            }
            guard found == 0 else { continue }
            // A database that is down is not asked more and more often by the bell.
            await bell.wait(since: failures > 0 ? bell.count : rung, atMost: pace * min(1 + failures, 10))
        }
    }

    private func countNotifications() async throws {
        notifications.show(
            try await orchestrator.store.notificationStanding(),
            lastAt: try await orchestrator.store.lastNotificationAt())
    }

    private func countDiscrepancies() async throws {
        guard let discrepancies else { return }
        let open = try await orchestrator.store.countOpenDiscrepancies()
        for kind in Discrepancy.Class.allCases { discrepancies.set(open[kind] ?? 0, kind.rawValue) }
    }

    /// Of the notifications in one transaction: enough that its dozen of statements cost little for each, few enough that
    /// their checkouts aren't locked for long.
    private static let applyBatch = 500

    func applyNotifications() async throws -> Int {
        let count = try await orchestrator.store.applyNotifications(limit: Self.applyBatch) { body, receivedAt in
            PayrailsNotification.parse(body, receivedAt: receivedAt).meaning
        }
        notifications.applied.add(count.applied, "applied")
        notifications.applied.add(count.parked, "parked")
        notifications.applied.add(count.ignored, "ignored")
        notifications.applied.add(count.dead, "dead")
        if count.dead > 0 {
            log.error("notifications could not be applied and are set aside", .count("dead", count.dead))
        }
        if count.applied > 0 {
            bells.feed.ring()
            bells.operations.ring()
        }
        return count.total
    }

    func advanceOperations() async throws -> Int {
        let claimed = try await orchestrator.store.claimOperations(
            limit: pace.concurrency, owner: orchestrator.owner)
        await withTaskGroup { group in
            for operation in claimed {
                group.addTask {
                    do {
                        try await orchestrator.advance(operation)
                    } catch {
                        log.error(
                            "an operation could not be advanced", .operation(operation.operation.id), .error(error))
                    }
                }
            }
        }
        if !claimed.isEmpty { bells.feed.ring() }
        return claimed.count
    }

    /// Begins attempts of unscheduled charges that nobody works on. What is begun goes on as operations.
    func advanceCharges() async throws -> Int {
        let claimed = try await orchestrator.store.claimUnscheduledCharges(limit: pace.concurrency)
        let runner = ChargeRunner(orchestrator)
        await withTaskGroup { group in
            for charge in claimed {
                group.addTask {
                    do {
                        _ = try await runner.run(charge)
                    } catch {
                        log.error(
                            "a charge could not be attempted", .id("chargeId", charge.charge.id.uuid), .error(error))
                    }
                }
            }
        }
        if !claimed.isEmpty { bells.feed.ring() }
        return claimed.count
    }

    /// A whole run over what is due. Runs of other processes are left alone.
    func renew() async throws -> Int {
        let runner = RenewalRunner(
            orchestrator, run: orchestrator.store.newRun(),
            options: RenewalRunner.Options(concurrency: pace.renewalConcurrency))
        let summary = try await runner.perform(isStopping: { bells.isClosed })
        if summary.looked > 0 {
            log.notice(
                "renewals were made", .count("subscriptions", summary.looked),
                .flag("isUnfinished", summary.isUnfinished))
            bells.feed.ring()
            bells.operations.ring()
        }
        return 0
    }

    func readExecutions() async throws -> Int {
        let due = try await orchestrator.store.claimReadings(limit: pace.concurrency)
        await withTaskGroup { group in
            for execution in due {
                group.addTask {
                    do {
                        try await orchestrator.refresh(execution)
                    } catch {
                        log.error("an execution could not be healed", .execution(execution.id), .error(error))
                    }
                }
            }
        }
        if !due.isEmpty {
            bells.feed.ring()
            bells.operations.ring()
        }
        return due.count
    }
}

extension ParsedNotification {
    /// What the books make of it.
    var meaning: NotificationMeaning {
        switch self {
        case .facts(let notification):
            if let execution = notification.executionID {
                .facts(notification.facts, about: execution, event: notification.event)
            } else {
                notification.hint()
            }
        case .ignored(let notification): notification.hint()
        case .undecided(let notification, let reason): notification.hint(reason: reason)
        case .unreadable(let reason): .unreadable(reason: reason)
        }
    }
}

extension PayrailsNotification {
    /// Something happened to an execution, and reading it tells what. One that is known by its reference alone could be
    /// another with the same reference, so what is said of it isn't taken for a fact.
    fileprivate func hint(reason: String? = nil) -> NotificationMeaning {
        // Each order has one of these, and what it tells was known when the execution was made.
        if event == "executionCreated" { return .ignored(event: event) }
        if let executionID { return .hint(.execution(executionID), event: event, reason: reason) }
        return merchantReference.map { .hint(.reference($0), event: event, reason: reason) } ?? .ignored(event: event)
    }
}
