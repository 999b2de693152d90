import Foundation
import Testing

@testable import Lockstep

@Suite("References at the provider find their way home")
struct PaymentReferenceTests {
    static let references = [
        "order-1", "o", "order_501", "2026/09/01#7", "order-1-2", "a.b.c", "Bestellung-Ä", "注文", "😀", "e\u{301}",
        "100%",
        "~order".replacing("~", with: "-"), "order\u{200D}", "order:2", "order--2",
    ]

    @Test("the first carries the shop's reference as it is, later ones a number", arguments: references)
    func roundTrip(reference: String) {
        for separator in ["~", "--s--", "§", ":x"] where !reference.contains(separator) {
            let references = PaymentReference(separator: separator)
            #expect(references.reference(of: reference, ordinal: 1) == reference)
            #expect(references.reference(of: reference, ordinal: 2) == "\(reference)\(separator)2")
            for ordinal in [1, 2, 3, 10, 999] {
                let sent = references.reference(of: reference, ordinal: ordinal)
                #expect(Array(references.merchantReference(of: sent).utf8) == Array(reference.utf8))
            }
            // Attempt a of period p of a subscription.
            #expect(references.merchantReference(of: "\(reference)\(separator)12\(separator)3") == reference)
        }
    }

    @Test("no two executions have one reference")
    func distinct() {
        let references = PaymentReference()
        var seen: Set<String> = []
        for reference in Self.references where !reference.contains("~") {
            for ordinal in 1...12 {
                #expect(seen.insert(references.reference(of: reference, ordinal: ordinal)).inserted)
            }
        }
    }

    @Test("what holds the separator isn't the shop's own reference, which is why it is refused")
    func withSeparator() {
        let references = PaymentReference()
        #expect(references.merchantReference(of: "order~2") == "order")
        #expect(references.merchantReference(of: "order~1~2") == "order")
        #expect(references.merchantReference(of: "~2") == "")
        #expect(references.merchantReference(of: "") == "")
        #expect(PaymentReference(separator: "").merchantReference(of: "order~2") == "order~2")
    }
}
