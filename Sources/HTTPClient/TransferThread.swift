import CCurl
import Glibc

/// The thread that owns libcurl's multi handle.
struct TransferThread: Sendable {
    private let identifier: pthread_t

    /// Starts it. It ends when the mailbox is told to stop.
    init(_ configuration: HTTPClientConfiguration, _ mailbox: Mailbox) throws(HTTPClientError) {
        let start = Unmanaged.passRetained(Start(configuration, mailbox))
        var identifier = pthread_t()
        // A new thread inherits the mask, and so do the resolver's threads that libcurl starts from it: the process's
        // signals go to the threads that handle them, and a write to a closed connection is an error here, not SIGPIPE.
        var allSignals = sigset_t()
        var previous = sigset_t()
        sigfillset(&allSignals)
        pthread_sigmask(SIG_SETMASK, &allSignals, &previous)
        let result = pthread_create(&identifier, nil, runTransferThread, start.toOpaque())
        pthread_sigmask(SIG_SETMASK, &previous, nil)
        guard result == 0 else {
            start.release()
            throw HTTPClientError(.other, detail: "no thread: error \(result)")
        }
        self.identifier = identifier
    }

    /// Waits for the thread's last instructions; to be called once, after ``Mailbox/waitForEnd()``.
    func join() { pthread_join(identifier, nil) }

    /// Lets it end alone, instead of ``join()``.
    func detach() { pthread_detach(identifier) }
}

private final class Start: Sendable {
    let configuration: HTTPClientConfiguration
    let mailbox: Mailbox

    init(_ configuration: HTTPClientConfiguration, _ mailbox: Mailbox) {
        self.configuration = configuration
        self.mailbox = mailbox
    }
}

private func runTransferThread(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context else { return nil }
    lockstep_curl_name_thread("http-client")
    let start = Unmanaged<Start>.fromOpaque(context).takeRetainedValue()
    let (configuration, mailbox) = (start.configuration, start.mailbox)
    TransferDriver(configuration, mailbox).run()
    mailbox.threadEnded()
    return nil
}
