import Basics
import Foundation
import Lockstep

/// Section 11 of the reference, with whole ids, as raw text.
enum Samples {
    static let executionID = "9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01"
    static let instrumentID = "6f6a3c1e-5f0e-4f7c-9f57-2b8b5f1d1a01"

    static func token(_ value: String, expiresIn: String = "3600") -> String {
        #"{"access_token":"\#(value)","token_type":"Bearer","expires_in":\#(expiresIn)}"#
    }

    static let pending3DS = """
        {"id":"9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01",
         "status":[{"code":"authorizePending","time":"2026-09-01T10:00:03.100200300Z"},{"code":"created","time":"2026-09-01T10:00:00.000000001Z"},{"code":"authorizeRequested","time":"2026-09-01T10:00:00.450000000Z"}],
         "createdAt":"2026-09-01T10:00:00.000000001Z","merchantReference":"order_501","holderReference":"cust_77",
         "holderId":"1c5a0c6e-97a2-4a6b-b1ea-0d8f6f0a7c21","workspaceId":"0f2d6a10-8a3e-4b43-9a53-6a1f0c9e7b11",
         "amount":{"value":"57.49","currency":"EUR"},"workflow":{"code":"payment-acceptance","version":12},"meta":{},
         "actionRequired":"3ds",
         "requiredAction":{"type":"redirect","subType":"client","method":"GET","href":"https://api-pub.example.test/public/redirect/x"},
         "links":{"self":"https://api.example.test/merchant/workflows/payment-acceptance/executions/9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01",
                  "3ds":"https://api-pub.example.test/public/redirect/x","redirect":"https://api-pub.example.test/public/redirect/x",
                  "cancel":{"method":"POST","href":"https://api.example.test/merchant/workflows/payment-acceptance/executions/9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01/cancel"}}}
        """

    /// An execution whose `status[]` holds these entries.
    static func execution(_ status: String, reference: String = "order_501", extra: String = "") -> String {
        """
        {"id":"\(executionID)","status":[\(status)],"createdAt":"2026-09-01T10:00:00.000000001Z",
         "merchantReference":"\(reference)","holderReference":"cust_77",
         "amount":{"value":"57.49","currency":"EUR"},"workflow":{"code":"payment-acceptance","version":12}\(extra)}
        """
    }

    static let declineEntry = """
        {"code":"authorizeFailed","time":"2026-09-01T10:00:04.5Z","errors":[{"id":"5b9f4d6a-1111-4e0e-9c11-aa0000000001","code":"workflow.action.failed","detail":"action failed","docUrl":"https://docs.example/err","reason":{"category":"InsufficientBalance","result":"InsufficientBalance","source":"Customer"}}]}
        """

    static func acknowledgement(_ action: String) -> String {
        """
        {"name":"\(action)","actionId":"2f9b8d70-0000-4d10-8000-000000000009","executedAt":"2026-09-01T10:00:00.45Z",
         "links":{"execution":"https://api.example.test/merchant/workflows/payment-acceptance/executions/9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01","consumerWait":"https://api-pub.example.test/public/redirect/wait/x","cancel":{"method":"POST","href":"https://api.example.test/x/cancel"}}}
        """
    }

    static let lookup = """
        {"name":"lookup","actionId":"7a0b7c1d-0000-4d10-8000-000000000010","executedAt":"2026-09-01T09:59:00Z",
         "data":{"paymentCompositionOptions":[{"paymentMethodCode":"card","integrationType":"api","description":"Card","paymentInstruments":[]}]},
         "links":{"execution":"https://api.example.test/x","authorize":{"method":"POST","href":"https://api.example.test/x/authorize"}}}
        """

