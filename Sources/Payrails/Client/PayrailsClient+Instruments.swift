import Basics
import Foundation
import HTTPClient
import Lockstep

/// Saved instruments (section 6.3).
extension PayrailsClient {
    /// Those of one holder. Another holder's, which a server that ignores the filter would send, are left out.
    public func listInstruments(holderReference: String) async -> Outcome<[InstrumentSnapshot]> {
        let query = Address.query([
            "filter[holderReference]": holderReference, "includeHolderReference": "true",
            "page[size]": String(configuration.pageSize),
        ])
        let all = await readAllPages("/payment/instruments", query: query, what: "a list of instruments") { json in
            // One that can't be read is left out, so that it doesn't take the others away from the customer.
            json.object.map { _ in InstrumentReading.snapshot(json) }
        }
        return all.map { instruments in
            instruments.compactMap { $0 }.filter { ($0.holderReference ?? holderReference) == holderReference }
        }
    }

    public func readInstrument(_ id: InstrumentID) async -> Outcome<InstrumentSnapshot> {
        let query = Address.query(["includeTokens": "true", "includeHolderReference": "true"])
        return await read("/payment/instruments/\(id)", query: query, what: "this instrument") { json in
            InstrumentReading.snapshot(json).flatMap { $0.id == id ? $0 : nil }
        }
    }

    public func updateInstrument(
        _ id: InstrumentID, _ change: InstrumentChange, key: IdempotencyKey
    ) async -> Outcome<InstrumentSnapshot> {
        let body = JSON.compact([
            "default": change.makeDefault ? true : nil,
            "status": change.isEnabled.map { $0 ? "enabled" : "disabled" },
        ])
        return await self.change(
            "/payment/instruments/\(id)", method: .patch, body: body, key: key, what: "this instrument"
        ) {
            json in InstrumentReading.snapshot(json).flatMap { $0.id == id ? $0 : nil }
        }
    }

    /// Done only when Payrails says so: `{"success": true}`, or 204.
    public func deleteInstrument(_ id: InstrumentID, key: IdempotencyKey) async -> Outcome<Void> {
        let call = PayrailsCall.change(
            .delete, "/payment/instruments/\(id)", body: nil, key: key, timeout: configuration.changeTimeout)
        let response: HTTPClientResponse
        switch await caller.answer(to: call) {
        case .done(let answer): response = answer
        case .refused(let refusal): return .refused(refusal)
        case .unknown(let doubt): return .unknown(doubt)
        }
        if response.status == 204 { return .done(()) }
        let outcome = OutcomeTable.outcome(of: response, changesSomething: true, what: "a deletion's answer") {
            $0["success"]?.bool
        }
        switch outcome {
        case .done(true): return .done(())
        case .done(false): return .refused(Refusal(kind: .rejected, detail: "Payrails says that it was not deleted"))
        case .refused(let refusal): return .refused(refusal)
        case .unknown(let doubt): return .unknown(doubt)
        }
    }
}
