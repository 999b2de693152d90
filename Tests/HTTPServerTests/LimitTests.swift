import Basics
import Foundation
import TestKit
import Testing

@testable import HTTPServer

@Suite("Requests that are too much")
struct LimitTests {
    @Test("the longest head is served, one byte more is 431")
    func headerLimit() async throws {
        try await withServer({
            worded(&$0)
            $0.maximumHeaderBytes = 2_000
        }) { server in
            func request(_ size: Int) -> String {
                let start = "GET / HTTP/1.1\r\nHost: a\r\nX: "
                return start + String(repeating: "x", count: size - start.utf8.count - 4) + "\r\n\r\n"
            }
            let client = try RawClient(port: server.port)
            client.write(request(2_000))
            #expect(try await client.reply().status == 200)
            client.write(request(2_001))
            let reply = try await client.reply()
            #expect(reply.status == 431)
            #expect(reply.body.contains("headersTooLarge"))
            #expect(try await client.isEnded())
        }
    }

    @Test("a refusal knows the fields of its own request, where its head was read, and of no other")
    func fieldsOfRefused() async throws {
        try await withServer({ configuration in
            configuration.refusalResponse = { refusal in
                HTTPServerResponse(status: 200, headers: ["X-Got": refusal.headers["x-mine"] ?? "none"])
            }
        }) { server in
            let end = " HTTP/1.1\r\nHost: a\r\nX-Mine: yes\r\n"
            let longTarget = String(repeating: "x", count: 4_096)
            let longValue = String(repeating: "x", count: 8_192)
            let cases: [(String, Int, String)] = [
                ("POST /\(end)Content-Length: 3\r\nContent-Encoding: gzip\r\n\r\nabc", 415, "yes"),
                ("POST /\(end)Content-Length: 999999999\r\n\r\n", 413, "yes"),
                ("POST /\(end)Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400, "yes"),
                ("GET /\(longTarget)\(end)\r\n", 414, "yes"), ("GET /\(end)X: \(longValue)\r\n\r\n", 431, "yes"),
                ("GET /\u{7F}\(end)\r\n", 400, "none"),
                ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400, "none"),
            ]
            for (request, status, got) in cases {
                let client = try RawClient(port: server.port)
                client.write("GET /\(end)\r\n")
                #expect(try await client.reply().status == 200)
                client.write(request)
                let reply = try await client.reply()
                #expect(reply.status == status && reply["X-Got"] == got, "\(request.prefix(40))")
            }
        }
    }

    @Test("a head that never ends is 431", arguments: ["X-Long: xxxxxxxxxxxxxxxxxxxxxxxx", "xxxxxxxxxxxx", "X: y\r\n"])
    func endlessHead(piece: String) async throws {
        try await withServer(worded) { server in
            let client = try RawClient(port: server.port)
            client.write("GET / HTTP/1.1\r\nHost: a\r\n")
            let pieces = String(repeating: piece, count: 40_000 / piece.utf8.count)
            client.write(pieces)
            let reply = try await client.reply()
            #expect(reply.status == 431)
            #expect(reply["Content-Type"] == "application/problem+json")
        }
    }

    @Test("the longest target is served, one byte more is 414, and so is one that never ends")
    func targetLimit() async throws {
        try await withServer(worded) { server in
            func request(_ size: Int) -> String { "GET /" + String(repeating: "x", count: size - 1) }
            let end = " HTTP/1.1\r\nHost: a\r\n\r\n"
            let client = try RawClient(port: server.port)
            client.write(request(4_096) + end)
            #expect(try await client.reply().status == 200)
            client.write(request(4_097) + end)
            #expect(try await client.reply().status == 414)
            let endless = try RawClient(port: server.port)
            endless.write(request(60_000))
            let reply = try await endless.reply()
            #expect(reply.status == 414)
            #expect(reply.body.contains("uriTooLong"))
        }
    }

