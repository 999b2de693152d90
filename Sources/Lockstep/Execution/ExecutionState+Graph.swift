extension ExecutionState {
    /// Every state and every step between them, as Graphviz text: what `lockstep states --dot` prints. Drawn from
    /// ``successors``, so that the picture can't drift from the code.
    ///
    /// States that hold the customer's money are filled, those in which a result is still to come are dashed; so are the
    /// rare steps that take something back.
    public static var dot: String {
        var lines = ["digraph executionStates {", "    rankdir=LR;", "    node [shape=box];"]
        for state in allCases {
            let style = state.holdsMoney ? " [style=filled]" : state.isInFlight ? " [style=dashed]" : ""
            lines.append("    \(state.rawValue)\(style);")
        }
        for state in allCases {
            for next in allCases where state.successors.contains(next) {
                let style = state.takesBack(goingTo: next) ? " [style=dashed]" : ""
                lines.append("    \(state.rawValue) -> \(next.rawValue)\(style);")
            }
        }
        return lines.joined(separator: "\n") + "\n}\n"
    }
}
