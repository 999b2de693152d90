import Foundation
import Glibc

/// A TCP client that sends exactly the bytes that it is told to.
///
/// Unchecked because each is used by one test, step after step.
public final class RawClient: @unchecked Sendable {
    public struct Failure: Error, CustomStringConvertible {
        public let description: String
        init(_ description: String) { self.description = description }
    }

    /// An answer as it came off the wire.
    public struct Reply: Sendable {
        public let status: Int
        public let headers: [(name: String, value: String)]
        public let body: String

        public subscript(name: String) -> String? {
            headers.first { $0.name.lowercased() == name.lowercased() }?.value
        }
    }

    private let descriptor: Int32
    private var buffer: [UInt8] = []
    private var isOpen = true

    public init(port: UInt16, receiveBuffer: Int32? = nil) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { throw Failure("socket: errno \(errno)") }
        if var size = receiveBuffer {
            setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            let reason = errno
            Glibc.close(descriptor)
            isOpen = false
            throw Failure("connect: errno \(reason)")
        }
    }

    deinit { close() }

    public func close() {
        if isOpen { Glibc.close(descriptor) }
        isOpen = false
    }

    /// Ends the connection with a reset instead of a proper end.
    public func reset() {
        var linger = Glibc.linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
        close()
    }

    /// False when the server has closed.
    @discardableResult
    public func write(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard sent > 0 else { return false }
            rest = rest.dropFirst(sent)
        }
        return true
    }

    @discardableResult
    public func write(_ text: String) -> Bool { write(Array(text.utf8)) }

    /// Sends the end of the stream, and can still receive.
    public func finishWriting() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// One answer; 1xx are answers too.
    public func reply(toHEAD: Bool = false, within seconds: Double = 30) async throws -> Reply {
        try await offPool { try self.blockingReply(toHEAD: toHEAD, seconds: seconds) }
    }

    /// Whether the server ends the connection in that time, properly or with a reset.
    public func isEnded(within seconds: Double = 30) async throws -> Bool {
        try await offPool {
            let deadline = ContinuousClock.now + .seconds(seconds)
            while ContinuousClock.now < deadline {
                if try !self.receive(until: deadline) { return true }
            }
            return false
        }
    }

    /// What is there once the server has ended the connection.
    public func everything(within seconds: Double = 30) async throws -> String {
        guard try await isEnded(within: seconds) else { throw Failure("the connection is still open") }
        return String(decoding: buffer, as: UTF8.self)
    }

    /// `reply` for tests that are off the pool already.
    public func blockingReply(toHEAD: Bool = false, seconds: Double) throws -> Reply {
        let deadline = ContinuousClock.now + .seconds(seconds)
        while true {
            if let end = headEnd() {
                let head = try Self.parse(buffer[..<end])
                let hasBody = !toHEAD && head.status >= 200 && head.status != 204 && head.status != 304
                let length = hasBody ? Int(head["Content-Length"] ?? "0") ?? 0 : 0
                if buffer.count >= end + length {
                    let body = String(decoding: buffer[end..<(end + length)], as: UTF8.self)
                    buffer.removeFirst(end + length)
                    return Reply(status: head.status, headers: head.headers, body: body)
                }
            }
            guard ContinuousClock.now < deadline else {
                throw Failure("no answer in time; so far: \(String(decoding: buffer, as: UTF8.self))")
            }
            guard try receive(until: deadline) else {
                throw Failure("ended before an answer; so far: \(String(decoding: buffer, as: UTF8.self))")
            }
        }
    }

    private func headEnd() -> Int? {
        guard buffer.count >= 4 else { return nil }
        for start in 0...(buffer.count - 4) where buffer[start..<(start + 4)].elementsEqual("\r\n\r\n".utf8) {
            return start + 4
        }
        return nil
    }

    private static func parse(_ bytes: ArraySlice<UInt8>) throws -> Reply {
        let lines = String(decoding: bytes, as: UTF8.self).components(separatedBy: "\r\n")
        let parts = lines[0].split(separator: " ", maxSplits: 2)
        guard parts.count >= 2, parts[0] == "HTTP/1.1", let status = Int(parts[1]) else {
            throw Failure("not a status line: \(lines[0])")
        }
        let headers = lines.dropFirst().filter { !$0.isEmpty }.map { line in
            let pair = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            return (name: String(pair[0]), value: pair.count > 1 ? pair[1].trimmingCharacters(in: .whitespaces) : "")
        }
        return Reply(status: status, headers: headers, body: "")
    }

    /// True when bytes came or the time is up, false when the stream is at its end.
    private func receive(until deadline: ContinuousClock.Instant) throws -> Bool {
        guard isOpen else { throw Failure("closed by the test") }
        let left = max(0, (deadline - ContinuousClock.now) / .milliseconds(1))
        var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&waiting, 1, Int32(left) + 1) > 0 else { return true }
        var chunk = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &chunk, chunk.count, 0)
        guard count > 0 else { return false }
        buffer.append(contentsOf: chunk[..<count])
        return true
    }
}
