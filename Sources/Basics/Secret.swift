/// A value that must never be shown: a token, a key, an init payload.
///
/// Whatever prints it, prints dots. The value itself is reached only by ``reveal``, which a reader can search for.
public struct Secret<Value: Sendable>: Sendable, CustomStringConvertible, CustomDebugStringConvertible,
    CustomReflectable
{
    /// The value, for the one call that needs it.
    public let reveal: Value

    public init(_ value: Value) { reveal = value }

    public var description: String { "•••" }
    public var debugDescription: String { "•••" }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension Secret: Equatable where Value: Equatable {}
extension Secret: Hashable where Value: Hashable {}
