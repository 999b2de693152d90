import Basics
import Foundation
import Lockstep

/// What an init payload holds (section 3.2), from a copy: the app gets the original untouched.
///
/// Read leniently: whatever is missing or of another type is nil, and the payload may still be good for the SDK.
public struct DecodedInit: Sendable {
    /// The client's bearer token.
    public let token: Secret<String>?
    public let holderReference: String?
    /// `dropIn`, `tokenization` or `secureFields`.
    public let type: String?
    public let dataEncryptionID: String?
    /// Nil also where it is there and isn't exact.
    public let amount: Money?
    /// The amount's text as it stands, for a comparison of strings.
    public let amountText: String?
    public let vault: Vault?
    public let execution: ExecutionSnapshot?
    public let holderID: String?
    public let workflowVersion: Int?
    /// The status of the lookup that init ran, from the first of `execution.initialResults`.
    public let lookupHTTPStatus: Int?
    /// The execution's links, by name.
    public let executionLinks: [String: PayrailsLink]
    /// What the lookup in `execution.initialResults` offers.
    public let paymentOptions: [PaymentOption]
    public let links: [String: PayrailsLink]
    /// `featureConfig.sdkVersion`.
    public let sdkVersion: String?
    public let schemaVersion: Int?
    /// All of it, for whoever checks more than what is read here.
    public let raw: Secret<JSON>

    public struct Vault: Hashable, Sendable {
        public let vaultID: String?
        public let vaultURL: String?
        public let token: Secret<String>?
        public let status: String?
        public let vaultType: String?
        public let providerID: String?
        /// The SDK can't tokenize without it.
        public let providerConfigID: String?
        public let encryptionPublicKey: Secret<String>?
        public let encryptionPublicKeyExpiresInSeconds: Int?
        public let saveInstrument: PayrailsLink?
    }

    public struct PaymentOption: Hashable, Sendable {
        /// `api`, `hpp` or `inperson`.
        public let integrationType: String?
        public let paymentMethodCode: String?
        /// `direct`, `inline` or `redirect`.
        public let flow: String?
        public let supportsSaveInstrument: Bool?
        public let instruments: [InstrumentSnapshot]
        /// What the method's own SDK needs, e.g. Apple Pay's `parameters`.
        public let config: JSON?
    }

    /// Nil unless the text is base64 of a JSON object.
    ///
    /// - Parameter workflowCode: of the execution, where the payload names none.
    public init?(data: String, workflowCode: String = "payment-acceptance") {
        guard let bytes = DecodedInit.decodeBase64(data), let json = try? JSON(parsing: bytes), json.object != nil
        else { return nil }
        self.init(json, workflowCode: workflowCode)
    }

    private init(_ json: JSON, workflowCode: String) {
        token = json["token"]?.string.map(Secret.init)
        holderReference = json["holderReference"]?.reference
        type = json["type"]?.word
        dataEncryptionID = json["dataEncryptionId"]?.word
        amount = json["amount"]?.money
        amountText = json["amount"]?["value"]?.string
        vault = json["vaultConfiguration"].flatMap(Vault.init)
        let execution = json["execution"]
        self.execution = execution.flatMap {
            ExecutionReading.snapshot($0, workflowCode: workflowCode, source: .answer)
        }
        holderID = execution?["holderId"]?.word
        workflowVersion = execution?["workflow"]?["version"]?.wholeNumber
        lookupHTTPStatus = execution?["initialResults"]?[0]?["httpCode"]?.wholeNumber
        executionLinks = PayrailsLink.all(execution?["links"])
        paymentOptions = DecodedInit.lookupOptions(execution).map(PaymentOption.init)
        links = PayrailsLink.all(json["links"])
        sdkVersion = json["featureConfig"]?["sdkVersion"]?.word
        schemaVersion = json["featureConfig"]?["schemaVersion"]?.wholeNumber
        raw = Secret(json)
    }

    private static func lookupOptions(_ execution: JSON?) -> [JSON] {
        (execution?["initialResults"]?.array ?? []).flatMap { result in
            result["body"]?["data"]?["paymentCompositionOptions"]?.array ?? []
        }
    }

    /// Either alphabet, with or without padding, with line breaks or without.
    private static func decodeBase64(_ text: String) -> Data? {
        var plain = text.filter { !$0.isWhitespace }
            .replacing("-", with: "+").replacing("_", with: "/").replacing("=", with: "")
        plain += String(repeating: "=", count: (4 - plain.utf8.count % 4) % 4)
        return Data(base64Encoded: plain)
    }
}

extension DecodedInit.Vault {
    init?(_ json: JSON) {
        guard json.object != nil else { return nil }
        vaultID = json["vaultId"]?.word
        vaultURL = json["vaultUrl"]?.string
        token = json["token"]?.string.map(Secret.init)
        status = json["status"]?.word
        vaultType = json["vaultType"]?.word
        providerID = json["providerId"]?.word
        providerConfigID = json["providerConfigId"]?.word
        encryptionPublicKey = json["encryptionPublicKey"]?.string.map(Secret.init)
        encryptionPublicKeyExpiresInSeconds = json["encryptionPublicKeyExpiresIn"]?.wholeNumber
        saveInstrument = json["links"]?["saveInstrument"].flatMap(PayrailsLink.init)
    }
}

extension DecodedInit.PaymentOption {
    init(_ json: JSON) {
        integrationType = json["integrationType"]?.word
        paymentMethodCode = json["paymentMethodCode"]?.word
        flow = json["clientConfig"]?["flow"]?.word
        supportsSaveInstrument = json["clientConfig"]?["supportsSaveInstrument"]?.bool
        instruments = (json["paymentInstruments"]?.array ?? []).compactMap(InstrumentReading.snapshot)
        config = json["config"]
    }
}
