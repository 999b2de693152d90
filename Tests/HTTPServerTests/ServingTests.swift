import Basics
import Foundation
import TestKit
import Testing

@testable import HTTPServer

@Suite("Serving requests")
struct ServingTests {
    @Test("a handler sees method, raw path, raw query, headers, body and peer")
    func everythingArrives() async throws {
        let handler: @Sendable (HTTPServerRequest) async -> HTTPServerResponse = { request in
            let text = [
                request.method, request.path, request.query ?? "-", request.headers.all("x-two").joined(separator: "|"),
                String(decoding: request.body, as: UTF8.self), request.remoteAddress,
            ].joined(separator: "\n")
            return HTTPServerResponse(status: 201, headers: ["X-Answer": "a b"], body: Data(text.utf8))
        }
        try await withServer(handler: handler) { server in
            let client = try RawClient(port: server.port)
            client.write(
                "POST /v1/a%2Fb%20c?x=%26&y=1&&z HTTP/1.1\r\nHost: a\r\nX-Two:  one \t\r\nx-TWO: two\u{e9}\r\n"
                    + "Content-Length: 5\r\n\r\nhello")
            let reply = try await client.reply()
            #expect(reply.status == 201)
            #expect(reply.body == "POST\n/v1/a%2Fb%20c\nx=%26&y=1&&z\none|two\u{e9}\nhello\n127.0.0.1")
            #expect(reply["X-Answer"] == "a b")
            #expect(reply["Date"]?.hasSuffix("GMT") == true)
            #expect(reply["Server"] == nil)
            #expect(reply["Connection"] != "close")
        }
    }

    @Test("a connection serves one request after another")
    func keepAlive() async throws {
        try await withServer { server in
            let client = try RawClient(port: server.port)
            for number in 0..<50 {
                client.write("GET /\(number)?q HTTP/1.1\r\nHost: a\r\n\r\n")
                #expect(try await client.reply().body == "GET /\(number) q ")
            }
            #expect(server.statistics.connectionsAccepted == 1)
            #expect(server.statistics.requestsServed == 50)
        }
    }

    @Test("pipelined requests are answered in order, also when the first takes longest")
    func pipelining() async throws {
        let first = Gate()
        let handler: @Sendable (HTTPServerRequest) async -> HTTPServerResponse = { request in
            if request.path == "/0" { await first.pass() }
            return await echo(request)
        }
        try await withServer(handler: handler) { server in
            let client = try RawClient(port: server.port)
            for number in 0..<20 {
                client.write("POST /\(number) HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nb\(number % 10)")
            }
            await eventually("the first is at its handler") { server.statistics.requestsInFlight == 1 }
            first.open()
            for number in 0..<20 {
                #expect(try await client.reply().body == "POST /\(number) - b\(number % 10)")
            }
        }
    }

    @Test("HEAD has the length of the body and no body")
    func head() async throws {
        try await withServer { server in
            let client = try RawClient(port: server.port)
            client.write("HEAD /x HTTP/1.1\r\nHost: a\r\n\r\nGET /y HTTP/1.1\r\nHost: a\r\n\r\n")
            let reply = try await client.reply(toHEAD: true)
            #expect(reply.status == 200)
            #expect(reply["Content-Length"] == "\("HEAD /x - ".utf8.count)")
            #expect(try await client.reply().body == "GET /y - ")
        }
    }

