import Basics
import Foundation
import Lockstep
import Testing

@testable import Service

@Suite("The OpenAPI document")
struct OpenAPITests {
    private let document = OpenAPIDocument.make(Endpoint.all, version: "1.2.3", server: "https://pay.shop.example")

    /// The contract's table, written out once more by hand.
    private static let contract = """
        POST /v1/checkouts; GET /v1/checkouts/{id}; GET /v1/checkouts; POST /v1/checkouts/{id}/session
        POST /v1/tokenizations; POST /v1/holders/{holderReference}/instruments; PUT /v1/checkouts/{id}/amount
        POST /v1/executions/{executionId}/update; POST /v1/checkouts/{id}/cancel; POST /v1/pre-payment
        POST /webhooks/payrails; POST /webhooks/payrails/{endpoint}; GET /v1/executions/{id}
        POST /v1/executions/{id}/capture; POST /v1/executions/{id}/cancel; POST /v1/executions/{id}/refund
        GET /v1/operations/{id}; GET /v1/holders/{holderReference}/instruments; PATCH /v1/instruments/{id}
        DELETE /v1/instruments/{id}; POST /v1/charges; GET /v1/charges/{id}; POST /v1/subscriptions
        GET /v1/subscriptions/{id}; GET /v1/subscriptions; PATCH /v1/subscriptions/{id}
        POST /v1/subscriptions/{id}/pause; POST /v1/subscriptions/{id}/resume; POST /v1/subscriptions/{id}/cancel
        GET /v1/subscriptions/{id}/charges; GET /v1/events; POST /v1/reconciliations; GET /v1/reconciliations/{id}
        GET /v1/discrepancies; POST /v1/discrepancies/{id}/resolve; GET /healthz; GET /readyz; GET /metrics
        GET /openapi.json
        """

    private static var wanted: Set<String> {
        Set(contract.split(whereSeparator: { $0 == ";" || $0 == "\n" }).map { $0.trimmingCharacters(in: .whitespaces) })
    }

    private var documented: Set<String> {
        var all: Set<String> = []
        for (path, item) in document["paths"]?.object ?? [:] {
            for method in item.object?.keys ?? [:].keys { all.insert("\(method.uppercased()) \(path)") }
        }
        return all
    }

    @Test("it has every call of the contract and no other, and so has the catalogue")
    func complete() {
        #expect(documented == Self.wanted)
        #expect(Set(Endpoint.all.map { "\($0.method) \($0.pattern)" }) == Self.wanted)
        #expect(Set(Endpoint.all.map(\.name)).count == Endpoint.all.count)
    }

    @Test("what is routed is documented, and what is documented is routed")
    func routed() async {
        let bench = Bench(Endpoint.all.map { $0.handled { _ in .ok([:]) } })
        let fromRouter = OpenAPIDocument.make(
            bench.router.endpoints, version: "1.2.3", server: "https://pay.shop.example")
        #expect(fromRouter == document)
        for call in documented {
            let parts = call.split(separator: " ")
            let path = parts[1].replacing(/\{[A-Za-z]+\}/, with: "x")
            let status = await bench.send(String(parts[0]), String(path), token: nil, body: "{}").status
            #expect(status != 404 && status != 405, "\(call)")
        }
    }

    @Test("every reference leads somewhere, and every schema is used")
    func references() {
        var used: Set<String> = []
        func visit(_ value: JSON) {
            if let reference = value["$ref"]?.string {
                var target: JSON? = document
                for part in reference.dropFirst(2).split(separator: "/") { target = target?[String(part)] }
                #expect(target != nil, "\(reference)")
                used.insert(reference)
            }
            for item in value.array ?? [] { visit(item) }
            for member in (value.object ?? [:]).values { visit(member) }
        }
        visit(document)
        for name in Schemas.all.keys {
            #expect(used.contains("#/components/schemas/\(name)"), "\(name) is never used")
        }
    }

