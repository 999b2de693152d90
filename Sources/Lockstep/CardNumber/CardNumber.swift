/// Finds card numbers, so that none is stored, logged or passed on (invariant M9).
///
/// A card number is a text whose digits begin as a network's numbers do, are as many as that network uses, and have the
/// right check digit (Luhn). All three: by the check digit alone one order number in ten would be one.
///
/// Where it looks in a longer text: at groups of digits parted by one blank or dash each, not touching a letter, a digit
/// or `+` on either side. A whole run counts by itself; groups count together from a group of four on, as cards are
/// written (4-4-4-4, 4-6-5, 4-6-4). What passes on purpose: UUIDs, telephone numbers with their `+`, times in
/// milliseconds (nothing issues numbers that begin with 16 to 19 and have 13 digits), and barcodes (EAN-13), whose own
/// check digit is right: a product from Germany begins like a Visa card of 13 digits, which nobody issues any more.
public enum CardNumber {
    /// Whether the text is a card number or holds one.
    public static func appears(in text: String) -> Bool {
        var found = false
        scan(text) { _ in found = true }
        return found
    }

    /// The text with a dot in place of every digit of every card number in it.
    public static func blanked(in text: String) -> String {
        var bytes = Array(text.utf8)
        scan(text) { range in
            for index in range where isDigit(bytes[index]) { bytes[index] = UInt8(ascii: ".") }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Whether these digits, and nothing else, are a card number.
    static func isCardNumber(_ digits: ArraySlice<UInt8>) -> Bool {
        guard (12...19).contains(digits.count), passesLuhn(digits),
            CardNetwork.all.contains(where: { $0.issues(digits) })
        else { return false }
        return !(digits.count == 13 && isBarcode(digits))
    }

    private static func passesLuhn(_ digits: ArraySlice<UInt8>) -> Bool {
        var sum = 0
        for (position, digit) in digits.reversed().enumerated() {
            let doubled = Int(digit) * 2
            sum += position.isMultiple(of: 2) ? Int(digit) : (doubled > 9 ? doubled - 9 : doubled)
        }
        return sum.isMultiple(of: 10)
    }

    private static func isBarcode(_ digits: ArraySlice<UInt8>) -> Bool {
        digits.enumerated().reduce(0) { $0 + Int($1.element) * ($1.offset.isMultiple(of: 2) ? 1 : 3) }
            .isMultiple(of: 10)
    }
}

extension CardNumber {
    /// Digits that stand together, with where they are in the text's bytes.
    private struct Group {
        var digits: [UInt8] = []
        var range: Range<Int>
    }

    /// Calls `found` with the byte range of every card number.
    private static func scan(_ text: String, found: (Range<Int>) -> Void) {
        // Most texts have too few digits to hold one.
        guard text.utf8.count >= 12, text.utf8.count(where: isDigit) >= 12 else { return }
        let bytes = Array(text.utf8)
        if let digits = bareDigits(of: bytes), !isUUID(0..<bytes.count, in: bytes) {
            if isCardNumber(digits[...]) { found(0..<bytes.count) }
            return
        }
        for chain in chains(in: bytes) where !isInsideUUID(chain, in: bytes) {
            var start = 0
            search: while start < chain.count {
                // A card is written from a group of four on, or as one run of digits.
                var digits: [UInt8] = []
                for end in start..<chain.count {
                    digits += chain[end].digits
                    if digits.count > 19 { break }
                    guard end == start || chain[start].digits.count == 4 else { continue }
                    if isCardNumber(digits[...]) {
                        found(chain[start].range.lowerBound..<chain[end].range.upperBound)
                        start = end + 1
                        continue search
                    }
                }
                start += 1
            }
        }
    }

    /// The digits of a text of nothing but 12 to 19 digits, blanks and dashes, however they are grouped.
    private static func bareDigits(of bytes: [UInt8]) -> [UInt8]? {
        var digits: [UInt8] = []
        var index = 0
        while index < bytes.count {
            if isDigit(bytes[index]) {
                digits.append(bytes[index] - 0x30)
                index += 1
            } else {
                let width = separatorWidth(at: index, in: bytes)
                guard width > 0 else { return nil }
                index += width
            }
            guard digits.count <= 19 else { return nil }
        }
        return digits.count >= 12 ? digits : nil
    }

    /// Chains of groups: digits with one blank or dash between them, with no letter, digit or `+` at either end.
    private static func chains(in bytes: [UInt8]) -> [[Group]] {
        var chains: [[Group]] = []
        var index = 0
        while index < bytes.count {
            guard isDigit(bytes[index]) else {
                index += 1
                continue
            }
            let bounded = index == 0 || !joins(bytes[index - 1])
            var chain: [Group] = []
            while index < bytes.count, isDigit(bytes[index]) {
                var group = Group(range: index..<index)
                while index < bytes.count, isDigit(bytes[index]) {
                    group.digits.append(bytes[index] - 0x30)
                    index += 1
                }
                group.range = group.range.lowerBound..<index
                chain.append(group)
                let width = separatorWidth(at: index, in: bytes)
                guard width > 0, index + width < bytes.count, isDigit(bytes[index + width]) else { break }
                index += width
            }
            if index < bytes.count, joins(bytes[index]) { chain.removeLast() }
            if !bounded, !chain.isEmpty { chain.removeFirst() }
            if !chain.isEmpty { chains.append(chain) }
        }
        return chains
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

    /// Whether a byte beside digits makes them part of a word: a letter, an underscore, a plus.
    private static func joins(_ byte: UInt8) -> Bool {
        (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) || byte == UInt8(ascii: "_")
            || byte == UInt8(ascii: "+")
    }

    /// Bytes of the blank or dash at this place: the ASCII ones, U+00A0, U+2007, U+202F, and U+2010 to U+2015.
    private static func separatorWidth(at index: Int, in bytes: [UInt8]) -> Int {
        guard index < bytes.count else { return 0 }
        switch bytes[index] {
        case UInt8(ascii: " "), UInt8(ascii: "-"): return 1
        case 0xC2 where index + 1 < bytes.count && bytes[index + 1] == 0xA0: return 2
        case 0xE2 where index + 2 < bytes.count && bytes[index + 1] == 0x80:
            let last = bytes[index + 2]
            return (0x90...0x95).contains(last) || last == 0x87 || last == 0xAF ? 3 : 0
        default: return 0
        }
    }

    /// Whether the chain lies inside something of a UUID's form.
    private static func isInsideUUID(_ chain: [Group], in bytes: [UInt8]) -> Bool {
        guard let first = chain.first, let last = chain.last else { return false }
        var start = first.range.lowerBound
        var end = last.range.upperBound
        let isPart = { (byte: UInt8) in
            isDigit(byte) || byte == UInt8(ascii: "-") || (0x41...0x46).contains(byte) || (0x61...0x66).contains(byte)
        }
        while start > 0, isPart(bytes[start - 1]) { start -= 1 }
        while end < bytes.count, isPart(bytes[end]) { end += 1 }
        return isUUID(start..<end, in: bytes)
    }

    /// 8-4-4-4-12.
    private static func isUUID(_ range: Range<Int>, in bytes: [UInt8]) -> Bool {
        bytes[range].split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false).map(\.count)
            == [8, 4, 4, 4, 12]
    }
}
