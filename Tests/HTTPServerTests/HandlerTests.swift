import Basics
import Foundation
import Synchronization
import TestKit
import Testing

@testable import HTTPServer

@Suite("Handlers")
struct HandlerTests {
    @Test("a handler that doesn't answer is answered for, and its late answer dropped")
    func handlerTimeout() async throws {
        let gate = Gate()
        let handler: @Sendable (HTTPServerRequest) async -> HTTPServerResponse = { request in
            await gate.pass()
            return await echo(request)
        }
        try await withServer({ $0.handlerTimeout = .milliseconds(200) }, handler: handler) { server in
            let client = try RawClient(port: server.port)
            client.write("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
            let reply = try await client.reply()
            #expect(reply.status == 503)
            #expect(reply.body == "overloaded\n")
            #expect(server.statistics.requestsInFlight == 1, "the handler runs on")
            gate.open()
            await eventually("the handler has ended") { server.statistics.requestsInFlight == 0 }
            #expect(try await client.everything() == "")
        }
    }

    @Test("a client that goes away doesn't stop its handler, and nothing of it is left")
    func clientGone() async throws {
        let gate = Gate()
        let finished = Atomic(0)
        let cancelled = Atomic(0)
        let handler: @Sendable (HTTPServerRequest) async -> HTTPServerResponse = { request in
            await gate.pass()
            if Task.isCancelled { cancelled.add(1, ordering: .relaxed) }
            finished.add(1, ordering: .relaxed)
            return HTTPServerResponse(status: 200, body: Data(repeating: 0, count: 300_000))
        }
        try await withServer(handler: handler) { server in
            let clients = try (0..<40).map { _ in try RawClient(port: server.port) }
            for client in clients { client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab") }
            await eventually("all are at their handlers") { server.statistics.requestsInFlight == 40 }
            for (number, client) in clients.enumerated() {
                if number.isMultiple(of: 2) { client.reset() } else { client.close() }
            }
            gate.open()
            await eventually("nothing is left") {
                server.statistics.requestsInFlight == 0 && server.statistics.connectionsOpen == 0
                    && server.statistics.bytesBuffered == 0
            }
            #expect(finished.load(ordering: .relaxed) == 40)
            #expect(cancelled.load(ordering: .relaxed) == 0)
        }
    }

    @Test("requests beyond those that may be in flight are 503 at once, and their connections stay")
    func requestsInFlight() async throws {
        let gate = Gate()
        let handler: @Sendable (HTTPServerRequest) async -> HTTPServerResponse = { request in
            if request.path == "/wait" { await gate.pass() }
            return await echo(request)
        }
        try await withServer({ $0.maximumRequestsInFlight = 2 }, handler: handler) { server in
            let waiting = try (0..<2).map { _ in try RawClient(port: server.port) }
            for client in waiting { client.write("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n") }
            await eventually("two are at their handlers") { server.statistics.requestsInFlight == 2 }
            let client = try RawClient(port: server.port)
            for _ in 0..<3 {
                client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
                #expect(try await client.reply().status == 503)
            }
            #expect(server.statistics.refused == [.overloaded: 3])
            gate.open()
            for client in waiting { #expect(try await client.reply().status == 200) }
            client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.reply().status == 200)
        }
    }

    @Test("bodies take no more room together than they may, and give it back")
    func bufferedBytes() async throws {
        let gate = Gate()
        let handler: @Sendable (HTTPServerRequest) async -> HTTPServerResponse = { request in
            await gate.pass()
            return await echo(request)
        }
        try await withServer(
            {
                $0.maximumBufferedBytes = 1_000
                $0.reservedBodyBytes = 0
            }, handler: handler
        ) { server in
            let first = try RawClient(port: server.port)
            let half = String(repeating: "x", count: 500)
            first.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n" + half)
            let second = try RawClient(port: server.port)
            second.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + half)
            await eventually("both are buffered") { server.statistics.bytesBuffered == 1_000 }
            let third = try RawClient(port: server.port)
            third.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx")
            #expect(try await third.reply().status == 503)
            second.close()
            await eventually("what was dropped is given back") { server.statistics.bytesBuffered == 500 }
            gate.open()
            #expect(try await first.reply().status == 200)
            await eventually("all is given back") { server.statistics.bytesBuffered == 0 }
        }
    }

    @Test("large bodies that take all the room keep no small one out")
    func reservedBodyBytes() async throws {
        let gate = Gate()
        let handler: @Sendable (HTTPServerRequest) async -> HTTPServerResponse = { request in
            if request.path == "/wait" { await gate.pass() }
            return await echo(request)
        }
        try await withServer(
            {
                $0.maximumBufferedBytes = 1_000
                $0.reservedBodyBytes = 10
            }, handler: handler
        ) { server in
            let large = try RawClient(port: server.port)
            large.write(
                "POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n" + String(repeating: "x", count: 1_000))
            await eventually("there is no room") { server.statistics.bytesBuffered == 1_000 }
            let small = try RawClient(port: server.port)
            for _ in 0..<3 {
                small.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789")
                #expect(try await small.reply().body == "POST / - 0123456789")
            }
            // One that grows beyond its beginning needs room like any other.
            let growing = try RawClient(port: server.port)
            growing.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n0123456789")
            await eventually("its beginning is buffered") { server.statistics.bytesBuffered == 1_010 }
            growing.write("x")
            #expect(try await growing.reply().status == 503)
            gate.open()
            #expect(try await large.reply().status == 200)
            await eventually("all is given back") { server.statistics.bytesBuffered == 0 }
        }
    }
}