    static let decodedInit = """
        {"token":"eyJ.client.jwt","holderReference":"cust_77","type":"dropIn","dataEncryptionId":"d3b5",
         "amount":{"value":"49.99","currency":"EUR"},
         "vaultConfiguration":{"vaultId":"v1","vaultUrl":"https://vault.example.test","token":"eyJ.v","status":"enabled","vaultType":"Payrails","providerId":"4d3c","providerConfigId":"8a7b","encryptionPublicKey":"MIIB","encryptionPublicKeyExpiresIn":3300,"links":{"saveInstrument":{"method":"POST","href":"https://api-pub.example.test/public/payment/instruments"}}},
         "execution":{"id":"9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01","status":[{"code":"created","time":"2026-09-01T09:58:00.1Z"}],"createdAt":"2026-09-01T09:58:00.1Z","merchantReference":"order_501","holderReference":"cust_77","holderId":"1c5a","workspaceId":"0f2d","amount":{"value":"49.99","currency":"EUR"},"workflow":{"code":"payment-acceptance","version":12},"meta":{"CIT":true},
           "links":{"self":"https://api-pub.example.test/s","authorize":{"method":"POST","href":"https://api-pub.example.test/s/authorize"},"startPaymentSession":{"method":"POST","href":"https://api-pub.example.test/s/startPaymentSession"}},
           "initialResults":[{"httpCode":200,"body":{"name":"lookup","actionId":"0c1d","executedAt":"2026-09-01T09:58:00.2Z","data":{"paymentCompositionOptions":[
              {"integrationType":"api","paymentMethodCode":"card","description":"Card","clientConfig":{"displayName":"Card","flow":"inline","supportsSaveInstrument":true},
               "paymentInstruments":[{"id":"6f6a3c1e-5f0e-4f7c-9f57-2b8b5f1d1a01","holderId":"1c5a","createdAt":"2025-02-01T00:00:00Z","updatedAt":"2025-02-01T00:00:00Z","paymentMethod":"card","status":"enabled","default":true,"displayName":"Visa **** 4242","futureUsage":"CardOnFile","data":{"network":"visa","bin":"42424242","suffix":"4242","expiryMonth":"09","expiryYear":"2027"}}]},
              {"integrationType":"api","paymentMethodCode":"applePay","config":{"type":"CARD","parameters":{"countryCode":"DE","merchantCapabilities":["supports3DS"],"merchantIdentifier":"merchant.example","supportedNetworks":["VISA"]}}},
              {"integrationType":"hpp","paymentMethodCode":"payPal","config":{"clientId":"pp-client","merchantId":"pp-merchant"},"clientConfig":{"flow":"redirect"}}]},
              "links":{"execution":"https://api-pub.example.test/s","authorize":{"method":"POST","href":"https://api-pub.example.test/s/authorize"}}}}]},
         "links":{"binLookup":{"method":"POST","href":"https://api-pub.example.test/b"},"instrumentDelete":{"method":"DELETE","href":"https://api-pub.example.test/i/:instrumentId"},"instrumentUpdate":{"method":"PATCH","href":"https://api-pub.example.test/i/:instrumentId"},"clientUpdate":{"method":"POST","href":"https://api-pub.example.test/c"}},
         "featureConfig":{"coBrandedCardsRollout":0,"secureFieldsRollout":0,"gpayIframeRollout":0,"sdkVersion":"6.0.3","schemaVersion":1}}
        """

    static func initResponse(_ decoded: String = decodedInit) -> String {
        #"{"version":"6.0.3","data":"\#(Data(decoded.utf8).base64EncodedString())"}"#
    }

    static let instrument = """
        {"id":"6f6a3c1e-5f0e-4f7c-9f57-2b8b5f1d1a01","holderId":"1c5a","holderReference":"cust_77","createdAt":"2025-02-01T00:00:00.000Z","updatedAt":"2026-02-01T00:00:00.000Z","paymentMethod":"card","status":"enabled","displayName":"Visa **** 4242","default":true,"fingerprint":"fa","futureUsage":"Subscription","networkTransactionReference":"998877665544",
         "data":{"network":"visa","bin":"424242","suffix":"4242","expiryMonth":"09","expiryYear":"2027","holderName":"A Person"},
         "tokens":[{"id":"t","type":"network","status":"enabled","reference":"nt_1","providerId":"p","meta":{}}]}
        """

    static let payment = """
        {"id":"c0de0a52","status":"Authorized","createdAt":"2026-09-01T10:00:03Z","amount":{"value":"57.49","currency":"EUR"},"capturedAmount":{"value":"0","currency":"EUR"},"refundedAmount":{"value":"0","currency":"EUR"},"merchantReference":"order_501","providerName":"checkout","providerReference":"psp_1","holderId":"1c5a","instrumentId":"6f6a","workspaceId":"0f2d"}
        """

    static let error = """
        {"errors":[{"id":"a0a0","code":"request.param.invalid","detail":"amount.value is not a decimal","docUrl":"https://docs.example/errors#x","reason":{}}]}
        """

    static func error(_ code: String, result: String? = nil, category: String = "Unknown") -> String {
        let reason = result.map { #","reason":{"category":"\#(category)","result":"\#($0)"}"# } ?? ""
        return #"{"errors":[{"id":"a0a0","code":"\#(code)","detail":"why"\#(reason)}]}"#
    }

    static var reference: ExecutionReference? {
        ExecutionID(executionID).map { ExecutionReference(id: $0, workflowCode: "payment-acceptance") }
    }

    static var key: IdempotencyKey? { IdempotencyKey("0192F0E1-7C2D-7A11-8000-0000000000AB") }
}
