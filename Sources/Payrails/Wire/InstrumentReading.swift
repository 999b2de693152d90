import Basics
import Lockstep

/// Reads a saved instrument (section 6.3), from the instruments API and from init payloads.
enum InstrumentReading {
    /// Nil without an id. A status that is missing is `unknown`, which is not `enabled`.
    static func snapshot(_ json: JSON) -> InstrumentSnapshot? {
        guard let id = json["id"]?.identifier(as: InstrumentID.self) else { return nil }
        let data = json["data"]
        return InstrumentSnapshot(
            id: id,
            holderReference: json["holderReference"]?.reference,
            paymentMethod: json["paymentMethod"]?.word ?? "unknown",
            status: json["status"]?.word ?? "unknown",
            isDefault: json["default"]?.bool ?? false,
            displayName: json["displayName"]?.reference.map(Scrubber.blankDigitRuns),
            network: data?["network"]?.word,
            suffix: data?["suffix"]?.word.flatMap { $0.utf8.count <= 4 ? $0 : nil },
            expiryMonth: data?["expiryMonth"]?.wholeNumber.flatMap { (1...12).contains($0) ? $0 : nil },
            expiryYear: data?["expiryYear"]?.wholeNumber.flatMap { (1000...9999).contains($0) ? $0 : nil },
            hasNetworkToken: hasNetworkToken(json),
            futureUsage: json["futureUsage"]?.word)
    }

    private static func hasNetworkToken(_ json: JSON) -> Bool? {
        json["tokens"]?.array?.contains { token in
            token["type"]?.word == "network" && token["status"]?.word == "enabled"
        }
    }
}
