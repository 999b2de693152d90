import CCurl
import Glibc

/// A `CURLM *`: connections, and the transfers on them. Used on one thread, except for ``wake()``.
///
/// `@unchecked Sendable`: it is handed to the transfer thread, the only one to call anything but `curl_multi_wakeup`,
/// which libcurl makes safe for any thread as long as the handle lives, and the object keeps it alive.
final class MultiHandle: @unchecked Sendable {
    private let pointer: UnsafeMutableRawPointer

    init(_ configuration: HTTPClientConfiguration) throws(HTTPClientError) {
        guard let pointer = curl_multi_init() else { throw HTTPClientError(.other, detail: "out of memory") }
        self.pointer = pointer
        for (option, value) in [
            (CURLMOPT_MAX_TOTAL_CONNECTIONS, configuration.maximumConnections),
            (CURLMOPT_MAX_HOST_CONNECTIONS, configuration.maximumConnectionsPerHost),
            (CURLMOPT_MAXCONNECTS, configuration.maximumConnections),
            (CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX)),
        ] { try Self.check(lockstep_curl_multi_set_long(pointer, option, value)) }
    }

    /// `curl_multi_wakeup`: ends the poll that runs, or the next one.
    func wake() { curl_multi_wakeup(pointer) }

    /// `curl_multi_add_handle`
    func add(_ easy: EasyHandle) throws(HTTPClientError) {
        try Self.check(curl_multi_add_handle(pointer, easy.pointer))
    }

    /// `curl_multi_remove_handle`; closes the connection of a transfer that has not ended.
    func remove(_ easy: EasyHandle) { curl_multi_remove_handle(pointer, easy.pointer) }

    /// `curl_multi_perform`
    func perform() throws(HTTPClientError) {
        var running: Int32 = 0
        try Self.check(curl_multi_perform(pointer, &running))
    }

    /// `curl_multi_info_read`: the next transfer that has ended, and how.
    func nextEnded() -> (easy: UnsafeMutableRawPointer, code: CURLcode)? {
        var waiting: Int32 = 0
        while let message = curl_multi_info_read(pointer, &waiting) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
            return (easy, lockstep_curl_message_result(message))
        }
        return nil
    }

    /// `curl_multi_poll`
    func poll(milliseconds: Int) {
        // It fails at once when the system is out of memory or descriptors; the loop must not spin on that.
        if curl_multi_poll(pointer, nil, 0, Int32(clamping: milliseconds), nil) != CURLM_OK { usleep(10_000) }
    }

    /// `curl_multi_cleanup`, which closes every connection. No transfer may be left, and nothing may be called after.
    func close() { curl_multi_cleanup(pointer) }

    private static func check(_ code: CURLMcode) throws(HTTPClientError) {
        guard code != CURLM_OK else { return }
        throw HTTPClientError(.other, detail: "libcurl: \(String(cString: curl_multi_strerror(code)))")
    }
}
