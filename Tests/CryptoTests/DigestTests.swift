import Basics
import Foundation
import Testing

@testable import Crypto

@Suite("Digests are the published ones")
struct DigestTests {
    @Test(
        "SHA-256 (FIPS 180-4 examples)",
        arguments: [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"
            ),
            (
                String(repeating: "a", count: 1_000_000),
                "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
            ),
        ])
    func sha256(text: String, digest: String) {
        #expect(Crypto.sha256(Data(text.utf8)).hexadecimal == digest)
    }

    struct Vector: Sendable, CustomTestStringConvertible {
        let name: String
        let key: [UInt8]
        let message: [UInt8]
        let digest: String
        var testDescription: String { name }
    }

    static let vectors: [Vector] = [
        Vector(
            name: "RFC 4231 case 1", key: Array(repeating: 0x0B, count: 20), message: Array("Hi There".utf8),
            digest: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
        Vector(
            name: "RFC 4231 case 2", key: Array("Jefe".utf8), message: Array("what do ya want for nothing?".utf8),
            digest: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
        Vector(
            name: "RFC 4231 case 3", key: Array(repeating: 0xAA, count: 20), message: Array(repeating: 0xDD, count: 50),
            digest: "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"),
        Vector(
            name: "RFC 4231 case 4", key: Array(1...25), message: Array(repeating: 0xCD, count: 50),
            digest: "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"),
        Vector(
            name: "RFC 4231 case 6", key: Array(repeating: 0xAA, count: 131),
            message: Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
            digest: "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
        Vector(
            name: "RFC 4231 case 7", key: Array(repeating: 0xAA, count: 131),
            message: Array(
                ("This is a test using a larger than block-size key and a larger than block-size data. "
                    + "The key needs to be hashed before being used by the HMAC algorithm.").utf8),
            digest: "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"),
        // As `hmac.new(b'', b'', 'sha256')` and `hmac.new(b'', b'abc', 'sha256')` of Python's standard library say.
        Vector(
            name: "empty key, empty message", key: [], message: [],
            digest: "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad"),
        Vector(
            name: "empty key", key: [], message: Array("abc".utf8),
            digest: "fd7adb152c05ef80dccf50a1fa4c05d5a3ec6da95575fc312ae7c5d091836351"),
        Vector(
            name: "empty message", key: Array("key".utf8), message: [],
            digest: "5d5d139563c95b5967b9bd9a8c9b233a9dedb45072794cd232dc1b74832607d0"),
    ]

    @Test("HMAC-SHA-256", arguments: vectors)
    func hmac(vector: Vector) {
        #expect(
            Crypto.hmacSHA256(key: Data(vector.key), message: Data(vector.message)).hexadecimal == vector.digest)
    }

    @Test("an empty key doesn't take over the key that was used before")
    func emptyKeyAfterAnother() {
        let before = Crypto.hmacSHA256(key: Data(), message: Data("abc".utf8))
        _ = Crypto.hmacSHA256(key: Data("another".utf8), message: Data("abc".utf8))
        #expect(Crypto.hmacSHA256(key: Data(), message: Data("abc".utf8)) == before)
        #expect(before != Data(repeating: 0, count: 32))
    }

    @Test("a slice of a larger buffer is digested by its own bytes")
    func slices() {
        let whole = Data("xxabcyy".utf8)
        #expect(Crypto.sha256(whole[2..<5]) == Crypto.sha256(Data("abc".utf8)))
        #expect(
            Crypto.hmacSHA256(key: whole[0..<2], message: whole[2..<5])
                == Crypto.hmacSHA256(key: Data("xx".utf8), message: Data("abc".utf8)))
    }

    @Test("the signatures of the official samples' form: key as text, base64 of the digest (S2)")
    func payrailsSignature() {
        // printf '{"a":1.0}\n' | openssl dgst -sha256 -hmac 44782DEF547AAA06 -binary | base64
        let digest = Crypto.hmacSHA256(key: Data("44782DEF547AAA06".utf8), message: Data("{\"a\":1.0}\n".utf8))
        #expect(digest.base64EncodedString() == "JG2BhnrQu3G5KJh68vFa8b+m59TjyvdGtCXp3jaA3Us=")
        // The key is text, not the bytes that its hexadecimal digits stand for.
        #expect(
            Crypto.hmacSHA256(
                key: Data([0x44, 0x78, 0x2D, 0xEF, 0x54, 0x7A, 0xAA, 0x06]), message: Data("{\"a\":1.0}\n".utf8))
                != digest)
    }
}

@Suite("Comparing and drawing secrets")
struct SecretBytesTests {
    @Test("comparison in constant time says what equality says, for every length and every differing place")
    func comparison() {
        #expect(Crypto.constantTimeEqual(Data(), Data()))
        #expect(!Crypto.constantTimeEqual(Data(), Data([0])))
        #expect(!Crypto.constantTimeEqual(Data([0]), Data()))
        #expect(!Crypto.constantTimeEqual(Data([0]), Data([0, 0])))
        for length in 1...64 {
            let bytes = Data((0..<length).map { UInt8($0) })
            #expect(Crypto.constantTimeEqual(bytes, Data(Array(bytes))))
            for place in 0..<length {
                var other = bytes
                other[place] ^= 0x80
                #expect(!Crypto.constantTimeEqual(bytes, other))
            }
            #expect(!Crypto.constantTimeEqual(bytes, bytes.dropLast()))
            #expect(!Crypto.constantTimeEqual(bytes, bytes + [0]))
        }
        let whole = Data([9, 1, 2, 3, 9])
        #expect(Crypto.constantTimeEqual(whole[1..<4], Data([1, 2, 3])))
    }

    @Test("random bytes have the length asked for and don't repeat")
    func random() {
        #expect(Crypto.randomBytes(0).isEmpty)
        #expect(Crypto.randomBytes(33).count == 33)
        let drawn = Set((0..<1000).map { _ in Crypto.randomBytes(16) })
        #expect(drawn.count == 1000)
        // Every bit is drawn: over 1,000 draws each one is seen as 0 and as 1.
        for place in 0..<16 {
            #expect(drawn.reduce(UInt8(0)) { $0 | $1[$1.startIndex + place] } == 0xFF)
            #expect(drawn.reduce(UInt8(0xFF)) { $0 & $1[$1.startIndex + place] } == 0)
        }
    }
}
