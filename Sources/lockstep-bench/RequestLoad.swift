import Crypto
import Foundation

/// Requests, each different, ready to be sent: making them takes no time from what is measured.
struct PreparedRequests: Sendable {
    private(set) var bytes: [UInt8] = []
    private(set) var ends: [Int] = []

    var count: Int { ends.count }
    func range(_ index: Int) -> Range<Int> { (index == 0 ? 0 : ends[index - 1])..<ends[index] }

    mutating func append(_ method: String, _ path: String, _ headers: [String: String] = [:], body: String? = nil) {
        var head = "\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n"
        for (name, value) in headers { head += "\(name): \(value)\r\n" }
        if let body { head += "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n" }
        bytes += Array("\(head)\r\n\(body ?? "")".utf8)
        ends.append(bytes.count)
    }

    /// Signed notifications.
    ///
    /// - Parameter body: the body of a number.
    static func notifications(_ numbers: Range<Int>, body: (Int) -> String) -> PreparedRequests {
        let key = Data(Rig.webhookKey.utf8)
        var requests = PreparedRequests()
        for number in numbers {
            let content = body(number)
            let signature = Crypto.hmacSHA256(key: key, message: Data(content.utf8)).base64EncodedString()
            requests.append("POST", "/webhooks/payrails", ["X-Signature": signature], body: content)
        }
        return requests
    }
}

/// What sending came to.
struct LoadResult: Sendable {
    /// Answered with 2xx.
    var accepted = 0
    var refused = 0
    /// Of the accepted, those that hold the text that was looked for.
    var found = 0
    var took: Duration = .zero
    var latencies: [Duration] = []

    var perSecond: Int {
        let (seconds, attoseconds) = took.components
        return Int(Double(accepted) / max(0.001, Double(seconds) + Double(attoseconds) / 1e18))
    }
}

/// Sends requests over many connections from one thread, by poll, so that the measuring costs little of the machine.
struct RequestLoad {
    let port: UInt16
    let connections: Int
    /// How many a second, at their moments whatever the answers do; nil: the next when the one before is answered.
    var rate: Int?
    /// Looked for in the answers; the last 4 KiB of one are enough.
    var text: String?

    private struct Connection {
        let socket: Int32
        var sentAt = ContinuousClock.now
        var isBusy = false
    }

    func run(_ requests: PreparedRequests, atMost limit: Duration) throws -> LoadResult {
        var all: [Connection] = []
        defer { for connection in all { close(connection.socket) } }
        for _ in 0..<connections { all.append(Connection(socket: try connectedSocket())) }
        var watched = all.map { pollfd(fd: $0.socket, events: Int16(POLLIN), revents: 0) }
        var result = LoadResult()
        result.latencies.reserveCapacity(requests.count)
        var idle = Array(all.indices)
        var next = 0
        var busy = 0
        var answer = [UInt8](repeating: 0, count: 4096)
        let began = ContinuousClock.now
        while true {
            let now = ContinuousClock.now
            let isOver = next >= requests.count || now - began > limit
            if isOver, busy == 0 || now - began > limit + .seconds(20) { break }
            while !isOver, next < requests.count, let place = idle.last {
                var due = now
                if let rate {
                    due = began + .nanoseconds(Int64(next) * 1_000_000_000 / Int64(rate))
                    guard due <= now else { break }
                }
                idle.removeLast()
                all[place].sentAt = due
                all[place].isBusy = true
                busy += 1
                try write(requests, requests.range(next), to: all[place].socket)
                next += 1
            }
            guard poll(&watched, nfds_t(watched.count), rate == nil ? 100 : 1) > 0 else { continue }
            for place in watched.indices where watched[place].revents != 0 {
                let socket = watched[place].fd
                let got = recv(socket, &answer, answer.count, 0)
                guard got > 0 else { throw Rig.Failure(description: "a connection was closed") }
                // The end of the body; what comes before it in pieces is not the answer yet.
                guard answer[got - 1] == UInt8(ascii: "}") else { continue }
                if answer[9] == UInt8(ascii: "2") {
                    result.accepted += 1
                    if let text, String(decoding: answer[..<got], as: UTF8.self).contains(text) { result.found += 1 }
                    result.latencies.append(.now - all[place].sentAt)
                } else {
                    result.refused += 1
                }
                all[place].isBusy = false
                busy -= 1
                idle.append(place)
            }
        }
        result.took = .now - began
        return result
    }

    /// The sockets are blocking: a request fits into what the system holds for each.
    private func write(_ requests: PreparedRequests, _ range: Range<Int>, to socket: Int32) throws {
        let sent = requests.bytes.withUnsafeBytes { bytes in
            send(socket, bytes.baseAddress?.advanced(by: range.lowerBound), range.count, Int32(MSG_NOSIGNAL))
        }
        guard sent == range.count else { throw Rig.Failure(description: "a request could not be sent") }
    }

    private func connectedSocket() throws -> Int32 {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let isConnected = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        guard isConnected else { throw Rig.Failure(description: "a connection was refused") }
        var one: Int32 = 1
        setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        return socket
    }
}
