import Foundation
import Testing

/// Runs what blocks, like a read from a socket or the wait for a process, on a thread of its own: the threads that all
/// tasks share are as few as the machine's cores.
public func offPool<Result: Sendable>(_ work: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Swift.Result { try work() }) }
    }
}

/// Runs each test of a suite on a thread of its own, structured child tasks included.
///
/// For tests that compute for long without a pause: two of those on the shared threads stop every other test's clock.
public struct OwnThread: TestTrait, SuiteTrait, TestScoping {
    public var isRecursive: Bool { true }

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(OneThreadExecutor(), operation: function)
    }
}

extension Trait where Self == OwnThread {
    public static var ownThread: Self { Self() }
}

private final class OneThreadExecutor: TaskExecutor {
    private let queue = DispatchQueue(label: "test")

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
