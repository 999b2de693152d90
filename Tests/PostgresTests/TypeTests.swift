import Foundation
import Postgres
import Testing

@Suite("values go to the server and come back as they were")
struct TypeTests {
    private func roundTrip<T: PostgresEncodable & PostgresDecodable & Equatable>(
        _ values: [T], _ pool: PostgresPool, cast: String = "", _ location: SourceLocation = #_sourceLocation
    ) async throws {
        for value in values {
            let back: T = try await pool.value("SELECT \(value)\(unescaped: cast)")
            #expect(back == value, sourceLocation: location)
        }
    }

    @Test("whole numbers keep their extremes")
    func integers() async throws {
        try await withPool { pool async throws in
            try await roundTrip([Int16.min, -1, 0, 1, .max], pool)
            try await roundTrip([Int32.min, -1, 0, 1, .max], pool)
            try await roundTrip([Int64.min, -1, 0, 1, .max], pool)
            try await roundTrip([Int.min, -1, 0, 1, .max], pool)
        }
    }

    @Test("a narrower column is read into a wider type, and a wider one only when the value fits")
    func widening() async throws {
        try await withPool { pool async throws in
            #expect(try await pool.value("SELECT '-7'::int2", as: Int.self) == -7)
            #expect(try await pool.value("SELECT 7::int4", as: Int64.self) == 7)
            #expect(try await pool.value("SELECT 32767::int8", as: Int16.self) == 32767)
            #expect(await code { _ = try await pool.value("SELECT 32768::int8", as: Int16.self) } == .decoding)
        }
    }

