import Basics
import Foundation
import TestKit
import Testing

@testable import HTTPServer

@Suite("Clients that take their time")
struct TimeTests {
    @Test(
        "a request that isn't whole in time is 408, wherever it stopped",
        arguments: [
            "G", "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc",
            "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n",
        ])
    func stopped(bytes: String) async throws {
        try await withServer({ $0.requestTimeout = .milliseconds(200) }) { server in
            let client = try RawClient(port: server.port)
            let begun = ContinuousClock.now
            client.write(bytes)
            var reply = try await client.reply()
            if reply.status == 100 { reply = try await client.reply() }
            #expect(reply.status == 408)
            #expect(reply["Connection"] == "close")
            #expect(ContinuousClock.now - begun > .milliseconds(190))
            #expect(try await client.isEnded())
            #expect(server.statistics.refused == [.timeout: 1])
        }
    }

    @Test(
        "a request that trickles is 408 all the same",
        arguments: ["", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n"])
    func trickling(start: String) async throws {
        try await withServer({ $0.requestTimeout = .milliseconds(300) }) { server in
            let client = try RawClient(port: server.port)
            client.write(start)
            await eventually("it is cut off") {
                client.write("G")
                return server.statistics.refused[.timeout] == 1
            }
            #expect(try await client.reply().status == 408)
        }
    }

    @Test("the second request of a connection has the same limit, from its first byte")
    func secondRequest() async throws {
        try await withServer({ $0.requestTimeout = .milliseconds(700) }) { server in
            let client = try RawClient(port: server.port)
            client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
            #expect(try await client.reply().status == 200)
            client.write("GET")
            #expect(try await client.reply().status == 408)
            let pipelining = try RawClient(port: server.port)
            pipelining.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabcGET")
            #expect(try await pipelining.reply().status == 200)
            #expect(try await pipelining.reply().status == 408)
        }
    }

    @Test("an idle connection is closed without a word, one that was never used too")
    func idle() async throws {
        try await withServer({ $0.idleTimeout = .milliseconds(700) }) { server in
            let unused = try RawClient(port: server.port)
            let used = try RawClient(port: server.port)
            let begun = ContinuousClock.now
            used.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await used.reply().status == 200)
            #expect(try await used.everything() == "")
            #expect(ContinuousClock.now - begun > .milliseconds(700))
            #expect(try await unused.everything() == "")
            #expect(server.statistics.refused.isEmpty)
        }
    }

    @Test("a client that doesn't read its answer is let go")
    func unreadAnswer() async throws {
        let body = Data(repeating: 0, count: 20_000_000)
        try await withServer(
            { $0.requestTimeout = .milliseconds(300) }, handler: { _ in .init(status: 200, body: body) }
        ) {
            server in
            let client = try RawClient(port: server.port, receiveBuffer: 4_096)
            client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            await eventually("it is served") { server.statistics.requestsServed == 1 }
            await eventually("it is closed") { server.statistics.connectionsOpen == 0 }
            client.close()
        }
    }
}
