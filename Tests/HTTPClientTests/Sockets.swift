import Glibc

struct SocketFailure: Error {}

/// A port of 127.0.0.1 where nothing listens: it was given out a moment ago and let go.
func closedPort() throws -> Int {
    let (descriptor, port) = try boundSocket()
    close(descriptor)
    return port
}

/// A listener that accepts nobody and whose queue is full, so that a further connection is never made.
struct FullListener {
    let port: Int
    private var descriptors: [Int32]

    init() throws {
        let (listener, port) = try boundSocket()
        guard listen(listener, 0) == 0 else { throw SocketFailure() }
        self.port = port
        descriptors = [listener]
        for _ in 0..<4 {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
            var address = loopback(port: port)
            _ = withSocketAddress(&address) { connect(descriptor, $0, $1) }
            descriptors.append(descriptor)
        }
    }

    func close() { for descriptor in descriptors { Glibc.close(descriptor) } }
}

private func boundSocket() throws -> (descriptor: Int32, port: Int) {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = loopback(port: 0)
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let result = withSocketAddress(&address) { pointer, size in
        bind(descriptor, pointer, size) == 0 ? getsockname(descriptor, pointer, &length) : -1
    }
    guard result == 0 else { throw SocketFailure() }
    return (descriptor, Int(UInt16(bigEndian: address.sin_port)))
}

private func loopback(port: Int) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(truncatingIfNeeded: port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return address
}

private func withSocketAddress<T>(
    _ address: inout sockaddr_in, _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> T
) -> T {
    withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
}
