import Basics
import Foundation
import Lockstep
import Store

extension API {
    /// `POST /v1/checkouts`
    func createCheckout(_ request: Request) async throws -> Answer {
        let new = try newCheckout(request)
        switch try await store.openCheckout(new, owner: orchestrator.owner) {
        case .planned(let planned):
            switch try await orchestrator.createSession(planned) {
            case .ready(let session):
                return try await created(
                    session.settled.checkout, session.settled.json.adding(["init": session.payload.json]))
            case .refused(let refusal): throw Problem(.creationRefused, refusal.code)
            case .unconfirmed: throw Problem(.checkoutUnconfirmed)
            }
        case .known(let read): return try await created(read.checkout, read.json)
        case .busy: throw Problem(.checkoutUnconfirmed)
        case .referenceTaken: throw Problem(.referenceExists, "a charge has this merchantReference")
        case .exists(let id):
            throw Problem(
                .checkoutExists, "checkout \(id) is for this order", members: ["checkoutId": .string(id.description)])
        }
    }

    private func newCheckout(_ request: Request) throws -> NewCheckout {
        guard let idempotency = request.idempotency else { throw Problem(.idempotencyKeyMissing) }
        let owner = try request.authenticated().owner
        return try request.read { body in
            let reference = body.reference("merchantReference")
            if reference.contains(options.references.separator) {
                body.fault("merchantReference", "must not contain \"\(options.references.separator)\"")
            }
            let amount = body.money("amount")
            let policy = body.optional.object("amountPolicy") { policy in
                let bounds = AmountPolicy(
                    clientMayUpdate: policy.flag("clientMayUpdate"),
                    minimum: policy.optional.amount("min", in: amount.currency, allowingZero: true),
                    maximum: policy.optional.amount("max", in: amount.currency, allowingZero: true))
                if let minimum = bounds.minimum, let maximum = bounds.maximum, maximum.minor < minimum.minor {
                    policy.fault("max", "must not be less than min")
                }
                return bounds
            }
            return NewCheckout(
                merchantReference: reference, holderReference: body.reference("holderReference"),
                workflowCode: body.optional.string("workflowCode", .workflowCode) ?? options.workflowCode,
                amount: amount, basketVersion: body.optional.string("basketVersion", .opaque),
                amountPolicy: policy ?? .merchantOnly,
                allowedPaymentMethods: body.optional.strings("allowedPaymentMethods", .code, count: 1...50),
                meta: body.optional.freeObject("meta"),
                lifetime: .seconds(body.optional.integer("expiresInSeconds", in: 60...604_800) ?? 3600),
                credential: owner, idempotencyKey: idempotency.key)
        }
    }

    private func created(_ checkout: Checkout, _ json: JSON) async throws -> Answer {
        let token = try await store.createClientToken(for: checkout)
        let body = json.adding(["clientToken": .string(token.reveal)])
        return Answer.created(body, location: "/v1/checkouts/\(checkout.id)")
            .tagged(Int(checkout.amountVersion)).neverStoring("clientToken")
    }

    /// A stored answer is given again with a client token of its own; only hashes of the earlier ones are kept.
    func renewClientToken(_ answer: Answer, _ request: Request) async throws -> Answer {
        guard answer.status == 201, let body = answer.json, let id = body["id"]?.string.flatMap({ CheckoutID($0) }),
            let read = try await store.readCheckout(id)
        else { return answer }
        let token = try await store.createClientToken(for: read.checkout)
        var renewed = answer
        renewed.body = body.adding(["clientToken": .string(token.reveal)]).bytes
        return renewed
    }

    /// `GET /v1/checkouts/{id}`
    func readCheckout(_ request: Request) async throws -> Answer {
        let id = try request.ownCheckout()
        guard let read = try await staleReads.read({ try await store.readCheckout(id) }, \.awaited) else {
            throw Problem.notFound
        }
        return Answer.ok(read.json).tagged(Int(read.checkout.amountVersion))
    }

