import Basics
import Foundation
import Lockstep
import TestKit
import Testing

/// A call of the contract, ready to be made on somebody's checkout.
struct ContractCall: Sendable, CustomTestStringConvertible {
    let name: String
    let method: String
    /// Made from the checkout's id, its execution's id and its reference.
    let path: @Sendable (Target) -> String
    let body: @Sendable (Target) -> JSON?
    /// Nil: any merchant key.
    let scope: Scope?
    let isForClients: Bool
    var headers: HTTPHeaders = [:]
    var testDescription: String { name }

    /// What a call is about.
    struct Target: Sendable {
        var checkout: String
        var execution: String
        var reference: String

        init(_ order: Order) {
            checkout = order.checkout
            execution = order.execution
            reference = order.reference
        }

        /// Ids of the right form that nobody has.
        static var nobody: Target {
            var target = Target(checkout: "", execution: "", reference: freshWord("nobody"))
            target.checkout = UUID().uuidString.lowercased()
            target.execution = UUID().uuidString.lowercased()
            return target
        }

        private init(checkout: String, execution: String, reference: String) {
            self.checkout = checkout
            self.execution = execution
            self.reference = reference
        }
    }

    private init(
        _ method: String, _ name: String, _ scope: Scope?, client: Bool = false, headers: HTTPHeaders = [:],
        path: @escaping @Sendable (Target) -> String, body: @escaping @Sendable (Target) -> JSON? = { _ in nil }
    ) {
        self.name = "\(method) \(name)"
        self.method = method
        self.path = path
        self.body = body
        self.scope = scope
        self.isForClients = client
        self.headers = headers
    }

    func make(on target: Target, by caller: JSONCaller, headers more: HTTPHeaders = [:]) async throws
        -> JSONCaller.Reply
    {
        var fields = headers
        fields["Idempotency-Key"] = method == "POST" ? freshWord("key") : nil
        for field in more.fields { fields.add(field.name, field.value) }
        return try await caller.call(method, path(target), body: body(target)?.bytes, headers: fields)
    }

    /// Every call that names something of a checkout's.
    static let named: [ContractCall] = [
        ContractCall("GET", "checkout", .checkouts, client: true, path: { "/v1/checkouts/\($0.checkout)" }),
        ContractCall(
            "POST", "session", .checkouts, client: true, path: { "/v1/checkouts/\($0.checkout)/session" },
            body: { _ in [:] }),
        ContractCall(
            "PUT", "amount", .checkouts, client: true, headers: ["If-Match": "\"1\""],
            path: { "/v1/checkouts/\($0.checkout)/amount" }, body: { _ in ["amount": euros] }),
        ContractCall(
            "POST", "update", .checkouts, client: true, path: { "/v1/executions/\($0.execution)/update" },
            body: { _ in euros }),
        ContractCall("POST", "cancel checkout", .checkouts, path: { "/v1/checkouts/\($0.checkout)/cancel" }),
        ContractCall("GET", "execution", .payments, path: { "/v1/executions/\($0.execution)" }),
        ContractCall(
            "POST", "capture", .payments, path: { "/v1/executions/\($0.execution)/capture" }, body: { _ in [:] }),
        ContractCall("POST", "cancel execution", .payments, path: { "/v1/executions/\($0.execution)/cancel" }),
        ContractCall(
            "POST", "refund", .payments, path: { "/v1/executions/\($0.execution)/refund" }, body: { _ in [:] }),
        ContractCall("GET", "operation", .payments, path: { "/v1/operations/\($0.checkout)" }),
        ContractCall(
            "POST", "resolve", .ops, path: { "/v1/discrepancies/\($0.checkout)/resolve" }, body: { _ in ["note": "x"] }),
        ContractCall(
            "PATCH", "instrument", .instruments, path: { "/v1/instruments/\($0.checkout)" },
            body: { _ in ["default": true] }),
        ContractCall("DELETE", "instrument", .instruments, path: { "/v1/instruments/\($0.checkout)" }),
        ContractCall("GET", "charge", .payments, path: { "/v1/charges/\($0.checkout)" }),
        ContractCall("GET", "subscription", .subscriptions, path: { "/v1/subscriptions/\($0.checkout)" }),
        ContractCall(
            "GET", "a subscription's charges", .subscriptions, path: { "/v1/subscriptions/\($0.checkout)/charges" }),
        ContractCall(
            "PATCH", "subscription", .subscriptions, path: { "/v1/subscriptions/\($0.checkout)" }, body: { _ in [:] }),
        ContractCall("POST", "pause", .subscriptions, path: { "/v1/subscriptions/\($0.checkout)/pause" }),
        ContractCall("POST", "resume", .subscriptions, path: { "/v1/subscriptions/\($0.checkout)/resume" }),
        ContractCall(
            "POST", "cancel subscription", .subscriptions, path: { "/v1/subscriptions/\($0.checkout)/cancel" }),
    ]

    /// And those that name nothing, or whose answer is the same for what isn't there.
    static let all =
        named + [
            ContractCall(
                "POST", "checkouts", .checkouts, path: { _ in "/v1/checkouts" },
                body: { ["merchantReference": .string($0.reference), "holderReference": "cust", "amount": euros] }),
            ContractCall(
                "GET", "checkouts", .checkouts, client: true,
                path: { "/v1/checkouts?merchantReference=\($0.reference)" }),
            ContractCall(
                "POST", "pre-payment", .checkouts, client: true, path: { _ in "/v1/pre-payment" },
                body: { ["executionId": .string($0.execution), "paymentMethodCode": "card"] }),
            ContractCall(
                "GET", "subscriptions", .subscriptions,
                path: { "/v1/subscriptions?holderReference=\($0.reference)" }),
            ContractCall(
                "POST", "subscriptions", .subscriptions, path: { _ in "/v1/subscriptions" },
                body: {
                    [
                        "merchantReference": .string($0.reference + "-member"), "holderReference": "cust",
                        "instrumentId": .string($0.checkout), "amount": euros, "interval": "P1M",
                        "startsOn": "2027-01-31", "timezone": "Europe/Berlin",
                    ]
                }),
            ContractCall("GET", "events", nil, path: { _ in "/v1/events" }),
            ContractCall("GET", "discrepancies", .ops, path: { _ in "/v1/discrepancies" }),
            ContractCall(
                "POST", "tokenizations", .instruments, path: { _ in "/v1/tokenizations" },
                body: { ["holderReference": .string($0.reference)] }),
            ContractCall(
                "POST", "instruments", .instruments, path: { "/v1/holders/\($0.reference)/instruments" },
                body: { ["instrumentId": .string($0.checkout)] }),
            ContractCall("GET", "instruments", .instruments, path: { "/v1/holders/\($0.reference)/instruments" }),
            ContractCall(
                "POST", "charges", .payments, path: { _ in "/v1/charges" },
                body: {
                    [
                        "merchantReference": .string($0.reference + "-charge"), "holderReference": "cust",
                        "instrumentId": .string($0.checkout), "amount": euros,
                    ]
                }),
        ]

    static let euros: JSON = ["value": "49.99", "currency": "EUR"]
}