    @Test("every operation has an id, a summary, an answer, its parameters, and a key where the contract wants one")
    func operations() {
        for endpoint in Endpoint.all {
            let operation = document["paths"]?[endpoint.pattern.description]?[endpoint.method.lowercased()]
            #expect(operation?["operationId"]?.string == endpoint.name)
            #expect(operation?["summary"]?.string?.isEmpty == false)
            let responses = operation?["responses"]?.object ?? [:]
            #expect(responses.keys.contains { $0.hasPrefix("2") }, "\(endpoint.name)")
            let parameters = operation?["parameters"]?.array ?? []
            let inPath = parameters.filter { $0["in"] == "path" }.compactMap { $0["name"]?.string }
            #expect(inPath == endpoint.pattern.parameterNames)
            let key = parameters.first { $0["name"] == "Idempotency-Key" }
            #expect((key?["required"] == true) == (endpoint.idempotency == .required), "\(endpoint.name)")
            if endpoint.access != .open { #expect(responses["401"] != nil && responses["403"] != nil) }
            if case .json = endpoint.body {
                #expect(operation?["requestBody"] != nil && responses["415"] != nil && responses["422"] != nil)
            }
            if endpoint.needsIfMatch { #expect(responses["412"] != nil && responses["428"] != nil) }
        }
    }

    @Test("a workflow's code is of the form that the document says")
    func workflowCodes() throws {
        let schema = try #require(Schemas.all["NewCheckout"]?["properties"]?["workflowCode"])
        let longest = "a" + String(repeating: "b", count: 127)
        for (code, isOne) in [
            ("a", true), ("payment-acceptance", true), ("aB-9", true), (longest, true), (longest + "b", false),
            ("", false), ("A", false), ("9a", false), ("-a", false), ("a_b", false), ("a b", false),
        ] {
            #expect(SchemaCheck.faults(.string(code), schema).isEmpty == isOne, "\(code)")
            #expect((TextRule.workflowCode.fault(in: code) == nil) == isOne, "\(code)")
        }
    }

    @Test("a code is of the form that the document says, wherever one is taken")
    func codes() throws {
        let payment = try #require(Schemas.all["PrePayment"]?["properties"])
        let methods = try #require(Schemas.all["NewCheckout"]?["properties"]?["allowedPaymentMethods"])
        let schemas = [payment["paymentMethodCode"], payment["action"], methods["items"]].compactMap(\.self)
        #expect(schemas.count == 3)
        let longest = String(repeating: "a", count: 64)
        for (code, isOne) in [
            ("card", true), ("payPal", true), ("A.9_-", true), (longest, true), (longest + "a", false), ("", false),
            ("a b", false), ("ü", false), ("a/b", false),
        ] {
            for schema in schemas { #expect(SchemaCheck.faults(.string(code), schema).isEmpty == isOne, "\(code)") }
            #expect((TextRule.code.fault(in: code) == nil) == isOne, "\(code)")
        }
        #expect(methods["minItems"] == 1 && methods["maxItems"] == 50)
    }

    private func responses(_ endpoint: Endpoint) -> [String: JSON] {
        let operation = document["paths"]?[endpoint.pattern.description]?[endpoint.method.lowercased()]
        return operation?["responses"]?.object ?? [:]
    }

    @Test("what a call can't answer isn't documented, and what it can is")
    func possibleAnswers() {
        // The gate answers 200 whatever is broken, and an execution that isn't there is a reason and no 404.
        #expect(Set(responses(.prePayment).keys) == ["200", "400", "401", "403", "413", "415", "422"])
        #expect(responses(.listCheckouts)["404"] == nil)
        // The execution may be one that another has replaced.
        #expect(responses(.updateExecution)["409"]?["description"]?.string?.contains("`conflict`") == true)
    }

    @Test("ETag is documented where it is sent: with an amount's version")
    func entityTags() {
        let tagged = Endpoint.all.filter { endpoint in
            responses(endpoint).values.contains { $0["headers"]?["ETag"] != nil }
        }
        #expect(
            Set(tagged.map(\.name)) == [
                "createCheckout", "getCheckout", "openSession", "changeAmount", "updateExecution", "cancelCheckout",
            ])
        #expect(document["components"]?["responses"]?["Problem412"]?["headers"]?["ETag"] != nil)
    }

    @Test("Location is documented where it is sent: for what has a path of its own to be read at")
    func locations() {
        let located = Endpoint.all.filter { endpoint in
            let operation = document["paths"]?[endpoint.pattern.description]?[endpoint.method.lowercased()]
            let responses = operation?["responses"]
            return responses?.object?.values.contains { $0["headers"]?["Location"] != nil } == true
        }
        #expect(
            Set(located.map(\.name)) == [
                "createCheckout", "captureExecution", "cancelExecution", "refundExecution", "createCharge",
                "createSubscription",
            ])
    }

    @Test("the keys are required exactly where the contract says, and understood on the other POSTs but the gate's")
    func keys() {
        let required: Set<String> = [
            "createCheckout", "createTokenization", "saveInstrument", "captureExecution", "cancelExecution",
            "refundExecution", "createCharge", "createSubscription", "createReconciliation",
        ]
        for endpoint in Endpoint.all {
            let isKeyed = endpoint.method == "POST" && endpoint.name != "prePayment" && endpoint.access != .open
            let wanted: Endpoint.Idempotency =
                required.contains(endpoint.name) ? .required : isKeyed ? .understood : .none
            #expect(endpoint.idempotency == wanted, "\(endpoint.name)")
        }
    }

    @Test("every example is of its schema")
    func examples() {
        for (name, schema) in Schemas.all {
            for example in schema["examples"]?.array ?? [] {
                #expect(SchemaCheck.faults(example, schema) == [], "\(name)")
            }
        }
        #expect(Schemas.all.values.contains { $0["examples"] != nil })
    }

    @Test("the check of the examples finds what is wrong")
    func checkChecks() {
        let money = Schemas.ref("Money")
        for wrong: JSON in [
            ["value": "1"], ["value": 1, "currency": "EUR"], ["value": "1", "currency": "eur"],
            ["value": "1", "currency": "EUR", "x": 1], "1",
        ] {
            #expect(!SchemaCheck.faults(wrong, money).isEmpty)
        }
        #expect(
            !SchemaCheck.faults(["limit": "x"], ["type": "object", "properties": ["limit": Schemas.integer(1...2)]])
                .isEmpty)
        #expect(!SchemaCheck.faults("b", Schemas.words(["a"])).isEmpty)
    }

