import Basics

/// A bell for each thing that is waited for, so that nobody looks for work that nobody made.
public struct Bells: Sendable {
    /// Notifications were stored.
    let notifications: Bell
    /// More notifications wait than one batch holds.
    let backlog: Bell
    /// Something was written down that is to be sent to the provider.
    let operations: Bell
    /// Events were written.
    let feed: Bell
    /// Never rung: for work that only time brings.
    let time: Bell

    public init(clock: SteadyClock = .system) {
        notifications = Bell(clock: clock)
        backlog = Bell(clock: clock)
        operations = Bell(clock: clock)
        feed = Bell(clock: clock)
        time = Bell(clock: clock)
    }

    /// Whether the process is stopping.
    var isClosed: Bool { time.isClosed }

    /// Wakes everyone for good.
    func close() {
        for bell in [notifications, backlog, operations, feed, time] { bell.close() }
    }
}
