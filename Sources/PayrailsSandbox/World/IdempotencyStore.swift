import Basics
import Foundation

/// Section 1.5: the first processed answer of a key, replayed for every later request with it, whatever its body.
struct IdempotencyStore: Sendable {
    struct Stored: Sendable {
        let status: Int
        let body: Data
        let storedAt: Timestamp
    }

    private enum Entry { case running, done(Stored) }
    enum Begin { case first, running, replay(Stored) }

    private var entries: [String: Entry] = [:]
    let retention: Duration

    init(retention: Duration) { self.retention = retention }

    /// Takes the key for a request that is starting.
    mutating func begin(_ key: String, at now: Timestamp) -> Begin {
        switch entries[key] {
        case .running: return .running
        case .done(let stored) where now - stored.storedAt < retention: return .replay(stored)
        case .done, nil:
            entries[key] = .running
            return .first
        }
    }

    mutating func finish(_ key: String, status: Int, body: Data, at now: Timestamp) {
        entries[key] = .done(Stored(status: status, body: body, storedAt: now))
    }

    /// Nothing is kept: the parameters were wrong, or nothing was processed.
    mutating func abandon(_ key: String) { entries[key] = nil }
}