    /// `GET /v1/checkouts?merchantReference=`: the order's checkout, if there is one; a client token sees its own.
    func listCheckouts(_ request: Request) async throws -> Answer {
        let caller = try request.authenticated()
        let query = try request.readQuery { query in
            (
                // The endpoint requires it, so nobody gets here without.
                reference: query.reference("merchantReference") ?? "",
                // An order has one checkout, so there is never a second item.
                limit: query.limit(),
                after: query.parsed("after", "must be the next of an earlier page") { CheckoutID($0) }
            )
        }
        func isAskedFor(_ read: ReadCheckout) -> Bool {
            read.checkout.merchantReference.utf8.elementsEqual(query.reference.utf8)
        }
        var read: ReadCheckout?
        switch caller {
        case .merchantKey:
            read = try await staleReads.read(
                { try await store.readCheckout(merchantReference: query.reference) }, \.awaited)
        case .client(let own, _):
            // By its own id, and compared here: whether there is another's order of that name mustn't show, not even by
            // the time that the answer takes.
            let found = try await staleReads.read({ try await store.readCheckout(own) }) {
                isAskedFor($0) ? $0.awaited : []
            }
            read = found.flatMap { isAskedFor($0) ? $0 : nil }
        }
        // Who follows a list to its end asks for what is behind the last item, and mustn't get that item again.
        if let after = query.after, let last = read, last.checkout.id <= after { read = nil }
        return .ok(["items": .array(read.map { [$0.json] } ?? [])])
    }

    /// `POST /v1/checkouts/{id}/session`
    func renewSession(_ request: Request) async throws -> Answer {
        let id = try request.ownCheckout()
        let reason = try request.read { $0.optional.choice("reason", of: SessionReason.self) }
        switch try await orchestrator.renewSession(of: id, isExpired: reason == .expired) {
        case .ready(let session):
            let checkout = session.settled.checkout
            // Kept whole under a caller's key, the init too: a replay is the same answer, and another init in its place
            // would be that of another execution. It goes with the key, after LOCKSTEP_RETAIN_IDEMPOTENCY_DAYS.
            return Answer.ok([
                "init": session.payload.json, "executionId": .string(session.execution.description),
                "amount": checkout.amount.json, "amountVersion": JSON(checkout.amountVersion),
                "status": .string(checkout.status.rawValue),
            ]).tagged(Int(checkout.amountVersion))
        case .refused(let refusal): throw refusal.problem
        case .providerRefused(let refusal): throw Problem(.creationRefused, refusal.code)
        case .unconfirmed: throw Problem(.sessionUnconfirmed)
        case .notFound: throw Problem.notFound
        }
    }

    /// `POST /v1/checkouts/{id}/cancel`
    func cancelCheckout(_ request: Request) async throws -> Answer {
        let id: CheckoutID = try request.id()
        _ = try request.read { _ in () }
        var hasAsked = false
        while true {
            switch try await store.cancelCheckout(id, hasAsked: hasAsked) {
            case .cancelled(let settled):
                bells.feed.ring()
                bells.operations.ring()
                return Answer.ok(settled.json).tagged(Int(settled.checkout.amountVersion))
            case .alreadyPaid: throw Problem(.alreadyPaid)
            case .notFound: throw Problem.notFound
            case .askFirst(let executions):
                for execution in executions { try await orchestrator.refresh(execution) }
                hasAsked = true
            }
        }
    }
}

/// Why an app asks for a session.
enum SessionReason: String, CaseIterable { case expired }

extension ReadCheckout {
    /// The Checkout as its GET shows it: with the payload while the app can use it.
    var json: JSON { payload.map { settled.json.adding(["init": $0.json]) } ?? settled.json }
}

extension PaymentStore.SessionRefusal {
    fileprivate var problem: Problem {
        switch self {
        case .alreadyPaid: Problem(.alreadyPaid)
        case .cancelled: Problem(.checkoutCancelled)
        case .expired: Problem(.checkoutExpired)
        case .amountMoving: Problem(.amountMoving)
        case .amountUnconfirmed: Problem(.amountUnconfirmed)
        }
    }
}

extension TextRule {
    /// Payrails' pattern of a workflow code (reference section 2).
    static let workflowCode = TextRule(
        1...128, isVisibleOnly: true, "must be a workflow code: a small letter, then letters, digits and dashes"
    ) { text in
        text.first.map { ("a"..."z").contains($0) } ?? false
            && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
    }
}

extension JSON {
    /// The same object with more members.
    func adding(_ members: [String: JSON]) -> JSON {
        guard case .object(let own) = self else { return self }
        return .object(own.merging(members) { _, new in new })
    }
}
