import Basics
import Foundation
import Lockstep

/// How things look in answers.
extension World {
    func merchantLink(_ execution: Execution) -> String {
        "\(baseURL)/merchant/workflows/\(execution.workflowCode)/executions/\(execution.id)"
    }
    func publicLink(_ execution: Execution) -> String {
        "\(baseURL)/public/merchant/workflows/\(execution.workflowCode)/executions/\(execution.id)"
    }
    func redirectLink(_ execution: Execution) -> String { "\(baseURL)/public/redirect/\(execution.id)" }
    func link(_ address: String, method: String = "POST") -> JSON {
        ["method": .string(method), "href": .string(address)]
    }

    /// Section 2.2. The order of `status[]` means nothing, and a link is a string or an object, as it comes.
    mutating func json(of execution: Execution, forClient isForClient: Bool = false) -> JSON {
        let statuses = execution.statuses.shuffled(using: &random).map { json(of: $0) }
        let required = requiredAction(execution)
        return .compact([
            "id": .string(execution.id), "status": .array(statuses), "createdAt": .string(execution.createdAt.rfc3339),
            "merchantReference": .string(execution.merchantReference),
            "holderReference": .string(execution.holderReference), "holderId": .string(execution.holderID),
            "workspaceId": .string(execution.workspaceID), "workflow": workflow(execution),
            "amount": execution.amount?.wire, "meta": execution.meta, "returnInfo": execution.returnInfo,
            "paymentComposition": execution.composition.map { [$0] },
            "initialResults": execution.initialResults.isEmpty ? nil : .array(execution.initialResults),
            "actionRequired": execution.actionRequired.map { .string($0.rawValue) }, "requiredAction": required,
            "links": .object(links(of: execution, own: isForClient ? publicLink(execution) : merchantLink(execution))),
        ])
    }

    func json(of status: StatusEntry) -> JSON {
        .compact([
            "code": .string(status.code), "time": .string(status.time.rfc3339),
            "errors": status.errors.isEmpty ? nil : .array(status.errors),
        ])
    }

    func workflow(_ execution: Execution) -> JSON {
        ["code": .string(execution.workflowCode), "version": JSON(execution.workflowVersion)]
    }

    /// An item of the list (section 2.4).
    mutating func listItem(of execution: Execution) -> JSON {
        [
            "id": .string(execution.id), "createdAt": .string(execution.createdAt.rfc3339),
            "updatedAt": .string(execution.lastStatusTime.rfc3339),
            "status": .array(execution.statuses.shuffled(using: &random).map { json(of: $0) }),
            "merchantReference": .string(execution.merchantReference),
            "holderReference": .string(execution.holderReference), "holderId": .string(execution.holderID),
            "workflow": workflow(execution), "workspaceId": .string(execution.workspaceID),
        ]
    }

    /// A link is there while its action is allowed.
    private mutating func links(of execution: Execution, own: String) -> [String: JSON] {
        var addresses: [(String, String, String)] = [("self", own, "GET")]
        let payment = execution.paymentID.flatMap { payments[$0] }
        if execution.authorizeActionID == nil {
            for action in ["lookup", "authorize", "startPaymentSession"] {
                addresses.append((action, "\(own)/\(action)", "POST"))
            }
        }
        if let waits = execution.actionRequired {
            addresses.append(("consumerWait", "\(baseURL)/public/redirect/wait/\(execution.id)", "GET"))
            switch waits {
            case .threeDS:
                addresses += [
                    ("3ds", redirectLink(execution), "GET"), ("redirect", redirectLink(execution), "GET"),
                ]
            case .redirect: addresses.append(("redirect", redirectLink(execution), "GET"))
            case .confirm: addresses.append(("confirm", "\(own)/confirm", "POST"))
            }
        }
        if execution.attempt != nil || payment?.isCancellable == true {
            addresses.append(("cancel", "\(own)/cancel", "POST"))
        }
        if let payment, payment.capturable > 0, !execution.captureScheduled {
            addresses.append(("capture", "\(own)/capture", "POST"))
        }
        if let payment, payment.refundable > 0 { addresses.append(("refund", "\(own)/refund", "POST")) }
        var links: [String: JSON] = [:]
        for (name, address, method) in addresses {
            links[name] = random.chance(0.5) ? .string(address) : link(address, method: method)
        }
        return links
    }

