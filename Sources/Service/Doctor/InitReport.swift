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

    /// `session.tokenize`: "Vault configuration with providerConfigId is required" and "holderReference is required".
    private static func saving(_ decoded: DecodedInit) -> Finding {
        var missing: [String] = []
        if decoded.vault?.providerConfigID == nil { missing.append("vaultConfiguration.providerConfigId") }
        if decoded.holderReference == nil, decoded.execution?.holderReference == nil {
            missing.append("holderReference")
        }
        if decoded.vault?.saveInstrument == nil { missing.append("vaultConfiguration.links.saveInstrument") }
        guard !missing.isEmpty else { return Finding("saving cards", .fine, "tokenize can save a card for its holder") }
        return Finding(
            "saving cards", .wrong, "tokenize will fail: \(missing.joined(separator: " and ")) missing",
            mend: "ask your Payrails contact; the holder is sent by Lockstep with every init")
    }

    private static func coBranded(_ decoded: DecodedInit) -> Finding {
        let rollout = decoded.raw.reveal["featureConfig"]?["coBrandedCardsRollout"]?.integer ?? 0
        let hasLookup = decoded.links["binLookup"] != nil
        if rollout > 0, hasLookup {
            return Finding(
                "co-branded cards", .fine, "the card form shows the choice of network (rollout \(rollout) %)")
        }
        let missing = [
            rollout > 0 ? nil : "featureConfig.coBrandedCardsRollout is \(rollout)",
            hasLookup ? nil : "links.binLookup is missing",
        ].compactMap { $0 }
        return Finding(
            "co-branded cards", .note, "the card form shows no choice of network: \(missing.joined(separator: ", "))",
            mend: "ask your Payrails contact to enable the rollout for the workspace")
    }

    /// Apple Pay, PayPal and redirects need an option of their own, which only a checkout's init (dropIn) carries.
    private static func methods(_ decoded: DecodedInit) -> [Finding] {
        let wanted: [(name: String, code: String, needs: [[String]])] = [
            ("Apple Pay", "applePay", [["parameters", "merchantIdentifier"], ["parameters", "supportedNetworks"]]),
            ("PayPal", "payPal", [["clientId"], ["merchantId"]]),
        ]
        guard !decoded.paymentOptions.isEmpty else {
            return ["Apple Pay", "PayPal", "redirects"].map { name in
                Finding(
                    name, .note, "a tokenization init carries no payment options, so this can't be told from it",
                    mend: "a checkout's init shows them: its button appears only with an option of its own")
            }
        }
        var findings = wanted.map { method -> Finding in
            guard let option = decoded.paymentOptions.first(where: { $0.paymentMethodCode == method.code }) else {
                return Finding(
                    method.name, .note, "no option \"\(method.code)\": its button will not appear",
                    mend: "enable \(method.name) in the workflow")
            }
            let missing = method.needs.filter { path in
                path.reduce(option.config) { $0?[$1] } == nil
            }
            return missing.isEmpty
                ? Finding(method.name, .fine, "its button can be shown")
                : Finding(
                    method.name, .wrong,
                    "its config lacks \(missing.map { $0.joined(separator: ".") }.joined(separator: ", "))",
                    mend: "complete \(method.name)'s set-up in the portal")
        }
        let redirects = decoded.paymentOptions.filter { $0.flow == "redirect" || $0.integrationType == "hpp" }
        findings.append(
            redirects.isEmpty
                ? Finding("redirects", .note, "no option with a redirect flow", mend: "enable one in the workflow")
                : Finding(
                    "redirects", .fine,
                    "possible for \(redirects.compactMap(\.paymentMethodCode).sorted().joined(separator: ", "))"))
        return findings
    }
}
