/// The object id of a PostgreSQL type: built-in ones are the same in every database (`pg_type.dat`).
public struct PostgresType: RawRepresentable, Hashable, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }
    init(_ rawValue: UInt32) { self.rawValue = rawValue }

    /// Lets the server infer the type from where the parameter stands.
    public static let unspecified = PostgresType(0)
    public static let bool = PostgresType(16)
    public static let bytea = PostgresType(17)
    public static let name = PostgresType(19)
    public static let int8 = PostgresType(20)
    public static let int2 = PostgresType(21)
    public static let int4 = PostgresType(23)
    public static let text = PostgresType(25)
    public static let json = PostgresType(114)
    public static let timestamptz = PostgresType(1184)
    public static let numeric = PostgresType(1700)
    public static let uuid = PostgresType(2950)
    public static let jsonb = PostgresType(3802)

    public static let boolArray = PostgresType(1000)
    public static let byteaArray = PostgresType(1001)
    public static let int2Array = PostgresType(1005)
    public static let int4Array = PostgresType(1007)
    public static let textArray = PostgresType(1009)
    public static let int8Array = PostgresType(1016)
    public static let timestamptzArray = PostgresType(1185)
    public static let uuidArray = PostgresType(2951)
    public static let jsonbArray = PostgresType(3807)

    /// "char", name, text, json, xml, unknown, bpchar, varchar, void: their binary form is their text.
    private static let textual: Set<UInt32> = [18, 19, 25, 114, 142, 705, 1042, 1043, 2278]

    /// Whether the binary form is the text itself. Ids from 16384 on belong to types made by users, of which enums
    /// and domains over text are sent as their text too.
    var isTextual: Bool { Self.textual.contains(rawValue) || rawValue >= 16_384 }
}

/// How a parameter travels: as the type's binary form, or as the text that `psql` would show.
public enum PostgresFormat: Int32, Sendable {
    case text = 0
    case binary = 1
}