    func requiredAction(_ execution: Execution) -> JSON? {
        guard let waits = execution.actionRequired else { return nil }
        switch waits {
        case .threeDS, .redirect:
            return [
                "type": "redirect", "subType": "client", "method": "GET", "href": .string(redirectLink(execution)),
            ]
        case .confirm:
            return [
                "type": "confirm", "subType": "client", "method": "POST",
                "href": .string(publicLink(execution) + "/confirm"),
            ]
        }
    }

    /// Section 6.3.
    func json(
        of instrument: Instrument, includingTokens: Bool = false, includingHolderReference: Bool = false
    ) -> JSON {
        .compact([
            "id": .string(instrument.id), "holderId": .string(instrument.holderID),
            "holderReference": includingHolderReference ? .string(instrument.holderReference) : nil,
            "createdAt": .string(instrument.createdAt.rfc3339), "updatedAt": .string(instrument.updatedAt.rfc3339),
            "paymentMethod": .string(instrument.paymentMethod), "status": .string(instrument.status),
            "displayName": .string(instrument.displayName), "default": .bool(instrument.isDefault),
            "fingerprint": .string(instrument.fingerprint), "futureUsage": instrument.futureUsage.map(JSON.string),
            "merchantReference": instrument.merchantReference.map(JSON.string),
            "networkTransactionReference": instrument.networkTransactionReference.map(JSON.string),
            "data": data(of: instrument),
            "tokens": includingTokens ? .array(tokens(of: instrument)) : nil,
        ])
    }

    func data(of instrument: Instrument) -> JSON {
        .compact([
            "network": instrument.network.map(JSON.string), "bin": instrument.bin.map(JSON.string),
            "suffix": instrument.suffix.map(JSON.string), "expiryMonth": instrument.expiryMonth.map(JSON.string),
            "expiryYear": instrument.expiryYear.map(JSON.string), "holderName": instrument.holderName.map(JSON.string),
            "email": instrument.email.map(JSON.string),
        ])
    }

    private func tokens(of instrument: Instrument) -> [JSON] {
        guard let token = instrument.networkTokenID else { return [] }
        return [
            [
                "id": .string(token), "type": "network", "status": "enabled",
                "reference": .string("nt_\(token.prefix(8))"),
                "providerId": "aa000000-0000-4d10-8000-000000000009", "meta": [:],
            ]
        ]
    }

    /// Section 7.
    func json(of payment: Payment, includingHistory: Bool = false) -> JSON {
        let currency = payment.amount.currency
        return .compact([
            "id": .string(payment.id), "status": .string(payment.status.rawValue),
            "createdAt": .string(payment.createdAt.rfc3339), "amount": payment.amount.wire,
            "capturedAmount": Money(minor: payment.captured, currency: currency)?.wire,
            "refundedAmount": Money(minor: payment.refunded, currency: currency)?.wire,
            "merchantReference": .string(payment.merchantReference), "providerName": "testPsp",
            "providerReference": payment.status == .unknown ? nil : .string(payment.providerReference),
            "holderId": .string(payment.holderID), "instrumentId": payment.instrumentID.map(JSON.string),
            "workspaceId": .string(configuration.workspaceID),
            "authorizationFailureResult": payment.failureResult.map(JSON.string),
            "history": includingHistory
                ? .array(
                    payment.history.map {
                        ["status": .string($0.status.rawValue), "createdAt": .string($0.time.rfc3339)]
                    }) : nil,
        ])
    }
}
