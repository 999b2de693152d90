import Basics
import Foundation
import Lockstep

/// What the app's SDK does, on request.
extension PayrailsSandbox {
    /// What the SDK got for an answer.
    public struct SDKAnswer: Sendable {
        public let status: Int
        public let body: JSON
        public var isAccepted: Bool { (200...299).contains(status) }
    }

    /// How the customer pays.
    public struct Payment: Sendable {
        /// `card`, `applePay`, `googlePay`, `payPal`, …
        public var method = "card"
        /// The last four digits of the new card.
        public var card = "4242"
        /// A saved instrument instead of a new card.
        public var instrumentID: String?
        /// The amount that the SDK believes in; nil: the execution's own, as after a correct update.
        public var amount: Money?
        /// Nil: by the rules.
        public var outcome: SandboxOutcome?
        public var storeInstrument = false
        public var futureUsage: String?
        public init() {}
    }

    /// Authorizes as the SDK does: through the public link, with the token of the init payload.
    ///
    /// - Returns: 202 with the acknowledgement; 401 when the amount differs from the execution's or the session is over;
    ///   404 for an unknown execution; 409 when it was paid before.
    public func pay(_ executionID: String, _ payment: Payment = Payment()) -> SDKAnswer {
        sdk { world throws(APIError) in
            let execution = try world.execution(executionID)
            let session = try world.session(of: execution)
            guard let amount = payment.amount ?? execution.amount else {
                throw .invalid("the execution has no amount yet")
            }
            var part: [String: JSON] = [
                "integrationType": payment.method == "payPal" ? "hpp" : "api", "amount": amount.wire,
                "paymentMethodCode": .string(payment.method), "storeInstrument": .bool(payment.storeInstrument),
            ]
            if let instrument = payment.instrumentID {
                part["paymentInstrumentId"] = .string(instrument)
            } else {
                part["paymentInstrumentData"] = .compact([
                    "encryptedData": payment.method == "card"
                        ? .string(CollectedCard(suffix: payment.card).encrypted) : nil,
                    "paymentToken": payment.method == "card" ? nil : "wallet-token",
                    "futureUsage": payment.futureUsage.map(JSON.string),
                ])
            }
            let body: JSON = [
                "amount": amount.wire, "paymentComposition": [.object(part)],
                "returnInfo": [
                    "success": "https://app.example/return", "cancel": "https://app.example/cancel",
                    "error": "https://app.example/error",
                ],
            ]
            return try world.authorize(
                executionID, body: body, caller: .client(session), forced: payment.outcome)
        }
    }

    /// What the customer does when asked.
    public enum CustomerAnswer: String, Sendable { case success, fail, abandon }

    /// The customer answers 3-D Secure, comes back from a page, or does not.
    public func answerChallenge(_ executionID: String, _ answer: CustomerAnswer) -> SDKAnswer {
        sdk { world throws(APIError) in
            guard try world.execution(executionID).actionRequired != nil else {
                throw .notAllowed("the execution doesn't wait for the customer")
            }
            switch answer {
            case .success: world.finishCustomerAction(executionID, success: true)
            case .fail: world.finishCustomerAction(executionID, success: false)
            case .abandon: world.executions[executionID]?.attempt?.isAbandoned = true
            }
            return Answer(200, world.json(of: try world.execution(executionID)))
        }
    }

    /// The customer goes away: what is pending stays pending, and no notification will ever come (section 5.2).
    public func abandon(_ executionID: String) -> SDKAnswer {
        sdk { world throws(APIError) in
            _ = try world.execution(executionID)
            if let attempt = world.executions[executionID]?.attempt, attempt.waitsFor == nil {
                world.executions[executionID]?.attempt?.outcome = .pending
            }
            world.executions[executionID]?.attempt?.isAbandoned = true
            world.clientSessions[world.executions[executionID]?.clientToken ?? ""] = nil
            return Answer(200, world.json(of: try world.execution(executionID)))
        }
    }

    /// Saves a card without a charge, as the SDK does after a tokenization init.
    ///
    /// - Returns: 201 with the instrument.
    public func tokenize(
        holderReference: String, card: String = "4242", expiryMonth: String = "12", expiryYear: String = "2034",
        futureUsage: String? = nil, hasNetworkToken: Bool = false, method: String = "card"
    ) -> SDKAnswer {
        sdk { world in
            let collected = CollectedCard(suffix: card, expiryMonth: expiryMonth, expiryYear: expiryYear)
            let instrument = world.addInstrument(
                holderReference: holderReference, method: method, card: method == "payPal" ? nil : collected,
                status: "enabled", futureUsage: futureUsage, hasNetworkToken: hasNetworkToken,
                email: method == "payPal" ? "someone@example.com" : nil)
            return Answer(201, world.json(of: instrument, includingHolderReference: true))
        }
    }

    func sdk(_ step: (inout World) throws(APIError) -> Answer) -> SDKAnswer {
        perform { state in
            do throws(APIError) {
                let answer = try step(&state.world)
                return SDKAnswer(status: answer.status, body: answer.body)
            } catch {
                return SDKAnswer(status: error.status, body: error.body(using: &state.world.random))
            }
        }
    }
}

extension World {
    /// The session of the execution's init payload, while it lives.
    func session(of execution: Execution) throws(APIError) -> ClientSession {
        guard let token = execution.clientToken, let session = clientSessions[token], session.expiresAt > now else {
            throw .unauthorized("the session has expired")
        }
        return session
    }
}
