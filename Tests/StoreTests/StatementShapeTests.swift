import Foundation
import Testing

/// Rules that every statement keeps, read from where the statements stand.
@Suite("The shape of the SQL")
struct StatementShapeTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func texts(of folder: String, _ suffix: String) throws -> [(name: String, text: String)] {
        let folder = root.appending(path: folder)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(suffix) }
        return try names.sorted().map { name in
            (name: name, text: try String(contentsOf: folder.appending(path: name), encoding: .utf8))
        }
    }

    /// What stands between triple quotes.
    private static func statements() throws -> [(name: String, sql: String)] {
        try texts(of: "Sources/Store", ".swift").flatMap { name, text in
            text.components(separatedBy: "\"\"\"").enumerated().filter { !$0.offset.isMultiple(of: 2) }
                .map { (name: name, sql: $0.element) }
        }
    }

    @Test(
        "Q1, Q7: a batch that is changed or removed is made of rows that nobody holds, so that two never wait in a ring"
    )
    func batches() throws {
        let batches = try Self.statements().filter { _, sql in
            sql.contains(/UPDATE [a-z_]+( AS [a-z_]+)? SET|DELETE FROM/) && sql.contains("LIMIT ")
        }
        #expect(batches.count >= 15, "there are some to look at")
        for (name, sql) in batches {
            #expect(sql.contains(/FOR UPDATE( OF [a-z_]+)? SKIP LOCKED/), "\(name): \(sql)")
        }
    }

    @Test("Q1: what is waited for is found by an index of what waits, not of all that ever did")
    func hotIndexes() throws {
        let schema = try Self.texts(of: "sql", ".sql").map(\.text).joined()
        for index in [
            "checkouts_due", "executions_check", "operations_due", "notification_outcomes_open",
            "event_deliveries_open",
        ] {
            let statement = try schema.firstMatch(of: Regex("CREATE INDEX \(index) ON [^;]*WHERE[^;]*;"))
            #expect(statement != nil, "\(index)")
        }
    }

    @Test("Q9: nothing is told by NOTIFY, which takes one lock for the whole cluster")
    func noNotify() throws {
        for (name, text) in try Self.texts(of: "Sources/Store", ".swift") + Self.texts(of: "sql", ".sql") {
            #expect(!text.contains(/(?i)\b(pg_notify|NOTIFY|LISTEN)\b\s*[("'a-z]/), "\(name)")
        }
    }

    @Test("M7: money is whole numbers and digits only, from the text that comes to the column that keeps it")
    func noFractionsOfMoney() throws {
        var count = 0
        for folder in ["Sources/Lockstep/Money", "Sources/Payrails/Wire", "Sources/Store"] {
            for (name, text) in try Self.texts(of: folder, ".swift") {
                #expect(!text.contains(/\b(Double|Float|Float16|Float32|Float64|Float80|Decimal|CGFloat)\b/), "\(name)")
                count += 1
            }
        }
        #expect(count >= 40, "there is something to look at")
        let schema = try Self.texts(of: "sql", ".sql").map(\.text).joined()
        let columns = schema.matches(of: /\n +[a-z_]*minor +([a-z]+)/)
        #expect(columns.count >= 15, "there are some to look at")
        for column in columns { #expect(column.1 == "bigint", "\(column.0)") }
    }

    @Test("Q14: nothing calls out by Foundation's URLSession")
    func noURLSession() throws {
        let sources = Self.root.appending(path: "Sources")
        let files = FileManager.default.enumerator(atPath: sources.path)?.compactMap { $0 as? String } ?? []
        #expect(files.count > 200)
        for file in files where file.hasSuffix(".swift") {
            let text = try String(contentsOf: sources.appending(path: file), encoding: .utf8)
            #expect(!text.contains("URLSession") && !text.contains("FoundationNetworking"), "\(file)")
        }
    }
}
