import Basics
import Foundation
import Lockstep
import Synchronization

@testable import Service

/// A router with people around it who can be told what to say.
struct Bench: Sendable {
    static let merchant = BearerToken.make(.merchantKey)
    static let narrow = BearerToken.make(.merchantKey)
    static let client = BearerToken.make(.client)
    static let ownCheckout = CheckoutID(UUID())
    static let narrowScopes: Set<Scope> = [.payments]

    let doorman = Doorman()
    let keeper = MemoryKeeper()
    private let lines = Lines()
    let metrics = Metrics()
    let router: Router

    init(
        _ routes: [Route], corsOrigins: Set<String> = [], admission: Admission = Admission(),
        rateLimits: RateLimits = RateLimits(),
        explain: @escaping @Sendable (any Error) -> Problem? = { _ in nil }
    ) {
        let lines = lines
        router = Router(
            routes: routes,
            Router.Surroundings(
                authenticator: doorman, idempotency: keeper,
                log: Log(minimum: .debug, writer: LogWriter { lines.add($0) }), metrics: HTTPMetrics(metrics),
                corsOrigins: corsOrigins, admission: admission, rateLimits: rateLimits, explain: explain))
    }

    /// Sends a request. `token` nil sends no `Authorization`.
    func send(
        _ method: String, _ target: String, token: BearerToken? = Bench.merchant, _ headers: HTTPHeaders = [:],
        body: String? = nil
    ) async -> Answer {
        await send(method, target, token: token, headers, bytes: Data((body ?? "").utf8), hasBody: body != nil)
    }

    func send(
        _ method: String, _ target: String, token: BearerToken? = Bench.merchant, _ headers: HTTPHeaders = [:],
        bytes: Data, hasBody: Bool = true
    ) async -> Answer {
        var all = headers
        if let token, all["Authorization"] == nil { all["Authorization"] = "Bearer \(token.text.reveal)" }
        if hasBody, all["Content-Type"] == nil { all["Content-Type"] = "application/json" }
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        return await router.respond(
            to: IncomingRequest(
                method: method, path: parts[0], query: parts.count > 1 ? parts[1] : "", headers: all, body: bytes))
    }

    /// Everything that was logged, as one text.
    func logged() -> String {
        router.around.log.writer.flush()
        return lines.text
    }

    /// The same, line by line.
    func loggedLines() -> [JSON] {
        router.around.log.writer.flush()
        return lines.objects
    }
}

/// Knows the bench's three tokens.
final class Doorman: Authenticator {
    struct Asleep: Error {}
    private let state = Mutex((isAsleep: false, asked: 0))
    var asked: Int { state.withLock { $0.asked } }
    func fallAsleep() { state.withLock { $0.isAsleep = true } }

    func authenticate(_ bearer: BearerToken) async throws -> Credential? {
        let isAsleep = state.withLock { state in
            state.asked += 1
            return state.isAsleep
        }
        if isAsleep { throw Asleep() }
        switch bearer {
        case Bench.merchant:
            return .merchantKey(MerchantKeyID(StandInIDs.one), name: "all", scopes: Set(Scope.allCases))
        case Bench.narrow: return .merchantKey(MerchantKeyID(StandInIDs.two), name: "few", scopes: Bench.narrowScopes)
        case Bench.client: return .client(Bench.ownCheckout, tokenID: StandInIDs.three)
        default: return nil
        }
    }
}

enum StandInIDs {
    static let one = UUID(uuid: (1, 0, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 1))
    static let two = UUID(uuid: (1, 0, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 2))
    static let three = UUID(uuid: (1, 0, 0, 0, 0, 0, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 3))
}

/// Keeps keys in memory.
final class MemoryKeeper: IdempotencyKeeper {
    struct Broken: Error {}
    enum Entry { case running(Data), done(Data, StoredAnswer) }
    struct Name: Hashable {
        let owner: UUID
        let key: String
    }
    private let state = Mutex(
        (entries: [Name: Entry](), failsOnFinish: false, begun: 0, renewed: 0, released: [Timestamp]()))
    let renewalInterval = Duration.milliseconds(1)

    var begun: Int { state.withLock { $0.begun } }
    /// How often a key was renewed: each time until one second later.
    var renewed: Int { state.withLock { $0.renewed } }
    /// The ends of the leases that were given back.
    var released: [Timestamp] { state.withLock { $0.released } }
    func failOnFinish() { state.withLock { $0.failsOnFinish = true } }
    var stored: [StoredAnswer] {
        state.withLock { state in
            state.entries.values.compactMap { if case .done(_, let answer) = $0 { answer } else { nil } }
        }
    }

    func begin(_ context: IdempotencyContext) async throws -> IdempotencyBeginning {
        state.withLock { state in
            state.begun += 1
            let name = Name(owner: context.owner, key: context.key)
            switch state.entries[name] {
            case nil:
                state.entries[name] = .running(context.requestHash)
                return .fresh(until: Timestamp(seconds: 0))
            case .running(let hash): return hash == context.requestHash ? .inUse : .reused
            case .done(let hash, let answer): return hash == context.requestHash ? .replay(answer) : .reused
            }
        }
    }

    func finish(_ context: IdempotencyContext, with answer: StoredAnswer) async throws {
        try state.withLock { state in
            if state.failsOnFinish { throw Broken() }
            state.entries[Name(owner: context.owner, key: context.key)] = .done(context.requestHash, answer)
        }
    }

    func renew(_ context: IdempotencyContext, until: Timestamp) async throws -> Timestamp? {
        state.withLock { state in
            guard until == Timestamp(seconds: Int64(state.renewed)) else { return nil }
            state.renewed += 1
            return Timestamp(seconds: Int64(state.renewed))
        }
    }

    func release(_ context: IdempotencyContext, until: Timestamp) async throws {
        state.withLock { state in
            state.released.append(until)
            state.entries[Name(owner: context.owner, key: context.key)] = nil
        }
    }
}

/// Lines that were logged.
final class Lines: Sendable {
    private let all = Mutex<[String]>([])
    func add(_ bytes: [UInt8]) { all.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) } }
    var text: String { all.withLock { $0.joined() } }
    var objects: [JSON] { all.withLock { $0 }.compactMap { try? JSON(parsing: Data($0.utf8)) } }
}

/// Counts how often something happened.
final class Tally: Sendable {
    private let count = Atomic<Int>(0)
    func hit() { count.wrappingAdd(1, ordering: .relaxed) }
    var hits: Int { count.load(ordering: .relaxed) }
}

extension Answer {
    /// The problem's slug; nil where it is none.
    var slug: String? { problemKind?.rawValue }
    /// The pointers of its faults.
    var pointers: [String] { json?["errors"]?.array?.compactMap { $0["pointer"]?.string } ?? [] }
}
