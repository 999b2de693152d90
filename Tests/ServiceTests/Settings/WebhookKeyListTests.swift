import Testing

@testable import Service

@Suite("PAYRAILS_WEBHOOK_KEYS")
struct WebhookKeyListTests {
    private func read(_ text: String) -> [String: [String]]? {
        WebhookKeyList(text)?.keys.mapValues { $0.map { ($0.isHexadecimal ? "hex " : "") + $0.text.reveal } }
    }

    @Test("keys stand by their endpoint, several for one, bare ones for the default")
    func forms() {
        #expect(read("abc") == ["": ["abc"]])
        #expect(read("shop=a,shop=b,other-1=c,d") == ["shop": ["a", "b"], "other-1": ["c"], "": ["d"]])
        #expect(read(" shop=a , b ") == ["shop": ["a"], "": ["b"]])
        #expect(read("shop=a\nshop=b\n\n") == ["shop": ["a", "b"]])
        #expect(read("a,a,shop=a,shop=a") == ["": ["a"], "shop": ["a"]])
    }

    @Test("a name is whatever a segment of a path can be as it stands")
    func names() {
        #expect(
            read("Shop=a,shop_2=b,a.b=c,~x=d,A-9=e") == [
                "Shop": ["a"], "shop_2": ["b"], "a.b": ["c"], "~x": ["d"], "A-9": ["e"],
            ])
        #expect(read("Shop=a,shop=b") == ["Shop": ["a"], "shop": ["b"]])
        let longest = String(repeating: "a", count: 64)
        #expect(read(longest + "=k") == [longest: ["k"]])
    }

    @Test("a key may hold = : base64 ends with it, and after a name everything belongs to the key")
    func equals() {
        #expect(read("abcd==") == ["": ["abcd=="]])
        #expect(read("abc=") == ["": ["abc="]])
        #expect(read("shop=abcd==") == ["shop": ["abcd=="]])
        #expect(read("shop=a=b") == ["shop": ["a=b"]])
        #expect(read("=A=b") == ["": ["A=b"]])
        #expect(read("Ab+/9=,shop=Ab+/9=") == ["": ["Ab+/9="], "shop": ["Ab+/9="]])
        #expect(read("A$!^*@") == ["": ["A$!^*@"]])
    }

    @Test("a key in hexadecimal says so")
    func hexadecimal() {
        #expect(read("hex:0aFF,shop=hex:00") == ["": ["hex 0aFF"], "shop": ["hex 00"]])
        #expect(read("hex:0a0") == nil && read("hex:") == nil && read("shop=hex:zz") == nil)
    }

    @Test("a name that can't be one is a fault, not a part of a key")
    func badNames() {
        for text in [
            "my shop=key", "shop/1=key", "sh%6Fp=key", "..=key", ".=key", "ü=key", "=", "==", "", ",", " ", "shop=a b",
            String(repeating: "a", count: 65) + "=k",
        ] {
            #expect(read(text) == nil, "\(text)")
        }
    }
}
