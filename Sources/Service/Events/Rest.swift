import Lockstep
import Synchronization

/// A pause of the whole process, for a shop that says that it is too much for it. Else every event that waits would
/// use up an attempt to be told the same.
final class Rest: Sendable {
    /// The longest at once: what the shop asks for one event is that event's, and may be a day.
    static let longest: Duration = .seconds(60)
    /// What 429 means without a `Retry-After`.
    static let usual: Duration = .seconds(1)

    private let end = Mutex<ContinuousClock.Instant?>(nil)

    var isOver: Bool { end.withLock { $0.map { $0 <= .now } ?? true } }

    /// 429, and 503 with a `Retry-After`, are about the shop and not about the event.
    func heed(_ answer: DeliveryAnswer, now: ContinuousClock.Instant = .now) {
        guard case .refused(let status, let retryAfter) = answer else { return }
        guard let wish = status == 503 || status == 429 ? retryAfter ?? (status == 429 ? Self.usual : nil) : nil
        else { return }
        end.withLock { $0 = max($0 ?? now, now + min(wish, Self.longest)) }
    }
}
