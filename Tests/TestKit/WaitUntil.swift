/// Looks every few milliseconds until the condition holds.
///
/// The limit is for what never comes; it has nothing to do with how long it should take, so it is generous to a machine
/// that does much else.
/// - Returns: false when it did not hold within the time, or before the test was cancelled.
public func waitUntil(
    _ limit: Duration = .seconds(30), _ condition: () async throws -> Bool
) async rethrows -> Bool {
    let end = ContinuousClock.now + limit
    while true {
        if try await condition() { return true }
        guard ContinuousClock.now < end, !Task.isCancelled else { return false }
        try? await Task.sleep(for: .milliseconds(4))
    }
}
