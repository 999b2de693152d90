/// A card network: how its numbers begin, and how long they are.
///
/// Source: the public issuer identification ranges (ISO/IEC 7812) of the networks. Maestro and UnionPay are kept to the
/// ranges that they publish: their general ranges (50, 56 to 69, 12 to 19 digits) would take one order number in ten.
struct CardNetwork: Sendable {
    let name: String
    /// Prefixes as ranges of equally many digits: `2221...2720`.
    let prefixes: [ClosedRange<Int>]
    let lengths: Set<Int>

    static let all: [CardNetwork] = [
        CardNetwork(name: "Visa", prefixes: [4...4], lengths: [13, 16, 19]),
        CardNetwork(name: "Mastercard", prefixes: [51...55, 2221...2720], lengths: [16]),
        CardNetwork(name: "American Express", prefixes: [34...34, 37...37], lengths: [15]),
        CardNetwork(
            name: "Discover", prefixes: [6011...6011, 644...649, 65...65], lengths: [16, 19]),
        CardNetwork(name: "Diners Club", prefixes: [300...305, 309...309, 36...36, 38...39], lengths: [14, 16, 19]),
        CardNetwork(name: "JCB", prefixes: [3528...3589], lengths: [16, 17, 18, 19]),
        CardNetwork(name: "UnionPay", prefixes: [62...62, 810...817], lengths: [16, 17, 18, 19]),
        CardNetwork(
            name: "Maestro",
            prefixes: [
                5018...5018, 5020...5020, 5038...5038, 5893...5893, 6304...6304, 6759...6759, 6761...6763,
                676_770...676_770, 676_774...676_774,
            ], lengths: [12, 13, 14, 15, 16, 17, 18, 19]),
        CardNetwork(name: "RuPay", prefixes: [508...508, 60...60, 81...82], lengths: [16]),
        CardNetwork(name: "Mir", prefixes: [2200...2204], lengths: [16, 17, 18, 19]),
        CardNetwork(name: "Elo", prefixes: [636_297...636_297, 636_368...636_368], lengths: [16]),
        CardNetwork(name: "Verve", prefixes: [506_099...506_198, 650_002...650_027], lengths: [16, 18, 19]),
        CardNetwork(name: "Troy", prefixes: [9792...9792], lengths: [16]),
    ]

    /// Whether digits (0 to 9 each) begin and are as long as this network's numbers.
    func issues(_ digits: ArraySlice<UInt8>) -> Bool {
        lengths.contains(digits.count)
            && prefixes.contains { range in
                let width = CardNetwork.width(of: range.lowerBound)
                return range.contains(digits.prefix(width).reduce(0) { $0 * 10 + Int($1) })
            }
    }

    /// How many digits a prefix has.
    private static func width(of prefix: Int) -> Int {
        var width = 1
        var rest = prefix / 10
        while rest > 0 {
            width += 1
            rest /= 10
        }
        return width
    }
}
