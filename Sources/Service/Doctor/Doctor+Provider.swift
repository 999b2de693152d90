import Foundation
import HTTPClient
import Lockstep
import Payrails

extension Doctor {
    /// Whether Payrails gives a token, and what it gives the SDK.
    func provider(_ payrails: Settings.Payrails, initFor holder: String?) async -> [Finding] {
        let client: HTTPClient
        do {
            client = try payrails.client()
        } catch {
            return [
                Finding(
                    "Payrails", .wrong, "can't be called: \(error.detail)",
                    mend: "check the files of PAYRAILS_CLIENT_CERT, PAYRAILS_CLIENT_KEY and PAYRAILS_CA")
            ]
        }
        let provider = PayrailsClient(payrails.configuration, transport: client)
        var findings = [token(await provider.checkCredentials())]
        if let holder, findings[0].state == .fine { findings += await initialization(provider, holder) }
        await client.shutdown()
        return findings
    }

    private func token(_ outcome: Outcome<Void>) -> Finding {
        switch outcome {
        case .done: Finding("Payrails", .fine, "gave a token")
        case .refused(let refusal):
            Finding("Payrails", .wrong, "gave no token: \(refusal.detail)", mend: Self.mend(refusal.kind))
        case .unknown(let doubt):
            Finding("Payrails", .wrong, "gave no token: \(doubt.detail)", mend: Self.mend(doubt.kind))
        }
    }

    private static func mend(_ kind: Refusal.Kind) -> String {
        switch kind {
        case .notSent: network
        case .unauthorized:
            "check PAYRAILS_CLIENT_ID and PAYRAILS_CLIENT_SECRET: staging and production have their own, and a secret "
                + "with $ or ! must not pass through a shell"
        case .rateLimited: "wait, and see what else uses these credentials"
        case .rejected, .notFound, .conflict:
            "check PAYRAILS_BASE_URL and PAYRAILS_CLIENT_ID; a page in place of JSON comes from what stands in front of "
                + "Payrails, mostly for want of the client certificate"
        }
    }

    private static func mend(_ kind: Doubt.Kind) -> String {
        switch kind {
        case .timedOut, .connectionLost, .cancelled: network
        case .serverError: "try again, and look at Payrails' status page"
        case .unreadable: "check PAYRAILS_BASE_URL: what answers there isn't Payrails' API"
        }
    }

    private static let network =
        "check PAYRAILS_BASE_URL, the network and proxies; where it is about TLS, PAYRAILS_CA, PAYRAILS_CLIENT_CERT (is "
        + "it revoked?) and this machine's clock"

    private func initialization(_ provider: PayrailsClient, _ holder: String) async -> [Finding] {
        let request = TokenizationRequest(kind: .tokenization, holderReference: holder)
        switch await provider.createTokenization(request, key: IdempotencyKey(UUID())) {
        case .done(let payload): return InitReport(payload).findings
        case .refused(let refusal):
            return [
                Finding(
                    "init", .wrong, "refused: \(refusal.detail)",
                    mend: "the credentials need the scope sdk:read:config, and PAYRAILS_WORKSPACE_ID where they belong "
                        + "to one workspace")
            ]
        case .unknown(let doubt) where doubt.kind == .unreadable:
            return [
                Finding(
                    "init", .wrong, "createSession can't start from it: \(doubt.detail)",
                    mend: "check PAYRAILS_BASE_URL, and show this to your Payrails contact")
            ]
        case .unknown(let doubt):
            return [Finding("init", .wrong, "no answer: \(doubt.detail)", mend: "try again")]
        }
    }
}
