import Basics
import Foundation
import Lockstep
import Store

/// `POST /v1/pre-payment`: the books are asked, then the shop if it wants to be, then the books again. Always an answer,
/// and a refusal wherever there is doubt.
///
/// No call is ever made within a transaction: between the two looks nothing is held, and the second one sees what has
/// changed meanwhile.
struct Gatekeeper: Sendable {
    /// Over connections of its own: whatever else fills the database's, customers who pay don't wait for it.
    let store: PaymentStore
    /// Leases that are taken at the same time share a transaction.
    let leases: Batcher<PaymentStore.GateOpening, PaymentStore.GateVerdict>
    /// Nil where the shop isn't asked.
    let check: MerchantCheck?
    let messages: GateMessages
    let timing: Timing
    let metrics: GateMetrics

    /// When what must have happened, counted from the request's arrival.
    struct Timing: Sendable {
        /// By when the caller has the answer (`LOCKSTEP_PREPAYMENT_BUDGET_MS`).
        let budget: Duration

        /// A tenth of the budget, at most 250 ms: for an answer to be written and to get to whoever waits for it, also
        /// where many are written at once.
        var answer: Duration { budget - min(budget / 10, .milliseconds(250)) }
        /// Another tenth, at most 250 ms: for the second look, so that a shop that is too slow is told to be that, and
        /// not a fault of ours.
        var shop: Duration { answer - min(budget / 10, .milliseconds(250)) }
    }

    private enum Verdict {
        case proceed
        /// With the shop's own words, if it had any that may be passed on.
        case refuse(Gate.Reason, words: String? = nil)
    }

    func answer(_ request: Request) async throws -> Answer {
        let question = try request.read(Self.question)
        var own: CheckoutID?
        if case .client(let checkout, _) = try request.authenticated() { own = checkout }
        return answer(question.execution, try await judge(question, within: own, request), to: request.headers)
    }

    /// What is answered when nothing can be asked, or the time is over.
    func refuse(_ broken: BrokenRequest) throws -> Answer {
        answer(try broken.read(Self.question).execution, .refuse(.internal), to: broken.headers)
    }

    private func judge(
        _ question: Gate.Question, within own: CheckoutID?, _ request: Request
    ) async throws -> Verdict {
        let deadline = request.arrival + timing.answer
        let subject: Checkout
        switch try await store.examineGate(question, within: own, deadline: deadline) {
        case .refused(let reason): return .refuse(reason)
        // The shop has said yes to this basket, which nobody could change since.
        case .leased: return .proceed
        case .passable(let checkout): subject = checkout
        }
        var approved: Gate.Basket?
        if let check {
            let inquiry = MerchantCheck.Inquiry(question: question, checkout: subject)
            switch await check.ask(inquiry, for: request, until: request.arrival + timing.shop) {
            case .valid: approved = Gate.Basket(of: subject)
            case .refused(let words): return .refuse(.validatorRefused, words: words)
            case .unavailable: return .refuse(.validatorUnavailable)
            }
        }
        let opening = PaymentStore.GateOpening(
            question: question, checkout: subject.id, approved: approved, deadline: deadline)
        var verdict = try await leases.add(opening)
        if case .busy = verdict, let waited = await store.openGates([opening], waits: true).first {
            verdict = try waited.get()
        }
        return switch verdict {
        case .proceed: .proceed
        case .refused(let reason): .refuse(reason)
        // Nobody knows; not reached, as whoever waits gets a word.
        case .busy: .refuse(.internal)
        }
    }

    private static func question(_ body: FieldReader) -> Gate.Question {
        _ = body.optional.string("action", .code)
        return Gate.Question(
            execution: body.id("executionId"), paymentMethodCode: body.string("paymentMethodCode", .code),
            amount: body.optional.money("amount"), basketVersion: body.optional.string("basketVersion", .opaque))
    }

    private func answer(_ execution: ExecutionID, _ verdict: Verdict, to headers: HTTPHeaders) -> Answer {
        let id = JSON.string(execution.description)
        guard case .refuse(let reason, let words) = verdict else {
            metrics.decided(nil)
            var answer = Answer.ok(["decision": "proceed", "valid": true, "executionId": id])
            answer.touched = execution
            return answer
        }
        metrics.decided(reason)
        let sentence = messages.sentence(
            for: reason, preferring: AcceptLanguage(headers.all("Accept-Language")).preferences)
        var answer = Answer.ok([
            "decision": "refuse", "valid": false, "reason": .string(reason.rawValue),
            "message": .string(words ?? sentence.text), "executionId": id,
        ])
        answer.touched = execution
        // In which language the shop speaks, it doesn't say.
        if words == nil { answer.headers["Content-Language"] = sentence.language }
        return answer
    }
}
