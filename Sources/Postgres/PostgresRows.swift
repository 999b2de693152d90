import CPostgres
import Glibc

/// What a statement returned: its rows, in the server's order, and how many it touched.
public struct PostgresRows: RandomAccessCollection, Sendable {
    let result: ResultHandle

    public var startIndex: Int { 0 }
    public var endIndex: Int { Int(PQntuples(result.pointer)) }
    public subscript(index: Int) -> PostgresRow {
        precondition(indices.contains(index))
        return PostgresRow(result: result, index: Int32(index))
    }

    /// Rows inserted, updated, deleted or selected; 0 for statements that have no count.
    public var affected: Int { Int(String(cString: PQcmdTuples(result.pointer))) ?? 0 }

    /// What the server calls that which it did, such as `COMMIT` or `INSERT 0 1`.
    var commandTag: String { String(cString: PQcmdStatus(result.pointer)) }

    public var columns: [String] {
        (0..<PQnfields(result.pointer)).map { String(cString: PQfname(result.pointer, $0)) }
    }
}

/// One row of a result.
public struct PostgresRow: Sendable {
    let result: ResultHandle
    let index: Int32

    /// All columns from the left, one type each.
    ///
    ///     let (id, amount) = try row.decode((UUID, Int64).self)
    ///
    /// - Throws: ``PostgresError`` with the code `decoding`, also when there are more or fewer columns than types.
    public func decode<each T: PostgresDecodable>(_: (repeat each T).Type) throws -> (repeat each T) {
        var expected: Int32 = 0
        for _ in repeat (each T).self { expected += 1 }
        let found = PQnfields(result.pointer)
        guard expected == found else {
            throw PostgresError(.decoding, "\(found) columns where \(expected) were asked for")
        }
        var column: Int32 = 0
        return (repeat try next((each T).self, &column))
    }

    /// The only column.
    /// - Throws: as for several.
    public func decode<T: PostgresDecodable>(_ type: T.Type) throws -> T {
        let found = PQnfields(result.pointer)
        guard found == 1 else { throw PostgresError(.decoding, "\(found) columns where 1 was asked for") }
        return try value(type, at: 0)
    }

    /// One column by its name.
    /// - Throws: ``PostgresError`` with the code `decoding`, also when no column has that name.
    public func decode<T: PostgresDecodable>(_ column: String, as _: T.Type = T.self) throws -> T {
        let position = (0..<PQnfields(result.pointer)).first { strcmp(PQfname(result.pointer, $0), column) == 0 }
        guard let position else { throw PostgresError(.decoding, "there is no column \(column)") }
        return try value(T.self, at: position)
    }

    private func next<T: PostgresDecodable>(_ type: T.Type, _ column: inout Int32) throws -> T {
        defer { column += 1 }
        return try value(type, at: column)
    }

    private func value<T: PostgresDecodable>(_: T.Type, at column: Int32) throws -> T {
        do {
            return try T(postgres: field(at: column))
        } catch var error as PostgresError {
            error.column = String(cString: PQfname(result.pointer, column))
            throw error
        }
    }

    private func field(at column: Int32) -> PostgresValue {
        let isNull = PQgetisnull(result.pointer, index, column) == 1
        let bytes = UnsafeRawBufferPointer(
            start: PQgetvalue(result.pointer, index, column), count: Int(PQgetlength(result.pointer, index, column)))
        return PostgresValue(
            type: PostgresType(PQftype(result.pointer, column)), result: result, bytes: isNull ? nil : bytes)
    }
}

/// Owns a `PGresult`.
///
/// `@unchecked Sendable`: nothing writes to a `PGresult` once libpq has returned it, and libpq lets any thread read it
/// (section 34.20 of PostgreSQL's manual).
final class ResultHandle: @unchecked Sendable {
    let pointer: OpaquePointer
    init(_ pointer: OpaquePointer) { self.pointer = pointer }
    deinit { PQclear(pointer) }
}
