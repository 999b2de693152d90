import Basics
import Lockstep

extension World {
    /// Section 2.1: `POST /merchant/workflows/{workflowCode}/executions`.
    mutating func createExecution(workflowCode: String, body: JSON) throws(APIError) -> Answer {
        try check(body, against: Schema.createExecution)
        try checkWorkspace(body)
        try checkOrigins(meta: body["meta"], returnInfo: nil)
        try checkInitialActions(body)
        let override = body["workflowConfigOverride"]
        guard !(override?["captureMode"]?.string == "Delayed" && override?["cancelMode"]?.string == "Delayed") else {
            throw .invalid("workflowConfigOverride: capture and cancel can't both be delayed")
        }
        let id = try addExecution(workflowCode: workflowCode, body: body)
        for action in body["initialActions"]?.array ?? [] {
            let content = action["body"] ?? [:]
            let result: Answer
            do {
                switch action["action"]?.string {
                case "lookup": result = try lookup(id, body: content)
                case "startPaymentSession": result = try startPaymentSession(id, body: content)
                default: result = try authorize(id, body: content, caller: .merchant)
                }
            } catch {
                result = Answer(error.status, error.body(using: &random))
            }
            executions[id]?.initialResults.append(["httpCode": JSON(result.status), "body": result.body])
        }
        return Answer(201, json(of: try execution(id)))
    }

    /// What is wrong with the parameters of an initial action is wrong with the whole request.
    private func checkInitialActions(_ body: JSON) throws(APIError) {
        for action in body["initialActions"]?.array ?? [] {
            let content = action["body"] ?? [:]
            switch action["action"]?.string {
            case "lookup": try check(content, against: Schema.lookup)
            case "startPaymentSession": try check(content, against: Schema.startPaymentSession)
            default: try check(content, against: Schema.authorize)
            }
        }
    }

    /// Puts a new execution into the world, and tells that it was created.
    mutating func addExecution(workflowCode: String, body: JSON) throws(APIError) -> String {
        guard configuration.workflowCodes.contains(workflowCode) else { throw .notFound("no such workflow") }
        let merchantReference = body["merchantReference"]?.string ?? ""
        let holder = holder(reference: body["holderReference"]?.string ?? "guest-\(random.opaque())")
        let override = body["workflowConfigOverride"]
        let captureMode = override?["captureMode"]?.string ?? configuration.captureMode
        let execution = Execution(
            id: random.uuid(), sequence: nextSequence(), workflowCode: workflowCode,
            workflowVersion: Int(body["workflowVersion"]?.integer ?? Int64(configuration.workflowVersion)),
            merchantReference: merchantReference, holderReference: holder.reference, holderID: holder.id,
            workspaceID: configuration.workspaceID, createdAt: stamp(), targets: targets, meta: body["meta"] ?? [:],
            captureMode: CaptureMode(rawValue: captureMode) ?? .manual,
            captureDelay: override?["captureDelay"]?.string.flatMap(ISODuration.parse) ?? .seconds(300),
            cancelMode: override?["cancelMode"]?.string == "Delayed" ? .delayed : .manual,
            cancelDelay: override?["cancelDelay"]?.string.flatMap(ISODuration.parse) ?? .seconds(300))
        executions[execution.id] = execution
        executionOrder.append(execution.id)
        executionsByReference[merchantReference, default: []].append(execution.id)
        addStatus("created", to: execution.id)
        notifyCreated(execution)
        return execution.id
    }

    mutating func holder(reference: String) -> Holder {
        if let known = holders[reference] { return known }
        let holder = Holder(id: random.uuid(), sequence: nextSequence(), reference: reference, createdAt: stamp())
        holders[reference] = holder
        return holder
    }

    /// Adds an entry to `status[]`; whoever waits for it is told.
    mutating func addStatus(_ code: String, to id: String, errors: [JSON] = []) {
        let entry = StatusEntry(code: code, time: stamp(), errors: errors)
        executions[id]?.statuses.append(entry)
        effects.changed.insert(id)
    }

    /// Section 2.5: the amount moves only while nobody has asked to pay (section 4).
    mutating func lookup(_ id: String, body: JSON) throws(APIError) -> Answer {
        try check(body, against: Schema.lookup)
        var execution = try execution(id)
        if let amount = body["amount"] {
            guard execution.authorizeActionID == nil else {
                throw .notAllowed("lookup is not allowed after authorize")
            }
            let money = try money(amount)
            let meta = try merged(execution.meta, body["meta"])
            try checkLines(meta: body["meta"], amount: money)
            execution.amount = money
            execution.meta = meta
        }
        let record = Execution.ActionRecord(
            id: random.uuid(), name: "lookup", time: stamp(), amount: execution.amount)
        execution.actions.append(record)
        executions[id] = execution
        let options = paymentOptions(
            holderReference: execution.holderReference,
            allowed: (body["meta"] ?? execution.meta)["allowedPaymentMethods"]?.array?.compactMap(\.string))
        return Answer(
            200,
            [
                "name": "lookup", "actionId": .string(record.id), "workspaceId": .string(execution.workspaceID),
                "executedAt": .string(record.time.rfc3339), "data": ["paymentCompositionOptions": .array(options)],
                "links": [
                    "execution": .string(merchantLink(execution)),
                    "authorize": link(merchantLink(execution) + "/authorize"),
                    "startPaymentSession": link(merchantLink(execution) + "/startPaymentSession"),
                ],
            ])
    }

    /// Top-level members of the new meta replace the old ones; references can't change (section 2.1).
    func merged(_ old: JSON, _ new: JSON?) throws(APIError) -> JSON {
        guard let new = new?.object, var members = old.object else { return old }
        for owner in ["order", "customer"] {
            if let before = old[owner]?["reference"], let after = new[owner]?["reference"], before != after {
                throw .invalid("meta.\(owner).reference can't change")
            }
        }
        members.merge(new) { $1 }
        return .object(members)
    }

    mutating func startPaymentSession(_ id: String, body: JSON) throws(APIError) -> Answer {
        try check(body, against: Schema.startPaymentSession)
        var execution = try execution(id)
        guard execution.authorizeActionID == nil else {
            throw .notAllowed("startPaymentSession is not allowed after authorize")
        }
        let amount = try money(body["amount"] ?? .null)
        guard execution.amount == nil || execution.amount == amount else {
            throw .unauthorized("the amount differs from the execution's", isStored: true)
        }
        execution.amount = amount
        let record = Execution.ActionRecord(
            id: random.uuid(), name: "startPaymentSession", time: stamp(), amount: amount)
        execution.actions.append(record)
        executions[id] = execution
        return Answer(
            200,
            [
                "name": "startPaymentSession", "actionId": .string(record.id),
                "executedAt": .string(record.time.rfc3339), "data": ["session": .string(random.opaque())],
                "links": ["execution": .string(merchantLink(execution))],
            ])
    }
}
