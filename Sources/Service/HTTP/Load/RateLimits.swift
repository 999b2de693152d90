import Basics
import Foundation
import Lockstep
import Synchronization

/// How many requests one token may make. Told as `draft-ietf-httpapi-ratelimit-headers-11` says.
public struct RateLimitPolicy: Sendable, Hashable {
    /// Letters only: `client`.
    let name: String
    /// Requests, 1 or more, that may come at once, and within each window in the long run.
    let quota: Int
    /// Whole seconds, 1 or more.
    let windowSeconds: Int

    /// What one request uses up, in nanoseconds.
    fileprivate var interval: Int64 { max(1, Int64(windowSeconds) * 1_000_000_000 / Int64(quota)) }
    fileprivate var burst: Int64 { interval * Int64(quota) }
}

/// Counts what each token does, by the generic cell rate algorithm: one moment for each token, up to which it has used
/// its quota up. One that lies in the past says nothing any more, so that only those who are at it take up memory.
///
/// The counts are of this process alone: with several behind one address, a token may do as much at each.
public final class RateLimits: Sendable {
    private struct State {
        /// In nanoseconds since the start, by the token's hash.
        var usedUntil: [Data: Int64] = [:]
        var sweptAt: Int64 = .min
    }

    private let policies: [BearerToken.Kind: RateLimitPolicy]
    private let maximumTokens: Int
    private let now: @Sendable () -> Duration
    private let state = Mutex(State())

    /// - Parameters:
    ///   - policies: by kind of token; a kind without one isn't limited.
    ///   - maximumTokens: that are remembered at once. While there are more, new ones aren't limited: a shop that is that
    ///     busy must not be told to go away.
    ///   - now: since the start, never backwards.
    public init(
        _ policies: [BearerToken.Kind: RateLimitPolicy] = [:], maximumTokens: Int = 65_536,
        now: @escaping @Sendable () -> Duration = RateLimits.steadyTime()
    ) {
        self.policies = policies
        self.maximumTokens = maximumTokens
        self.now = now
    }

    /// The machine's, from this moment on.
    public static func steadyTime() -> @Sendable () -> Duration {
        let start = ContinuousClock.now
        return { .now - start }
    }

    /// Where a token stands after it was counted.
    struct Standing: Sendable, Hashable {
        let policy: RateLimitPolicy
        /// Requests that it may make at once.
        let remaining: Int
        /// Until all of the quota is there again; of a refusal, until a request is.
        let resetSeconds: Int
        let isRefused: Bool

        /// `RateLimit-Policy: "client";q=120;w=60` and `RateLimit: "client";r=119;t=1`.
        var fields: HTTPHeaders {
            [
                "RateLimit-Policy": "\"\(policy.name)\";q=\(policy.quota);w=\(policy.windowSeconds)",
                "RateLimit": "\"\(policy.name)\";r=\(remaining);t=\(resetSeconds)",
            ]
        }
    }

    /// Counts a request. It is done before anybody looks the token up, so that a caller without an end costs nothing
    /// but this. Nil where the token isn't limited.
    func count(_ token: BearerToken) -> Standing? {
        guard let policy = policies[token.kind] else { return nil }
        let hash = token.hash
        let now = self.now().nanoseconds
        return state.withLock { state in
            let used = max(state.usedUntil[hash] ?? now, now)
            let after = used + policy.interval
            guard after - now <= policy.burst else {
                return Standing(
                    policy: policy, remaining: 0, resetSeconds: Self.seconds(after - now - policy.burst),
                    isRefused: true)
            }
            if state.usedUntil[hash] == nil { makeRoom(in: &state, now) }
            if state.usedUntil[hash] != nil || state.usedUntil.count < maximumTokens { state.usedUntil[hash] = after }
            return Standing(
                policy: policy, remaining: Int((policy.burst - (after - now)) / policy.interval),
                resetSeconds: Self.seconds(after - now), isRefused: false)
        }
    }

    /// Forgets those that say nothing any more; at most once a second, since that looks at all of them.
    private func makeRoom(in state: inout State, _ now: Int64) {
        guard state.usedUntil.count >= maximumTokens, now - 1_000_000_000 >= state.sweptAt else { return }
        state.sweptAt = now
        state.usedUntil = state.usedUntil.filter { $0.value > now }
    }

    /// How many tokens are remembered.
    var remembered: Int { state.withLock(\.usedUntil.count) }

    /// Rounded up: whoever waits as long as told finds a place.
    private static func seconds(_ nanoseconds: Int64) -> Int { Int((nanoseconds + 999_999_999) / 1_000_000_000) }
}

extension Duration {
    fileprivate var nanoseconds: Int64 { components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000 }
}
