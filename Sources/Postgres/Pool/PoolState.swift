/// The pool as a value: events go in, actions come out, and nothing here waits, locks or talks.
///
/// Waiters are served first come, first served. Connections are opened when somebody waits for one, at most as many at
/// once as there are waiters. After a failure one attempt at a time is made, with growing pauses, and waiters keep
/// waiting: a database that comes back within their time serves them.
struct PoolState {
    typealias Instant = ContinuousClock.Instant

    struct Limits: Sendable {
        var maximumConnections: Int
        var maximumWaiters: Int
        /// A connection that was idle for longer is checked before it is used.
        var idleCheckInterval: Duration
    }

    enum Action: Equatable, Sendable {
        case open(ConnectionID)
        case close(ConnectionID)
        /// Ask for a sign of life; answered by ``PoolState/prepared(_:isUsable:now:)``.
        case check(ConnectionID)
        /// End the transaction that was left open; answered by ``PoolState/prepared(_:isUsable:now:)``.
        case rollBack(ConnectionID)
        case grant(WaiterID, ConnectionID)
        case fail(WaiterID, Refusal)
        /// Call ``PoolState/tick(now:)`` then.
        case wake(Instant)
        /// Shut down, and no connection is left.
        case drained
    }

    enum Refusal: Equatable, Sendable {
        case exhausted, timedOut, unreachable, cancelled, shutDown
    }

    struct WaiterID: Hashable, Sendable { let value: UInt64 }

    private enum Phase: Equatable {
        case opening
        case idle(since: Instant)
        /// Being checked or rolled back.
        case preparing
        case leased
    }

    private struct Waiter {
        let id: WaiterID
        let deadline: Instant
    }

    private let limits: Limits
    private var connections: [ConnectionID: Phase] = [:]
    /// Idle connections, the one used last at the end: it is taken first, and the others may grow old.
    private var idle: [ConnectionID] = []
    private var waiters: [Waiter] = []
    private var lastConnection: UInt64 = 0
    private var isShutDown = false
    /// Failures to open in a row.
    private var failures = 0
    private var nextAttempt: Instant?
    /// The earliest wake that was asked for and has not come.
    private var nextWake: Instant?
    private(set) var statistics = PostgresPool.Statistics()

    init(limits: Limits) { self.limits = limits }
}

// MARK: Waiters

extension PoolState {
    /// Somebody wants a connection.
    mutating func acquire(_ waiter: WaiterID, deadline: Instant, now: Instant) -> [Action] {
        if isShutDown { return [.fail(waiter, .shutDown)] }
        if deadline <= now { return [refuse(waiter, .timedOut)] }
        if waiters.isEmpty, let id = idle.last, isFresh(id, now) {
            idle.removeLast()
            return [lease(id, to: waiter)]
        }
        guard waiters.count < limits.maximumWaiters else { return [refuse(waiter, .exhausted)] }
        waiters.append(Waiter(id: waiter, deadline: deadline))
        return prepareForWaiters(now) + wake(at: deadline)
    }

    /// The waiter's task was cancelled. No answer when it has been served already.
    mutating func cancel(_ waiter: WaiterID) -> [Action] {
        guard let place = waiters.firstIndex(where: { $0.id == waiter }) else { return [] }
        waiters.remove(at: place)
        return [.fail(waiter, .cancelled)]
    }

    /// The time of an earlier ``Action/wake(_:)`` has come.
    mutating func tick(now: Instant) -> [Action] {
        if let nextWake, nextWake <= now { self.nextWake = nil }
        var actions = expire(now) + prepareForWaiters(now)
        if let earliest = waiters.map(\.deadline).min() { actions += wake(at: earliest) }
        return actions
    }

    private mutating func expire(_ now: Instant) -> [Action] {
        let late = waiters.filter { $0.deadline <= now }
        guard !late.isEmpty else { return [] }
        waiters.removeAll { $0.deadline <= now }
        // With connections open the database is there, and they were in use.
        let isUnreachable = failures > 0 && !connections.values.contains { $0 != .opening }
        return late.map { refuse($0.id, isUnreachable ? .unreachable : .timedOut) }
    }

    private mutating func refuse(_ waiter: WaiterID, _ refusal: Refusal) -> Action {
        switch refusal {
        case .exhausted: statistics.refused += 1
        case .timedOut, .unreachable: statistics.timedOut += 1
        case .cancelled, .shutDown: break
        }
        return .fail(waiter, refusal)
    }

    private mutating func wake(at instant: Instant) -> [Action] {
        if let nextWake, nextWake <= instant { return [] }
        nextWake = instant
        return [.wake(instant)]
    }
}

// MARK: Connections

extension PoolState {
    mutating func opened(_ id: ConnectionID, now: Instant) -> [Action] {
        guard connections[id] == .opening else { return [] }
        failures = 0
        nextAttempt = nil
        return makeAvailable(id, now) + prepareForWaiters(now)
    }

