import Basics

extension Endpoint {
    /// Every call of the contract. The tests hold it against what is routed and against the document.
    public static let all: [Endpoint] = [
        createCheckout, getCheckout, listCheckouts, openSession, changeAmount, updateExecution, cancelCheckout,
        prePayment, createTokenization, saveInstrument, listInstruments, changeInstrument, deleteInstrument,
        getExecution, capture, cancel, refund, getOperation, createCharge, getCharge, createSubscription,
        getSubscription, listSubscriptions, changeSubscription, pauseSubscription, resumeSubscription,
        cancelSubscription, listSubscriptionCharges, readEvents, createReconciliation, getReconciliation,
        listDiscrepancies, resolveDiscrepancy, receiveNotification, receiveNotificationAtEndpoint, health, readiness,
        metrics, openAPI,
    ]
}

extension QueryParameter {
    static func limit(maximum: Int = 200) -> QueryParameter {
        QueryParameter(
            "limit", ["type": "integer", "minimum": 1, "maximum": JSON(maximum), "default": 50],
            "How many items at most.")
    }
    static let after = QueryParameter("after", ["type": "string"], "Where to go on: the `next` of the page before.")
    static func reference(_ name: String, _ description: String, required: Bool) -> QueryParameter {
        QueryParameter(name, Schemas.reference, description, required: required)
    }
}
