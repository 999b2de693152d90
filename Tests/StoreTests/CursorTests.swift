import Store
import Testing

@Suite("The feed's cursor")
struct CursorTests {
    @Test(
        "what the feed gave out is read back", arguments: ["0-0", "742-1", "18446744073709551615-9223372036854775807"])
    func readsBack(_ text: String) throws { #expect(try #require(FeedCursor(text)).description == text) }

    @Test(
        "nothing else is one",
        arguments: [
            "", "-", "1", "1-", "-1", "1--1", "+1-1", "1-1-1", " 1-1", "1-1 ", "a-1", "１-1", "18446744073709551616-1",
        ])
    func refuses(_ text: String) { #expect(FeedCursor(text) == nil) }
}
