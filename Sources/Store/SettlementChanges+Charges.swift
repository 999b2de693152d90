import Basics
import Lockstep

extension SettlementChanges {
    /// Decides one charge. Pure but for the ids of what is planned.
    ///
    /// - Parameters:
    ///   - refused: why the provider refused a call of an attempt for good, by the attempt's number.
    ///   - abandoned: attempts that nobody goes on with, by number.
    ///   - afterFailure: what follows an attempt that failed.
    mutating func settle(
        _ charge: Charge, _ known: Holdings, refused: [Int: String] = [:],
        abandoned: [Int: ChargeSettlement.Abandonment] = [:],
        afterFailure: (ChargeAttempt) -> ChargeSettlement.AfterFailure
    ) -> Charge {
        var stored = known.executions
        let operations = settleOperations(known, &stored)
        let inDoubt = Set(
            operations.open.filter { $0.state == .unknown }.compactMap { operation -> Int? in
                switch operation.kind {
                // There is only one at a time, and it is the last attempt's.
                case .createExecution: charge.attempts.last?.number
                case .authorize: charge.attempts.first { $0.execution == operation.execution?.id }?.number
                default: nil
                }
            })
        let settlement = ChargeSettlement(
            of: charge, executions: stored.map(\.execution), inDoubt: inDoubt, refused: refused,
            abandoned: abandoned, rules: policy.charges, now: now, afterFailure: afterFailure)
        let settled = settlement.charge
        let about = EventSubject.other(settled.subscription?.uuid ?? settled.id.uuid)
        var readNow: Set<ExecutionID> = []
        var held: Set<ExecutionID> = []
        for effect in settlement.effects {
            switch effect {
            case .cancel(let id, let reason):
                cancel(id, reason, of: .charge(charge.id), in: &stored, unless: operations.cancelling)
            case .read(let id): readNow.insert(id)
            case .held(let id): held.insert(id)
            case .event(let type):
                events.append(
                    Event(
                        type: type, about: about, execution: settled.attempts.last?.execution,
                        data: ["charge": settled.json]))
            }
        }
        charges.append(ChargeRow(charge: settled, dueAt: settlement.dueAt))
        for (attempt, before) in zip(settled.attempts, charge.attempts) where attempt != before {
            attempts.append(AttemptRow(charge: charge.id, attempt: attempt))
        }
        for execution in stored {
            let attempt = settled.attempts.first { $0.execution == execution.execution.id }
            take(
                execution, of: .charge(charge.id), about: about, readNow: readNow.contains(execution.execution.id),
                isInDoubt: attempt?.outcome == .unknown)
        }
        judge(
            .init(settled), of: .charge(charge.id), about: about, stored, operations.open, held: held,
            known.discrepancies)
        tellFailures(operations.failures, about: about)
        return settled
    }
}
