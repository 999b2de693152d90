import Basics
import Lockstep

extension NotificationMessage {
    /// What the notification says happened; empty for events and actions that no payment depends on.
    func facts(receivedAt: Timestamp) -> [Fact] {
        guard let phase = NotificationMessage.phases[event], let action = details["action"]?.word else { return [] }
        let at = time ?? receivedAt
        if action == "dispute" { return phase == .completed ? disputes(at: at) : [] }
        guard NotificationMessage.paymentActions.contains(action) else { return [] }
        return [fact(action, phase, at: at)]
    }

    /// False for a completed action of a payment that doesn't say, as a boolean, whether it succeeded (section 10, 6).
    /// Such a one is neither a success nor a failure (invariant M7): reading the execution tells.
    var tellsItsResult: Bool {
        guard NotificationMessage.phases[event] == .completed, let action = details["action"]?.word,
            NotificationMessage.paymentActions.contains(action)
        else { return true }
        return details["success"]?.bool != nil
    }

    /// An update is a completion that is known later (section 5.2).
    private static let phases: [String: Fact.Phase] = [
        "executionActionRequested": .requested,
        "executionActionPending": .pending,
        "executionActionCompleted": .completed,
        "executionActionUpdated": .completed,
    ]

    private static let paymentActions: Set = ["authorize", "confirm", "capture", "cancel", "refund"]

    private var compositions: [JSON] { details["paymentComposition"]?.array ?? [] }

    private func fact(_ action: String, _ phase: Fact.Phase, at: Timestamp) -> Fact {
        // Sent for failures too.
        let success = phase == .completed ? details["success"]?.bool : nil
        let effective = success == true ? succeeded(action) : compositions
        let shown = effective.last ?? compositions.last
        return Fact(
            kind: .action, action: action, actionID: actionID, phase: phase, success: success,
            amount: success == true ? NotificationMessage.sum(effective) : nil,
            reason: success == true ? nil : reason,
            actionRequired: phase == .pending ? ExecutionReading.actionRequired(details) : nil,
            paymentID: shown?["paymentId"]?.word,
            paymentMethodCode: shown?["paymentMethodCode"]?.word,
            instrumentID: shown?["paymentInstrumentId"]?.word ?? shown?["paymentInstrument"]?["id"]?.word,
            at: at, isDated: time != nil, source: .notification)
    }

    /// The compositions that the action's success rests on: not the attempts that failed before, and, where
    /// operations of several kinds are listed, only those of this one.
    private func succeeded(_ action: String) -> [JSON] {
        let successes = compositions.filter { composition in
            composition["success"].map { $0.bool == true } ?? (composition["operationResult"]?.word == "Success")
        }
        let ofThisKind = successes.filter { composition in
            composition["operationType"]?.word?.equalsIgnoringASCIICase(action) ?? false
        }
        return ofThisKind.isEmpty ? successes : ofThisKind
    }

    /// The exact sum; nil when there is nothing to add, or one of the amounts can't be read, or they don't go
    /// together. `details.amount` is no substitute: it is the execution's total, not the action's.
    private static func sum(_ compositions: [JSON]) -> Money? {
        var total: Money?
        for composition in compositions {
            guard let amount = composition["amount"]?.money else { return nil }
            guard let before = total else {
                total = amount
                continue
            }
            // Both are at most 15 digits, so this can't overflow; beyond 15 digits it isn't money any more.
            guard before.currency == amount.currency,
                let sum = Money(minor: before.minor + amount.minor, currency: amount.currency)
            else { return nil }
            total = sum
        }
        return total
    }

    /// The first error's result, else the failed operation's, else the code, unless it says no more than "failed".
    private var reason: String? {
        let error = details["errors"]?[0]
        let ofError = error.flatMap(ProviderProblem.reason(of:))
        let ofOperation = compositions.lazy.compactMap { composition in
            composition["operationResult"]?.code.map {
                DeclinePolicy.reason($0, detail: composition["operationResultDetail"]?.code)
            }
        }.last { $0 != "Success" }
        let code = error.flatMap(ProviderProblem.code(of:))
        return ofError ?? ofOperation ?? (code == "workflow.action.failed" ? nil : code)
    }

    private func disputes(at: Timestamp) -> [Fact] {
        compositions.compactMap { composition in
            guard let dispute = composition["dispute"], let id = dispute["id"]?.word else { return nil }
            return Fact(
                kind: .dispute, code: dispute["status"]?.word ?? "unreadable", action: "dispute", actionID: actionID,
                amount: dispute["amount"]?.money, reason: dispute["reason"]?.reference.map(Scrubber.scrub),
                paymentID: dispute["paymentId"]?.word ?? composition["paymentId"]?.word,
                paymentMethodCode: composition["paymentMethodCode"]?.word, disputeID: id, at: at,
                source: .notification)
        }
    }
}