    @Test("a body announced as too long is 413 before any of it is read")
    func announcedTooLong() async throws {
        try await withServer({
            worded(&$0)
            $0.maximumBodyBytes = { method, path in method == "POST" && path == "/small" ? 10 : 100 }
        }) { server in
            try await expectRefusal(
                .bodyTooLarge, of: "POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n", at: server,
                path: "/small")
        }
    }

    @Test("a body just as long as allowed is served; limits differ by path")
    func bodyLimit() async throws {
        try await withServer({ $0.maximumBodyBytes = { _, path in path == "/small" ? 10 : 20 } }) { server in
            let client = try RawClient(port: server.port)
            client.write("POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789")
            #expect(try await client.reply().status == 200)
            client.write("POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n0123456789a")
            #expect(try await client.reply().status == 200)
        }
    }

    @Test("who asks before sending too much is told 413 instead of 100")
    func expectRefused() async throws {
        try await withServer({
            worded(&$0)
            $0.maximumBodyBytes = { _, _ in 10 }
        }) { server in
            try await expectRefusal(
                .bodyTooLarge,
                of: "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n", at: server)
        }
    }

    @Test("a chunked body is cut off with 413 where it grows too long, and the client can read that")
    func chunkedTooLong() async throws {
        try await withServer({
            worded(&$0)
            $0.maximumBodyBytes = { _, _ in 1_000 }
        }) { server in
            let client = try RawClient(port: server.port)
            client.write("POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            let chunk = "3e8\r\n" + String(repeating: "x", count: 1_000) + "\r\n"
            for _ in 0..<20 { client.write(chunk) }
            let reply = try await client.reply()
            #expect(reply.status == 413)
            #expect(reply.body == "{\"kind\":\"bodyTooLarge\",\"path\":\"/c\"}")
            #expect(try await client.isEnded())
            #expect(server.statistics.requestsServed == 0)
        }
    }

    @Test("who sends a large body at once still reads the 413")
    func lingering() async throws {
        try await withServer(worded) { server in
            let client = try RawClient(port: server.port)
            client.write("POST /big HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
            client.write(String(repeating: "x", count: 1_000_000))
            #expect(try await client.reply().status == 413)
            #expect(try await client.isEnded())
        }
    }

    @Test("an encoded body is 415", arguments: ["gzip", "identity, gzip", "deflate", "br"])
    func contentEncoding(coding: String) async throws {
        try await withServer(worded) { server in
            try await expectRefusal(
                .unsupportedEncoding,
                of: "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Encoding: \(coding)\r\n\r\nabc",
                at: server)
        }
    }

    @Test("identity is no encoding")
    func identity() async throws {
        try await withServer { server in
            let client = try RawClient(port: server.port)
            client.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Encoding: Identity\r\n\r\nabc")
            #expect(try await client.reply().body == "POST / - abc")
        }
    }

    @Test("a refused HEAD has no body")
    func refusedHead() async throws {
        try await withServer(worded) { server in
            let client = try RawClient(port: server.port)
            client.write("HEAD / HTTP/1.1\r\n\r\n")
            let text = try await client.everything()
            #expect(text.hasPrefix("HTTP/1.1 400 ") && text.hasSuffix("\r\n\r\n"))
        }
    }

    @Test("connections beyond the limit are told 503, and are let in when others have gone")
    func connectionLimit() async throws {
        try await withServer({
            worded(&$0)
            $0.maximumConnections = 3
        }) { server in
            var clients = try (0..<3).map { _ in try RawClient(port: server.port) }
            await eventually("three are in") { server.statistics.connectionsOpen == 3 }
            let fourth = try RawClient(port: server.port)
            fourth.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            let reply = try await fourth.reply()
            #expect(reply.status == 503)
            #expect(reply.body.contains("overloaded"))
            #expect(try await fourth.isEnded())
            clients[0].close()
            clients.removeFirst()
            fourth.close()
            await eventually("one has gone") { server.statistics.connectionsOpen == 2 }
            let fifth = try RawClient(port: server.port)
            fifth.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await fifth.reply().status == 200)
        }
    }
}
