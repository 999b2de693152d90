/// Looks every few milliseconds until the condition holds.
///
/// - Returns: false when it did not hold within the time.
public func waitUntil(
    _ limit: Duration = .seconds(15), _ condition: () async throws -> Bool
) async rethrows -> Bool {
    let end = ContinuousClock.now + limit
    while true {
        if try await condition() { return true }
        guard ContinuousClock.now < end else { return false }
        try? await Task.sleep(for: .milliseconds(4))
    }
}
