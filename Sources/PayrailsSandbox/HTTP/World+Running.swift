import Basics
import Lockstep

extension World {
    /// Does what a call asks for. What waits (a held read) and what is for people (a page) is not here.
    mutating func run(
        _ match: RouteMatch, query: Query, body: JSON, caller: Caller
    ) throws(APIError) -> Answer {
        let id = match.parameters["id"] ?? ""
        switch match.route {
        case .token: return newAccessToken()
        case .clientInit: return try clientInit(body)
        case .createExecution: return try createExecution(workflowCode: match.parameters["code"] ?? "", body: body)
        case .listExecutions: return try listExecutions(workflowCode: match.parameters["code"] ?? "", query)
        case .lookup, .clientLookup, .startPaymentSession, .clientStartPaymentSession, .authorize, .clientAuthorize,
            .confirm, .clientConfirm, .capture, .cancel, .refund, .executionHistory, .executionActions:
            guard try execution(id).workflowCode == match.parameters["code"] else { throw .notFound("unknown id") }
            return try runAction(match.route, id, body: body, caller: caller)
        case .listInstruments: return try listInstruments(query)
        case .createInstrument: return try createInstrument(body)
        case .getInstrument:
            return Answer(
                200,
                json(
                    of: try instrument(id), includingTokens: query["includeTokens"] == "true",
                    includingHolderReference: query["includeHolderReference"] == "true"))
        case .updateInstrument: return try updateInstrument(id, body: body)
        case .deleteInstrument: return try deleteInstrument(id)
        case .clientSaveInstrument, .clientUpdateInstrument, .clientDeleteInstrument:
            return try runForHolder(match.route, id, body: body, caller: caller)
        case .listPayments: return try listPayments(query)
        case .getPayment:
            guard let payment = payments[id.lowercased()] else { throw .notFound("no such payment") }
            return Answer(200, json(of: payment, includingHistory: true))
        case .listPaymentOperations: return try operations(of: id)
        case .listHolders: return try listHolders(query)
        case .createHolder:
            try check(body, against: Schema.createHolder)
            return Answer(201, World.json(of: holder(reference: body["reference"]?.string ?? "")))
        case .clientBinLookup:
            return Answer(200, ["bin": body["bin"] ?? "42424242", "network": "visa", "type": "credit"])
        case .clientUpdate: return Answer(200, [:])
        case .getExecution, .clientGetExecution, .redirectPage, .waitPage: throw .notFound("no such path")
        }
    }

    private mutating func runAction(
        _ route: SandboxRoute, _ id: String, body: JSON, caller: Caller
    ) throws(APIError) -> Answer {
        switch route {
        case .clientLookup where body["amount"] != nil:
            // A session may authorize, confirm and read (section 3.2); the amount is the server's to move.
            throw APIError(403, "request.forbidden", "a session can't move the amount", isStored: false)
        case .lookup, .clientLookup: return try lookup(id, body: body)
        case .startPaymentSession, .clientStartPaymentSession: return try startPaymentSession(id, body: body)
        case .authorize, .clientAuthorize: return try authorize(id, body: body, caller: caller)
        case .confirm, .clientConfirm: return try confirm(id, body: body, caller: caller)
        case .capture: return try capture(id, body: body)
        case .cancel: return try cancel(id, body: body)
        case .refund: return try refund(id, body: body)
        default: return history(of: try execution(id))
        }
    }

    /// Section 2.5: what was to be confirmed succeeds.
    private mutating func confirm(_ id: String, body: JSON, caller: Caller) throws(APIError) -> Answer {
        try check(body, against: Schema.confirm)
        guard try execution(id).actionRequired == .confirm else { throw .notAllowed("there is nothing to confirm") }
        let record = Execution.ActionRecord(
            id: random.uuid(), name: "confirm", time: stamp(), amount: executions[id]?.amount)
        executions[id]?.actions.append(record)
        addStatus("confirmRequested", to: id)
        addStatus("confirmSuccessful", to: id)
        finishCustomerAction(id, success: true)
        return Answer(202, acknowledgement(record, of: try execution(id), caller: caller))
    }

    private func history(of execution: Execution) -> Answer {
        let results: [JSON] = execution.actions.map {
            .compact([
                "id": .string($0.id), "action": .string($0.name), "createdAt": .string($0.time.rfc3339),
                "amount": $0.amount?.wire,
            ])
        }
        return Answer(200, ["results": .array(results)])
    }

    private func operations(of id: String) throws(APIError) -> Answer {
        guard let payment = payments[id.lowercased()] else { throw .notFound("no such payment") }
        let results: [JSON] = payment.operations.map {
            [
                "id": .string($0.id), "operationType": .string($0.type), "operationResult": .string($0.result),
                "amount": $0.amount.wire, "createdAt": .string($0.time.rfc3339),
            ]
        }
        return Answer(200, ["results": .array(results)])
    }

    /// The SDK saves, changes and deletes instruments of its own holder only.
    private mutating func runForHolder(
        _ route: SandboxRoute, _ id: String, body: JSON, caller: Caller
    ) throws(APIError) -> Answer {
        guard case .client(let session) = caller else { throw .unauthorized("not a session") }
        if route == .clientSaveInstrument {
            var members = body.object ?? [:]
            members["holderReference"] = .string(session.holderReference)
            members["holderId"] = nil
            return try createInstrument(.object(members))
        }
        guard try instrument(id).holderReference == session.holderReference else {
            throw .notFound("no such instrument")
        }
        return route == .clientUpdateInstrument ? try updateInstrument(id, body: body) : try deleteInstrument(id)
    }
}
