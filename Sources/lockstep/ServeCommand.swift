import Basics
import Foundation
import Service

/// `lockstep serve`: the HTTP service and its background work.
struct ServeCommand: Command {
    static let name = "serve"
    static let summary = "the HTTP service and its background work"
    static let help = """
        usage: lockstep serve [--no-workers | --only-workers]

        Stops on SIGTERM or SIGINT: takes nothing new, finishes what is in flight, exits 0.
        SIGHUP reads the files of settings given as X_FILE again, and takes on the webhook keys.

          --no-workers    only the HTTP service
          --only-workers  only the background work, with /healthz, /readyz and /metrics
        """
    private let parts: LockstepService.Parts

    init(_ arguments: inout Arguments) throws {
        switch (arguments.flag("--no-workers"), arguments.flag("--only-workers")) {
        case (true, true): throw UsageError(message: "--no-workers and --only-workers leave nothing to do")
        case (true, false): parts = .api
        case (false, true): parts = .workers
        case (false, false): parts = .all
        }
    }

    func run() async throws -> ExitCode {
        let environment = ProcessInfo.processInfo.environment
        // Before the settings are read, so that no change of a file falls between.
        let signals = StopSignal(takesHangUps: true)
        let settings = try Settings(environment: environment)
        let service = try await LockstepService.start(settings: settings, parts: parts)
        let reloading = Task {
            for await _ in signals.hangUps {
                service.reload { () throws(SettingsFaults) -> Settings in try Settings(environment: environment) }
            }
        }
        await signals.wait()
        reloading.cancel()
        await service.stop()
        return .done
    }
}
