import Lockstep

/// `lockstep states`: which states an execution has, and what may follow what.
struct StatesCommand: Command {
    static let name = "states"
    static let summary = "prints the table of states and transitions (--dot: as a graph)"
    static let help = """
        usage: lockstep states [--dot]

          --dot  Graphviz, e.g. lockstep states --dot | dot -Tsvg > states.svg
        """
    private let asGraph: Bool

    init(_ arguments: inout Arguments) throws { asGraph = arguments.flag("--dot") }

    func run() async throws -> ExitCode {
        if asGraph {
            print(ExecutionState.dot)
        } else {
            for state in ExecutionState.allCases {
                print("\(state.rawValue) -> \(state.successors.map(\.rawValue).sorted().joined(separator: ", "))")
            }
        }
        return .done
    }
}
