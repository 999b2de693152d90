import TestKit
import Testing

@testable import Postgres

/// The state machine alone: no socket, no thread, a clock that the test moves.
@Suite("the pool decides", .ownThread)
struct PoolStateTests {
    private let start = ContinuousClock.now
    private func at(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }
    private func connection(_ value: UInt64) -> ConnectionID { ConnectionID(value: value) }
    private func waiter(_ value: UInt64) -> PoolState.WaiterID { PoolState.WaiterID(value: value) }

    private func pool(connections: Int = 2, waiters: Int = 3) -> PoolState {
        PoolState(
            limits: .init(
                maximumConnections: connections, maximumWaiters: waiters, idleCheckInterval: .milliseconds(1000)))
    }

    /// A pool whose connection 1 is leased to waiter 1.
    private func leasedPool(connections: Int = 1, waiters: Int = 3) -> PoolState {
        var pool = pool(connections: connections, waiters: waiters)
        _ = pool.acquire(waiter(1), deadline: at(100), now: at(0))
        _ = pool.opened(connection(1), now: at(0))
        return pool
    }

    @Test("the first waiter has a connection opened and is woken at its deadline")
    func firstWaiter() {
        var pool = pool()
        #expect(
            pool.acquire(waiter(1), deadline: at(100), now: at(0)) == [.open(connection(1)), .wake(at(100))])
        #expect(pool.opened(connection(1), now: at(5)) == [.grant(waiter(1), connection(1))])
        #expect(pool.snapshot.inUse == 1)
        #expect(pool.snapshot.acquired == 1)
    }

    @Test("no more connections are opened than are allowed, nor than somebody waits for")
    func openingLimit() {
        var pool = pool(connections: 2, waiters: 5)
        #expect(pool.acquire(waiter(1), deadline: at(100), now: at(0)).contains(.open(connection(1))))
        #expect(pool.acquire(waiter(2), deadline: at(100), now: at(0)) == [.open(connection(2))])
        #expect(pool.acquire(waiter(3), deadline: at(100), now: at(0)) == [])
        #expect(pool.snapshot.opening == 2)
    }

    @Test("who came first is served first, and a free connection goes to nobody else")
    func fairness() {
        var pool = leasedPool()
        _ = pool.acquire(waiter(2), deadline: at(100), now: at(1))
        _ = pool.acquire(waiter(3), deadline: at(50), now: at(2))
        #expect(pool.released(connection(1), .clean, now: at(3)) == [.grant(waiter(2), connection(1))])
        #expect(pool.acquire(waiter(4), deadline: at(100), now: at(4)) == [])
        #expect(pool.released(connection(1), .clean, now: at(5)) == [.grant(waiter(3), connection(1))])
        #expect(pool.released(connection(1), .clean, now: at(6)) == [.grant(waiter(4), connection(1))])
        #expect(pool.released(connection(1), .clean, now: at(7)) == [])
        #expect(pool.snapshot.idle == 1)
    }

    @Test("one waiter too many is refused at once")
    func waitingLimit() {
        var pool = leasedPool(waiters: 1)
        _ = pool.acquire(waiter(2), deadline: at(100), now: at(0))
        #expect(pool.acquire(waiter(3), deadline: at(100), now: at(0)) == [.fail(waiter(3), .exhausted)])
        #expect(pool.snapshot.refused == 1)
    }

    @Test("a deadline that has passed is not waited for, though a connection were idle")
    func pastDeadline() {
        var pool = leasedPool()
        _ = pool.released(connection(1), .clean, now: at(1))
        #expect(pool.acquire(waiter(2), deadline: at(2), now: at(2)) == [.fail(waiter(2), .timedOut)])
    }

    @Test("each waiter ends at its own deadline, and the next wake is asked for")
    func deadlines() {
        var pool = leasedPool()
        _ = pool.tick(now: at(100))
        #expect(pool.acquire(waiter(2), deadline: at(300), now: at(100)) == [.wake(at(300))])
        #expect(pool.acquire(waiter(3), deadline: at(200), now: at(100)) == [.wake(at(200))])
        #expect(pool.tick(now: at(200)) == [.fail(waiter(3), .timedOut), .wake(at(300))])
        #expect(pool.tick(now: at(300)) == [.fail(waiter(2), .timedOut)])
        #expect(pool.snapshot.timedOut == 2)
        #expect(pool.snapshot.waiting == 0)
    }

    @Test("a waiter whose time is over is not handed the connection that comes too late")
    func tooLate() {
        var pool = leasedPool()
        _ = pool.acquire(waiter(2), deadline: at(10), now: at(0))
        #expect(pool.released(connection(1), .clean, now: at(10)) == [.fail(waiter(2), .timedOut)])
        #expect(pool.snapshot.idle == 1)
    }

    @Test("a cancelled waiter leaves the queue, once")
    func cancellation() {
        var pool = leasedPool()
        _ = pool.acquire(waiter(2), deadline: at(100), now: at(0))
        _ = pool.acquire(waiter(3), deadline: at(100), now: at(0))
        #expect(pool.cancel(waiter(2)) == [.fail(waiter(2), .cancelled)])
        #expect(pool.cancel(waiter(2)) == [])
        #expect(pool.cancel(waiter(1)) == [])
        #expect(pool.released(connection(1), .clean, now: at(1)) == [.grant(waiter(3), connection(1))])
    }

    @Test("a connection that was opened for a waiter who left stays for the next one")
    func openedForNobody() {
        var pool = pool()
        _ = pool.acquire(waiter(1), deadline: at(100), now: at(0))
        _ = pool.cancel(waiter(1))
        #expect(pool.opened(connection(1), now: at(1)) == [])
        #expect(pool.acquire(waiter(2), deadline: at(100), now: at(2)) == [.grant(waiter(2), connection(1))])
    }

    @Test("a connection that comes back broken is closed, and another is opened for who waits")
    func brokenRelease() {
        var pool = leasedPool()
        _ = pool.acquire(waiter(2), deadline: at(100), now: at(1))
        #expect(pool.released(connection(1), .broken, now: at(2)) == [.close(connection(1)), .open(connection(2))])
    }

    @Test("a connection that comes back within a transaction is rolled back before anybody gets it")
    func leftoverTransaction() {
        var pool = leasedPool()
        _ = pool.acquire(waiter(2), deadline: at(100), now: at(1))
        #expect(pool.released(connection(1), .inTransaction, now: at(2)) == [.rollBack(connection(1))])
        #expect(pool.snapshot.idle == 0)
        #expect(pool.prepared(connection(1), isUsable: true, now: at(3)) == [.grant(waiter(2), connection(1))])
    }

    @Test("when the rollback fails, the connection is replaced")
    func failedRollback() {
        var pool = leasedPool()
        _ = pool.acquire(waiter(2), deadline: at(100), now: at(1))
        _ = pool.released(connection(1), .inTransaction, now: at(2))
        #expect(
            pool.prepared(connection(1), isUsable: false, now: at(3))
                == [.close(connection(1)), .open(connection(2))])
    }

    @Test("a connection that was idle for long is checked first; a fresh one is not")
    func idleCheck() {
        var pool = leasedPool()
        _ = pool.tick(now: at(100))
        _ = pool.released(connection(1), .clean, now: at(100))
        #expect(pool.acquire(waiter(2), deadline: at(2000), now: at(1100)) == [.grant(waiter(2), connection(1))])
        _ = pool.released(connection(1), .clean, now: at(1100))
        #expect(
            pool.acquire(waiter(3), deadline: at(9000), now: at(2101)) == [.check(connection(1)), .wake(at(9000))])
        #expect(pool.prepared(connection(1), isUsable: true, now: at(2102)) == [.grant(waiter(3), connection(1))])
    }

    @Test("an idle connection that breaks is forgotten")
    func idleLoss() {
        var pool = leasedPool()
        _ = pool.released(connection(1), .clean, now: at(1))
        #expect(pool.lost(connection(1), now: at(2)) == [])
        #expect(pool.snapshot.open == 0)
        #expect(pool.acquire(waiter(2), deadline: at(100), now: at(3)).first == .open(connection(2)))
    }

    @Test("a leased connection that breaks makes room at once, and its return changes nothing")
    func leasedLoss() {
        var pool = leasedPool()
        _ = pool.acquire(waiter(2), deadline: at(100), now: at(1))
        #expect(pool.lost(connection(1), now: at(2)) == [.open(connection(2))])
        #expect(pool.released(connection(1), .clean, now: at(3)) == [])
        #expect(pool.opened(connection(2), now: at(4)) == [.grant(waiter(2), connection(2))])
    }

    @Test("a connection being checked that breaks is replaced, and the late answer is ignored")
    func lossWhileChecking() {
        var pool = leasedPool()
        _ = pool.tick(now: at(100))
        _ = pool.released(connection(1), .clean, now: at(0))
        _ = pool.acquire(waiter(2), deadline: at(9000), now: at(5000))
        #expect(pool.lost(connection(1), now: at(5001)) == [.open(connection(2))])
        #expect(pool.prepared(connection(1), isUsable: false, now: at(5002)) == [])
    }

    @Test("while the database is away, one attempt at a time is made, with pauses, and waiters keep waiting")
    func backoff() {
        var pool = pool(connections: 5)
        _ = pool.acquire(waiter(1), deadline: at(1000), now: at(0))
        _ = pool.acquire(waiter(2), deadline: at(2000), now: at(0))
        // The second attempt is still under way.
        #expect(pool.failedToOpen(connection(1), now: at(10), spread: 0) == [])
        #expect(pool.failedToOpen(connection(2), now: at(10), spread: 0) == [.wake(at(110))])
        let retry = pool.tick(now: at(110))
        #expect(retry.first == .open(connection(3)))
        #expect(!retry.contains(.open(connection(4))))
        #expect(pool.snapshot.connectFailures == 2)
        #expect(pool.opened(connection(3), now: at(200)).prefix(1) == [.grant(waiter(1), connection(3))])
    }

    @Test("the pause grows to a limit, and chance takes at most half of it")
    func pauses() {
        let wholes = [1, 2, 3, 4, 5, 6, 7, 1000].map { PoolState.pause(afterFailures: $0, spread: 0) }
        #expect(wholes == [50, 100, 200, 400, 800, 1600, 1600, 1600].map { .milliseconds($0) })
        #expect(PoolState.pause(afterFailures: 1, spread: 1) == .milliseconds(25))
    }

    @Test("who waited in vain for an unreachable database is told so")
    func unreachable() {
        var pool = pool()
        _ = pool.acquire(waiter(1), deadline: at(100), now: at(0))
        _ = pool.failedToOpen(connection(1), now: at(10), spread: 0)
        let actions = pool.tick(now: at(100))
        #expect(actions.contains(.fail(waiter(1), .unreachable)))
    }

    @Test("when the server takes no more connections, who waited for those in use is told just that")
    func serverFull() {
        var pool = leasedPool(connections: 2)
        _ = pool.acquire(waiter(2), deadline: at(100), now: at(1))
        _ = pool.failedToOpen(connection(2), now: at(10), spread: 0)
        #expect(pool.tick(now: at(100)).contains(.fail(waiter(2), .timedOut)))
    }

    @Test("shutting down refuses who waits and who comes, closes the idle, and waits for leases")
    func shutdown() {
        var pool = leasedPool(connections: 2)
        _ = pool.acquire(waiter(2), deadline: at(100), now: at(0))
        _ = pool.opened(connection(2), now: at(1))
        _ = pool.acquire(waiter(3), deadline: at(100), now: at(1))
        _ = pool.released(connection(2), .broken, now: at(1))
        #expect(pool.shutDown() == [.fail(waiter(3), .shutDown), .close(connection(3))])
        #expect(pool.acquire(waiter(4), deadline: at(100), now: at(2)) == [.fail(waiter(4), .shutDown)])
        #expect(pool.opened(connection(3), now: at(2)) == [])
        #expect(pool.released(connection(1), .clean, now: at(3)) == [.close(connection(1)), .drained])
    }

    @Test("an empty pool is drained at once, and a forced end closes leases")
    func forcedEnd() {
        var empty = pool()
        #expect(empty.shutDown() == [.drained])
        var busy = leasedPool()
        #expect(busy.shutDown() == [])
        #expect(busy.closeAll() == [.close(connection(1)), .drained])
        #expect(busy.released(connection(1), .clean, now: at(3)) == [])
    }

    @Test("whatever order events come in, limits hold and nobody is forgotten or served twice")
    func chaos() {
        for seed in 0..<200 { chaos(seed: UInt64(seed)) }
    }

    private func chaos(seed: UInt64) {
        var random = SplitMix(state: seed)
        var pool = pool(connections: 3, waiters: 4)
        var now = 0
        var nextWaiter: UInt64 = 0
        var opening: Set<ConnectionID> = []
        var preparing: Set<ConnectionID> = []
        var open: Set<ConnectionID> = []
        var leases: Set<ConnectionID> = []
        var waiting: [PoolState.WaiterID] = []

        func check(_ actions: [PoolState.Action]) {
            for action in actions {
                switch action {
                case .open(let id): #expect(opening.insert(id).inserted)
                case .close(let id):
                    #expect(opening.remove(id) ?? open.remove(id) != nil)
                    leases.remove(id)
                    preparing.remove(id)
                case .check(let id), .rollBack(let id):
                    #expect(open.contains(id) && !leases.contains(id))
                    #expect(preparing.insert(id).inserted)
                case .grant(let waiter, let id):
                    #expect(waiting.first == waiter, "out of turn")
                    waiting.removeAll { $0 == waiter }
                    #expect(open.contains(id) && !preparing.contains(id))
                    #expect(leases.insert(id).inserted)
                case .fail(let waiter, _):
                    #expect(waiting.contains(waiter))
                    waiting.removeAll { $0 == waiter }
                case .wake, .drained: break
                }
            }
            #expect(opening.count + open.count <= 3)
        }

        for _ in 0..<300 {
            now += Int.random(in: 0...400, using: &random)
            switch Int.random(in: 0...8, using: &random) {
            case 0...2:
                nextWaiter += 1
                waiting.append(waiter(nextWaiter))
                let deadline = at(now + Int.random(in: 0...2000, using: &random))
                check(pool.acquire(waiter(nextWaiter), deadline: deadline, now: at(now)))
            case 3:
                guard let id = opening.randomElement(using: &random) else { continue }
                opening.remove(id)
                if Bool.random(using: &random) {
                    open.insert(id)
                    check(pool.opened(id, now: at(now)))
                } else {
                    check(pool.failedToOpen(id, now: at(now), spread: 0.5))
                }
            case 4...5:
                guard let id = leases.randomElement(using: &random) else { continue }
                leases.remove(id)
                let conditions: [ConnectionCondition] = [.clean, .inTransaction, .broken]
                check(pool.released(id, conditions.randomElement(using: &random) ?? .clean, now: at(now)))
            case 6:
                guard let id = preparing.randomElement(using: &random) else { continue }
                preparing.remove(id)
                check(pool.prepared(id, isUsable: .random(using: &random), now: at(now)))
            case 7:
                guard let id = open.randomElement(using: &random) else { continue }
                open.remove(id)
                preparing.remove(id)
                leases.remove(id)
                check(pool.lost(id, now: at(now)))
            default:
                check(pool.tick(now: at(now)))
            }
            #expect(pool.snapshot.waiting == waiting.count)
            #expect(pool.snapshot.inUse == leases.count)
            #expect(pool.snapshot.open == open.count)
            #expect(pool.snapshot.opening == opening.count)
        }
        // Once everything is given back and the clock has run out, nobody may still be waiting.
        check(pool.tick(now: at(now + 10_000)))
        #expect(waiting.isEmpty)
    }
}

/// A generator with a seed, so that a failure can be seen again.
private struct SplitMix: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
