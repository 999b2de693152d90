import Basics
import Lockstep

/// `lockstep states`: which states an execution has, and what may follow what.
struct StatesCommand: Command {
    static let name = "states"
    static let summary = "prints the table of states and transitions (--dot: as a graph)"
    static let help = """
        usage: lockstep states [--dot | --json]

          --dot  Graphviz, e.g. lockstep states --dot | dot -Tsvg > states.svg
        """
    private let asGraph: Bool
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws {
        asGraph = arguments.flag("--dot")
        asJSON = arguments.flag("--json")
        guard !asGraph || !asJSON else { throw UsageError(message: "--dot or --json, and not both") }
    }

    func run() async throws -> ExitCode {
        let table = ExecutionState.allCases.map { state in
            (state: state.rawValue, successors: state.successors.map(\.rawValue).sorted())
        }
        if asGraph {
            print(ExecutionState.dot)
        } else if asJSON {
            let lines: [JSON] = table.map { line in
                ["state": .string(line.state), "successors": .array(line.successors.map(JSON.string))]
            }
            print(JSON.array(lines).text)
        } else {
            for line in table { print("\(line.state) -> \(line.successors.joined(separator: ", "))") }
        }
        return .done
    }
}
