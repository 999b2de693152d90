import Basics

/// How far an event is on its way to the shop.
public enum DeliveryState: String, Hashable, Sendable, CaseIterable {
    /// To be sent, for the first time or again.
    case pending
    /// The shop took it.
    case delivered
    /// It isn't sent any more, unless a person says so: the shop doesn't want it, or the patience is over.
    case dead
}

/// What an attempt to hand an event to the shop came to.
public enum DeliveryAnswer: Hashable, Sendable {
    /// 2xx.
    case accepted(status: Int)
    /// Any other status; a redirect too.
    case refused(status: Int, retryAfter: Duration?)
    /// No answer that could be read. The shop may have the event all the same.
    case unanswered(DeliveryFailure)

    public var status: Int? {
        switch self {
        case .accepted(let status), .refused(let status, _): status
        case .unanswered: nil
        }
    }

    public var failure: DeliveryFailure? { if case .unanswered(let failure) = self { failure } else { nil } }
}

/// Why there was no answer.
public enum DeliveryFailure: String, Hashable, Sendable, CaseIterable {
    case timedOut, cannotConnect, connectionLost, tls, unreadable, other
}

/// What follows from an attempt.
public enum DeliveryVerdict: Hashable, Sendable {
    case delivered
    case dead
    case retry(after: Duration)
}

/// When an event that the shop didn't take is sent again (`LOCKSTEP_EVENTS_RETRIES`).
///
/// Until it is delivered or dead, the later events of its checkout wait behind it; each then has the whole schedule for
/// itself. Events of other checkouts, and those of none, don't wait.
public struct DeliverySchedule: Hashable, Sendable {
    /// The pauses after the first, second, … attempt. After one attempt more than there are pauses, the event is dead.
    public let retries: [Duration]

    /// What a `Retry-After` may ask for at most, so that a mistake out there can't silence an order for weeks.
    public static let longestRetryAfter: Duration = .seconds(86_400)

    public init(_ retries: [Duration]) { self.retries = retries }

    /// - Parameters:
    ///   - attempt: which one it was, from 1.
    ///   - jitter: 0 to 255 adds up to a tenth to the pause, so that what failed together isn't sent together.
    public func verdict(on answer: DeliveryAnswer, attempt: Int, jitter: UInt8) -> DeliveryVerdict {
        let wish: Duration
        switch answer {
        case .accepted: return .delivered
        // "Gone": the receiver wants nothing from here any more.
        case .refused(status: 410, _): return .dead
        case .refused(_, let retryAfter): wish = min(retryAfter ?? .zero, Self.longestRetryAfter)
        case .unanswered: wish = .zero
        }
        guard attempt >= 1, attempt <= retries.count else { return .dead }
        let pause = retries[attempt - 1]
        return .retry(after: max(pause + pause / 10 * Int(jitter) / 255, wish))
    }
}
