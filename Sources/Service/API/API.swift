import Basics
import Foundation
import Lockstep
import Store

/// The handlers of the API: each reads its request, asks the books or the orchestrator, and words the answer.
public struct API: Sendable {
    let orchestrator: Orchestrator
    let options: Options
    let clock: WallClock
    let bells: Bells

    public struct Options: Sendable {
        /// The workflow of a checkout that names none.
        public var workflowCode: String
        public var references: PaymentReference

        public init(workflowCode: String = "payment-acceptance", references: PaymentReference = .init()) {
            self.workflowCode = workflowCode
            self.references = references
        }
    }

    public init(orchestrator: Orchestrator, options: Options, clock: WallClock, bells: Bells) {
        self.orchestrator = orchestrator
        self.options = options
        self.clock = clock
        self.bells = bells
    }

    var store: PaymentStore { orchestrator.store }
}
