import Basics
import Foundation
import Lockstep

/// The controls over HTTP, under `/sandbox/`. Nobody is asked who they are: they are only for this machine.
extension PayrailsSandbox {
    /// Answers whatever comes: a control, or a call of the API.
    func respond(to request: APIRequest) async -> APIResponse {
        let segments = request.path.split(separator: "/").map { $0.removingPercentEncoding ?? String($0) }
        guard segments.first == "sandbox" else { return await answer(request) }
        if request.method == "POST", request.path == "/sandbox/notifications/raw" {
            sendNotification(request.body)
            return .json(202, JSON.object([:]).bytes)
        }
        let body: JSON
        do {
            body = request.body.isEmpty ? [:] : try JSON(parsing: request.body)
        } catch {
            return refusal(APIError(400, "request.malformed", error.reason))
        }
        do {
            let answer = try await control(request.method, Array(segments.dropFirst()), Query(request.query), body)
            return .json(answer.status, answer.body.bytes + Data([0x0A]))
        } catch {
            return refusal(error)
        }
    }

    private func control(
        _ method: String, _ path: [String], _ query: Query, _ body: JSON
    ) async throws(APIError) -> Answer {
        switch (method, path.first ?? "", path.count) {
        case ("GET", "", 0): return Answer(200, ["help": .string(Self.usage(baseURL: baseURL))])
        case ("GET", "ledger", 1): return Answer(200, ledgerJSON(merchantReference: query["merchantReference"]))
        case ("GET", "calls", 1): return Answer(200, callsJSON(route: query["route"]))
        case ("GET", "notifications", 1):
            return Answer(200, ["deliveries": .array(deliveries.map(Self.json))])
        case ("POST", "notifications", 2) where path[1] == "flush":
            await flushNotifications()
            return Answer(200, ["deliveries": .array(deliveries.map(Self.json))])
        case ("POST", "notifications", 2) where path[1] == "redeliver":
            guard let id = body["executionId"]?.string else { throw .invalid("executionId is required") }
            redeliver(id)
            return Answer(202, [:])
        case ("POST", "notification-targets", 1): return try setTargets(body)
        case ("POST", "faults", 1):
            add(try SandboxFault(control: body))
            return Answer(201, [:])
        case ("POST", "notification-faults", 1):
            add(try SandboxNotificationFault(control: body))
            return Answer(201, [:])
        case ("POST", "rotate-key", 1):
            guard let url = body["url"]?.string, let key = body["key"]?.string else {
                throw .invalid("url and key are required")
            }
            rotateNotificationKey(of: url, to: key)
            return Answer(200, [:])
        case ("POST", "credentials", 1):
            guard let id = body["clientId"]?.string else { throw .invalid("clientId is required") }
            setCredential(clientID: id, clientSecret: body["clientSecret"]?.string)
            return Answer(200, [:])
        case ("DELETE", "faults", 1), ("DELETE", "notification-faults", 1):
            clearFaults()
            return Answer(200, [:])
        case ("POST", "outcomes", 1):
            add(try SandboxOutcomeRule(control: body))
            return Answer(201, [:])
        case ("POST", "expire-tokens", 1):
            expireAccessTokens()
            return Answer(200, [:])
        case ("POST", "reset", 1):
            reset()
            return Answer(200, [:])
        case ("POST", "settle", 1): return Answer(200, ["quiet": .bool(await becomesQuiet())])
        case ("POST", "holders", 3) where path[2] == "tokenize": return tokenizeControl(path[1], body)
        case ("POST", "instruments", 2): return changeControl(path[1], body)
        case ("GET", "executions", 1):
            guard let reference = query["merchantReference"] else { throw .invalid("merchantReference is required") }
            return Answer(
                200, ["results": .array(executionIDs(merchantReference: reference).compactMap { execution($0) })])
        case ("GET", "executions", 2): return try inspect(path[1])
        case ("POST", "executions", 3): return try executionControl(path[1], path[2], body)
        default: throw .notFound("no such control; GET /sandbox says what there is")
        }
    }

