import Basics
import Foundation
import Lockstep
import Service
import Store
import Synchronization

/// `lockstep renew`: charges what is due.
struct RenewCommand: Command {
    static let name = "renew"
    static let summary = "charges what is due"
    static let help = """
        usage: lockstep renew [--as-of TIME] [--dry-run] [--limit N] [--json]

        Looks up what earlier runs left unknown, then charges each subscription that has a period or another attempt due,
        oldest first, one charge each. Safe to overlap with itself and with `lockstep serve`, to be killed, and to be late:
        LOCKSTEP_RENEW_MISSED says what becomes of periods that were missed.

          --as-of    RFC 3339, or a day for its midnight UTC: what is due, and which cards are expired, by that clock
          --dry-run  only tells what would be done, with cards as they were when they were last seen
          --limit    subscriptions at most; those that wait for another instrument come last

        Exit 0: all that was due is dealt with, declined charges too. 75: something was not tried, or nobody knows what
        became of it; run it again. 78: bad configuration.
        """

    private let asOf: Timestamp?
    private let isDry: Bool
    private let limit: Int?
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws {
        asOf = try arguments.value("--as-of").map(Self.moment)
        isDry = arguments.flag("--dry-run")
        asJSON = arguments.flag("--json")
        limit = try arguments.value("--limit").map { word in
            guard let limit = Int(word), limit >= 1 else { throw UsageError(message: "--limit is 1 or more") }
            return limit
        }
    }

    static func moment(_ word: String) throws -> Timestamp {
        if let time = Timestamp(rfc3339: word) { return time }
        guard let day = CivilDate(word) else {
            throw UsageError(message: "--as-of is a time like 2026-12-31T06:00:00Z, or a day like 2026-12-31")
        }
        return day.moment(atHour: 0, in: .gmt)
    }

    func run() async throws -> ExitCode {
        let settings = try Settings(environment: ProcessInfo.processInfo.environment)
        guard isDry || settings.charging.returnURL != nil else {
            throw StartRefusal(message: "LOCKSTEP_RETURN_URL must be set: Payrails wants one with every charge")
        }
        let stop = Stop()
        let shot = try await OneShot.open(settings: settings)
        let run = RenewalRun(id: IdentifierSource.system().next(), asOf: asOf ?? .systemNow)
        do {
            let code = try await isDry ? preview(run, shot.store) : perform(run, shot, settings, stop)
            await shot.close()
            return code
        } catch {
            await shot.close()
            throw error
        }
    }

    private func perform(
        _ run: RenewalRun, _ shot: OneShot, _ settings: Settings, _ stop: Stop
    ) async throws -> ExitCode {
        let progress = ProgressLine()
        let runner = RenewalRunner(
            shot.orchestrator, run: run,
            options: RenewalRunner.Options(concurrency: settings.renewalConcurrency, limit: limit)
        ) { progress.show($0) }
        let summary = try await runner.perform(isStopping: { stop.isAsked })
        progress.clear()
        if asJSON {
            print(summary.json.text)
        } else {
            print("subscriptions\t\(summary.looked)")
            for (name, count) in summary.lines { print("\(name)\t\(count)") }
        }
        if summary.stoppedEarly { Terminal.say("lockstep renew: Payrails can't be reached; nothing was burnt") }
        if summary.isLimited { Terminal.say("lockstep renew: --limit ended it, and more is due") }
        return summary.isUnfinished || stop.isAsked ? .tryAgain : .done
    }

    private func preview(_ run: RenewalRun, _ store: PaymentStore) async throws -> ExitCode {
        var place: RenewalPlace?
        var left = limit ?? .max
        var items: [JSON] = []
        while left > 0 {
            let page = try await store.previewRenewals(run, after: place, limit: min(left, 500))
            guard let last = page.place else { break }
            place = last
            left -= page.previews.count
            for preview in page.previews {
                for (step, amount) in preview.steps {
                    let subscription = preview.subscription
                    if asJSON {
                        items.append([
                            "subscriptionId": .string(subscription.id.description),
                            "merchantReference": .string(subscription.merchantReference),
                            "amount": amount.json, "step": .string(step.words),
                        ])
                    } else {
                        print("\(subscription.id)\t\(amount)\t\(step.words)")
                    }
                }
            }
        }
        if asJSON { print(JSON.array(items).text) }
        Terminal.say("nothing was sent or written: --dry-run")
        return .done
    }
}

/// SIGTERM and SIGINT: what is in flight is finished, nothing new is begun.
private final class Stop: Sendable {
    private let asked = Atomic(false)
    var isAsked: Bool { asked.load(ordering: .relaxed) }

    init() {
        let signals = StopSignal()
        Task { [self] in
            await signals.wait()
            asked.store(true, ordering: .relaxed)
        }
    }
}

/// A line that rewrites itself, where somebody looks.
private final class ProgressLine: Sendable {
    private let isTerminal = isatty(STDERR_FILENO) == 1

    func show(_ summary: RenewalSummary) {
        guard isTerminal, summary.looked % 10 == 0 else { return }
        let states = summary.lines.map { "\($0.name) \($0.count)" }.joined(separator: ", ")
        FileHandle.standardError.write(Data("\r\u{1B}[K\(summary.looked) subscriptions: \(states)".utf8))
    }

    func clear() {
        if isTerminal { FileHandle.standardError.write(Data("\r\u{1B}[K".utf8)) }
    }
}

extension RenewalPlan.Step {
    /// For people.
    fileprivate var words: String {
        switch self {
        case .skip(let period, let reason): "skip period \(period.index) from \(period.start): \(reason.rawValue)"
        case .postpone(let period, let until):
            "period \(period.index) waits for its card's network until \(until.rfc3339)"
        case .begin(let period): "charge period \(period.index) from \(period.start)"
        case .retry(let index): "charge period \(index) again"
        case .suspend(let index, let reason): "period \(index) waits: \(reason.rawValue)"
        case .deferRetry(let index, let until): "period \(index) waits for its card's network until \(until.rfc3339)"
        case .giveUp(let index): "period \(index) has failed"
        case .hold: "can't be decided"
        case .finish: "ends"
        }
    }
}
