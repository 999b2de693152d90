import Foundation
import Synchronization

typealias TransferContinuation = CheckedContinuation<Result<HTTPClientResponse, HTTPClientError>, Never>

/// One request on its way.
///
/// `@unchecked Sendable`: everything that changes is touched by the transfer thread alone, except ``isCancelled``,
/// which is atomic.
final class Transfer: @unchecked Sendable {
    let request: PreparedRequest
    let deadline: ContinuousClock.Instant
    /// Set by the caller's task, which may be before the thread has heard of the transfer at all.
    let isCancelled = Atomic<Bool>(false)

    var collector: ResponseCollector
    /// Nil before the thread takes the transfer on, and after it ended.
    var continuation: TransferContinuation?
    /// The handle that carries it, while libcurl has it.
    var easy: EasyHandle?
    /// How often libcurl was about to write this request to a connection that was ready for it.
    private(set) var attempts = 0

    init(_ request: PreparedRequest, deadline: ContinuousClock.Instant, configuration: HTTPClientConfiguration) {
        self.request = request
        self.deadline = deadline
        collector = ResponseCollector(
            maximumHeaderBytes: configuration.maximumHeaderBytes, maximumBodyBytes: request.maximumResponseBytes)
    }

    /// libcurl's question before it writes the request to a connection; false ends the transfer there.
    ///
    /// libcurl sends a request a second time, without a word, when a connection that it used again ended before one
    /// byte of an answer (or the server refused the stream, in HTTP/2). Usually the server had closed an idle
    /// connection and saw nothing; but it may also have acted on the request and died. So:
    /// - the count remembers every attempt. If the second one can't even connect, `mayHaveBeenSent` is still true;
    /// - a request that would do harm twice, a `POST` without an idempotency key, is not sent again: it fails with
    ///   `connectionLost`. With a key, the same key goes out again, and the server answers as it did the first time.
    func mayBegin() -> Bool {
        if attempts > 0 && !request.isRepeatable { return false }
        attempts += 1
        return true
    }
}
