import Lockstep
import Store
import Testing

@Suite("The feed's cursor")
struct CursorTests {
    @Test(
        "what the feed gave out is read back",
        arguments: ["c0n0", "c742n1", "c18446744073709551615n9223372036854775807"])
    func readsBack(_ text: String) throws { #expect(try #require(FeedCursor(text)).description == text) }

    @Test(
        "nothing else is one",
        arguments: [
            "", "c", "n", "cn", "c1", "c1n", "cn1", "c1nn1", "c+1n1", "c1n-1", "c1n1n1", " c1n1", "c1n1 ", "can1",
            "c１n1",
            "c18446744073709551616n1", "1n1", "1-1", "C1n1", "c1N1",
        ])
    func refuses(_ text: String) { #expect(FeedCursor(text) == nil) }

    /// The feed's digits are a card's now and then; a reader must get past them all the same.
    @Test("no cursor is ever taken for a card number")
    func isNoCard() throws {
        let card = "4111111111111111"
        for split in 1..<card.count {
            let cursor = "c\(card.prefix(split))n\(card.dropFirst(split))"
            #expect(try #require(FeedCursor(cursor)).description == cursor)
            #expect(!CardNumber.appears(in: cursor))
        }
        #expect(!CardNumber.appears(in: try #require(FeedCursor("c\(card)n\(card)")).description))
    }
}
