import Dispatch
import Foundation
import Synchronization

/// The thread that looks at every connection's times, since the library knows no limit on a whole request, and none
/// while a connection is suspended.
final class Sweeper: Sendable {
    private let core: ServerCore
    private let ended = Atomic(false)
    private let wake = DispatchSemaphore(value: 0)

    init(core: ServerCore) { self.core = core }

    /// Often enough that the shortest limit is kept to about a tenth, and not so often that it costs.
    private var interval: Duration {
        let shortest = min(core.limits.idle, core.limits.request, core.limits.handler)
        return min(max(shortest / 10, .milliseconds(10)), .milliseconds(500))
    }

    func start() {
        let nanoseconds = Int(interval / .nanoseconds(1))
        let thread = Thread { [self] in
            while !ended.load(ordering: .acquiring) {
                core.sweep()
                _ = wake.wait(timeout: .now() + .nanoseconds(nanoseconds))
            }
        }
        thread.name = "http-sweeper"
        thread.start()
    }

    func end() {
        ended.store(true, ordering: .releasing)
        wake.signal()
    }
}
