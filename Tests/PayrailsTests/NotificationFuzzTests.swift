import Basics
import Foundation
import Lockstep
import TestKit
import Testing

@testable import Payrails

/// Random damage to the samples: nothing crashes, and damage never makes a success.
@Suite("Damaged notifications", .ownThread)
struct NotificationFuzzTests {
    private static let received = Timestamp(seconds: 1_788_300_000)

    /// A new one each run; printed with every failure, to be put here for the repetition.
    private static let seed = UInt64.random(in: .min ... .max)

    private func successes(_ body: Data) -> [Fact] {
        switch PayrailsNotification.parse(body, receivedAt: NotificationFuzzTests.received) {
        case .facts(let notification): notification.facts.filter { $0.success == true }
        case .ignored, .undecided, .unreadable: []
        }
    }

    @Test("a sample with something replaced, removed or moved tells no success that it didn't tell before")
    func mutatedTrees() throws {
        var generator = SplitMix(seed: NotificationFuzzTests.seed)
        for sample in NotificationSamples.all {
            let json = try JSON(parsing: Data(sample.utf8))
            let before = successes(Data(sample.utf8))
            for _ in 0..<400 {
                var mutant = json
                for _ in 0..<Int.random(in: 1...3, using: &generator) { mutant = mutant.mutated(using: &generator) }
                for fact in successes(mutant.bytes) {
                    // Its ids may be damaged and its compositions doubled; the success must have been there.
                    let known = before.contains {
                        ($0.amount?.minor).map { (fact.amount?.minor ?? 0) % $0 == 0 } ?? true
                    }
                    #expect(known, "seed \(NotificationFuzzTests.seed): \(mutant.text)")
                }
            }
        }
    }

    @Test("a sample cut anywhere, or with any byte changed, never crashes, and no failure becomes a success")
    func mutatedBytes() throws {
        var generator = SplitMix(seed: NotificationFuzzTests.seed)
        for sample in NotificationSamples.all {
            let bytes = Data(sample.utf8)
            let hadSuccess = !successes(bytes).isEmpty
            for cut in stride(from: 0, to: bytes.count, by: 7) { #expect(successes(bytes.prefix(cut)).isEmpty) }
            for _ in 0..<200 {
                var damaged = bytes
                damaged[Int.random(in: bytes.indices, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
                let found = successes(damaged)
                #expect(found.isEmpty || hadSuccess, "seed \(NotificationFuzzTests.seed)")
            }
        }
    }

    @Test("nesting as deep as the parser allows is read, deeper is unreadable")
    func deepNesting() {
        for depth in [100, 400, 500, 511, 512, 513, 5000, 100_000] {
            let open = String(repeating: "[", count: depth)
            let close = String(repeating: "]", count: depth)
            let text = #"{"event":"executionActionCompleted","details":{"action":"authorize","x":\#(open)\#(close)}}"#
            let parsed = PayrailsNotification.parse(Data(text.utf8), receivedAt: NotificationFuzzTests.received)
            if depth > 512, case .unreadable = parsed { continue }
            #expect(depth <= 512)
        }
        let objects = String(repeating: #"{"details":"#, count: 100_000)
        _ = PayrailsNotification.parse(Data(objects.utf8), receivedAt: NotificationFuzzTests.received)
    }

    @Test("random executions and init payloads never crash the readers, and no code is made up")
    func mutatedReadings() throws {
        var generator = SplitMix(seed: NotificationFuzzTests.seed)
        for sample in [Samples.pending3DS, Samples.decodedInit, Samples.instrument, Samples.payment, Samples.lookup] {
            let json = try JSON(parsing: Data(sample.utf8))
            for _ in 0..<300 {
                var mutant = json
                for _ in 0..<Int.random(in: 1...4, using: &generator) { mutant = mutant.mutated(using: &generator) }
                let read = ExecutionReading.snapshot(mutant, workflowCode: "w", source: .read)
                #expect(read?.facts.contains { $0.code == "authorizeSuccessful" } != true)
                _ = DecodedInit(data: mutant.bytes.base64EncodedString())
                _ = InstrumentReading.snapshot(mutant)
                _ = PaymentReading.record(mutant)
                _ = AcknowledgementReading.movedAmount(mutant)
                _ = Paging(mutant, after: "a=b")
                _ = ProviderProblem(mutant)
            }
        }
    }
}

/// A small generator with a seed (Steele, Lea and Flood's SplitMix64).
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

extension JSON {
    /// One random change somewhere in the tree. It never writes `true`, so that a success can't come from it.
    fileprivate func mutated(using generator: inout SplitMix) -> JSON {
        switch self {
        case .object(var members) where !members.isEmpty && Int.random(in: 0..<10, using: &generator) > 0:
            let names = members.keys.sorted()
            let name = names[Int.random(in: names.indices, using: &generator)]
            switch Int.random(in: 0..<8, using: &generator) {
            case 0: members[name] = nil
            case 1: members[names[Int.random(in: names.indices, using: &generator)]] = members[name]
            case 2: members[name] = .array([members[name] ?? .null])
            default: members[name] = members[name]?.mutated(using: &generator)
            }
            return .object(members)
        case .array(var items) where !items.isEmpty && Int.random(in: 0..<10, using: &generator) > 0:
            let index = Int.random(in: items.indices, using: &generator)
            switch Int.random(in: 0..<5, using: &generator) {
            case 0: items.remove(at: index)
            case 1: items.append(items[index])
            default: items[index] = items[index].mutated(using: &generator)
            }
            return .array(items)
        default:
            let values: [JSON] = [
                .null, false, 0, -1, "", "true", "Success", "\u{0}", "9e99", [], [:], .number("57.49"), [[]],
                "é\u{301}🙂",
                ["value": "57.499", "currency": "EUR"], .string(String(repeating: "x", count: 5000)),
            ]
            return values[Int.random(in: values.indices, using: &generator)]
        }
    }
}
