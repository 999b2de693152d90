/// The loop of the transfer thread: takes commands, lets libcurl work, hands out results.
///
/// Made, used and let go on that one thread, which is what libcurl's multi interface asks for.
final class TransferDriver {
    private let configuration: HTTPClientConfiguration
    private let mailbox: Mailbox
    private let multi: MultiHandle
    private var transfers: [UnsafeMutableRawPointer: Transfer] = [:]
    private var idleHandles: [EasyHandle] = []
    /// The earliest moment at which some transfer might be overdue; may be too early, never too late.
    private var nextDeadline: ContinuousClock.Instant?

    /// libcurl ends what it connects or transfers, with better words than ours; but what waits for a free connection
    /// has no clock in it. So every deadline is watched here too, this much later.
    private static let deadlineSlack = Duration.milliseconds(20)
    private static let longestPoll = Duration.seconds(60)

    init(_ configuration: HTTPClientConfiguration, _ mailbox: Mailbox) {
        self.configuration = configuration
        self.mailbox = mailbox
        multi = mailbox.multi
    }

    /// Returns when a stop was requested and everything in flight was failed.
    func run() {
        while true {
            let (commands, stopRequested) = mailbox.take()
            for command in commands { perform(command, stopRequested) }
            if stopRequested { break }
            do throws(HTTPClientError) {
                try multi.perform()
            } catch {
                failAll(error.code, detail: error.detail)
            }
            finishEnded()
            expireOverdue()
            multi.poll(milliseconds: pollMilliseconds)
        }
        failAll(.shutDown, detail: "the client was shut down")
        idleHandles = []
        mailbox.closeMulti()
    }

    private func perform(_ command: Mailbox.Command, _ stopRequested: Bool) {
        switch command {
        case .start(let transfer, let continuation):
            transfer.continuation = continuation
            if stopRequested {
                end(transfer, HTTPClientError(.shutDown, detail: "the client was shut down"))
            } else if transfer.isCancelled.load(ordering: .acquiring) {
                end(transfer, HTTPClientError(.cancelled, detail: "the task was cancelled"))
            } else {
                start(transfer)
            }
        case .cancel(let transfer):
            // Nil: it is not here yet, and its start will look at the flag; or it is over.
            guard transfer.continuation != nil else { return }
            fail(transfer, .cancelled, detail: "the task was cancelled")
        }
    }

    private func start(_ transfer: Transfer) {
        let remaining = transfer.deadline - .now
        guard remaining > .zero else {
            return end(transfer, HTTPClientError(.timedOut, detail: "the deadline passed before the request began"))
        }
        do throws(HTTPClientError) {
            let easy = if let idle = idleHandles.popLast() { idle } else { try EasyHandle() }
            try easy.configure(for: transfer, configuration, remaining: remaining)
            try multi.add(easy)
            transfer.easy = easy
            transfers[easy.pointer] = transfer
            let overdue = transfer.deadline + Self.deadlineSlack
            nextDeadline = min(nextDeadline ?? overdue, overdue)
        } catch {
            end(transfer, error)
        }
    }

    // MARK: Ends

    private func finishEnded() {
        while let (pointer, code) = multi.nextEnded() {
            guard let transfer = transfers[pointer], let easy = transfer.easy else { continue }
            let result = transfer.result(of: easy, code)
            release(transfer, easy)
            end(transfer, result)
        }
    }

    private func expireOverdue() {
        let now = ContinuousClock.now
        guard let nextDeadline, nextDeadline <= now else { return }
        for transfer in transfers.values where transfer.deadline + Self.deadlineSlack <= now {
            fail(transfer, .timedOut, detail: "the deadline passed before there was an answer")
        }
        self.nextDeadline = transfers.values.map(\.deadline).min().map { $0 + Self.deadlineSlack }
    }

    private func failAll(_ code: HTTPClientError.Code, detail: String) {
        for transfer in transfers.values { fail(transfer, code, detail: detail) }
    }

    /// Takes a transfer away from libcurl and fails it.
    private func fail(_ transfer: Transfer, _ code: HTTPClientError.Code, detail: String) {
        var mayHaveBeenSent = false
        if let easy = transfer.easy {
            mayHaveBeenSent = transfer.mayHaveBeenSent(by: easy)
            release(transfer, easy)
        }
        end(transfer, HTTPClientError(code, mayHaveBeenSent: mayHaveBeenSent, detail: detail))
    }

    private func end(_ transfer: Transfer, _ error: HTTPClientError) { end(transfer, .failure(error)) }

    /// The one place where a caller gets its answer.
    private func end(_ transfer: Transfer, _ result: Result<HTTPClientResponse, HTTPClientError>) {
        guard let continuation = transfer.continuation else { return }
        transfer.continuation = nil
        mailbox.count { statistics in
            statistics.inFlight -= 1
            statistics.resent += max(0, transfer.attempts - 1)
            switch result {
            case .success: statistics.succeeded += 1
            case .failure: statistics.failed += 1
            }
        }
        continuation.resume(returning: result)
    }

    private func release(_ transfer: Transfer, _ easy: EasyHandle) {
        let opened = easy.connectionsOpened
        if opened > 0 { mailbox.count { $0.connectionsOpened += opened } }
        multi.remove(easy)
        transfers[easy.pointer] = nil
        transfer.easy = nil
        easy.reset()
        if idleHandles.count < configuration.maximumConnections { idleHandles.append(easy) }
    }

    private var pollMilliseconds: Int {
        let untilDeadline = nextDeadline.map { $0 - .now } ?? Self.longestPoll
        return min(untilDeadline, Self.longestPoll).wholeMilliseconds
    }
}
