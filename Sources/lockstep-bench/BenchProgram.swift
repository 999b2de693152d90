import Foundation

/// Measures a real service: `lockstep serve` as a process of its own, a real database, real sockets, and the sandbox in
/// Payrails' place. Prints absolute figures and, beside them, ratios within the same run, which can be compared.
@main
struct BenchProgram {
    static let help = """
        usage: lockstep-bench <run> --database URL [options]

          mixed  customers who create, change, ask, pay, fail and pay again, capture and refund: first as fast as the
                 machine can, then at a share of that for as long as wanted
                 --minutes N (30)  --share PERCENT (50)  --customers N (64, at once while measuring the most)
          idle   connections that are kept alive and do nothing while others are served; memory; start to ready
                 --connections N (5000)
          intake  distinct signed notifications of 1.5 KB over 64, 256 and 1,024 connections, beside pgbench with one-row
                 commits of the same row; then at 10,000 a second
                 --seconds N (6, each)  --rate N (10000)  --paced-seconds N (30)  --workers 1 (applies meanwhile, too)
          apply  notifications that pay an order each: as fast as they are applied, then the lag at a rate
                 --notifications N (100000)  --rate N (5000)  --seconds N (15)
          backlog  how fast unapplied notifications drain, by how many there are
                 --few N (100000)  --many N (1000000)
          gate   pre-payment checks at a rate, of customers who ask for the first time and of those who ask again, beside
                 /healthz at the same rate; then with the database stopped
                 --rate N (2000)  --seconds N (10, each)  --stop COMMAND (stops the database)
          heal   finding what is due among executions that are open
                 --executions N (1000000)  --due N (1000)
          renew  finding and planning what is due among subscriptions that aren't, and charging it, with a provider that
                 answers at once, in this process; then lockstep renew several times at once under one limit
                 --subscriptions N (1000000)  --due N (50000)  --charged N (20000)  --concurrency N (128)
                 --rate N (10)  --processes N (4)  --paced N (40)

        --database names an empty database; it is migrated and filled. deploy/bench makes one and starts a run.
        Exit codes: 0 done, 1 something that must not happen did, 64 bad usage.
        """

    static func main() async {
        signal(SIGPIPE, SIG_IGN)
        var words = Array(CommandLine.arguments.dropFirst())
        guard let run = words.first, run != "--help", run != "-h" else {
            print(help)
            exit(words.isEmpty ? 64 : 0)
        }
        words.removeFirst()
        do {
            let options = try BenchOptions(words)
            switch run {
            case "mixed": exit(try await MixedTraffic(options).run() ? 0 : 1)
            case "idle": exit(try await IdleConnections(options).run() ? 0 : 1)
            case "intake": exit(try await IntakeRun(options).run() ? 0 : 1)
            case "apply": exit(try await ApplyRun(options).run() ? 0 : 1)
            case "backlog": exit(try await ApplyRun(options).runBacklog() ? 0 : 1)
            case "renew": exit(try await RenewRun(options).run() ? 0 : 1)
            case "gate": exit(try await GateRun(options).run() ? 0 : 1)
            case "heal": exit(try await HealRun(options).run() ? 0 : 1)
            default: throw BenchOptions.Fault(message: "there is no run \"\(run)\"")
            }
        } catch let fault as BenchOptions.Fault {
            FileHandle.standardError.write(Data("lockstep-bench: \(fault.message); see --help\n".utf8))
            exit(64)
        } catch {
            FileHandle.standardError.write(Data("lockstep-bench: \(error)\n".utf8))
            exit(1)
        }
    }
}

/// What stands on the command line: whole numbers by name, and the two texts.
struct BenchOptions: Sendable {
    struct Fault: Error { let message: String }

    let database: String
    /// A command of the shell that stops the database.
    let stop: String?
    private let numbers: [String: Int]

    init(_ words: [String]) throws {
        var database: String?
        var stop: String?
        var numbers: [String: Int] = [:]
        var rest = words[...]
        while let name = rest.popFirst() {
            guard let value = rest.popFirst() else { throw Fault(message: "\(name) needs a value") }
            if name == "--database" {
                database = value
            } else if name == "--stop" {
                stop = value
            } else if name.hasPrefix("--"), let number = Int(value), number > 0 {
                numbers[String(name.dropFirst(2))] = number
            } else {
                throw Fault(message: "\(name) \(value) isn't understood")
            }
        }
        guard let database else { throw Fault(message: "--database is needed") }
        self.database = database
        self.stop = stop
        self.numbers = numbers
    }

    func number(_ name: String, _ usual: Int) -> Int { numbers[name] ?? usual }
}