    @Test("events of every type that the domain knows are in the document")
    func eventTypes() {
        #expect(Schemas.eventTypes.count == 27)
        #expect(Set(Schemas.eventTypes).count == 27)
    }

    @Test("it is JSON that reads back, of version 3.1")
    func readsBack() throws {
        let again = try JSON(parsing: document.bytes)
        #expect(again["openapi"] == "3.1.0")
        #expect(again["servers"]?[0]?["url"] == "https://pay.shop.example")
        #expect(
            OpenAPIDocument.make(Endpoint.all, version: "1").bytes
                == OpenAPIDocument.make(Endpoint.all, version: "1").bytes)
    }
}

/// Enough of JSON Schema to hold examples and answers against the document.
enum SchemaCheck {
    static func faults(_ value: JSON, _ schema: JSON, at place: String = "") -> [String] {
        if let name = schema["$ref"]?.string?.split(separator: "/").last {
            guard let target = Schemas.all[String(name)] else { return ["\(place): no schema \(name)"] }
            return faults(value, target, at: place)
        }
        if let any = schema["anyOf"]?.array {
            return any.contains { faults(value, $0, at: place).isEmpty } ? [] : ["\(place): none of anyOf"]
        }
        var found: [String] = []
        if let constant = schema["const"], constant != value { found.append("\(place): not the constant") }
        if let words = schema["enum"]?.array, !words.contains(value) {
            found.append("\(place): not a word of the list")
        }
        switch schema["type"]?.string {
        case "object":
            guard let members = value.object else { return found + ["\(place): not an object"] }
            let properties = schema["properties"]?.object ?? [:]
            for name in schema["required"]?.array ?? [] where members[name.string ?? ""] == nil {
                found.append("\(place)/\(name.string ?? ""): missing")
            }
            for (name, member) in members {
                if let property = properties[name] {
                    found += faults(member, property, at: "\(place)/\(name)")
                } else if schema["additionalProperties"] == false {
                    found.append("\(place)/\(name): unknown")
                }
            }
        case "array":
            guard let items = value.array else { return found + ["\(place): not a list"] }
            for (index, item) in items.enumerated() {
                found += faults(item, schema["items"] ?? [:], at: "\(place)/\(index)")
            }
        case "string":
            guard let text = value.string else { return found + ["\(place): not a string"] }
            if let pattern = schema["pattern"]?.string, let expression = try? Regex(pattern),
                text.firstMatch(of: expression) == nil
            {
                found.append("\(place): not of the pattern")
            }
            if schema["format"] == "uuid", UUID(uuidString: text) == nil { found.append("\(place): not a UUID") }
            if schema["format"] == "date-time", Timestamp(rfc3339: text) == nil { found.append("\(place): not a time") }
            if schema["format"] == "date", TextForm.date(text) == nil { found.append("\(place): not a day") }
        case "integer":
            guard let number = value.integer else { return found + ["\(place): not an integer"] }
            if let least = schema["minimum"]?.integer, number < least { found.append("\(place): too little") }
            if let most = schema["maximum"]?.integer, number > most { found.append("\(place): too much") }
        case "boolean": if value.bool == nil { found.append("\(place): not true or false") }
        case "null": if !value.isNull { found.append("\(place): not null") }
        default: break
        }
        return found
    }
}
