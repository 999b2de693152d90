import Basics
import Foundation
import Lockstep

extension Subscription {
    /// Why an instrument isn't charged for it, as a run decides it; nil where nothing is against it.
    ///
    /// - Parameter card: its instrument as it was last seen; nil where nobody has it any more.
    func obstacle(_ card: InstrumentSnapshot?, at moment: Timestamp, in zone: TimeZone) -> SkipReason? {
        guard let card else { return .instrumentMissing }
        if let obstacle = card.obstacle(for: holderReference, by: expiryPolicy, at: moment, in: zone) {
            switch obstacle {
            case .anotherHolder, .missing: return .instrumentMissing
            case .disabled: return .instrumentDisabled
            case .expired: return .instrumentExpired
            }
        }
        let shown = DeclinedInstrument(instrument: card.id, appearance: card.appearance)
        return declined == shown ? .instrumentDeclined : nil
    }
}
