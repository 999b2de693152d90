import Testing

@testable import Lockstep

@Suite("Card numbers are found, and ordinary numbers pass")
struct CardNumberTests {
    @Test(
        "a number of each network is found",
        arguments: [
            "4111111111111111", "4222222222222", "4000056655665556", "5555555555554444", "2223003122003222",
            "2720992222222203", "378282246310005", "371449635398431", "6011111111111117", "6500000000000002",
            "30569309025904", "36227206271667", "3530111333300000", "6200000000000005", "8171999927660000",
            "6759649826438453", "5018000000000009", "2201382000000013", "4111111111111111110",
        ])
    func findsEachNetwork(number: String) throws {
        let digits = number.utf8.map { $0 - 0x30 }
        try #require(Luhn.isValid(digits), "the test's own number is wrong")
        #expect(CardNumber.appears(in: number))
    }

    @Test(
        "however it is written, it is found",
        arguments: [
            "4111 1111 1111 1111", "4111-1111-1111-1111", "4111  1111--1111 - 1111", " 4111111111111111 ",
            "41 11 11 11 11 11 11 11", "4111\u{00A0}1111\u{202F}1111\u{2011}1111", "3782 822463 10005",
            "card 4111111111111111, please", "4111 1111 1111 1111 12/30", "no. 12 4111 1111 1111 1111",
            "(4111111111111111)", "pan=4111111111111111;cvv=123", "4111111111111111.00", "#4111-1111-1111-1111#",
            "ü4111111111111111ü",
        ])
    func findsEachSpelling(text: String) { #expect(CardNumber.appears(in: text)) }

    @Test(
        "what only looks like one passes",
        arguments: [
            "", "4111111111111112", "411111111111111", "41111111111111111111", "1700000000000", "1767225599999",
            "1767225599999000", "order-4111111111111112", "A4111111111111111", "4111111111111111B",
            "+4915112345678", "+44 4111 1111", "2026-12-31T10:20:30.123456Z", "49.99", "0000000000000000",
            "9999999999999999", "1234567890123456", "DE89370400440532013000", "x_4111111111111111",
        ])
    func letsOthersPass(text: String) { #expect(!CardNumber.appears(in: text)) }

    @Test("a UUID passes, alone and in a text, although its first groups read as a card")
    func letsUUIDsPass() throws {
        // 8, 4 and 4 digits that together are a Visa card.
        let card = try #require(Luhn.completing("411111111111411"))
        let uuid = "\(card.prefix(8))-\(card.dropFirst(8).prefix(4))-\(card.suffix(4))-9111-abcdefabcdef"
        #expect(CardNumber.appears(in: card))
        #expect(!CardNumber.appears(in: uuid))
        #expect(!CardNumber.appears(in: "execution \(uuid) is open"))
        let allDigits = "41111111-1111-4113-9111-111111111111"
        #expect(!CardNumber.appears(in: allDigits))
    }

    @Test("a German barcode passes although it begins and checks like an old Visa card")
    func letsBarcodesPass() throws {
        var both = 0
        for number in 4_000_000_000_000..<4_000_000_002_000 {
            let digits = String(number).utf8.map { $0 - 0x30 }
            guard Luhn.isValid(digits) else { continue }
            let isBarcode =
                digits.enumerated().reduce(0) { $0 + Int($1.element) * ($1.offset % 2 == 0 ? 1 : 3) } % 10 == 0
            #expect(CardNumber.appears(in: String(number)) == !isBarcode)
            if isBarcode { both += 1 }
        }
        #expect(both > 0)
    }

    @Test("one order number in a hundred at most is taken for a card")
    func rarelyMistaken() {
        var taken = 0
        var generator = Weyl()
        for _ in 0..<20_000 {
            let number = String(generator.next() % 9_000_000_000_000_000 + 1_000_000_000_000_000)
            if CardNumber.appears(in: number) { taken += 1 }
        }
        // A tenth passes Luhn, and about a third of the prefixes belong to a network.
        #expect(taken < 20_000 / 25)
        #expect(taken > 0)
    }

    @Test("every single wrong digit makes it no card number")
    func wrongDigits() {
        let card = Array("5555555555554444")
        for index in card.indices {
            for digit in "0123456789" where digit != card[index] {
                var wrong = card
                wrong[index] = digit
                #expect(!CardNumber.appears(in: String(wrong)))
            }
        }
    }

    @Test("blanking takes every digit of every card and nothing else")
    func blanks() {
        let text = "pay 4111 1111 1111 1111 and 378282246310005 for order 1234567890123456"
        #expect(
            CardNumber.blanked(in: text) == "pay .... .... .... .... and ............... for order 1234567890123456")
        #expect(CardNumber.blanked(in: "ü 4111111111111111 ü") == "ü ................ ü")
        #expect(CardNumber.blanked(in: "nothing") == "nothing")
    }

    @Test("a long text is looked through in a time that grows with its length only")
    func longTexts() {
        let clock = ContinuousClock()
        let text = String(repeating: "4111 1111 1111 1112 ", count: 4000)
        let took = clock.measure { _ = CardNumber.appears(in: text) }
        #expect(took < .seconds(5))
        #expect(CardNumber.appears(in: text + "4111111111111111"))
    }
}

/// The check digit, computed in another way than the code under test does.
private enum Luhn {
    static func isValid(_ digits: [UInt8]) -> Bool {
        let doubled = [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]
        var sum = 0
        for (index, digit) in digits.enumerated() {
            sum += (digits.count - index) % 2 == 0 ? doubled[Int(digit)] : Int(digit)
        }
        return sum % 10 == 0
    }

    /// The number with the check digit that makes it right.
    static func completing(_ prefix: String) -> String? {
        (0...9).map { "\(prefix)\($0)" }.first { isValid($0.utf8.map { $0 - 0x30 }) }
    }
}

/// Numbers that are the same in each run.
private struct Weyl: RandomNumberGenerator {
    private var state: UInt64 = 0
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ (state >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
