import Basics
import Foundation

/// An id that can't be mistaken for another kind of id. Written as a lower-case UUID.
public protocol Identifier: Hashable, Comparable, Sendable, CustomStringConvertible {
    var uuid: UUID { get }
    init(_ uuid: UUID)
}

extension Identifier {
    /// Nil unless the text is a UUID in its usual form of 36 characters.
    public init?(_ text: some StringProtocol) {
        guard let uuid = UUID(canonical: text) else { return nil }
        self.init(uuid)
    }
    public var description: String { uuid.lowercased }
    public static func < (left: Self, right: Self) -> Bool { left.description < right.description }
}

public struct CheckoutID: Identifier { public let uuid: UUID; public init(_ uuid: UUID) { self.uuid = uuid } }
/// Payrails' own id of an execution.
public struct ExecutionID: Identifier { public let uuid: UUID; public init(_ uuid: UUID) { self.uuid = uuid } }
public struct OperationID: Identifier { public let uuid: UUID; public init(_ uuid: UUID) { self.uuid = uuid } }
public struct DiscrepancyID: Identifier { public let uuid: UUID; public init(_ uuid: UUID) { self.uuid = uuid } }
public struct EventID: Identifier { public let uuid: UUID; public init(_ uuid: UUID) { self.uuid = uuid } }
public struct ChargeID: Identifier { public let uuid: UUID; public init(_ uuid: UUID) { self.uuid = uuid } }
public struct SubscriptionID: Identifier { public let uuid: UUID; public init(_ uuid: UUID) { self.uuid = uuid } }
/// The provider's own id of a saved instrument.
public struct InstrumentID: Identifier { public let uuid: UUID; public init(_ uuid: UUID) { self.uuid = uuid } }
public struct MerchantKeyID: Identifier { public let uuid: UUID; public init(_ uuid: UUID) { self.uuid = uuid } }

/// The key under which a provider keeps the answer to one intent (invariant M12).
public struct IdempotencyKey: Identifier { public let uuid: UUID; public init(_ uuid: UUID) { self.uuid = uuid } }

/// Where fresh ids come from: time-ordered, so that indexes grow at one end. A test hands in its own.
public struct IdentifierSource: Sendable {
    public let next: @Sendable () -> UUID
    public init(next: @escaping @Sendable () -> UUID) { self.next = next }

    /// Version 7 by the clock and the system's random numbers.
    public static func system(clock: WallClock = .system) -> IdentifierSource {
        IdentifierSource {
            var generator = SystemRandomNumberGenerator()
            return .version7(at: clock.now(), using: &generator)
        }
    }
}
