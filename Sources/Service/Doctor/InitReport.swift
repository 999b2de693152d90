import Basics
import Lockstep
import Payrails

/// What an app will be able to do with an init payload, in the words that an app developer knows from the SDK's own
/// troubleshooting pages. Works on a decoded copy.
public struct InitReport: Sendable {
    public let findings: [Finding]

    public init(_ payload: InitPayload) {
        guard let decoded = DecodedInit(data: payload.data.reveal) else {
            findings = [
                Finding(
                    "init", .wrong, "its data is not base64 of a JSON object, so the SDK will not start",
                    mend: "hand version and data on as they came; nothing may decode or wrap them")
            ]
            return
        }
        findings =
            [
                Self.session(decoded, version: payload.version), Self.encryption(decoded), Self.saving(decoded),
                Self.coBranded(decoded),
            ] + Self.methods(decoded)
    }

    private static func session(_ decoded: DecodedInit, version: String) -> Finding {
        guard decoded.token != nil else {
            return Finding(
                "session", .wrong, "no client token: the SDK reports an authentication error on its first call",
                mend: "ask Payrails why the init has none")
        }
        return Finding("session", .fine, "createSession can start; SDK data version \(version)")
    }

    private static func encryption(_ decoded: DecodedInit) -> Finding {
        guard let vault = decoded.vault else {
            return Finding(
                "card form", .wrong, "no vaultConfiguration: the card form can't encrypt card data",
                mend: "ask Payrails to set up a vault for the workspace")
        }
        guard vault.encryptionPublicKey != nil else {
            return Finding(
                "card form", .wrong, "vaultConfiguration has no encryptionPublicKey: card data can't be encrypted",
                mend: "ask Payrails to enable client-side encryption")
        }
        let life = vault.encryptionPublicKeyExpiresInSeconds.map { " for \($0) s" } ?? ""
        return Finding("card form", .fine, "card data can be encrypted\(life)")
    }

    /// What `session.tokenize` needs, with the words in which the SDK complains.
    private static func saving(_ decoded: DecodedInit) -> Finding {
        var missing: [String] = []
        if decoded.vault?.providerConfigID == nil {
            missing.append(
                "vaultConfiguration.providerConfigId is missing (\"Vault configuration with providerConfigId is "
                    + "required\")")
        }
        if decoded.holderReference == nil, decoded.execution?.holderReference == nil {
            missing.append("holderReference is missing (\"holderReference is required for tokenization\")")
        }
        if decoded.vault?.saveInstrument == nil {
            missing.append("vaultConfiguration.links.saveInstrument is missing")
        }
        guard !missing.isEmpty else { return Finding("saving cards", .fine, "tokenize can save a card for its holder") }
        return Finding(
            "saving cards", .wrong, "tokenize will fail: \(missing.joined(separator: "; "))",
            mend:
                "check that PAYRAILS_BASE_URL and PAYRAILS_WORKSPACE_ID are the app's; then ask your Payrails contact "
                + "(Lockstep sends the holder with every init)")
    }

    private static func coBranded(_ decoded: DecodedInit) -> Finding {
        let rollout = decoded.raw.reveal["featureConfig"]?["coBrandedCardsRollout"]?.integer ?? 0
        let hasLookup = decoded.links["binLookup"] != nil
        if rollout > 0, hasLookup {
            return Finding(
                "co-branded cards", .fine, "the card form lets the customer choose the network (rollout \(rollout) %)")
        }
        let missing = [
            rollout > 0 ? nil : "featureConfig.coBrandedCardsRollout is 0 or missing",
            hasLookup ? nil : "links.binLookup is missing",
        ].compactMap { $0 }
        return Finding(
            "co-branded cards", .note,
            "the card form shows no brand selector, and didChangePreferredScheme never comes: "
                + missing.joined(separator: "; "),
            mend: "ask your Payrails contact to enable the rollout for the workspace")
    }

    /// A way to pay with a button of its own, which appears only with an option of its own (section 3.2).
    private struct Method {
        let name: String
        let code: String
        let needs: [[String]]

        /// What the option must bring, as an app developer looks for it.
        var demand: String {
            "the option \"\(code)\" with config.\(needs.map { $0.joined(separator: ".") }.joined(separator: " and config."))"
        }

        static let all = [
            Method(
                name: "Apple Pay", code: "applePay",
                needs: [["parameters", "merchantIdentifier"], ["parameters", "supportedNetworks"]]),
            Method(name: "PayPal", code: "payPal", needs: [["clientId"], ["merchantId"]]),
        ]
    }

    private static func methods(_ decoded: DecodedInit) -> [Finding] {
        guard !decoded.paymentOptions.isEmpty else { return untold(decoded) }
        return Method.all.map { finding($0, decoded) } + [redirects(decoded)]
    }

    /// Only a checkout's init (dropIn) has been through a lookup, so only that one brings options.
    private static func untold(_ decoded: DecodedInit) -> [Finding] {
        let demands =
            Method.all.map { ($0.name, $0.demand) } + [
                ("redirects", "an option with clientConfig.flow \"redirect\" or integrationType \"hpp\"")
            ]
        return demands.map { name, demand in
            Finding(
                name, .note, "can't be told from an init that saves cards: it has no payment options",
                mend: "a checkout's init must bring \(demand)")
        }
    }

    private static func finding(_ method: Method, _ decoded: DecodedInit) -> Finding {
        guard let option = decoded.paymentOptions.first(where: { $0.paymentMethodCode == method.code }) else {
            return Finding(
                method.name, .note, "no option \"\(method.code)\": its button will not appear",
                mend: "enable \(method.name) in the workflow")
        }
        let missing = method.needs.filter { path in
            let value = path.reduce(option.config) { $0?[$1] }
            return value == nil || value?.isNull == true || value?.string?.isEmpty == true
                || value?.array?.isEmpty == true
        }
        guard missing.isEmpty else {
            return Finding(
                method.name, .wrong,
                "its option lacks config.\(missing.map { $0.joined(separator: ".") }.joined(separator: ", config."))",
                mend: "complete \(method.name)'s set-up in the portal")
        }
        return Finding(method.name, .fine, "its button can be shown")
    }

    private static func redirects(_ decoded: DecodedInit) -> Finding {
        // What has a button of its own isn't a generic redirect, whatever its flow.
        let own = Set(Method.all.map(\.code))
        let codes = decoded.paymentOptions
            .filter { $0.flow == "redirect" || $0.integrationType == "hpp" }
            .compactMap(\.paymentMethodCode).filter { !own.contains($0) }
        return codes.isEmpty
            ? Finding(
                "redirects", .note, "no option with a redirect flow: query(.paymentMethodConfig(.redirect)) is empty",
                mend: "enable such a method in the workflow")
            : Finding("redirects", .fine, "createGenericRedirectButton for \(codes.sorted().joined(separator: ", "))")
    }
}