    private func executionControl(_ id: String, _ name: String, _ body: JSON) throws(APIError) -> Answer {
        var amount: Money?
        if let given = body["amount"] {
            do { amount = try Money(wire: given) } catch { throw .invalid("amount \(error.detail)") }
        }
        let answer: SDKAnswer
        switch name {
        case "pay":
            var payment = Payment()
            payment.method = body["method"]?.string ?? "card"
            payment.card = body["card"]?.string ?? "4242"
            payment.instrumentID = body["instrumentId"]?.string
            payment.amount = amount
            payment.storeInstrument = body["storeInstrument"]?.bool ?? false
            payment.futureUsage = body["futureUsage"]?.string
            payment.outcome = SandboxOutcome(body)
            if body["outcome"] != nil, payment.outcome == nil { throw .invalid("outcome is not one that is known") }
            answer = pay(id, payment)
        case "3ds", "customer":
            guard let result = CustomerAnswer(rawValue: body["result"]?.string ?? "success") else {
                throw .invalid("result must be success, fail or abandon")
            }
            answer = answerChallenge(id, result)
        case "abandon": answer = abandon(id)
        case "move-amount":
            guard let amount else { throw .invalid("amount is required") }
            answer = moveAmount(id, to: amount)
        case "portal":
            guard let action = SandboxOutcomeRule.Action(rawValue: body["action"]?.string ?? ""), action != .authorize
            else { throw .invalid("action must be capture, cancel or refund") }
            answer = actInPortal(id, action, amount: amount, isFinal: body["final"]?.bool)
        case "status":
            guard let code = body["code"]?.string else { throw .invalid("code is required") }
            answer = addStatus(id, code: code)
        case "expire-session":
            expireSession(id)
            answer = SDKAnswer(status: 200, body: [:])
        case "dispute":
            answer = dispute(
                id, status: body["status"]?.string ?? "DisputeOpened", reason: body["reason"]?.string ?? "fraud",
                amount: amount, disputeID: body["disputeId"]?.string)
        case "update-result":
            let action = SandboxOutcomeRule.Action(rawValue: body["action"]?.string ?? "authorize")
            guard let action, let success = body["success"]?.bool else {
                throw .invalid("success must be true or false, action a known one")
            }
            answer = updateResult(
                id, action: action, success: success, result: body["reason"]?.string ?? "GenericRejection")
        default: throw .notFound("no such control; GET /sandbox says what there is")
        }
        return Answer(answer.status, answer.body)
    }

    private func tokenizeControl(_ holder: String, _ body: JSON) -> Answer {
        let answer = tokenize(
            holderReference: holder, card: body["card"]?.string ?? "4242",
            expiryMonth: body["expiryMonth"]?.string ?? "12", expiryYear: body["expiryYear"]?.string ?? "2034",
            futureUsage: body["futureUsage"]?.string, hasNetworkToken: body["hasNetworkToken"]?.bool ?? false,
            method: body["method"]?.string ?? "card")
        return Answer(answer.status, answer.body)
    }

    private func changeControl(_ id: String, _ body: JSON) -> Answer {
        let answer = changeInstrument(
            id, expiryMonth: body["expiryMonth"]?.string, expiryYear: body["expiryYear"]?.string,
            suffix: body["suffix"]?.string, status: body["status"]?.string,
            hasNetworkToken: body["hasNetworkToken"]?.bool)
        return Answer(answer.status, answer.body)
    }

    private func setTargets(_ body: JSON) throws(APIError) -> Answer {
        guard let list = body["targets"]?.array else { throw .invalid("targets must be an array of {url, key}") }
        var targets: [NotificationTarget] = []
        for item in list {
            guard let url = item["url"]?.string, Shape.isAddress(url), let key = item["key"]?.string else {
                throw .invalid("targets must be an array of {url, key}")
            }
            targets.append(NotificationTarget(url: url, key: key))
        }
        setNotificationTargets(targets)
        return Answer(200, [:])
    }
}
