import Synchronization
import TestKit
import Testing

@testable import Service

@Suite("What comes at once is written together")
struct BatcherTests {
    /// A writer that waits until it is let go.
    private final class Writer: Sendable {
        private struct State {
            var batches: [[Int]] = []
            var held: [CheckedContinuation<Void, Never>] = []
            var isOpen = false
        }
        private let state = Mutex(State())

        var batches: [[Int]] { state.withLock(\.batches) }

        func write(_ items: [Int]) async -> [Result<String, any Error>] {
            state.withLock { $0.batches.append(items) }
            await withCheckedContinuation { continuation in
                let goesOn = state.withLock { state in
                    if !state.isOpen { state.held.append(continuation) }
                    return state.isOpen
                }
                if goesOn { continuation.resume() }
            }
            return items.map { $0 < 0 ? .failure(Negative()) : .success("item \($0)") }
        }

        func open() {
            let held = state.withLock { state in
                state.isOpen = true
                defer { state.held = [] }
                return state.held
            }
            for continuation in held { continuation.resume() }
        }
    }

    private struct Negative: Error {}

    @Test("a lone item is written at once; those that come meanwhile share the next batch, as many as one may hold")
    func batches() async throws {
        let writer = Writer()
        let batcher = Batcher<Int, String>(maximumBatch: 4) { await writer.write($0) }
        try await withThrowingTaskGroup(of: (Int, String).self) { group in
            group.addTask { (0, try await batcher.add(0)) }
            #expect(await waitUntil { writer.batches == [[0]] })
            for item in 1...6 { group.addTask { (item, try await batcher.add(item)) } }
            #expect(await waitUntil { batcher.waiting == 6 })
            #expect(writer.batches == [[0]], "nobody overtakes the batch that is being written")
            writer.open()
            for try await (item, own) in group { #expect(own == "item \(item)") }
        }
        #expect(writer.batches.map(\.count) == [1, 4, 2])
        #expect(writer.batches.flatMap { $0 }.sorted() == Array(0...6))
    }

    @Test("beyond the limit of those who wait, one more is turned away at once and costs the others nothing")
    func limit() async throws {
        let writer = Writer()
        let batcher = Batcher<Int, String>(maximumWaiting: 3) { await writer.write($0) }
        try await withThrowingTaskGroup(of: String.self) { group in
            group.addTask { try await batcher.add(0) }
            #expect(await waitUntil { writer.batches == [[0]] && batcher.isWorking })
            for item in 1...3 { group.addTask { try await batcher.add(item) } }
            #expect(await waitUntil { batcher.waiting == 3 })
            await #expect(throws: TooManyWaiting.self) { try await batcher.add(4) }
            writer.open()
            let written = try await group.reduce(into: Set<String>()) { $0.insert($1) }
            #expect(written.count == 4)
        }
        #expect(writer.batches.flatMap { $0 }.sorted() == [0, 1, 2, 3])
        #expect(await waitUntil { !batcher.isWorking })
        #expect(try await batcher.add(5) == "item 5")
    }

    @Test("each hears what became of its own, whatever becomes of the others")
    func own() async throws {
        let writer = Writer()
        writer.open()
        let batcher = Batcher<Int, String> { await writer.write($0) }
        await withTaskGroup(of: Void.self) { group in
            for item in 1...50 {
                group.addTask {
                    let own = try? await batcher.add(item)
                    #expect(own == "item \(item)")
                }
                group.addTask { _ = await #expect(throws: Negative.self) { try await batcher.add(-item) } }
            }
        }
        #expect(writer.batches.reduce(0) { $0 + $1.count } == 100)
    }

    @Test("a task that is cancelled while it waits hears all the same what was written")
    func cancelled() async throws {
        let writer = Writer()
        let batcher = Batcher<Int, String> { await writer.write($0) }
        let task = Task { try await batcher.add(1) }
        #expect(await waitUntil { writer.batches == [[1]] })
        task.cancel()
        writer.open()
        #expect(try await task.value == "item 1")
    }
}
