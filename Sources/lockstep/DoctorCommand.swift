import Basics
import Foundation
import Service

/// `lockstep doctor`: is everything as it must be?
struct DoctorCommand: Command {
    static let name = "doctor"
    static let summary = "checks settings, database, certificate, clock, and a token from Payrails"
    static let help = """
        usage: lockstep doctor [--init [--holder REFERENCE]] [--json]

        A line each: what was looked at, how it is, and the mend. Exit 1 when anything is wrong, 78 when the settings
        are, which it then tells instead.

          --init    also asks Payrails for an init to save a card, and says what the app's SDK can do with it and
                    what is missing for the rest
          --holder  whose init (lockstep-doctor)
        """
    private let holder: String?
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws {
        let wantsInit = arguments.flag("--init")
        let named = try arguments.value("--holder")
        guard wantsInit || named == nil else { throw UsageError(message: "--holder goes with --init") }
        holder = wantsInit ? named ?? "lockstep-doctor" : nil
        asJSON = arguments.flag("--json")
    }

    func run() async throws -> ExitCode {
        let settings: Settings
        do throws(SettingsFaults) {
            settings = try Settings(environment: ProcessInfo.processInfo.environment)
        } catch {
            show(Doctor.findings(of: error))
            return .configuration
        }
        let findings = await Doctor(settings: settings).examine(initFor: holder)
        show(findings)
        return findings.contains { $0.state == .wrong } ? .needsPerson : .done
    }

    private func show(_ findings: [Finding]) {
        if asJSON {
            print(JSON.array(findings.map(\.json)).text)
        } else {
            for finding in findings { print(finding.line) }
        }
    }
}
