/// Time that never goes backwards, and waiting by it. A test hands in a clock that it moves itself.
public struct SteadyClock: Sendable {
    /// Since some moment in the past.
    public let now: @Sendable () -> Duration
    /// Returns after the time, or throws when the task is cancelled.
    public let sleep: @Sendable (Duration) async throws -> Void

    public init(
        now: @escaping @Sendable () -> Duration, sleep: @escaping @Sendable (Duration) async throws -> Void
    ) {
        self.now = now
        self.sleep = sleep
    }

    /// The machine's, which also counts while it is suspended.
    public static let system = {
        let start = ContinuousClock.now
        return SteadyClock(now: { ContinuousClock.now - start }, sleep: { try await Task.sleep(for: $0) })
    }()
}
