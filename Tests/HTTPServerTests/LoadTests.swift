import Basics
import Foundation
import TestKit
import Testing

@testable import HTTPServer

/// Splitmix64: small, seeded, and good enough to make garbage.
private struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

@Suite("Much at once", .serialized)
struct LoadTests {
    @Test("a thousand kept-alive connections, used again and again", arguments: [1, 2])
    func thousandConnections(threads: Int) async throws {
        let handler: @Sendable (HTTPServerRequest) async -> HTTPServerResponse = { request in
            if request.path.hasSuffix("7") { await Task.yield() }
            return await echo(request)
        }
        try await withServer({ $0.threads = threads }, handler: handler) { server in
            let port = server.port
            let answered = try await offPool {
                let clients = try (0..<1_000).map { _ in try RawClient(port: port) }
                var answered = 0
                for round in 0..<3 {
                    for (number, client) in clients.enumerated() where (number + round).isMultiple(of: round + 1) {
                        client.write("POST /\(number) HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
                    }
                    for (number, client) in clients.enumerated() where (number + round).isMultiple(of: round + 1) {
                        let reply = try client.blockingReply(seconds: 30)
                        guard reply.body == "POST /\(number) - abc" else { continue }
                        answered += 1
                    }
                }
                return answered
            }
            #expect(answered == 1_000 + 500 + 333)
            #expect(server.statistics.requestsServed == answered)
            await eventually("all have gone") { server.statistics.connectionsOpen == 0 }
        }
    }

    @Test("garbage neither stops the server nor stays")
    func garbage() async throws {
        let seed = UInt64.random(in: .min ... .max)
        print("seed of the garbage: \(seed)")
        try await withServer({
            $0.requestTimeout = .milliseconds(500)
            $0.maximumBodyBytes = { _, _ in 10_000 }
        }) { server in
            let port = server.port
            try await offPool {
                var random = SeededGenerator(state: seed)
                for _ in 0..<1_500 {
                    let client = try RawClient(port: port)
                    for _ in 0..<Int.random(in: 1...3, using: &random) { client.write(Self.garbage(&random)) }
                    if Bool.random(using: &random) { client.reset() }
                }
            }
            let client = try RawClient(port: server.port)
            client.write("GET /still HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.reply().body == "GET /still - ")
            await eventually("nothing of it stays") {
                let statistics = server.statistics
                return statistics.connectionsOpen <= 1 && statistics.requestsInFlight == 0
                    && statistics.bytesBuffered == 0
            }
        }
    }

    /// A request with some of its bytes changed, cut or doubled; or bytes alone.
    private static func garbage(_ random: inout SeededGenerator) -> [UInt8] {
        if Int.random(in: 0..<8, using: &random) == 0 {
            return (0..<Int.random(in: 1...3_000, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random)
            }
        }
        let requests = [
            "GET /a?b=c&d HTTP/1.1\r\nHost: a\r\nCookie: a=b; c=d\r\n\r\n",
            "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nExpect: 100-continue\r\n\r\nhello, world",
            "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x\r\nhello\r\na\r\n0123456789\r\n0\r\nT: t\r\n\r\n",
            "GET /f HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\nConnection: close\r\n\r\n",
        ]
        var bytes = Array(requests[Int.random(in: 0..<requests.count, using: &random)].utf8)
        let spice: [UInt8] = [0, 9, 10, 13, 32, 44, 48, 58, 59, 0x66, 0x7F, 0xFF]
        for _ in 0..<Int.random(in: 0...6, using: &random) where !bytes.isEmpty {
            let at = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0: bytes[at] = UInt8.random(in: 0...255, using: &random)
            case 1: bytes[at] = spice[Int.random(in: 0..<spice.count, using: &random)]
            case 2: bytes.insert(spice[Int.random(in: 0..<spice.count, using: &random)], at: at)
            case 3: bytes.removeSubrange(at..<min(bytes.count, at + Int.random(in: 1...8, using: &random)))
            default: bytes.insert(contentsOf: bytes[at..<min(bytes.count, at + 20)], at: at)
            }
        }
        return bytes
    }
}
