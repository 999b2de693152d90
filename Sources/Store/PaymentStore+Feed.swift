import Basics
import Foundation
import Lockstep
import Postgres

/// A place in the feed: behind the event of this transaction and number.
///
/// Written as `c742n15`. Digits with a dash between them would now and then be those of a card number, and a reader whose
/// cursor is refused as one never gets on.
public struct FeedCursor: Hashable, Sendable, CustomStringConvertible {
    public let transaction: UInt64
    public let number: Int64

    public static let start = FeedCursor(transaction: 0, number: 0)

    init(transaction: UInt64, number: Int64) {
        self.transaction = transaction
        self.number = number
    }

    /// Nil for a text that no feed has ever given out.
    public init?(_ text: String) {
        let parts = text.dropFirst().split(separator: "n", omittingEmptySubsequences: false)
        guard text.hasPrefix("c"), parts.count == 2, let transaction = Self.digits(parts[0], as: UInt64.self),
            let number = Self.digits(parts[1], as: Int64.self)
        else { return nil }
        self.init(transaction: transaction, number: number)
    }

    /// No sign, no digits but the ASCII ones.
    private static func digits<Number: FixedWidthInteger>(_ text: Substring, as _: Number.Type) -> Number? {
        text.utf8.allSatisfy { (0x30...0x39).contains($0) } ? Number(text) : nil
    }

    public var description: String { "c\(transaction)n\(number)" }
}

public struct FeedEvent: Sendable {
    public let id: EventID
    public let cursor: FeedCursor
    public let type: String
    public let time: Timestamp
    public let data: JSON

    public var json: JSON {
        [
            "id": .string(id.description), "cursor": .string(cursor.description), "type": .string(type),
            "time": .string(time.rfc3339), "data": data,
        ]
    }
}

extension PaymentStore {
    /// Whether no feed on these books can have given this cursor out: they were restored from a copy of before it. A
    /// reader that waits behind it would wait in vain.
    public func isBeyondFeed(_ cursor: FeedCursor) async throws -> Bool {
        let next = try await pool.query(
            "SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS next"
        ).first?.decode("next", as: String.self)
        return next.flatMap { UInt64($0) }.map { cursor.transaction >= $0 } ?? false
    }

    /// The events behind a cursor that these scopes may see, in the order of the feed.
    ///
    /// Only what is older than every running transaction is shown, so that nothing can still appear before what was
    /// already read (invariant M11).
    public func readEvents(after cursor: FeedCursor, scopes: Set<Scope>, limit: Int) async throws -> [FeedEvent] {
        try await pool.query(
            """
            SELECT id, transaction_id::text AS transaction_text, number, type, time, data FROM events
            WHERE (transaction_id, number) > (\(String(cursor.transaction))::text::xid8, \(cursor.number))
                AND transaction_id < pg_snapshot_xmin(pg_current_snapshot())
                AND scope = ANY(\(scopes.map(\.rawValue).sorted()))
            ORDER BY events.transaction_id, events.number LIMIT \(limit)
            """
        ).map { row in
            let (id, transaction, number, type, time, data) = try row.decode(
                (UUID, String, Int64, String, PostgresTimestamp, String).self)
            return FeedEvent(
                id: EventID(id), cursor: FeedCursor(transaction: UInt64(transaction) ?? 0, number: number), type: type,
                time: time.timestamp, data: try JSON(parsing: Data(data.utf8)))
        }
    }
}
