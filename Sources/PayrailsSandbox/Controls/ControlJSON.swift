import Basics
import Foundation
import Lockstep

/// How the controls show the ledger, the calls and the deliveries.
extension PayrailsSandbox {
    func ledgerJSON(merchantReference: String?) -> JSON {
        let wanted = { (reference: String) in merchantReference == nil || merchantReference == reference }
        let entries: [JSON] = ledger.filter { wanted($0.merchantReference) }.map {
            [
                "sequence": JSON($0.sequence), "kind": .string($0.kind.rawValue),
                "executionId": .string($0.executionID),
                "paymentId": .string($0.paymentID), "merchantReference": .string($0.merchantReference),
                "amount": $0.amount.wire, "time": .string($0.time.rfc3339),
            ]
        }
        let totals: [JSON] = ledgerTotals.filter { wanted($0.merchantReference) }.map { total in
            let value = { (minor: Int64) -> JSON in
                let sign = minor < 0 ? "-" : ""
                return Money(minor: abs(minor), currency: total.currency).map { .string(sign + $0.value) } ?? .null
            }
            return [
                "merchantReference": .string(total.merchantReference), "currency": .string(total.currency.code),
                "authorizations": JSON(total.authorizations), "authorized": value(total.authorizedMinor),
                "voided": value(total.voidedMinor), "captured": value(total.capturedMinor),
                "refunded": value(total.refundedMinor), "chargedBack": value(total.chargedBackMinor),
                "held": value(total.heldMinor), "net": value(total.netMinor),
            ]
        }
        return ["entries": .array(entries), "totals": .array(totals)]
    }

    func callsJSON(route: String?) -> JSON {
        let calls: [JSON] = calls.filter { route == nil || $0.route?.rawValue == route }.map {
            .compact([
                "sequence": JSON($0.sequence), "time": .string($0.time.rfc3339),
                "route": $0.route.map { .string($0.rawValue) }, "method": .string($0.method),
                "path": .string($0.path), "query": $0.query.map(JSON.string), "key": $0.key.map(JSON.string),
                "body": $0.body, "status": $0.status.map { JSON($0) }, "replayed": .bool($0.isReplay),
                "faults": .array($0.faults.map(JSON.string)),
            ])
        }
        return ["calls": .array(calls)]
    }

    static func json(_ delivery: SandboxDelivery) -> JSON {
        .compact([
            "id": JSON(delivery.id), "notificationId": .string(delivery.notificationID),
            "event": .string(delivery.event), "action": delivery.action.map(JSON.string),
            "success": delivery.success.map(JSON.bool), "executionId": .string(delivery.executionID),
            "merchantReference": .string(delivery.merchantReference), "url": .string(delivery.url),
            "state": .string(delivery.state.rawValue), "signature": .string(delivery.signature),
            "body": .string(String(decoding: delivery.body, as: UTF8.self)),
            "attempts": .array(
                delivery.attempts.map {
                    .compact([
                        "time": .string($0.time.rfc3339), "status": $0.status.map { JSON($0) },
                        "failure": $0.failure.map(JSON.string),
                    ])
                }),
        ])
    }

    /// An execution with everything that the stand-in knows about its money.
    func inspect(_ id: String) throws(APIError) -> Answer {
        guard let execution = execution(id) else { throw .notFound("no such execution") }
        let (payment, pending): (JSON?, Bool) = perform { state in
            let paymentID = state.world.executions[id]?.paymentID
            return (
                paymentID.flatMap { state.world.payments[$0] }.map {
                    state.world.json(of: $0, includingHistory: true)
                }, state.world.executions[id]?.attempt != nil
            )
        }
        let entries = ledger.filter { $0.executionID == id }.map { entry -> JSON in
            ["kind": .string(entry.kind.rawValue), "amount": entry.amount.wire, "time": .string(entry.time.rfc3339)]
        }
        return Answer(
            200,
            .compact([
                "execution": execution, "payment": payment, "isPending": .bool(pending), "ledger": .array(entries),
            ]))
    }
}
