import Basics
import Foundation
import Lockstep

/// A notification that could be read (section 5): what it is about, and the facts that it tells.
public struct PayrailsNotification: Hashable, Sendable {
    /// The name as it came; `executionActionCompleted` and the like are inferred for a bare `details` object.
    public let event: String
    /// Which of the three shapes it came in.
    public let shape: Shape
    /// Nil where it doesn't say, or not in a way that can be read.
    public let time: Timestamp?
    public let executionID: ExecutionID?
    public let workflowCode: String?
    public let merchantReference: String?
    public let holderReference: String?
    public let workspaceID: String?
    public let facts: [Fact]

    public enum Shape: String, Hashable, Sendable {
        /// `{event, time, details, …}`.
        case envelope
        /// What should be inside `details`, at the top.
        case bareDetails
        /// The history's format: `{eventType, workflowExecutionId, createdAt, details: {request, response}}`.
        case history
    }
}

/// What became of reading a notification. None of these is an error: all are stored, and answered with 200.
public enum ParsedNotification: Hashable, Sendable {
    /// It tells something about a payment.
    case facts(PayrailsNotification)
    /// It is well formed and tells nothing that is used here. It is still a reason to read the execution, if it
    /// names one.
    case ignored(PayrailsNotification)
    /// It tells that something ended, and not how; neither a success nor a failure. Reading the execution tells. The
    /// reason never holds any of its content.
    case undecided(PayrailsNotification, reason: String)
    /// It isn't a notification that we understand; the reason never holds any of its content.
    case unreadable(reason: String)
}

extension PayrailsNotification {
    /// Reads the body of a notification whose signature has been verified. Never throws, whatever the bytes.
    ///
    /// - Parameter receivedAt: when these bytes were first stored. A notification without a usable time is dated by
    ///   it: that is late rather than early, and it is the same each time that the same row is parsed, so that
    ///   applying it again gives the same facts. Don't pass the time of parsing.
    public static func parse(_ body: Data, receivedAt: Timestamp) -> ParsedNotification {
        let json: JSON
        do { json = try JSON(parsing: body) } catch { return .unreadable(reason: error.reason) }
        guard json.object != nil else { return .unreadable(reason: "the body is not a JSON object") }
        guard let message = NotificationMessage(json) else {
            return .unreadable(reason: "the object has neither an event nor an action")
        }
        let facts = message.tellsItsResult ? message.facts(receivedAt: receivedAt) : []
        if !facts.isEmpty, message.executionID == nil, message.merchantReference == nil {
            return .unreadable(reason: "it names neither an execution nor a reference")
        }
        let notification = PayrailsNotification(
            event: message.event, shape: message.shape, time: message.time, executionID: message.executionID,
            workflowCode: message.execution?["workflowCode"]?.word ?? message.json["workflow"]?["code"]?.word,
            merchantReference: message.merchantReference,
            holderReference: message.execution?["holderReference"]?.reference,
            workspaceID: message.json["workspaceId"]?.word ?? message.details["workspaceId"]?.word, facts: facts)
        guard message.tellsItsResult else {
            return .undecided(notification, reason: "a completed action without a true or false for success")
        }
        return facts.isEmpty ? .ignored(notification) : .facts(notification)
    }
}
