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
    let staleReads: StaleReads

    public struct Options: Sendable {
        /// The workflow of a checkout that names none.
        public var workflowCode: String
        public var references: PaymentReference
        /// After how long without news Payrails is asked about a payment that somebody reads; zero: never.
        public var staleAfter: Duration

        public init(
            workflowCode: String = "payment-acceptance", references: PaymentReference = .init(),
            staleAfter: Duration = .seconds(10)
        ) {
            self.workflowCode = workflowCode
            self.references = references
            self.staleAfter = staleAfter
        }
    }

    public init(orchestrator: Orchestrator, options: Options, clock: WallClock, bells: Bells) {
        self.orchestrator = orchestrator
        self.options = options
        self.clock = clock
        self.bells = bells
        staleReads = StaleReads(orchestrator, clock: clock, after: options.staleAfter) {
            bells.feed.ring()
            bells.operations.ring()
        }
    }

    var store: PaymentStore { orchestrator.store }
}
