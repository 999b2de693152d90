import Basics
import Lockstep

/// Reads what Payrails answers to an action (section 2.5).
enum AcknowledgementReading {
    /// Nil unless the object is recognizably the answer to this action: after an action, a wrong guess costs money.
    static func acknowledgement(_ json: JSON, action: String) -> Acknowledgement? {
        guard json.object != nil, !tellsErrors(json) else { return nil }
        let isNamed = json["name"]?.string.map { $0.equalsIgnoringASCIICase(action) }
        let actionID = json["actionId"]?.word
        let executedAt = json["executedAt"]?.timestamp
        guard isNamed ?? (actionID != nil || executedAt != nil) else { return nil }
        return Acknowledgement(actionID: actionID, executedAt: executedAt)
    }

    /// An empty list of errors is none.
    private static func tellsErrors(_ json: JSON) -> Bool {
        guard let errors = json["errors"], !errors.isNull else { return false }
        return errors != []
    }

    /// The amount that a lookup's answer shows, if it shows one at all; nil for an answer that isn't a lookup's.
    static func movedAmount(_ json: JSON) -> Money?? {
        guard acknowledgement(json, action: "lookup") != nil else { return nil }
        let places = [json["amount"], json["data"]?["amount"], json["execution"]?["amount"]]
        return .some(places.compactMap { $0?.money }.first)
    }
}
