import Basics
import Foundation

/// Section 2.3: a read that is held while nothing new has happened.
extension PayrailsSandbox {
    func longPoll(_ request: APIRequest, _ match: RouteMatch, _ caller: World.Caller) async -> APIResponse {
        let condition: WaitCondition
        do { condition = try WaitCondition(Query(request.query)) } catch { return refusal(error) }
        let id = match.parameters["id"] ?? ""
        let end = configuration.pacing.now() + configuration.longPollHold
        while !condition.isEmpty {
            settle()
            let isHeld = state.withLock { state in
                !state.isStopped && (state.world.executions[id].map(condition.holds) ?? false)
            }
            let patience = end - configuration.pacing.now()
            guard isHeld, patience > .zero else { break }
            await waitForChange(of: id, within: patience) { state in
                !(state.world.executions[id].map(condition.holds) ?? false)
            }
        }
        return perform { state in
            do throws(APIError) {
                let execution = try state.world.execution(id)
                guard execution.workflowCode == match.parameters["code"] else { throw APIError.notFound("unknown id") }
                let isForClient = if case .client = caller { true } else { false }
                return .json(200, state.world.json(of: execution, forClient: isForClient).bytes)
            } catch {
                return .json(error.status, error.body(using: &state.world.random).bytes)
            }
        }
    }

    /// What a person's browser sees where the SDK would send it.
    func page(_ match: RouteMatch) -> APIResponse {
        let id = match.parameters["id"] ?? ""
        guard let execution = state.withLock({ $0.world.executions[id] }) else {
            return .html(404, "<h1>No such execution</h1>")
        }
        guard match.route == .redirectPage, let waits = execution.actionRequired else {
            let last = execution.lastStatus?.code ?? "created"
            return .html(200, "<!DOCTYPE html><title>Sandbox</title><p>The payment is <b>\(last)</b>.</p>")
        }
        let back = execution.returnInfo?["success"]?.string ?? ""
        let action = "/sandbox/executions/\(execution.id)/3ds"
        return .html(
            200,
            """
            <!DOCTYPE html><title>Sandbox</title><h1>The bank asks (\(waits.rawValue))</h1>
            <button onclick="answer('success')">It was me</button> <button onclick="answer('fail')">Refuse</button>
            <script>
            const answer = async (result) => {
              await fetch("\(action)", {method: "POST", body: JSON.stringify({result})});
              location = \(JSON.string(back).text.replacing("<", with: "\\u003c"));
            };
            </script>
            """)
    }
}

/// What a read waits on. All that is given must hold for the read to be held.
struct WaitCondition: Sendable {
    /// Held while every code of the execution is in here.
    private var codes: Set<String>?
    private var actionRequired: String?
    /// Held while no status is newer.
    private var lastStatusTime: Timestamp?

    init(_ query: Query) throws(APIError) {
        for item in query.items where item.name.hasPrefix("waitWhile") {
            switch item.name {
            case "waitWhile[status]":
                if item.value.hasPrefix("[") {
                    guard let list = (try? JSON(parsing: Data(item.value.utf8)))?.array else {
                        throw .invalid("waitWhile[status] is neither a status nor a JSON array of them")
                    }
                    codes = Set(list.compactMap(\.string))
                } else {
                    codes = [item.value]
                }
            case "waitWhile[actionRequired]": actionRequired = item.value
            case "waitWhile[lastStatusTime]":
                guard let time = Timestamp(rfc3339: item.value) else {
                    throw .invalid("waitWhile[lastStatusTime] is not a timestamp")
                }
                lastStatusTime = time
            default: throw .invalid("\(item.name) is not a known parameter")
            }
        }
    }

    var isEmpty: Bool { codes == nil && actionRequired == nil && lastStatusTime == nil }

    func holds(_ execution: Execution) -> Bool {
        if let codes, !execution.codes.isSubset(of: codes) { return false }
        if let actionRequired, (execution.actionRequired?.rawValue ?? "") != actionRequired { return false }
        if let lastStatusTime, execution.lastStatusTime > lastStatusTime { return false }
        return true
    }
}
