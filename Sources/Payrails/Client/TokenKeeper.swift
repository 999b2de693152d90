import Basics
import HTTPClient
import Lockstep

/// Keeps one token, and fetches the next one once for everybody who waits for it.
///
/// The fetch belongs to no caller: whoever is cancelled or out of time leaves, and the others still get the token.
actor TokenKeeper {
    private let call: TokenCall
    private let transport: any HTTPTransport
    private let limiter: RateLimiter
    private let clock: SteadyClock

    private var current: AccessToken?
    private var generation = 0
    private var isFetching = false
    private var waiters: [Int: Waiter] = [:]
    private var nextWaiter = 0

    private struct Waiter {
        let continuation: CheckedContinuation<Outcome<AccessToken>, Never>
        let timer: Task<Void, Never>
    }

    init(
        _ configuration: PayrailsConfiguration, transport: any HTTPTransport, limiter: RateLimiter, clock: SteadyClock
    ) {
        call = TokenCall(configuration: configuration)
        self.transport = transport
        self.limiter = limiter
        self.clock = clock
    }

    /// The token to use now. `refused`: one that Payrails answered with 401; if it is still the current one it is
    /// dropped, if somebody has replaced it already the new one is given.
    func token(insteadOf refused: AccessToken? = nil, until deadline: Duration) async -> Outcome<AccessToken> {
        if let current, current.generation != refused?.generation, clock.now() < current.goodUntil {
            return .done(current)
        }
        current = nil
        return await nextToken(until: deadline)
    }

    /// A token that was fetched after this call began, or together with others by a fetch that was running.
    func freshToken(until deadline: Duration) async -> Outcome<AccessToken> {
        current = nil
        return await nextToken(until: deadline)
    }

    private func nextToken(until deadline: Duration) async -> Outcome<AccessToken> {
        if !isFetching {
            isFetching = true
            Task { await self.fetch() }
        }
        nextWaiter += 1
        let id = nextWaiter
        let patience = deadline - clock.now()
        let clock = clock
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let timer = Task {
                    guard (try? await clock.sleep(patience)) != nil else { return }
                    self.leave(id, .unknown(Doubt(kind: .timedOut, detail: "no access token in time")))
                }
                waiters[id] = Waiter(continuation: continuation, timer: timer)
            }
        } onCancel: {
            Task { await self.leave(id, .unknown(Doubt(kind: .cancelled, detail: "cancelled while waiting"))) }
        }
    }

    private func leave(_ id: Int, _ outcome: Outcome<AccessToken>) {
        guard let waiter = waiters.removeValue(forKey: id) else { return }
        waiter.timer.cancel()
        waiter.continuation.resume(returning: outcome)
    }

    private func fetch() async {
        let outcome = await fetched()
        isFetching = false
        if case .done(let token) = outcome { current = token }
        for id in waiters.keys.sorted() { leave(id, outcome) }
    }

    private func fetched() async -> Outcome<AccessToken> {
        let started = clock.now()
        if let refusal = await limiter.admit(until: started + call.configuration.tokenTimeout) {
            return .refused(refusal)
        }
        let asked = clock.now()
        let response: HTTPClientResponse
        do { response = try await transport.send(call.request) } catch { return OutcomeTable.outcome(of: error) }
        if let pause = OutcomeTable.pause(after: response, call.configuration) { await limiter.pause(for: pause) }
        generation += 1
        let generation = generation
        return call.read(response).map { grant in
            AccessToken(value: grant.value, generation: generation, goodUntil: asked + grant.usable)
        }
    }
}