    /// - Parameter spread: 0 to 1, at random, so that many processes don't try again in step.
    mutating func failedToOpen(_ id: ConnectionID, now: Instant, spread: Double) -> [Action] {
        guard connections.removeValue(forKey: id) == .opening else { return [] }
        failures += 1
        statistics.connectFailures += 1
        nextAttempt = now + Self.pause(afterFailures: failures, spread: spread)
        return expire(now) + prepareForWaiters(now)
    }

    /// 50 ms, doubling up to 1.6 s, of which a random part of up to a half is left out.
    static func pause(afterFailures failures: Int, spread: Double) -> Duration {
        let whole = Duration.milliseconds(50 << min(max(failures, 1) - 1, 5))
        return whole * (1 - spread / 2)
    }

    /// An open connection broke, whatever it was used for.
    mutating func lost(_ id: ConnectionID, now: Instant) -> [Action] {
        guard connections.removeValue(forKey: id) != nil else { return [] }
        idle.removeAll { $0 == id }
        return prepareForWaiters(now) + drainedIfEmpty()
    }

    /// A lease has ended.
    mutating func released(_ id: ConnectionID, _ condition: ConnectionCondition, now: Instant) -> [Action] {
        guard connections[id] == .leased else { return [] }
        switch condition {
        case .clean:
            return makeAvailable(id, now)
        case .inTransaction:
            if isShutDown { return discard(id, now) }
            connections[id] = .preparing
            return [.rollBack(id)]
        case .broken:
            return discard(id, now)
        }
    }

    /// A check or a rollback has ended.
    mutating func prepared(_ id: ConnectionID, isUsable: Bool, now: Instant) -> [Action] {
        guard connections[id] == .preparing else { return [] }
        return isUsable ? makeAvailable(id, now) : discard(id, now)
    }

    private mutating func discard(_ id: ConnectionID, _ now: Instant) -> [Action] {
        connections[id] = nil
        return [.close(id)] + prepareForWaiters(now) + drainedIfEmpty()
    }

    private mutating func makeAvailable(_ id: ConnectionID, _ now: Instant) -> [Action] {
        if isShutDown { return discard(id, now) }
        var actions = expire(now)
        if waiters.isEmpty {
            connections[id] = .idle(since: now)
            idle.append(id)
        } else {
            actions.append(lease(id, to: waiters.removeFirst().id))
        }
        return actions
    }

    private mutating func lease(_ id: ConnectionID, to waiter: WaiterID) -> Action {
        connections[id] = .leased
        statistics.acquired += 1
        return .grant(waiter, id)
    }

    private func isFresh(_ id: ConnectionID, _ now: Instant) -> Bool {
        guard case .idle(let since) = connections[id] else { return false }
        return now - since <= limits.idleCheckInterval
    }

    /// Sees to it that for each waiter a connection is on its way, as far as the limits allow.
    private mutating func prepareForWaiters(_ now: Instant) -> [Action] {
        var actions: [Action] = []
        var coming = connections.values.count { $0 == .opening || $0 == .preparing }
        while waiters.count > coming {
            if let id = idle.popLast() {
                if isFresh(id, now) {
                    actions.append(lease(id, to: waiters.removeFirst().id))
                } else {
                    connections[id] = .preparing
                    actions.append(.check(id))
                    coming += 1
                }
            } else if connections.count < limits.maximumConnections {
                if failures > 0 {
                    // One attempt at a time until one succeeds.
                    if connections.values.contains(.opening) { break }
                    if let nextAttempt, nextAttempt > now { return actions + wake(at: nextAttempt) }
                }
                lastConnection += 1
                let id = ConnectionID(value: lastConnection)
                connections[id] = .opening
                actions.append(.open(id))
                coming += 1
            } else {
                break
            }
        }
        return actions
    }
}

// MARK: The end

extension PoolState {
    /// Refuses everybody from now on and closes what nobody uses. Leases run on until they are released.
    mutating func shutDown() -> [Action] {
        guard !isShutDown else { return drainedIfEmpty() }
        isShutDown = true
        let refused = waiters.map { Action.fail($0.id, .shutDown) }
        waiters = []
        return refused + close { $0 != .leased } + drainedIfEmpty()
    }

    /// Closes what is still leased too.
    mutating func closeAll() -> [Action] { shutDown() + close { _ in true } + drainedIfEmpty() }

    private mutating func close(where matches: (Phase) -> Bool) -> [Action] {
        let ids = connections.filter { matches($0.value) }.keys.sorted { $0.value < $1.value }
        for id in ids { connections[id] = nil }
        idle = []
        return ids.map { .close($0) }
    }

    private func drainedIfEmpty() -> [Action] { isShutDown && connections.isEmpty ? [.drained] : [] }

    /// The counters, and what there is at this moment.
    var snapshot: PostgresPool.Statistics {
        var snapshot = statistics
        snapshot.open = connections.values.count { $0 != .opening }
        snapshot.opening = connections.count - snapshot.open
        snapshot.idle = idle.count
        snapshot.inUse = connections.values.count { $0 == .leased }
        snapshot.waiting = waiters.count
        return snapshot
    }
}
