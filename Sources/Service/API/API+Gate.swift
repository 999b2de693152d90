import Basics
import Foundation
import Lockstep
import Store

extension API {
    /// `POST /v1/pre-payment`: always an answer, and a refusal wherever there is doubt.
    func checkPrePayment(_ request: Request, within budget: Duration) async throws -> Answer {
        let question = try request.read(API.gateQuestion)
        var own: CheckoutID?
        if case .client(let checkout, _) = try request.authenticated() { own = checkout }
        let reason = try await store.decideGate(question, within: own, deadline: .now + budget)
        return API.gateAnswer(question.execution, reason)
    }

    /// What is answered when the books can't be asked.
    static func refuseInternally(_ broken: BrokenRequest) throws -> Answer {
        gateAnswer(try broken.read(gateQuestion).execution, .internal)
    }

    private static func gateQuestion(_ body: FieldReader) -> Gate.Question {
        _ = body.optional.string("action", .code)
        return Gate.Question(
            execution: body.id("executionId"), paymentMethodCode: body.string("paymentMethodCode", .code),
            amount: body.optional.money("amount"), basketVersion: body.optional.string("basketVersion"))
    }

    private static func gateAnswer(_ execution: ExecutionID, _ reason: Gate.Reason?) -> Answer {
        .ok(
            .compact([
                "decision": .string(reason == nil ? "proceed" : "refuse"), "valid": .bool(reason == nil),
                "reason": reason.map { .string($0.rawValue) }, "message": reason.map { .string($0.message) },
                "executionId": .string(execution.description),
            ]))
    }
}
