import Basics
import Foundation
import PayrailsSandbox

/// `payrails-sandbox`: the stand-in as a program for people.
enum SandboxProgram {
    /// Exit statuses of `sysexits.h`.
    private static let usageError: Int32 = 64
    private static let cannotStart: Int32 = 69

    static func main(_ arguments: [String]) async {
        let options: SandboxOptions
        do {
            options = try SandboxOptions(arguments)
        } catch {
            say("payrails-sandbox: \(error.reason)\nTry: payrails-sandbox --help")
            exit(usageError)
        }
        guard !options.wantsHelp else {
            print(SandboxOptions.help)
            return
        }
        // A peer that goes away must not end the program.
        signal(SIGPIPE, SIG_IGN)
        let stop = StopSignal()
        do {
            let sandbox = try PayrailsSandbox(options.configuration)
            try sandbox.start()
            print(introduction(sandbox))
            fflush(nil)
            await stop.wait()
            await sandbox.stop()
        } catch {
            say(
                "payrails-sandbox: can't listen on \(options.configuration.host):\(options.configuration.port): \(error)"
            )
            exit(cannotStart)
        }
    }

    private static func say(_ text: String) { FileHandle.standardError.write(Data((text + "\n").utf8)) }

    private static func introduction(_ sandbox: PayrailsSandbox) -> String {
        let targets = sandbox.configuration.notificationTargets
        let isReachable = !["127.0.0.1", "localhost", "::1"].contains(sandbox.configuration.host)
        let notifications =
            targets.isEmpty
            ? "Nobody is notified; say --notify URL=KEY, or POST /sandbox/notification-targets."
            : targets.map { "Notifies \($0.url)" }.joined(separator: "\n")
        return """
            A stand-in for Payrails listens on \(sandbox.baseURL) (seed \(sandbox.seed)).

            PAYRAILS_BASE_URL=\(sandbox.baseURL)
            PAYRAILS_CLIENT_ID=\(sandbox.clientID)
            PAYRAILS_CLIENT_SECRET=\(sandbox.clientSecret)
            PAYRAILS_WORKSPACE_ID=\(sandbox.workspaceID)
            \(targets.isEmpty ? "" : "PAYRAILS_WEBHOOK_KEYS=\(targets.map(\.key).joined(separator: ","))\n")
            \(notifications)\(isReachable ? "\nAnybody who reaches this address controls it; it is meant for this machine only." : "")

            \(PayrailsSandbox.usage(baseURL: sandbox.baseURL))
            """
    }
}
