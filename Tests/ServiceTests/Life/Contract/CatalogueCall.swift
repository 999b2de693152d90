import Basics
import Foundation
import TestKit
import Testing

@testable import Service

/// A request that the catalogue itself describes, so that a new endpoint needs no line here: ids and references go into
/// the path and wherever the schema's example has one.
struct CatalogueCall {
    let endpoint: Endpoint
    /// For every id that the call takes.
    let id: String
    /// For every reference that the call takes.
    let reference: String

    func make(by caller: JSONCaller) async throws -> JSONCaller.Reply {
        var path = endpoint.pattern.description
        for name in endpoint.pattern.parameterNames {
            path = path.replacing("{\(name)}", with: name.hasSuffix("Reference") ? reference : id)
        }
        let required = endpoint.query.filter(\.required)
        if !required.isEmpty { path += "?" + required.map { "\($0.name)=\(reference)" }.joined(separator: "&") }
        var headers: HTTPHeaders = [:]
        if endpoint.idempotency == .required { headers["Idempotency-Key"] = freshWord("key") }
        if endpoint.needsIfMatch { headers["If-Match"] = "\"1\"" }
        var body: JSON?
        if let name = endpoint.request {
            let schema = try #require(Schemas.all[name])
            body = filled(try #require(schema["examples"]?[0], "\(name) has no example to be called with"), "")
        }
        return try await caller.call(endpoint.method, path, body: body?.bytes, headers: headers)
    }

    private func filled(_ example: JSON, _ name: String) -> JSON {
        switch example {
        case .object(let members):
            .object(members.reduce(into: [String: JSON]()) { $0[$1.key] = filled($1.value, $1.key) })
        case .array(let items): .array(items.map { filled($0, name) })
        case .string(let text) where UUID(uuidString: text) != nil: .string(id)
        case .string where name.hasSuffix("Reference"): .string(reference)
        default: example
        }
    }

    /// What the answer shows: its status, the names of its fields, and its body, without what is another each time and
    /// without what was asked for.
    func shown(_ reply: JSONCaller.Reply) -> [String] {
        var body = reply.text
        if let requestID = reply.json["requestId"]?.string { body = body.replacing(requestID, with: "R") }
        body = body.replacing(id, with: "ID").replacing(reference, with: "REFERENCE")
        return ["\(reply.status)", body] + reply.headers.fields.map { $0.name.lowercased() }.sorted()
    }
}
