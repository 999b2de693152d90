import Foundation
import Glibc
import Synchronization

/// A server on a real socket that answers with bytes, one request a connection, whether they are HTTP or not.
final class RawServer: Sendable {
    /// What to send for a request (its head and body as text), before the connection is closed; nil to send nothing
    /// and to keep the connection open.
    typealias Script = @Sendable (String) -> String?

    struct CannotListen: Error {}

    let port: Int
    private let listener: Int32
    private let script: Script
    private let held = Mutex<[Int32]>([])
    private let log = Mutex<[String]>([])

    var requests: [String] { log.withLock { $0 } }
    var baseURL: String { "http://127.0.0.1:\(port)" }

    init(_ script: @escaping Script) throws {
        self.script = script
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let descriptor = listener
        let isBound = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(descriptor, address, length) == 0 && listen(descriptor, 64) == 0
                    && getsockname(descriptor, address, &length) == 0
            }
        }
        guard isBound else { throw CannotListen() }
        port = Int(UInt16(bigEndian: address.sin_port))
        Thread.detachNewThread { [self] in acceptAll() }
    }

    /// Ends the thread, and with it everything that a client still waits for.
    func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        for connection in held.withLock({ $0 }) { close(connection) }
    }

    private func acceptAll() {
        while true {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else { break }
            Thread.detachNewThread { [self] in serve(connection) }
        }
        close(listener)
    }

    private func serve(_ connection: Int32) {
        guard let request = readRequest(connection) else {
            close(connection)
            return
        }
        log.withLock { $0.append(request) }
        guard let answer = script(request) else {
            held.withLock { $0.append(connection) }
            return
        }
        let bytes = Array(answer.utf8)
        _ = send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        close(connection)
    }

    private func readRequest(_ connection: Int32) -> String? {
        var received = ""
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            if let end = received.range(of: "\r\n\r\n") {
                let head = received[..<end.lowerBound].lowercased()
                let length = head.split(separator: "content-length:").dropFirst().first
                    .flatMap { Int($0.prefix { $0 != "\r\n" && $0 != "\r" }.trimmingCharacters(in: .whitespaces)) }
                if received[end.upperBound...].utf8.count >= length ?? 0 { return received }
            }
            let count = recv(connection, &buffer, buffer.count, 0)
            guard count > 0 else { return nil }
            received += String(decoding: buffer[..<count], as: UTF8.self)
        }
    }

    static func http(_ status: String, _ body: String, length: Int? = nil) -> String {
        "HTTP/1.1 \(status)\r\nConnection: close\r\nContent-Length: \(length ?? body.utf8.count)\r\n\r\n\(body)"
    }
}
