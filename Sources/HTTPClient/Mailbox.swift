import Synchronization

/// Where callers leave what the transfer thread is to do, and the only thing that both sides touch.
final class Mailbox: Sendable {
    enum Command {
        case start(Transfer, TransferContinuation)
        case cancel(Transfer)
    }

    private struct State {
        var commands: [Command] = []
        var statistics = HTTPClient.Statistics()
        var stopRequested = false
        /// Whom the thread tells when it is done.
        var shutdownWaiters: [CheckedContinuation<Void, Never>] = []
        var multiClosed = false
        var threadEnded = false
    }

    /// libcurl's handle, for the thread to use and for callers to wake.
    let multi: MultiHandle
    private let state = Mutex(State())
    private let maximumRequests: Int

    init(_ multi: MultiHandle, maximumRequests: Int) {
        self.multi = multi
        self.maximumRequests = maximumRequests
    }

    var statistics: HTTPClient.Statistics { state.withLock { $0.statistics } }

    // MARK: The callers' side

    /// Hands the transfer over. The continuation is resumed at once when it can't be taken.
    func start(_ transfer: Transfer, _ continuation: TransferContinuation) {
        let refusal: HTTPClientError? = state.withLock { state in
            if state.stopRequested { return HTTPClientError(.shutDown, detail: "the client was shut down") }
            guard state.statistics.inFlight < maximumRequests else {
                return HTTPClientError(.tooManyRequests, detail: "\(maximumRequests) requests are waiting or running")
            }
            state.statistics.inFlight += 1
            state.statistics.started += 1
            leave(.start(transfer, continuation), in: &state)
            return nil
        }
        if let refusal { continuation.resume(returning: .failure(refusal)) }
    }

    func cancel(_ transfer: Transfer) {
        state.withLock { leave(.cancel(transfer), in: &$0) }
    }

    func requestStop() {
        state.withLock { state in
            state.stopRequested = true
            if !state.multiClosed { multi.wake() }
        }
    }

    /// Resumes when the thread has ended all transfers and freed what it had.
    func waitForEnd() async {
        await withCheckedContinuation { continuation in
            let hasEnded = state.withLock { state in
                if !state.threadEnded { state.shutdownWaiters.append(continuation) }
                return state.threadEnded
            }
            if hasEnded { continuation.resume() }
        }
    }

    private func leave(_ command: Command, in state: inout State) {
        if state.multiClosed { return }
        state.commands.append(command)
        // Whoever left the first one has woken the thread already.
        if state.commands.count == 1 { multi.wake() }
    }

    // MARK: The thread's side

    /// Closes libcurl's handle, when no caller is about to wake it.
    func closeMulti() {
        state.withLock { state in
            state.multiClosed = true
            state.commands = []
        }
        multi.close()
    }

    func take() -> (commands: [Command], stopRequested: Bool) {
        state.withLock { state in
            let commands = state.commands
            state.commands = []
            return (commands, state.stopRequested)
        }
    }

    func count(_ change: (inout HTTPClient.Statistics) -> Void) { state.withLock { change(&$0.statistics) } }

    func threadEnded() {
        let waiters = state.withLock { state in
            state.threadEnded = true
            return state.shutdownWaiters
        }
        for waiter in waiters { waiter.resume() }
    }
}
