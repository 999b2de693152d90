import Basics
import Lockstep

/// What somebody does at Payrails behind our back: in its portal, or in a workflow.
extension PayrailsSandbox {
    /// The amount moves without the back end's doing.
    public func moveAmount(_ executionID: String, to amount: Money) -> SDKAnswer {
        sdk { world throws(APIError) in try world.lookup(executionID, body: ["amount": amount.wire]) }
    }

    /// Somebody captures, cancels or refunds in the portal. Nil: all of it.
    public func actInPortal(
        _ executionID: String, _ action: SandboxOutcomeRule.Action, amount: Money? = nil, isFinal: Bool? = nil
    ) -> SDKAnswer {
        sdk { world throws(APIError) in
            let body = JSON.compact(["amount": amount?.wire, "final": isFinal.map(JSON.bool)])
            switch action {
            case .capture: return try world.capture(executionID, body: body)
            case .refund: return try world.refund(executionID, body: body)
            case .cancel: return try world.cancel(executionID, body: body)
            case .authorize: throw .invalid("nobody authorizes in the portal")
            }
        }
    }

    /// A workflow's author emits a status of their own (section 2.7): it means nothing for the money.
    public func addStatus(_ executionID: String, code: String) -> SDKAnswer {
        sdk { world throws(APIError) in
            _ = try world.execution(executionID)
            world.addStatus(code, to: executionID)
            return Answer(200, world.json(of: try world.execution(executionID)))
        }
    }
}
