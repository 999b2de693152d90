import Synchronization

/// How much is served at once. Beyond its lane's limit a request is turned away before anything is done for it: a
/// service that lets everybody wait serves nobody in time, and goes on like that when the rush is over, because those
/// who gave up come again.
public final class Admission: Sendable {
    /// By lane, the requests that may be served at once; a lane without a number has no limit here.
    public typealias Limits = [Endpoint.Lane: Int]

    private let limits: Limits
    private let isDatabaseBusy: @Sendable () -> Bool
    private let running = Mutex<[Endpoint.Lane: Int]>([:])

    /// - Parameter isDatabaseBusy: whether as many wait for a connection as may. Asked at the door only: what was let in
    ///   is finished, since giving up between a call to Payrails and its entry in the books would be worse than late.
    public init(_ limits: Limits = [:], isDatabaseBusy: @escaping @Sendable () -> Bool = { false }) {
        self.limits = limits
        self.isDatabaseBusy = isDatabaseBusy
    }

    /// Why somebody isn't let in.
    public enum Refusal: String, Error, Sendable, CaseIterable {
        /// As many requests of its lane are being served as may.
        case full
        /// As many wait for a connection to the database as may.
        case database
    }

    /// Takes a place. Whoever was let in calls ``leave(_:)``.
    func enter(_ lane: Endpoint.Lane) throws(Refusal) {
        if lane.sharesDatabase, isDatabaseBusy() { throw .database }
        let hasRoom = running.withLock { running in
            let now = running[lane] ?? 0
            guard now < limits[lane] ?? .max else { return false }
            running[lane] = now + 1
            return true
        }
        if !hasRoom { throw .full }
    }

    func leave(_ lane: Endpoint.Lane) { running.withLock { $0[lane, default: 1] -= 1 } }

    /// What is being served now.
    var standing: [(lane: Endpoint.Lane, count: Int)] {
        let running = running.withLock { $0 }
        return Endpoint.Lane.allCases.map { ($0, running[$0] ?? 0) }
    }
}

extension Problem {
    /// Turned away at the door. A rush is over soon, or else the next try is turned away as cheaply.
    static let overloaded = Problem(
        .unavailable, "too much is going on here at the moment; come again", retryAfterSeconds: 2)
}
