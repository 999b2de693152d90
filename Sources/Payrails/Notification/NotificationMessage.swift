import Basics
import Lockstep

/// The three shapes of a notification, brought to one: an event, its time, and its details.
struct NotificationMessage {
    let json: JSON
    let shape: PayrailsNotification.Shape
    let event: String
    let details: JSON
    let execution: JSON?
    let executionID: ExecutionID?
    /// By Payrails' clock.
    let time: Timestamp?

    /// Nil when the object is none of the three.
    init?(_ json: JSON) {
        self.json = json
        if let event = json["event"]?.word {
            shape = .envelope
            self.event = event
            details = json["details"] ?? .null
        } else if let event = json["eventType"]?.word {
            shape = .history
            self.event = event
            details = NotificationMessage.historyDetails(json["details"])
        } else if json["action"]?.word != nil {
            shape = .bareDetails
            event = NotificationMessage.inferredEvent(json)
            details = json
        } else {
            return nil
        }
        execution = details["execution"]
        executionID = execution?["id"]?.identifier() ?? json["workflowExecutionId"]?.identifier()
        time = json["time"]?.timestamp ?? json["createdAt"]?.timestamp ?? details["executedAt"]?.timestamp
    }

    /// No official example shows what the history puts into `details`; the response is where a result would be.
    private static func historyDetails(_ details: JSON?) -> JSON {
        let candidates = [details, details?["response"], details?["response"]?["body"]]
        return candidates.compactMap { $0 }.first { $0["action"]?.word != nil } ?? details ?? .null
    }

    /// A bare object says by what it holds what happened.
    private static func inferredEvent(_ details: JSON) -> String {
        if details["success"] != nil { return "executionActionCompleted" }
        return ExecutionReading.actionRequired(details) == nil ? "executionActionRequested" : "executionActionPending"
    }

    var merchantReference: String? { execution?["merchantReference"]?.reference }

    var actionID: String? { details["actionId"]?.word ?? json["workflowActionId"]?.word }
}
