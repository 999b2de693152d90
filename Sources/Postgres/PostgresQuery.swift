/// A statement and its parameters.
///
///     "SELECT id FROM orders WHERE merchant_reference = \(reference)"
///
/// Whatever is interpolated is bound as a parameter and never becomes part of the SQL; `\(unescaped:)` is for trusted
/// pieces, such as a table's name from a constant.
public struct PostgresQuery: Sendable, ExpressibleByStringInterpolation {
    /// The statement, with `$1`, `$2`, … where values stand.
    public private(set) var sql: String
    var bindings = PostgresBindings()

    public init(stringLiteral sql: String) { self.sql = sql }

    /// A statement without parameters from a trusted text.
    public init(unescaped sql: String) { self.sql = sql }

    public init(stringInterpolation: StringInterpolation) {
        sql = stringInterpolation.sql
        bindings = stringInterpolation.bindings
    }

    /// Binds the next parameter (`$1` first), for a statement whose text is made elsewhere.
    public mutating func bind(_ value: some PostgresEncodable) { bindings.append(value) }

    /// What names the statement in errors: its first line that has text, at most 120 characters.
    public var name: String { Self.name(of: sql) }

    static func name(of sql: String) -> String {
        let line = sql.split(whereSeparator: \.isNewline).first { line in !line.allSatisfy(\.isWhitespace) } ?? ""
        return String(line.drop(while: \.isWhitespace).prefix(120))
    }

    public struct StringInterpolation: StringInterpolationProtocol, Sendable {
        var sql = ""
        var bindings = PostgresBindings()

        public init(literalCapacity: Int, interpolationCount: Int) {
            sql.reserveCapacity(literalCapacity + 4 * interpolationCount)
        }

        public mutating func appendLiteral(_ literal: String) { sql += literal }

        public mutating func appendInterpolation(_ value: some PostgresEncodable) {
            bindings.append(value)
            sql += "$\(bindings.count)"
        }

        /// nil is bound as NULL. (Without this the compiler would warn of an optional in a string.)
        public mutating func appendInterpolation(_ value: (some PostgresEncodable)?) {
            bindings.append(value)
            sql += "$\(bindings.count)"
        }

        /// A trusted piece of SQL, taken as it is.
        public mutating func appendInterpolation(unescaped piece: String) { sql += piece }
    }
}

/// Prints the SQL and never a parameter.
extension PostgresQuery: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { sql }
    public var debugDescription: String { sql }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
