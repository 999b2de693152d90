import Foundation
import Testing

@testable import Lockstep

@Suite("What a decline means")
struct DeclinePolicyTests {
    /// Every category and result of the reference, 6.6, with what it suggests.
    static let reference: [(category: String, results: String, meaning: DeclinePolicy.Class)] = [
        ("Success", "Success Accepted", .unknown),
        ("Pending", "Pending", .customerNeeded),
        ("Redirect", "HTTPRedirectRequired FormRedirectRequired", .customerNeeded),
        ("Unknown", "UnexpectedProviderResponse ProviderUnknownError UnexpectedProviderError", .unknown),
        ("Connection", "ProviderConnectionError", .soft),
        ("Connection", "Timeout ProviderTimeout", .unknown),
        ("Operation", "GenericRejection LimitExceeded", .soft),
        // Said of our own key or reference: what it is a duplicate of may have been charged.
        ("Operation", "DuplicateOperation", .unknown),
        ("Operation", "OperationNotAllowed PayerCanceled", .hard),
        ("InsufficientBalance", "InsufficientBalance", .soft),
        ("Instrument", "ExpiredInstrument InvalidInstrument InstrumentNotAllowed BlockedInstrument", .hard),
        ("FraudRisk", "BlockList Score Rule Security SuspectedFraud", .hard),
        (
            "Configuration",
            "ValidationError ParamsError ProviderConfigError InvalidSignature AuthenticationError PaymentMethodNotSupported",
            .configuration
        ),
        ("Configuration", "InternalServerError", .unknown),
        ("PayerAuthentication", "PayerAuthenticationRequired PayerAuthenticationFailed", .customerNeeded),
        ("PayerAuthentication", "AuthenticationRequired", .customerNeeded),
        ("Operation", "AuthorizationRevoked", .hard),
    ]

    @Test("R12 R13: the table covers every category and result of the reference, and nothing else")
    func covered() {
        let policy = DeclinePolicy.standard
        var expected: Set<String> = []
        for (category, results, meaning) in Self.reference {
            for result in results.split(separator: " ").map(String.init) {
                #expect(policy.meaning(of: result) == meaning, "\(result)")
                expected.insert("\(category)/\(result)")
            }
        }
        let inTable = Set(policy.rows.filter { $0.detail == nil }.map { "\($0.category)/\($0.result)" })
        #expect(inTable == expected)
    }

    @Test("R12: what must not be tried again isn't soft, and what may have been charged is looked up")
    func dangerous() {
        let policy = DeclinePolicy.standard
        for result in ["ExpiredInstrument", "BlockedInstrument", "SuspectedFraud", "PayerAuthenticationRequired"] {
            #expect(policy.meaning(of: result) != .soft)
        }
        #expect(policy.meaning(of: "BlockedInstrument/CanceledSubscription") == .hard)
        #expect(policy.meaning(of: "BlockedInstrument/Stolen") == .hard)
        #expect(policy.meaning(of: "BlockedInstrument/ContactIssuer") == .soft)
        #expect(policy.meaning(of: "BLOCKED_INSTRUMENT/CONTACT_ISSUER") == .soft)
        #expect(policy.meaning(of: "InsufficientBalance/ContactIssuer") == .soft)
        #expect(policy.meaning(of: "ProviderTimeout/ContactIssuer") == .unknown)
        for result in ["Timeout", "ProviderTimeout", "InternalServerError", "DuplicateOperation"] {
            #expect(policy.meaning(of: result) == .unknown)
        }
    }

    @Test("what the table doesn't know, and no reason at all, is unknown and never guessed")
    func unknown() {
        #expect(DeclinePolicy.standard.meaning(of: nil) == .unknown)
        #expect(DeclinePolicy.standard.meaning(of: "SomethingNew") == .unknown)
        #expect(DeclinePolicy.standard.meaning(of: "") == .unknown)
    }

    @Test("older names in upper case with underscores are the same results")
    func olderNames() {
        #expect(DeclinePolicy.standard.meaning(of: "INSUFFICIENT_BALANCE") == .soft)
        #expect(DeclinePolicy.standard.meaning(of: "BLOCKED_INSTRUMENT") == .hard)
    }

    @Test(
        "a bad table is refused with what is wrong and where",
        arguments: [
            ("{", "JSON"), ("[]", "object"), ("{}", "declines"), (#"{"declines": []}"#, "declines"),
            (#"{"declines": [{"category": "A", "result": "B", "class": "maybe"}]}"#, "declines/0: class"),
            (#"{"declines": [{"category": "A", "class": "soft"}]}"#, "declines/0: result"),
            (#"{"declines": [{"category": "A", "result": "B", "class": "soft", "clas": 1}]}"#, "clas"),
            (#"{"declines": [{"category": "A", "result": "B", "class": "soft"}], "more": 1}"#, "more"),
            (
                #"{"declines": [{"category": "A", "result": "B", "class": "soft"}, {"category": "C", "result": "b", "class": "hard"}]}"#,
                "declines/1"
            ),
        ])
    func bad(_ table: String, _ wording: String) {
        let fault = #expect(throws: TableFault.self) { try DeclinePolicy(table: Data(table.utf8)) }
        #expect(fault?.detail.contains(wording) == true, "\(String(describing: fault?.detail))")
    }

    @Test("a table of one's own replaces the whole")
    func replaced() throws {
        let table = #"{"declines": [{"category": "Operation", "result": "GenericRejection", "class": "hard"}]}"#
        let policy = try DeclinePolicy(table: Data(table.utf8))
        #expect(policy.meaning(of: "GenericRejection") == .hard)
        #expect(policy.meaning(of: "InsufficientBalance") == .unknown)
    }
}
