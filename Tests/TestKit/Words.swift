/// A word that nobody used before: letters only, so that nothing takes it for a number.
public func freshWord(_ prefix: String) -> String {
    prefix + "-" + String((0..<12).map { _ in Character(UnicodeScalar(UInt8.random(in: 0x61...0x7A))) })
}
