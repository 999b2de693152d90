import Basics
import Foundation

extension InstrumentSnapshot {
    /// The Instrument object of the contract.
    ///
    /// - Parameters:
    ///   - holder: the holder as it is known here, where the provider doesn't repeat it.
    ///   - zone: where "this month" is read (`LOCKSTEP_EXPIRY_ZONE`).
    public func json(holder: String, at moment: Timestamp, in zone: TimeZone) -> JSON {
        let expiry = CardExpiry(of: self)
        return .compact([
            "id": .string(id.description),
            "holderReference": .string(holderReference ?? holder),
            "paymentMethod": .string(paymentMethod),
            "status": .string(status),
            "default": .bool(isDefault),
            "displayName": displayName.map(JSON.string),
            "network": network.map(JSON.string),
            "suffix": suffix.map(JSON.string),
            "expiry": .compact([
                "month": expiry.map { JSON($0.month) }, "year": expiry.map { JSON($0.year) },
                "state": .string(CardExpiry.state(of: expiry, at: moment, in: zone).rawValue),
            ]),
            "hasNetworkToken": .bool(hasNetworkToken ?? false),
            "futureUsage": futureUsage.map(JSON.string),
        ])
    }

    /// Deleted at the provider: there for those who look for it, and good for nothing.
    public var isDeleted: Bool { status == "deleted" }
    public var isDisabled: Bool { status == "disabled" }

    /// Why it can't be charged for this holder now; nil where nothing is against it. `status` says nothing about expiry.
    public func obstacle(
        for holder: String, by policy: ExpiryPolicy, at moment: Timestamp, in zone: TimeZone
    ) -> InstrumentObstacle? {
        if let owner = holderReference, owner != holder { return .anotherHolder }
        if isDeleted { return .missing }
        if isDisabled { return .disabled }
        let state = CardExpiry.state(of: CardExpiry(of: self), at: moment, in: zone)
        return policy.permits(state, hasNetworkToken: hasNetworkToken ?? false) ? nil : .expired
    }
}

/// Why an instrument isn't charged. The raw value is the charge's reason.
public enum InstrumentObstacle: String, Hashable, Sendable, CaseIterable {
    case anotherHolder = "instrument-of-another-holder"
    case missing = "instrument-missing"
    case disabled = "instrument-disabled"
    case expired = "instrument-expired"
}
