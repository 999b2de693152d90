/// HTTP header fields in the order they came, names compared without regard to case.
public struct HTTPHeaders: Hashable, Sendable {
    /// Every field, also those that came more than once.
    public private(set) var fields: [Field]

    public struct Field: Hashable, Sendable {
        public let name: String
        public let value: String
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    public init(_ fields: [Field] = []) { self.fields = fields }

    /// All values of the fields of this name, in order.
    public func all(_ name: String) -> [String] {
        fields.filter { $0.name.equalsIgnoringASCIICase(name) }.map(\.value)
    }

    /// The first value of this name; setting replaces every field of the name, nil removes them.
    public subscript(_ name: String) -> String? {
        get { fields.first { $0.name.equalsIgnoringASCIICase(name) }?.value }
        set {
            fields.removeAll { $0.name.equalsIgnoringASCIICase(name) }
            if let newValue { fields.append(Field(name: name, value: newValue)) }
        }
    }

    /// Adds a field beside those of the same name.
    public mutating func add(_ name: String, _ value: String) { fields.append(Field(name: name, value: value)) }
}

extension HTTPHeaders: ExpressibleByDictionaryLiteral {
    public init(dictionaryLiteral elements: (String, String)...) {
        self.init(elements.map { Field(name: $0.0, value: $0.1) })
    }
}

extension String {
    /// Equality for protocol words: ASCII letters of either case are the same, all else must be equal byte for byte.
    public func equalsIgnoringASCIICase(_ other: String) -> Bool {
        utf8.count == other.utf8.count
            && utf8.elementsEqual(other.utf8) {
                $0 == $1 || ($0 | 0x20 == $1 | 0x20 && (0x61...0x7A).contains($0 | 0x20))
            }
    }
}
