import Glibc

/// A TCP socket that listens: `getaddrinfo`, `socket`, `bind`, `listen`, `getsockname`.
struct ListeningSocket: Sendable {
    let descriptor: Int32
    let port: UInt16

    /// - Throws: `badAddress`, `addressInUse`, `cannotListen`.
    init(host: String, port: UInt16) throws(HTTPServerError) {
        var hints = addrinfo()
        hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let literal = host == "localhost" ? "127.0.0.1" : host
        guard getaddrinfo(literal, String(port), &hints, &found) == 0, let address = found?.pointee else {
            throw HTTPServerError(.badAddress, "\(host) is not an IP address")
        }
        defer { freeaddrinfo(found) }
        let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
        let descriptor = socket(address.ai_family, type, 0)
        guard descriptor >= 0 else { throw HTTPServerError(.cannotListen, "no socket", systemError: errno) }
        var yes: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        guard bind(descriptor, address.ai_addr, address.ai_addrlen) == 0, listen(descriptor, 4_096) == 0 else {
            let reason = errno
            _ = Glibc.close(descriptor)
            throw HTTPServerError(
                reason == EADDRINUSE ? .addressInUse : .cannotListen, "\(host) port \(port)", systemError: reason)
        }
        self.descriptor = descriptor
        self.port = Self.port(of: descriptor)
    }

    private static func port(of descriptor: Int32) -> UInt16 {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        return withUnsafeMutableBytes(of: &storage) { bytes in
            guard let base = bytes.baseAddress,
                getsockname(descriptor, base.assumingMemoryBound(to: sockaddr.self), &length) == 0
            else { return 0 }
            // The port stands at the same place for both families.
            return UInt16(bigEndian: base.load(fromByteOffset: 2, as: UInt16.self))
        }
    }

    /// Refuses who connects from now on, also those who wait to be accepted, while the number stays taken.
    func refuseConnections() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    func close() { _ = Glibc.close(descriptor) }
}
