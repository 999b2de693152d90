import Basics
import Foundation

/// What a declined attempt means for the next one (`config/declines.json`; reference 6.6).
public struct DeclinePolicy: Hashable, Sendable {
    public enum Class: String, Hashable, Sendable, CaseIterable {
        /// Later, by the dunning schedule.
        case soft
        /// Not again with this instrument.
        case hard
        /// Only the customer can go on.
        case customerNeeded
        /// Our set-up is wrong: somebody must mend it, and no attempt is burnt.
        case configuration
        /// It may have been charged. Looked up; never guessed, never tried again (invariant M7).
        case unknown
    }

    /// One line of the table.
    struct Row: Hashable, Sendable {
        let category: String
        let result: String
        /// Nil: whatever the details.
        let detail: String?
        let meaning: Class
    }

    let rows: [Row]
    private let byResult: [String: Class]
    private let byDetail: [String: Class]

    init(rows: [Row]) {
        self.rows = rows
        var byResult: [String: Class] = [:]
        var byDetail: [String: Class] = [:]
        for row in rows {
            if let detail = row.detail {
                byDetail[Self.plain(row.result) + "/" + Self.plain(detail)] = row.meaning
            } else {
                byResult[Self.plain(row.result)] = row.meaning
            }
        }
        self.byResult = byResult
        self.byDetail = byDetail
    }

    /// The class of a provider's reason. What the table doesn't know, and no reason at all, is unknown.
    ///
    /// - Parameter reason: as ``reason(_:detail:)`` makes it.
    public func meaning(of reason: String?) -> Class {
        guard let reason else { return .unknown }
        let name = Self.plain(Self.result(of: reason))
        let detail = reason.drop { $0 != "/" }
        if !detail.isEmpty, let found = byDetail[name + "/" + Self.plain(String(detail))] { return found }
        return byResult[name] ?? .unknown
    }

    /// A provider's result as it is kept, with its finer word where it gives one: `BlockedInstrument/ContactIssuer`.
    public static func reason(_ result: String, detail: String?) -> String {
        detail.map { "\(result)/\($0)" } ?? result
    }

    /// The result alone, which is what is shown: `BlockedInstrument`.
    public static func result(of reason: String) -> String { String(reason.prefix { $0 != "/" }) }

    /// `INSUFFICIENT_BALANCE` in older texts is `InsufficientBalance` in newer ones.
    static func plain(_ name: String) -> String { name.lowercased().filter { $0.isLetter || $0.isNumber } }

    /// `config/declines.json`, compiled in. Without a readable table every decline would be unknown: nothing is
    /// charged again.
    public static let standard =
        (try? DeclinePolicy(table: Data(PackageResources.declines_json))) ?? DeclinePolicy(rows: [])
}

extension DeclinePolicy {
    /// Reads `{"declines": [{"category": "Operation", "result": "GenericRejection", "class": "soft"}, …]}`.
    ///
    /// - Throws: what is wrong, with the line's place in the list, so that a bad table stops the start.
    public init(table: Data) throws(TableFault) {
        let lines = try TableReader.list("declines", in: table)
        var rows: [Row] = []
        var seen: Set<String> = []
        for (index, line) in lines.enumerated() {
            let reader = try TableReader(line, at: "declines/\(index)")
            let row = Row(
                category: try reader.text("category"), result: try reader.text("result"),
                detail: try reader.optionalText("detail"),
                meaning: try reader.word("class", of: Class.self))
            try reader.end()
            let name = Self.plain(row.result) + "/" + Self.plain(row.detail ?? "")
            guard seen.insert(name).inserted else {
                throw TableFault("declines/\(index): this result stands in the table twice")
            }
            rows.append(row)
        }
        self.init(rows: rows)
    }
}
