/// SplitMix64: the same seed gives the same ids, the same order and the same bad luck.
struct SeededGenerator: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// True with this probability, 0 to 1.
    mutating func chance(_ probability: Double) -> Bool {
        guard probability > 0 else { return false }
        guard probability < 1 else { return true }
        return Double.random(in: 0..<1, using: &self) < probability
    }

    /// A random UUID (version 4), lower case.
    mutating func uuid() -> String {
        let digits = SeededGenerator.hexadecimal(next()) + SeededGenerator.hexadecimal(next())
        var characters = Array(digits)
        characters[12] = "4"
        characters[16] = ["8", "9", "a", "b"][Int(next() & 3)]
        for position in [20, 16, 12, 8] { characters.insert("-", at: position) }
        return String(characters)
    }

    /// 32 lower-case hexadecimal digits.
    mutating func opaque() -> String { SeededGenerator.hexadecimal(next()) + SeededGenerator.hexadecimal(next()) }

    private static func hexadecimal(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