    @Test("a chunked body is put together, and ends the connection's use")
    func chunked() async throws {
        try await withServer { server in
            let client = try RawClient(port: server.port)
            client.write("POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            client.write("5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nTrailer: t\r\n\r\n")
            let reply = try await client.reply()
            #expect(reply.body == "POST /c - hello world")
            #expect(reply["Connection"] == "close")
            #expect(try await client.isEnded())
        }
    }

    @Test("who waits for 100 Continue gets it")
    func expectContinue() async throws {
        try await withServer { server in
            let client = try RawClient(port: server.port)
            client.write("POST /e HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
            #expect(try await client.reply().status == 100)
            client.write("abc")
            #expect(try await client.reply().body == "POST /e - abc")
        }
    }

    @Test("HTTP/1.0 is served without Host and closed")
    func version10() async throws {
        try await withServer { server in
            let client = try RawClient(port: server.port)
            client.write("GET /old HTTP/1.0\r\n\r\n")
            #expect(try await client.reply().body == "GET /old - ")
            #expect(try await client.isEnded())
        }
    }

    @Test("absolute form and an asterisk are targets too")
    func targets() async throws {
        try await withServer { server in
            let client = try RawClient(port: server.port)
            client.write("GET http://shop.example:80/p?q=1 HTTP/1.1\r\nHost: shop.example\r\n\r\n")
            #expect(try await client.reply().body == "GET /p q=1 ")
            client.write("GET HTTP://shop.example?q HTTP/1.1\r\nHost: shop.example\r\n\r\n")
            #expect(try await client.reply().body == "GET / q ")
            client.write("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.reply().body == "OPTIONS * - ")
        }
    }

    @Test(
        "a response header that would break the framing is an empty 500",
        arguments: [("X-A", "a\r\nX-B: b"), ("X-A", "a\nb"), ("X A", "b"), ("", "b"), ("X:", "b"), ("X-A", "a\0b")])
    func responseSplitting(name: String, value: String) async throws {
        let handler: @Sendable (HTTPServerRequest) async -> HTTPServerResponse = { _ in
            HTTPServerResponse(
                status: 200, headers: HTTPHeaders([.init(name: name, value: value)]), body: Data("secret".utf8))
        }
        try await withServer(handler: handler) { server in
            let client = try RawClient(port: server.port)
            client.write("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            let text = try await client.everything()
            #expect(text.hasPrefix("HTTP/1.1 500 "))
            #expect(!text.contains("X-B") && !text.contains("secret"))
        }
    }

    @Test("a handler can't set framing headers, and can close")
    func framingHeaders() async throws {
        let handler: @Sendable (HTTPServerRequest) async -> HTTPServerResponse = { _ in
            var response = HTTPServerResponse(
                status: 200,
                headers: [
                    "Content-Length": "1", "Transfer-Encoding": "chunked", "Connection": "keep-alive", "Date": "now",
                    "Empty": "", "X-Kept": "yes",
                ], body: Data("four".utf8))
            response.closesConnection = true
            return response
        }
        try await withServer(handler: handler) { server in
            let client = try RawClient(port: server.port)
            client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            let reply = try await client.reply()
            #expect(reply["Content-Length"] == "4")
            #expect(reply["Transfer-Encoding"] == nil)
            #expect(reply["Connection"] == "close")
            #expect(reply["Date"] != "now")
            #expect(reply["X-Kept"] == "yes")
            #expect(reply.body == "four")
            #expect(try await client.isEnded())
        }
    }

    @Test("answers that have no body by their status don't disturb the next one", arguments: [204, 304])
    func bodylessStatus(status: Int) async throws {
        let handler: @Sendable (HTTPServerRequest) async -> HTTPServerResponse = { request in
            HTTPServerResponse(status: request.path == "/empty" ? status : 200, body: Data("body".utf8))
        }
        try await withServer(handler: handler) { server in
            let client = try RawClient(port: server.port)
            client.write("GET /empty HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.reply().status == status)
            #expect(try await client.reply().body == "body")
        }
    }

    @Test("a status that isn't final or isn't one is sent as 500", arguments: [-1, 0, 100, 199, 600, 1_000])
    func badStatus(status: Int) async throws {
        try await withServer(handler: { _ in HTTPServerResponse(status: status) }) { server in
            let client = try RawClient(port: server.port)
            client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.reply().status == 500)
        }
    }

    @Test("a large answer arrives whole")
    func largeAnswer() async throws {
        let body = Data(repeating: UInt8(ascii: "x"), count: 5_000_000)
        try await withServer(handler: { _ in HTTPServerResponse(status: 200, body: body) }) { server in
            let client = try RawClient(port: server.port)
            client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(try await client.reply().body.utf8.count == 5_000_000)
        }
    }

    @Test("curl posts, with a body and without, over one connection")
    func curl() async throws {
        try await withServer { server in
            let url = "http://localhost:\(server.port)"
            let output = try await offPool {
                let process = Process()
                process.executableURL = URL(fileURLWithPath: "/usr/bin/curl")
                process.arguments = [
                    "-sS", "--max-time", "30", "--data-binary", "abc", url + "/one", "--next", "-sS", url + "/two",
                ]
                let pipe = Pipe()
                process.standardOutput = pipe
                try process.run()
                let data = pipe.fileHandleForReading.readDataToEndOfFile()
                process.waitUntilExit()
                return String(decoding: data, as: UTF8.self)
            }
            #expect(output == "POST /one - abcGET /two - ")
        }
    }

    @Test("a second start, a taken port and a host name are errors that say so")
    func startErrors() async throws {
        try await withServer { server in
            #expect(throws: HTTPServerError.self) { try server.start() }
            let taken = HTTPServer(.init(host: "127.0.0.1", port: server.port), handler: echo)
            let error = #expect(throws: HTTPServerError.self) { try taken.start() }
            #expect(error?.code == .addressInUse)
            let named = HTTPServer(.init(host: "shop.example", port: 0), handler: echo)
            #expect(throws: HTTPServerError.self) { try named.start() }
        }
    }
}
