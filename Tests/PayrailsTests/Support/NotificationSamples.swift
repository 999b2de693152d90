/// The notifications of section 11, with whole ids, as raw text.
enum NotificationSamples {
    static let authorizeSucceeded = """
        {"event":"executionActionCompleted","time":"2026-09-01T10:00:05.123456Z","workspaceId":"0f2d","eventTrigger":"api",
         "details":{"action":"authorize","actionId":"2f9b","actionMeta":{},"success":true,"amount":{"value":"57.49","currency":"EUR"},
          "execution":{"id":"9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01","workflowCode":"payment-acceptance","merchantReference":"order_501","holderReference":"cust_77","holderId":"1c5a","meta":{}},
          "paymentComposition":[{"success":true,"operationType":"Authorize","operationResult":"Success","integrationType":"api","paymentMethodCode":"card","captureMode":"Manual","paymentId":"c0de","paymentInstrumentId":"6f6a","storeInstrument":true,"amount":{"value":"57.49","currency":"EUR"},"providerId":"aa","providerConfigId":"bb","providerReference":"psp_1","operationProviderReference":"psp_1","paymentInstrument":{"id":"6f6a","status":"enabled","futureUsage":"Subscription","networkTransactionReference":"9988","data":{"expiryMonth":"09","expiryYear":"2027"}}}]}}
        """
    static let authorizeFailed = """
        {"event":"executionActionCompleted","time":"2026-09-01T10:00:04Z","workspaceId":"0f2d","eventTrigger":"api","details":{"action":"authorize","actionId":"2f9c","success":false,"amount":{"value":"14.99","currency":"EUR"},"errors":[{"id":"e","code":"workflow.action.failed","detail":"failed","reason":{"category":"Instrument","result":"BlockedInstrument","source":"Customer","detail":"LostInstrument"}}],"execution":{"id":"9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01","workflowCode":"payment-acceptance","merchantReference":"inv_901-try1","holderReference":"cust_77"},"paymentComposition":[{"success":false,"operationType":"Authorize","operationResult":"BlockedInstrument","operationResultDetail":"LostInstrument","paymentId":"c0df"}]}}
        """
    /// As section 11 has it: no time.
    static let captureSucceeded = """
        {"event":"executionActionCompleted","details":{"action":"capture","success":true,"amount":{"value":"57.49","currency":"EUR"},"execution":{"id":"9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01"},"paymentComposition":[{"operationType":"Capture","operationResult":"Success","success":true,"paymentId":"c0de","amount":{"value":"20.00","currency":"EUR"}}]}}
        """
    static let captureNotAllowed = """
        {"event":"executionActionCompleted","details":{"action":"capture","success":false,"amount":{"value":"0.00","currency":"EUR"},"errors":[{"id":"e","title":"action.not-allowed","detail":"Payment can't be captured"}],"execution":{"id":"9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01"}}}
        """
    static let created = """
        {"event":"executionCreated","time":"2026-09-01T10:00:00Z","workspaceId":"0f2d","eventTrigger":"api","details":{"execution":{"id":"9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01","workflowCode":"payment-acceptance","merchantReference":"order_501"}}}
        """
    static let requested = """
        {"event":"executionActionRequested","time":"2026-09-01T10:00:00.45Z","workspaceId":"0f2d","eventTrigger":"api","details":{"action":"authorize","actionId":"2f9b","execution":{"id":"9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01"},"amount":{"value":"57.49","currency":"EUR"}}}
        """
    static let pending = """
        {"event":"executionActionPending","time":"2026-09-01T10:00:03Z","workspaceId":"0f2d","eventTrigger":"action","details":{"action":"authorize","actionId":"2f9b","execution":{"id":"9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01"},"actionRequired":"3ds","requiredAction":{"type":"redirect","href":"https://x"}}}
        """
    static let dispute = """
        {"event":"executionActionCompleted","details":{"action":"dispute","success":true,"amount":{"value":"10.00","currency":"USD"},"execution":{"id":"9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01"},"paymentComposition":[{"operationType":"ChargebackNotification","operationResult":"Success","paymentId":"c0de","dispute":{"id":"d_1","status":"DisputeOpened","reason":"fraud","amount":{"value":"10.00","currency":"USD"},"paymentId":"c0de","createdAt":"2026-09-02T00:00:00Z"}}]}}
        """

    static let all = [
        authorizeSucceeded, authorizeFailed, captureSucceeded, captureNotAllowed, created, requested, pending, dispute,
    ]
}
