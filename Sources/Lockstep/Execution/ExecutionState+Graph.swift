extension ExecutionState {
    /// All states and what may follow what, for Graphviz.
    public static var dot: String {
        let arrows = allCases.flatMap { state in
            state.successors.map(\.rawValue).sorted().map { "    \(state.rawValue) -> \($0);" }
        }
        return "digraph execution {\n    rankdir=LR;\n\(arrows.joined(separator: "\n"))\n}"
    }
}
