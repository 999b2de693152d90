import Foundation
import Glibc
import Synchronization

/// A TCP proxy before the database that breaks the line at a chosen moment.
public final class FaultyProxy: Sendable {
    public enum Fault: Sendable {
        case none
        /// Takes connections and never says a word; nor does it on those that are open.
        case silence
        /// Passes on what the client sends; when that has the text in it, the server's answer to it is read and thrown
        /// away, and the connection is cut.
        case cutAfter(String)
        /// Passes on everything until the client sends the text, and then nothing more in either direction.
        case hangAt(String)
    }

    public let port: UInt16
    private let listener: Int32
    private let target: UInt16
    private let fault: Mutex<Fault>
    private let sockets = Mutex<[Int32]>([])
    private let clients = Atomic(0)
    private let strikes = Atomic(0)

    public init(target: UInt16, fault: Fault) throws {
        self.target = target
        self.fault = Mutex(fault)
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        var address = Self.address(port: 0)
        let listener = listener
        let isListening = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 64) == 0 && getsockname(listener, $0, &length) == 0
            }
        }
        guard isListening else { throw CancellationError() }
        port = UInt16(bigEndian: address.sin_port)
        Thread.detachNewThread { [self] in accept() }
    }

    public var connectionString: String {
        "host=127.0.0.1 port=\(port) user=postgres sslmode=disable gssencmode=disable"
    }

    /// Connections that came in.
    public var accepted: Int { clients.load(ordering: .relaxed) }

    /// How often the text was met.
    public var struck: Int { strikes.load(ordering: .relaxed) }

    public func setFault(_ fault: Fault) { self.fault.withLock { $0 = fault } }

    public func stop() {
        shutdown(listener, Int32(SHUT_RDWR))
        sockets.withLock { sockets in
            for socket in sockets { shutdown(socket, Int32(SHUT_RDWR)) }
        }
    }

    private static func address(port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        address.sin_port = port.bigEndian
        return address
    }

    private func accept() {
        while true {
            let client = Glibc.accept(listener, nil, nil)
            guard client >= 0 else { return }
            sockets.withLock { $0.append(client) }
            clients.add(1, ordering: .relaxed)
            if case .silence = fault.withLock({ $0 }) { continue }
            let server = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            var address = Self.address(port: target)
            let isConnected = withUnsafePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    connect(server, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
            guard isConnected else {
                shutdown(client, Int32(SHUT_RDWR))
                continue
            }
            sockets.withLock { $0.append(server) }
            let isMuted = Flag()
            Thread.detachNewThread { [self] in pass(from: client, to: server, isMuted, fromClient: true) }
            Thread.detachNewThread { [self] in pass(from: server, to: client, isMuted, fromClient: false) }
        }
    }

    private final class Flag: Sendable {
        private let value = Atomic(false)
        var isSet: Bool { value.load(ordering: .acquiring) }
        func set() { value.store(true, ordering: .releasing) }
    }

    private func pass(from source: Int32, to sink: Int32, _ isMuted: Flag, fromClient: Bool) {
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = read(source, &buffer, buffer.count)
            guard count > 0 else { break }
            let text = String(decoding: buffer[..<count], as: UTF8.self)
            switch fault.withLock({ $0 }) {
            case .silence: continue
            case .cutAfter(let needle) where fromClient && text.contains(needle):
                isMuted.set()
                strikes.add(1, ordering: .relaxed)
            case .cutAfter where !fromClient && isMuted.isSet:
                // The server has answered, so it has done what it was asked.
                shutdown(source, Int32(SHUT_RDWR))
                shutdown(sink, Int32(SHUT_RDWR))
                return
            case .hangAt(let needle) where fromClient && text.contains(needle):
                isMuted.set()
                strikes.add(1, ordering: .relaxed)
                continue
            case .hangAt where isMuted.isSet:
                continue
            default: break
            }
            var sent = 0
            while sent < count {
                let wrote = buffer.withUnsafeBytes {
                    send(sink, $0.baseAddress.map { $0 + sent }, count - sent, Int32(MSG_NOSIGNAL))
                }
                guard wrote > 0 else { return }
                sent += wrote
            }
        }
        shutdown(sink, Int32(SHUT_RDWR))
    }
}
