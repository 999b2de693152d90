import Testing

@testable import Lockstep

@Suite("The states of an execution")
struct ExecutionStateTests {
    @Test("no state holds money and waits for a result at once")
    func holdingAndWaiting() {
        #expect(ExecutionState.allCases.allSatisfy { !($0.holdsMoney && $0.isInFlight) })
        #expect(
            ExecutionState.allCases.filter(\.holdsMoney) == [
                .authorized, .partiallyCaptured, .captured, .partiallyRefunded,
            ])
        #expect(ExecutionState.allCases.filter(\.isInFlight) == [.processing, .needsCustomer, .unknown])
        #expect(ExecutionState.allCases.count == 11)
    }

    @Test("steps: nothing comes before created, money is never undone without a word, what is held isn't tried again")
    func successors() {
        for state in ExecutionState.allCases {
            #expect(!state.successors.contains(state))
            #expect(!state.successors.contains(.created))
            #expect(state == .created || ExecutionState.allCases.contains { $0.successors.contains(state) })
        }
        for state in ExecutionState.allCases where state.holdsMoney || state == .refunded {
            #expect(state.successors.isDisjoint(with: [.processing, .needsCustomer, .unknown]))
        }
        #expect(ExecutionState.authorized.successors.contains(.failed))
        #expect(!ExecutionState.captured.successors.contains(.failed))
        #expect(ExecutionState.failed.successors.contains(.authorized))
    }

    @Test("a step takes something back exactly where less is done afterwards")
    func takingBack() {
        #expect(ExecutionState.captured.takesBack(goingTo: .authorized))
        #expect(ExecutionState.authorized.takesBack(goingTo: .failed))
        #expect(ExecutionState.cancelled.takesBack(goingTo: .authorized))
        #expect(!ExecutionState.failed.takesBack(goingTo: .authorized))
        #expect(!ExecutionState.authorized.takesBack(goingTo: .captured))
        #expect(!ExecutionState.processing.takesBack(goingTo: .failed))
        #expect(!ExecutionState.captured.takesBack(goingTo: .cancelled))
    }

    @Test("the graph has every state and every step, and nothing else")
    func graph() {
        let lines = ExecutionState.dot.split(separator: "\n").map { $0.trimmingPrefix("    ") }
        #expect(lines.first == "digraph executionStates {" && lines.last == "}")
        for state in ExecutionState.allCases {
            #expect(lines.count { $0 == "\(state.rawValue);" || $0.hasPrefix("\(state.rawValue) [style=") } == 1)
            for next in ExecutionState.allCases {
                let arrow = "\(state.rawValue) -> \(next.rawValue)"
                let drawn = lines.filter { $0 == "\(arrow);" || $0.hasPrefix("\(arrow) ") }
                #expect(drawn.count == (state.successors.contains(next) ? 1 : 0))
                if let line = drawn.first { #expect(line.contains("dashed") == state.takesBack(goingTo: next)) }
            }
        }
        let arrows = ExecutionState.allCases.reduce(0) { $0 + $1.successors.count }
        #expect(lines.count { $0.contains("->") } == arrows)
        #expect(lines.count { $0.contains("style=filled") } == 4)
    }
}
