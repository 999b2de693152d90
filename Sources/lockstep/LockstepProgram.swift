import Foundation
import Service

/// The command: finds the subcommand, and turns what it says into an exit code.
@main
struct LockstepProgram {
    static let commands: [any Command.Type] = [
        ServeCommand.self, MigrateCommand.self, KeysCommand.self, StatesCommand.self, DoctorCommand.self,
        EventsCommand.self, NotificationsCommand.self, ReplayCommand.self, RetainCommand.self,
        RenewCommand.self, ForecastCommand.self,
    ]

    static func main() async {
        // A broken pipe is an error where it happens, never the end of the process.
        signal(SIGPIPE, SIG_IGN)
        var words = Array(CommandLine.arguments.dropFirst())
        guard let name = words.first, name != "--help", name != "help", name != "-h" else {
            print(usage)
            exit((words.isEmpty ? ExitCode.usage : .done).rawValue)
        }
        words.removeFirst()
        guard let command = commands.first(where: { $0.name == name }) else {
            Terminal.say("lockstep: there is no command \"\(name)\"; see lockstep --help")
            exit(ExitCode.usage.rawValue)
        }
        if words.contains("--help") || words.contains("-h") {
            print(command.help)
            exit(ExitCode.done.rawValue)
        }
        do {
            var arguments = Arguments(words)
            let run = try command.init(&arguments)
            try arguments.finish()
            exit(try await run.run().rawValue)
        } catch let error as UsageError {
            Terminal.say("lockstep \(name): \(error.message); see lockstep \(name) --help")
            exit(ExitCode.usage.rawValue)
        } catch let error as SettingsFaults {
            for fault in error.faults { Terminal.say("lockstep \(name): \(fault)") }
            exit(ExitCode.configuration.rawValue)
        } catch let error as StartRefusal {
            Terminal.say("lockstep \(name): \(error.message)")
            exit(ExitCode.configuration.rawValue)
        } catch {
            Terminal.say("lockstep \(name): \(Terminal.describe(error))")
            exit(ExitCode.tryAgain.rawValue)
        }
    }

    static var usage: String {
        let width = commands.map { $0.name.count }.max() ?? 0
        var list = ""
        for command in commands {
            let gap = String(repeating: " ", count: width - command.name.count + 2)
            list += "  " + command.name + gap + command.summary + "\n"
        }
        return usageHead + list + usageFoot
    }

    private static let usageHead = """
        lockstep: the back end between a shop, its app with the Payrails SDK, and Payrails

        usage: lockstep <command> [options]


        """

    private static let usageFoot = """

        `lockstep <command> --help` says more. Settings come from the environment;
        config/lockstep.env.example lists them all.
        Exit codes: 0 done, 1 done and something needs a person, 64 bad usage,
        75 could not finish (try again), 78 bad configuration.
        """
}
