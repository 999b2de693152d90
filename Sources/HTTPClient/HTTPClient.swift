import Basics
import Foundation
import Synchronization

/// HTTP/1.1 and, when asked, HTTP/2 over libcurl's multi interface (`curl_multi_perform`, `curl_multi_poll`).
///
/// One thread of its own does all the work; callers are suspended, never blocked. Connections are kept and used again.
/// Redirects, cookies, `.netrc`, proxies and content codings are off: what is asked for is what is sent, once, except
/// for the case that ``HTTPClientError/mayHaveBeenSent`` and `Transfer.mayBegin()` tell about.
public final class HTTPClient: Sendable {
    /// Counts since the client was made.
    public struct Statistics: Sendable, Equatable {
        /// Waiting or running now.
        public internal(set) var inFlight = 0
        public internal(set) var started = 0
        /// Answered, whatever the status.
        public internal(set) var succeeded = 0
        public internal(set) var failed = 0
        public internal(set) var connectionsOpened = 0
        /// Times that libcurl sent a request again, after a kept connection had ended.
        public internal(set) var resent = 0
    }

    private let configuration: HTTPClientConfiguration
    private let mailbox: Mailbox
    /// Nil once somebody has taken on to join it.
    private let thread: Mutex<TransferThread?>

    /// Checks libcurl and the files that `configuration` names, and starts the thread.
    ///
    /// Throws `invalidRequest` for a limit that is not above zero; `tls` for a file that can't be read, is not PEM or is not the other's key; `other` for a libcurl without
    /// TLS or an asynchronous resolver.
    public init(_ configuration: HTTPClientConfiguration = .init()) throws(HTTPClientError) {
        try CurlLibrary.check()
        try configuration.checkLimits()
        try configuration.checkCredentialFiles()
        self.configuration = configuration
        mailbox = Mailbox(try MultiHandle(configuration), maximumRequests: configuration.maximumRequests)
        thread = Mutex(try TransferThread(configuration, mailbox))
    }

    deinit {
        mailbox.requestStop()
        thread.withLock { $0.take() }?.detach()
    }

    public var statistics: Statistics { mailbox.statistics }

    /// Sends one request and returns its final response, whatever its status.
    ///
    /// Throws `cancelled` promptly when the task is cancelled.
    public func send(_ request: HTTPClientRequest) async throws(HTTPClientError) -> HTTPClientResponse {
        let deadline = ContinuousClock.now + min(request.timeout, .seconds(86_400))
        let transfer = Transfer(
            try PreparedRequest(request, configuration), deadline: deadline, configuration: configuration)
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { mailbox.start(transfer, $0) }
        } onCancel: {
            transfer.isCancelled.store(true, ordering: .releasing)
            mailbox.cancel(transfer)
        }
        return try result.get()
    }

    /// Fails what is in flight with `shutDown`, closes every connection and ends the thread. Later requests fail with
    /// `shutDown` too. Harmless when repeated.
    public func shutdown() async {
        mailbox.requestStop()
        await mailbox.waitForEnd()
        // It has at most its last instruction before it, so this does not block.
        thread.withLock { $0.take() }?.join()
    }
}
