/// Chance by a seed (SplitMix64): every actor of a simulation has dice of its own, so that what one of them does doesn't
/// depend on how fast the others are.
struct Dice: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    /// Dice for one actor of the run.
    init(seed: UInt64, actor: Int) { state = seed &+ 0x9E37_79B9_7F4A_7C15 &* UInt64(truncatingIfNeeded: actor + 1) }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
        return word ^ (word >> 31)
    }

    mutating func chance(_ probability: Double) -> Bool { Double.random(in: 0..<1, using: &self) < probability }
    mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }
    mutating func pick<Element>(_ choices: [Element]) -> Element { choices[number(0...choices.count - 1)] }

    /// A length of time by whole tenths of a second.
    mutating func moment(_ tenths: ClosedRange<Int>) -> Duration { .milliseconds(100 * number(tenths)) }
}
