import Basics
import Foundation
import Lockstep

/// A request as a handler gets it: routed, authenticated, its body read.
///
/// ```swift
/// func createCheckout(_ request: Request) async throws -> Answer {
///     let order = try request.read { body in
///         NewCheckout(
///             merchantReference: body.reference("merchantReference"), amount: body.money("amount"),
///             basketVersion: body.optional.string("basketVersion", .opaque))
///     }
/// ```
public struct Request: Sendable {
    public let id: RequestID
    /// To be passed on to whoever is called for this request.
    public let trace: TraceParent?
    public let endpoint: Endpoint
    /// The decoded parameters of the path.
    public let parameters: [String: String]
    public let headers: HTTPHeaders
    /// The body of a JSON endpoint; nil where it was empty.
    public let body: JSON?
    /// The body's bytes as they came; for signatures.
    public let rawBody: Data
    /// Nil only on endpoints that are open.
    public let caller: Credential?
    /// Nil where the caller sent no key and none is required.
    public let idempotency: IdempotencyContext?
    public let receivedAt: Timestamp
    /// When its head was complete; budgets count from here.
    public let arrival: ContinuousClock.Instant
    /// Bound to the request's id.
    public let log: Log
    let queryPairs: [(name: String, value: String)]

    /// Reads the body, an empty one as an empty object. All faults at once, as one 422.
    ///
    /// The closure gets a stand-in for every value that is missing or wrong, and its result is thrown away then: build a
    /// value in it and do nothing else.
    public func read<Value>(
        unknownMembers: FieldReader.UnknownMembers = .refused, _ reading: (FieldReader) -> Value
    ) throws(Problem) -> Value {
        try FieldReader.read(body ?? [:], unknownMembers: unknownMembers, reading)
    }

    /// Reads the query, as ``read(unknownMembers:_:)`` reads a body. Names that the endpoint doesn't list, and doubled
    /// ones, are refused before the handler runs.
    public func readQuery<Value>(_ reading: (QueryReader) -> Value) throws(Problem) -> Value {
        try QueryReader.read(queryPairs, reading)
    }

    /// An id in the path. What isn't a UUID isn't there: 404.
    public func id<ID: Identifier>(_ name: String = "id", as type: ID.Type = ID.self) throws(Problem) -> ID {
        guard let id = parameters[name].flatMap({ ID($0) }) else { throw .notFound }
        return id
    }

    /// A UUID in the path that has no type of its own.
    public func uuid(_ name: String = "id") throws(Problem) -> UUID {
        guard let uuid = parameters[name].flatMap({ UUID(canonical: $0) }) else { throw .notFound }
        return uuid
    }

    /// A reference in the path, of the form that references have in bodies; else 422.
    public func reference(_ name: String) throws(Problem) -> String {
        let text = parameters[name] ?? ""
        if let fault = TextRule.reference.fault(in: text) { throw .invalid("/\(name)", fault) }
        return text
    }

    /// The version in `If-Match: "7"`.
    ///
    /// - Throws: 428 where there is none (`*` names none), 412 for what can't be a version of ours.
    public func requiredVersion() throws(Problem) -> Int {
        let values = headers.all("If-Match")
        guard let value = values.first, value != "*" else {
            throw Problem(.ifMatchMissing, "If-Match must name the version that you know, like \"1\"")
        }
        guard values.count == 1, value.count >= 3, value.hasPrefix("\""), value.hasSuffix("\""),
            let version = Int(value.dropFirst().dropLast()), version >= 0, value == "\"\(version)\""
        else { throw Problem(.stale, "If-Match doesn't name the version that is in force") }
        return version
    }

    /// The caller of an endpoint that isn't open.
    public func authenticated() throws(Problem) -> Credential {
        guard let caller else { throw Problem(.unauthorized) }
        return caller
    }

    /// The checkout in the path's `{id}`, once it is sure that the caller may see it (invariant M10).
    public func ownCheckout(_ name: String = "id") throws(Problem) -> CheckoutID {
        let checkout = try id(name, as: CheckoutID.self)
        try authenticated().mustReach(checkout)
        return checkout
    }
}
