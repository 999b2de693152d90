import Basics
import Foundation
import Lockstep
import Testing

@testable import Service

@Suite("What an init payload lets an app do, in the words of the SDK's own pages")
struct InitReportTests {
    /// All that the SDK needs (section 3.2 of the reference).
    static let whole: JSON = [
        "token": "eyJ.client.jwt", "holderReference": "cust_77", "type": "dropIn",
        "vaultConfiguration": [
            "providerConfigId": "8a7b", "encryptionPublicKey": "MIIB-canary", "encryptionPublicKeyExpiresIn": 3300,
            "links": ["saveInstrument": ["method": "POST", "href": "https://api.example.test/instruments"]],
        ],
        "execution": [
            "initialResults": [
                [
                    "httpCode": 200,
                    "body": [
                        "data": [
                            "paymentCompositionOptions": [
                                ["integrationType": "api", "paymentMethodCode": "card"],
                                [
                                    "integrationType": "api", "paymentMethodCode": "applePay",
                                    "config": [
                                        "parameters": [
                                            "merchantIdentifier": "merchant.example", "supportedNetworks": ["VISA"],
                                        ]
                                    ],
                                ],
                                [
                                    "integrationType": "hpp", "paymentMethodCode": "payPal",
                                    "config": ["clientId": "c", "merchantId": "m"],
                                    "clientConfig": ["flow": "redirect"],
                                ],
                                [
                                    "integrationType": "api", "paymentMethodCode": "ideal",
                                    "clientConfig": ["flow": "redirect"],
                                ],
                                ["integrationType": "hpp", "paymentMethodCode": "bancontact"],
                            ]
                        ]
                    ],
                ]
            ]
        ],
        "links": ["binLookup": ["method": "POST", "href": "https://api.example.test/bin"]],
        "featureConfig": ["coBrandedCardsRollout": 100],
    ]

    private func report(_ json: JSON) -> [String: Finding] {
        let payload = InitPayload(version: "6.0.3", data: Secret(json.bytes.base64EncodedString()))
        return Dictionary(uniqueKeysWithValues: InitReport(payload).findings.map { ($0.subject, $0) })
    }

    /// The payload with one place of it replaced, or taken away.
    private func changed(_ path: [String], to value: JSON?) -> JSON { Self.change(Self.whole, path[...], value) }

    private static func change(_ json: JSON, _ path: ArraySlice<String>, _ value: JSON?) -> JSON {
        guard let name = path.first else { return value ?? json }
        var members = json.object ?? [:]
        if path.count == 1 {
            members[name] = value
        } else {
            members[name] = change(members[name] ?? [:], path.dropFirst(), value)
        }
        return .object(members)
    }

    /// The whole payload with other payment options.
    private func offering(_ options: JSON) -> JSON {
        changed(
            ["execution", "initialResults"],
            to: [["httpCode": 200, "body": ["data": ["paymentCompositionOptions": options]]]])
    }

    @Test("with all that it needs, everything is fine, and nothing of it is shown")
    func everything() {
        let report = report(Self.whole)
        #expect(report.count == 7)
        for (subject, finding) in report {
            #expect(finding.state == .fine, "\(subject): \(finding.line)")
            #expect(!finding.line.contains("eyJ") && !finding.line.contains("canary"))
        }
        // PayPal has a button of its own.
        #expect(report["redirects"]?.detail == "createGenericRedirectButton for bancontact, ideal")
        #expect(report["card form"]?.detail == "card data can be encrypted for 3300 s")
    }

    @Test(
        "what is missing is named as it stands in the payload, with the SDK's own complaint",
        arguments: [
            (["token"], "session", Finding.State.wrong, "client token"),
            (["vaultConfiguration"], "card form", .wrong, "vaultConfiguration"),
            (["vaultConfiguration", "encryptionPublicKey"], "card form", .wrong, "encryptionPublicKey"),
            (["vaultConfiguration"], "saving cards", .wrong, "vaultConfiguration.providerConfigId"),
            (
                ["vaultConfiguration", "providerConfigId"], "saving cards", .wrong,
                "\"Vault configuration with providerConfigId is required\""
            ),
            (["holderReference"], "saving cards", .wrong, "\"holderReference is required for tokenization\""),
            (
                ["vaultConfiguration", "links", "saveInstrument"], "saving cards", .wrong,
                "vaultConfiguration.links.saveInstrument"
            ),
            (["featureConfig"], "co-branded cards", .note, "featureConfig.coBrandedCardsRollout"),
            (["links", "binLookup"], "co-branded cards", .note, "links.binLookup"),
        ])
    func missing(_ path: [String], _ subject: String, _ state: Finding.State, _ word: String) throws {
        let report = report(changed(path, to: nil))
        let finding = try #require(report[subject])
        #expect(finding.state == state)
        #expect(finding.detail.contains(word), "\(finding.detail)")
        #expect(finding.mend?.isEmpty == false)
        // Only what needs the missing part suffers.
        let others = report.values.filter { $0.state != .fine }.map(\.subject)
        #expect(Set(others).isSubset(of: path == ["vaultConfiguration"] ? ["card form", "saving cards"] : [subject]))
    }

    @Test("a look-up that is switched off comes as an empty list, and a rollout as nought")
    func switchedOff() {
        #expect(report(changed(["links", "binLookup"], to: []))["co-branded cards"]?.state == .note)
        #expect(report(changed(["featureConfig", "coBrandedCardsRollout"], to: 0))["co-branded cards"]?.state == .note)
        #expect(report(changed(["featureConfig", "coBrandedCardsRollout"], to: 1))["co-branded cards"]?.state == .fine)
    }

    @Test("the holder may stand in the execution")
    func holder() throws {
        let execution: JSON = [
            "id": "9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01", "holderReference": "cust_77", "merchantReference": "o",
            "createdAt": "2026-09-01T09:58:00.1Z", "status": [],
        ]
        let moved = Self.change(changed(["holderReference"], to: nil), ["execution"], execution)
        #expect(report(moved)["saving cards"]?.state == .fine)
    }

    @Test("a method whose option isn't there has no button; one whose option is incomplete is wrong")
    func methods() {
        let card: JSON = ["integrationType": "api", "paymentMethodCode": "card"]
        let bare = report(offering([card]))
        for subject in ["Apple Pay", "PayPal", "redirects"] { #expect(bare[subject]?.state == .note, "\(subject)") }
        #expect(bare["Apple Pay"]?.detail.contains("\"applePay\"") == true)
        let halves = report(
            offering([
                [
                    "paymentMethodCode": "applePay",
                    "config": ["parameters": ["merchantIdentifier": "m", "supportedNetworks": []]],
                ],
                ["paymentMethodCode": "payPal", "config": ["clientId": ""]],
            ]))
        #expect(halves["Apple Pay"]?.state == .wrong)
        #expect(halves["Apple Pay"]?.detail == "its option lacks config.parameters.supportedNetworks")
        #expect(halves["PayPal"]?.state == .wrong)
        #expect(halves["PayPal"]?.detail == "its option lacks config.clientId, config.merchantId")
    }

    @Test("what isn't base64 of an object can't start the SDK", arguments: ["", "%%%", "bm90IGpzb24=", "WzFd"])
    func nonsense(_ data: String) {
        let findings = InitReport(InitPayload(version: "1", data: Secret(data))).findings
        #expect(findings.map(\.subject) == ["init"])
        #expect(findings.first?.state == .wrong)
    }
}