    @Test("a sum of int8, which PostgreSQL makes a numeric, is read exactly or not at all")
    func numerics() async throws {
        try await withPool { pool async throws in
            let whole: [(String, Int64)] = [
                ("0", 0), ("1", 1), ("-1", -1), ("10000", 10000), ("99999999", 99_999_999), ("100000000", 100_000_000),
                ("1.000", 1), ("9223372036854775807", .max), ("-9223372036854775808", .min), ("20000.0", 20000),
            ]
            for (text, number) in whole {
                #expect(try await pool.value("SELECT \(text)::numeric", as: Int64.self) == number, "\(text)")
            }
            for text in ["0.5", "-0.0001", "9223372036854775808", "-9223372036854775809", "NaN", "1e40", "10000.5"] {
                #expect(
                    await code { _ = try await pool.value("SELECT \(text)::numeric", as: Int64.self) } == .decoding,
                    "\(text)")
            }
        }
    }

    @Test("texts keep every character, and their SQL stays data")
    func texts() async throws {
        try await withPool { pool async throws in
            try await roundTrip(
                [
                    "", " ", "plain", "Grüße, 世界 👩‍👩‍👧‍👦 \u{10FFFF}", "e\u{301}", "'; DROP TABLE orders; --", "$1 \\ \" ' %s",
                    "\u{1}\n\r\t\u{7f}", String(repeating: "ü", count: 100_000),
                ], pool)
            try await roundTrip(["varchar"], pool, cast: "::varchar(40)")
            try await roundTrip(["bpchar"], pool, cast: "::char(6)")
            try await roundTrip(["name"], pool, cast: "::name")
            #expect(try await pool.value("SELECT \("[1,  2]")::json", as: String.self) == "[1,  2]")
            #expect(try await pool.value("SELECT \("[1,  2]")::jsonb", as: String.self) == "[1, 2]")
        }
    }

    @Test("a canonically equivalent text is not changed to its other spelling")
    func spelling() async throws {
        try await withPool { pool async throws in
            let back: String = try await pool.value("SELECT \("e\u{301}")")
            #expect(Array(back.utf8) == [0x65, 0xCC, 0x81])
        }
    }

    @Test("a zero byte in a text is refused here, and the connection is as good as before")
    func zeroByte() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            #expect(await code { _ = try await pool.query("SELECT \("a\0b")") } == .encoding)
            #expect(await code { _ = try await pool.query("SELECT \(["a", "\0"])") } == .encoding)
            #expect(
                await code { try await pool.withConnection { try await $0.executeScript("SELECT 1;\0") } } == .encoding)
            #expect(try await pool.value("SELECT 1", as: Int.self) == 1)
        }
    }

    @Test("bytes keep zeros and every other value")
    func bytes() async throws {
        try await withPool { pool async throws in
            let all = Data(0...255)
            let large = Data((0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
            try await roundTrip([Data(), Data([0]), Data([0, 0, 1, 0]), all, all.dropFirst(3), large], pool)
        }
    }

    @Test("UUIDs and booleans")
    func small() async throws {
        try await withPool { pool async throws in
            try await roundTrip(
                [UUID(), UUID(uuidString: "00000000-0000-0000-0000-000000000000")].compactMap { $0 }, pool)
            try await roundTrip([true, false], pool)
            let id = UUID()
            #expect(try await pool.value("SELECT \(id)::text", as: String.self) == id.uuidString.lowercased())
            #expect(try await pool.value("SELECT \(id.uuidString)::uuid", as: UUID.self) == id)
        }
    }

    @Test("times keep their microseconds, before 1970 and at infinity too")
    func times() async throws {
        try await withPool { pool async throws in
            let micros: [Int64] = [0, 1, -1, 946_684_800_000_000, 1_753_000_000_123_456, -62_135_596_800_000_000]
            try await roundTrip(micros.map(PostgresTimestamp.init), pool)
            try await roundTrip([PostgresTimestamp.infinity, .negativeInfinity], pool)
            let text = try await pool.value(
                "SELECT (\(PostgresTimestamp(microsecondsSince1970: 1_000_001)) AT TIME ZONE 'UTC')::text",
                as: String.self)
            #expect(text == "1970-01-01 00:00:01.000001")
            #expect(
                await code {
                    _ = try await pool.query("SELECT \(PostgresTimestamp(microsecondsSince1970: .min + 1))")
                } == .encoding)
        }
    }

    @Test("NULL is nil, in every type, and never silently something else")
    func nulls() async throws {
        try await withPool { pool async throws in
            try await roundTrip([Int64?.none, 5], pool)
            try await roundTrip([UUID?.none], pool)
            try await roundTrip([Data?.none, Data()], pool)
            try await roundTrip([PostgresTimestamp?.none], pool)
            try await roundTrip([PostgresJSON?.none], pool)
            try await roundTrip([[Int]?.none, []], pool)
            try await roundTrip([String?.none, ""], pool)
            #expect(await code { _ = try await pool.value("SELECT NULL::int8", as: Int.self) } == .decoding)
            #expect(await code { _ = try await pool.value("SELECT NULL::text", as: String.self) } == .decoding)
        }
    }

    @Test("an optional is interpolated as it stands")
    func optionals() async throws {
        try await withPool { pool async throws in
            let reference: String? = nil
            let amount: Int64? = 5
            let row = try await pool.query("SELECT \(reference)::text, \(amount)")[0].decode((String?, Int64?).self)
            #expect(row.0 == nil)
            #expect(row.1 == 5)
        }
    }

    @Test("arrays, empty ones and ones with NULLs among them")
    func arrays() async throws {
        try await withPool { pool async throws in
            try await roundTrip([[Int64](), [.min, 0, .max]], pool)
            try await roundTrip([[Int32](), [1]], pool)
            try await roundTrip([[Int16](), [1, 2]], pool)
            try await roundTrip([[Bool](), [true, false]], pool)
            try await roundTrip([[String](), ["", "NULL", "{a,b}", "\"", "👩‍👩‍👧‍👦"]], pool)
            try await roundTrip([[UUID](), [UUID(), UUID()]], pool)
            try await roundTrip([[Data](), [Data(), Data([0, 1, 0])]], pool)
            try await roundTrip([[PostgresTimestamp(microsecondsSince1970: 7)]], pool)
            try await roundTrip([[PostgresJSON("{\"a\": 1}")]], pool)
            try await roundTrip([[String?]([nil, "", nil])], pool)
            try await roundTrip([[Int64?]([1, nil])], pool)
            try await roundTrip([[Data?]([nil, Data()])], pool)
            #expect(await code { _ = try await pool.value("SELECT '{1,NULL}'::int8[]", as: [Int].self) } == .decoding)
            #expect(await code { _ = try await pool.value("SELECT '{{1},{2}}'::int8[]", as: [Int].self) } == .decoding)
        }
    }

    @Test("unnest and ANY take arrays")
    func unnest() async throws {
        try await withPool { pool async throws in
            let names: [String?] = ["a", nil, "c"]
            let rows = try await pool.query(
                "SELECT number, name FROM unnest(\([1, 2, 3]), \(names)) AS given (number, name) ORDER BY number")
            #expect(try rows.map { try $0.decode("name", as: String?.self) } == names)
            #expect(try rows.map { try $0.decode((Int, String?).self).0 } == [1, 2, 3])
            #expect(rows.affected == 3)
            #expect(try await pool.value("SELECT 2 = ANY(\([1, 2])) AND 'x' <> ALL(\(["a"]))", as: Bool.self))
        }
    }

    private enum Colour: String, PostgresEncodable, PostgresDecodable, PostgresArrayElement { case red, green }
    private struct OrderID: RawRepresentable, Hashable, PostgresEncodable, PostgresDecodable, PostgresArrayElement {
        let rawValue: UUID
    }

    @Test("types around a raw value travel as that, enums of the database among them")
    func rawValues() async throws {
        try await withPool(maximumConnections: 1) { pool async throws in
            _ = try await pool.query("CREATE TYPE colour AS ENUM ('red', 'green', 'blue')")
            try await roundTrip([Colour.red, .green], pool, cast: "::colour")
            try await roundTrip([OrderID(rawValue: UUID())], pool)
            try await roundTrip([[OrderID(rawValue: UUID())]], pool)
            try await roundTrip([[Colour.red, .red]], pool)
            #expect(await code { _ = try await pool.value("SELECT 'blue'::colour", as: Colour.self) } == .decoding)
        }
    }

    @Test("a column of another type is refused with its name")
    func mismatch() async throws {
        try await withPool { pool async throws in
            let error = await error { _ = try await pool.value("SELECT 1 AS amount", as: String.self) }
            #expect(error?.code == .decoding)
            #expect(error?.column == "amount")
            #expect(await code { _ = try await pool.value("SELECT 1.5::float8", as: Int.self) } == .decoding)
            #expect(await code { _ = try await pool.value("SELECT 1, 2", as: Int.self) } == .decoding)
            let rows = try await pool.query("SELECT 1 AS a, 'x'::text AS \"Beta\"")
            #expect(rows.columns == ["a", "Beta"])
            #expect(try rows[0].decode("Beta") == "x")
            #expect(throws: PostgresError.self) { try rows[0].decode("beta", as: String.self) }
        }
    }

    @Test("jsonb is bound as such")
    func json() async throws {
        try await withPool { pool async throws in
            let json = PostgresJSON(text: "{\"ü\": null, \"amount\": \"12.30\"}")
            #expect(try await pool.value("SELECT \(json) ->> 'amount'", as: String.self) == "12.30")
            #expect(try await pool.value("SELECT \(json)", as: PostgresJSON.self) == json)
            #expect(
                await code { _ = try await pool.query("SELECT \(PostgresJSON("{"))") } == .server(sqlState: "22P02"))
        }
    }
}
