import Synchronization

/// Runs the work, and stops waiting for it when the time is over. The work is told to stop then; whether it listens
/// makes no difference to the caller, which is why this isn't a task group.
///
/// - Throws: ``OutOfTime``, or what the work throws.
func withBudget<Value: Sendable>(
    _ budget: Duration, _ work: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    let first = FirstOf<Value>()
    let worker = Task {
        do {
            first.settle(.success(try await work()))
        } catch {
            first.settle(.failure(error))
        }
    }
    let timer = Task {
        try await Task.sleep(for: budget)
        first.settle(.failure(OutOfTime()))
        worker.cancel()
    }
    defer { timer.cancel() }
    return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { first.wait($0) }
    } onCancel: {
        worker.cancel()
    }
}

/// Resumes one continuation with the first result that comes, before or after it waits.
private final class FirstOf<Value: Sendable>: Sendable {
    private enum State {
        case empty
        case waiting(CheckedContinuation<Value, any Error>)
        case settled(Result<Value, any Error>)
        case done
    }
    private let state = Mutex(State.empty)

    func settle(_ result: Result<Value, any Error>) {
        let continuation: CheckedContinuation<Value, any Error>? = state.withLock { state in
            switch state {
            case .empty:
                state = .settled(result)
                return nil
            case .waiting(let continuation):
                state = .done
                return continuation
            case .settled, .done: return nil
            }
        }
        continuation?.resume(with: result)
    }

    func wait(_ continuation: CheckedContinuation<Value, any Error>) {
        let result: Result<Value, any Error>? = state.withLock { state in
            if case .settled(let result) = state {
                state = .done
                return result
            }
            state = .waiting(continuation)
            return nil
        }
        if let result { continuation.resume(with: result) }
    }
}
