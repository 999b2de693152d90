import Basics
import Foundation
import HTTPClient
import Lockstep

/// The shop's own check before a payment: a signed POST, answered `{valid, message?}` with 200. Anything else is no
/// answer.
struct MerchantCheck: Sendable {
    let client: HTTPClient
    let url: String
    let signature: WebhookSignature
    let clock: WallClock
    let identifiers: IdentifierSource
    let metrics: GateMetrics

    /// What the shop is told: exactly the members that the contract names.
    struct Inquiry: Sendable {
        let question: Gate.Question
        let checkout: Checkout

        func json(id: UUID) -> JSON {
            .compact([
                "id": .string(id.lowercased), "executionId": .string(question.execution.description),
                "checkoutId": .string(checkout.id.description),
                "merchantReference": .string(checkout.merchantReference),
                "holderReference": .string(checkout.holderReference),
                "paymentMethodCode": .string(question.paymentMethodCode), "amount": checkout.amount.json,
                "basketVersion": checkout.basketVersion.map(JSON.string),
            ])
        }
    }

    enum Opinion: Hashable, Sendable {
        case valid
        /// With what may be said to the customer; nil where the shop said nothing, or nothing that may be.
        case refused(words: String?)
        /// No answer in time, or none that was agreed upon.
        case unavailable
    }

    /// An answer has two members; one that is longer is something else.
    static let maximumResponseBytes = 64 * 1024

    /// Asks. Never throws and never takes longer than told.
    func ask(_ inquiry: Inquiry, for request: Request, until deadline: ContinuousClock.Instant) async -> Opinion {
        let began = ContinuousClock.now
        guard began < deadline else {
            metrics.asked(.late, took: .zero)
            return .unavailable
        }
        let id = identifiers.next()
        let payload = inquiry.json(id: id).bytes
        var headers = signature.headers(id: id.lowercased, time: clock.now(), payload: payload)
        headers["Content-Type"] = "application/json"
        headers["Accept"] = "application/json"
        headers["traceparent"] = request.trace?.text
        headers["X-Request-Id"] = request.id.text
        // So that the shop can speak the customer's language.
        headers["Accept-Language"] = AcceptLanguage(request.headers.all("Accept-Language")).text
        var call = HTTPClientRequest(
            method: "POST", url: url, headers: headers, body: payload, timeout: deadline - began)
        call.maximumResponseBytes = Self.maximumResponseBytes
        let opinion: Opinion
        do {
            let response = try await client.send(call)
            opinion = Self.opinion(of: response)
            metrics.asked(.init(opinion), took: .now - began)
            if opinion == .unavailable {
                request.log.warning("the shop's check gave no answer that was agreed upon", .status(response.status))
            }
        } catch {
            opinion = .unavailable
            metrics.asked(error.code == .timedOut ? .late : .failed, took: .now - began)
            request.log.warning("the shop's check could not be asked", .error(error))
        }
        return opinion
    }

    static func opinion(of response: HTTPClientResponse) -> Opinion {
        guard response.status == 200, let body = try? StrictJSON.parse(response.body),
            let isValid = body["valid"]?.bool
        else { return .unavailable }
        var words: String?
        if let message = body["message"], !message.isNull {
            guard let text = message.string else { return .unavailable }
            // The shop may have put its customer's own words into it, and whoever shows it may be a page or a terminal.
            words = TextRule.isOneLine(text) ? GateMessages.passable(text) : nil
        }
        return isValid ? .valid : .refused(words: words)
    }
}
