extension Settings {
    var admissionLimits: Admission.Limits {
        [.ordinary: load.maximumRequests, .feed: load.maximumFeedReaders, .gate: gate.maximumRequests]
    }

    /// What may be at handlers at once: what each lane lets in and as many again that are turned away, notifications, and
    /// probes. So it is always the lane that says no, in its own words.
    var maximumRequestsInFlight: Int {
        2 * admissionLimits.values.reduce(0, +) + load.maximumWaitingNotifications + 1024
    }

    var rateLimitPolicies: [BearerToken.Kind: RateLimitPolicy] {
        var policies: [BearerToken.Kind: RateLimitPolicy] = [:]
        if load.merchantRequestsPerSecond > 0 {
            policies[.merchantKey] = RateLimitPolicy(
                name: "merchant", quota: load.merchantRequestsPerSecond * 10, windowSeconds: 10)
        }
        if load.clientRequestsPerMinute > 0 {
            policies[.client] = RateLimitPolicy(name: "client", quota: load.clientRequestsPerMinute, windowSeconds: 60)
        }
        return policies
    }
}
