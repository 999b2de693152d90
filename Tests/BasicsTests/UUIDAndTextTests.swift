import Foundation
import Testing

@testable import Basics

@Suite("UUIDs of version 7")
struct UUIDVersion7Tests {
    @Test("the bits are where RFC 9562 wants them")
    func bits() {
        var generator = Seeded(seed: 1)
        for round in 0..<2_000 {
            let milliseconds = Int64(round) * 1_000_003 * 97 + 1_700_000_000_000
            let time = Timestamp(microseconds: milliseconds * 1000 + 999)
            let uuid = UUID.version7(at: time, using: &generator)
            let hex = uuid.lowercased.replacing("-", with: "")
            #expect(hex.count == 32)
            #expect(Int64(hex.prefix(12), radix: 16) == milliseconds)
            let digits = Array(hex)
            #expect(digits[12] == "7")
            #expect(["8", "9", "a", "b"].contains(digits[16]))
        }
    }

    @Test("the example of RFC 9562 has this time")
    func example() {
        var generator = Seeded(seed: 1)
        // 017F22E2-79B0-7CC3-98C4-DC0C0C07398F is Tuesday, February 22, 2022 2:22:22.00 PM GMT-05:00.
        let uuid = UUID.version7(at: Timestamp(seconds: 1_645_557_742), using: &generator)
        #expect(uuid.lowercased.hasPrefix("017f22e2-79b0-7"))
    }

    @Test("later ones sort after earlier ones, by bytes and by text")
    func order() {
        var generator = Seeded(seed: 2)
        var time = Timestamp(seconds: 1_788_256_805, nanoseconds: 0)
        var last = UUID.version7(at: time, using: &generator).lowercased
        for _ in 0..<2_000 {
            time = time + .milliseconds(Int64.random(in: 1...5_000, using: &generator))
            let next = UUID.version7(at: time, using: &generator).lowercased
            #expect(last < next)
            last = next
        }
    }

    @Test("74 bits are random: at one instant none repeats, and each bit is drawn")
    func randomness() {
        var generator = Seeded(seed: 4)
        var ones = [UInt8](repeating: 0, count: 16)
        var zeros = [UInt8](repeating: 0, count: 16)
        var seen: Set<UUID> = []
        for _ in 0..<10_000 {
            let uuid = UUID.version7(at: Timestamp(seconds: 1_788_256_805), using: &generator)
            seen.insert(uuid)
            withUnsafeBytes(of: uuid.uuid) { bytes in
                for (index, byte) in bytes.enumerated() {
                    ones[index] |= byte
                    zeros[index] |= ~byte
                }
            }
        }
        #expect(seen.count == 10_000)
        var random = 0
        for index in 0..<16 { random += (ones[index] & zeros[index]).nonzeroBitCount }
        #expect(random == 74)
    }

    @Test("a time before 1970 makes no crash")
    func beforeEpoch() {
        var generator = Seeded(seed: 4)
        #expect(UUID.version7(at: Timestamp(seconds: -1), using: &generator).lowercased.count == 36)
    }
}

@Suite("UUIDs as text")
struct UUIDTextTests {
    @Test("every UUID reads back from its text, in either case")
    func roundTrip() throws {
        for _ in 0..<500 {
            let uuid = UUID()
            #expect(UUID(canonical: uuid.lowercased) == uuid)
            #expect(UUID(canonical: uuid.uuidString) == uuid)
            #expect(UUID(canonical: Substring("x\(uuid)").dropFirst()) == uuid)
        }
    }

    @Test("one wrong character anywhere, or one too few or too many, and it is none")
    func refused() {
        let right = Array("9b1d0a52-2a41-4f0c-8c0e-3f7f5d0e1c01".utf8)
        for position in right.indices {
            for wrong in ["g", "G", " ", "-", "/", ":", "@", "`", "\u{0}"] where wrong.utf8.first != right[position] {
                var bytes = right
                bytes.replaceSubrange(position...position, with: wrong.utf8)
                #expect(UUID(canonical: String(decoding: bytes, as: UTF8.self)) == nil)
            }
            #expect(UUID(canonical: String(decoding: right[..<position], as: UTF8.self)) == nil)
        }
        #expect(UUID(canonical: String(decoding: right + [0x30], as: UTF8.self)) == nil)
    }
}

@Suite("Bytes as text")
struct BytesAsTextTests {
    @Test("hexadecimal is lower case, two digits a byte")
    func hexadecimal() {
        #expect([UInt8]().hexadecimal.isEmpty)
        #expect([0x00, 0x0F, 0xA0, 0xFF].map { UInt8($0) }.hexadecimal == "000fa0ff")
        #expect(Data(0...255).hexadecimal == (0...255).map { String(format: "%02x", $0) }.joined())
    }

    @Test(
        "base64 for URLs has no padding and no + or / (RFC 4648 section 10)",
        arguments: [
            ("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg"), ("fooba", "Zm9vYmE"),
            ("foobar", "Zm9vYmFy"),
        ])
    func base64(text: String, encoded: String) {
        #expect(Data(text.utf8).base64URL == encoded)
        #expect(Data([0xFB, 0xFF, 0xBF]).base64URL == "-_-_")
    }
}
