import CMicrohttpd
import Glibc

/// Addresses as text and as what the system calls take.
enum SocketAddress {
    /// The address without its port; empty for a family that isn't IP.
    static func text(_ address: UnsafePointer<sockaddr>?) -> String {
        guard let address else { return "" }
        var buffer = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        let raw = UnsafeRawPointer(address)
        let family = Int32(address.pointee.sa_family)
        switch family {
        case AF_INET:
            var ip = raw.load(as: sockaddr_in.self).sin_addr
            inet_ntop(family, &ip, &buffer, socklen_t(buffer.count))
        case AF_INET6:
            var ip = raw.load(as: sockaddr_in6.self).sin6_addr
            inet_ntop(family, &ip, &buffer, socklen_t(buffer.count))
        default: break
        }
        return String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
}
