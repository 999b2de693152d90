import Basics
import Foundation
import TestKit
import Testing

@testable import HTTPServer

@Suite("Draining")
struct DrainTests {
    @Test("what is in flight is answered and closed, idle connections are closed, new ones refused")
    func drain() async throws {
        let gate = Gate()
        let server = HTTPServer(.init(host: "127.0.0.1", port: 0)) { request in
            await gate.pass()
            return await echo(request)
        }
        try server.start()
        let idle = try RawClient(port: server.port)
        let busy = try RawClient(port: server.port)
        busy.write("GET /busy HTTP/1.1\r\nHost: a\r\n\r\n")
        await eventually("it is at its handler") { server.statistics.requestsInFlight == 1 }
        async let drained: Void = server.drain(within: .seconds(60))
        #expect(try await idle.everything() == "")
        #expect(throws: RawClient.Failure.self) { try RawClient(port: server.port) }
        #expect(server.statistics.requestsInFlight == 1)
        gate.open()
        let reply = try await busy.reply()
        #expect(reply.status == 200)
        #expect(reply.body == "GET /busy - ")
        #expect(reply["Connection"] == "close")
        await drained
        #expect(try await busy.isEnded())
        #expect(server.statistics.connectionsOpen == 0)
    }

    @Test("a request whose head comes after the drain has begun is told so")
    func lateRequest() async throws {
        let gate = Gate()
        let server = HTTPServer(.init(host: "127.0.0.1", port: 0)) { request in
            await gate.pass()
            return await echo(request)
        }
        try server.start()
        let busy = try RawClient(port: server.port)
        busy.write("GET /busy HTTP/1.1\r\nHost: a\r\n\r\n")
        let late = try RawClient(port: server.port)
        late.write("GET /late HTTP/1.1\r\n")
        let uploading = try RawClient(port: server.port)
        uploading.write("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab")
        await eventually("one is at its handler, another uploading") {
            server.statistics.requestsInFlight == 1 && server.statistics.bytesBuffered == 2
        }
        async let drained: Void = server.drain(within: .seconds(60))
        await eventually("new connections are refused") { (try? RawClient(port: server.port)) == nil }
        late.write("Host: a\r\n\r\n")
        let reply = try await late.reply()
        #expect(reply.status == 503)
        #expect(reply.body == "draining\n")
        gate.open()
        uploading.write("cd")
        #expect(try await uploading.reply().body == "POST /up - abcd")
        #expect(try await busy.reply().status == 200)
        await drained
    }

    @Test("a request that must have its answer is served, although its head comes after the drain has begun")
    func servedWhileDraining() async throws {
        let gate = Gate()
        var configuration = HTTPServerConfiguration(host: "127.0.0.1", port: 0)
        configuration.servesWhileDraining = { method, path in method == "POST" && path == "/must" }
        let server = HTTPServer(configuration) { request in
            await gate.pass()
            return await echo(request)
        }
        try server.start()
        let idle = try RawClient(port: server.port)
        let must = try RawClient(port: server.port)
        must.write("POST /must HTTP/1.1\r\n")
        let other = try RawClient(port: server.port)
        other.write("POST /other HTTP/1.1\r\n")
        let busy = try RawClient(port: server.port)
        busy.write("GET /busy HTTP/1.1\r\nHost: a\r\n\r\n")
        await eventually("one is at its handler") { server.statistics.requestsInFlight == 1 }
        async let drained: Void = server.drain(within: .seconds(60))
        // Idle ones are closed once it has begun.
        #expect(try await idle.isEnded())
        must.write("Host: a\r\nContent-Length: 2\r\n\r\nhi")
        other.write("Host: a\r\nContent-Length: 2\r\n\r\nhi")
        #expect(try await other.reply().status == 503)
        gate.open()
        let reply = try await must.reply()
        #expect(reply.status == 200 && reply.body == "POST /must - hi" && reply["Connection"] == "close")
        #expect(try await busy.reply().status == 200)
        await drained
    }

    @Test(
        "what isn't done within the limit is told 503 and closed, and its handler may end later",
        .timeLimit(.minutes(1)))
    func drainLimit() async throws {
        let gate = Gate()
        let server = HTTPServer(.init(host: "127.0.0.1", port: 0)) { request in
            await gate.pass()
            return await echo(request)
        }
        try server.start()
        let clients = try (0..<10).map { _ in try RawClient(port: server.port) }
        for client in clients { client.write("GET /stuck HTTP/1.1\r\nHost: a\r\n\r\n") }
        let half = try RawClient(port: server.port)
        half.write("GET /half HTTP/1.1\r\n")
        await eventually("they are at their handlers") { server.statistics.requestsInFlight == 10 }
        let begun = ContinuousClock.now
        await server.drain(within: .milliseconds(200))
        #expect(ContinuousClock.now - begun > .milliseconds(200))
        for client in clients {
            let reply = try await client.reply()
            #expect(reply.status == 503)
            #expect(reply["Connection"] == "close")
        }
        #expect(try await half.isEnded())
        #expect(server.statistics.requestsInFlight == 10)
        gate.open()
        await eventually("the handlers have ended") { server.statistics.requestsInFlight == 0 }
    }

    @Test("draining twice, at once, or a server that never started, is harmless")
    func drainTwice() async throws {
        let server = HTTPServer(.init(host: "127.0.0.1", port: 0), handler: echo)
        try server.start()
        async let first: Void = server.drain(within: .seconds(1))
        async let second: Void = server.drain(within: .seconds(1))
        _ = await (first, second)
        await server.drain(within: .seconds(1))
        let never = HTTPServer(.init(host: "127.0.0.1", port: 0), handler: echo)
        await never.drain(within: .seconds(1))
        #expect(throws: HTTPServerError.self) { try never.start() }
    }

    @Test("a server that is let go of stops")
    func deinitialised() async throws {
        var server: HTTPServer? = HTTPServer(.init(host: "127.0.0.1", port: 0), handler: echo)
        try server?.start()
        let port = try #require(server?.port)
        let client = try RawClient(port: port)
        client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try await client.reply().status == 200)
        server = nil
        #expect(try await client.isEnded())
        await eventually("nothing listens") { (try? RawClient(port: port)) == nil }
    }

    @Test("draining under load loses no answer that was begun")
    func drainUnderLoad() async throws {
        for round in 0..<5 {
            let server = HTTPServer(.init(host: "127.0.0.1", port: 0), handler: echo)
            try server.start()
            let port = server.port
            try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        var served = 0
                        guard let client = try? RawClient(port: port) else { return 0 }
                        while client.write("GET /x HTTP/1.1\r\nHost: a\r\n\r\n") {
                            guard let reply = try? await client.reply() else { break }
                            guard reply.status == 200 else {
                                #expect(reply.status == 503)
                                break
                            }
                            served += 1
                            if reply["Connection"] == "close" { break }
                        }
                        return served
                    }
                }
                await eventually("there is load") { server.statistics.requestsServed > 20 * (round + 1) }
                await server.drain(within: .seconds(30))
                #expect(server.statistics.connectionsOpen == 0)
                #expect(server.statistics.requestsInFlight == 0)
                var served = 0
                for try await count in group { served += count }
                #expect(served == server.statistics.requestsServed)
            }
        }
    }
}
