/// What makes two statements the same one to the server.
struct StatementKey: Hashable, Sendable {
    let sql: String
    let types: [UInt32]
}

/// The prepared statements of one connection, the least recently used of which makes room.
struct StatementCache {
    private struct Entry {
        let name: String
        var lastUse: UInt64
    }

    private let limit: Int
    private var entries: [StatementKey: Entry] = [:]
    private var uses: UInt64 = 0
    private var names: UInt64 = 0
    /// Statements that the server still has and nobody will use again.
    private(set) var discarded: [String] = []

    init(limit: Int) { self.limit = max(1, limit) }

    var count: Int { entries.count }

    mutating func name(for key: StatementKey) -> String? {
        uses += 1
        entries[key]?.lastUse = uses
        return entries[key]?.name
    }

    /// A name that this connection has never used.
    mutating func freshName() -> String {
        names += 1
        return "s\(names)"
    }

    /// The server has prepared it.
    mutating func insert(_ key: StatementKey, name: String) {
        uses += 1
        if let former = entries.updateValue(Entry(name: name, lastUse: uses), forKey: key) {
            discarded.append(former.name)
        }
        if entries.count > limit, let oldest = entries.min(by: { $0.value.lastUse < $1.value.lastUse }) {
            entries[oldest.key] = nil
            discarded.append(oldest.value.name)
        }
    }

    /// The server may have lost or invalidated any of them.
    mutating func forgetAll() {
        discarded += entries.values.map(\.name)
        entries.removeAll()
    }

    mutating func takeDiscarded() -> [String] {
        defer { discarded.removeAll() }
        return discarded
    }
}
