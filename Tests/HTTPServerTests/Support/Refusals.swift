import Basics
import Foundation
import TestKit
import Testing

@testable import HTTPServer

/// Words refusals as the service does, so that the tests see who answered.
func worded(_ configuration: inout HTTPServerConfiguration) {
    configuration.refusalResponse = { refusal in
        HTTPServerResponse(
            status: 200, headers: ["Content-Type": "application/problem+json"],
            body: Data("{\"kind\":\"\(refusal.kind.rawValue)\",\"path\":\"\(refusal.path ?? "")\"}".utf8))
    }
}

/// Sends the bytes, and expects this refusal and then the end of the connection.
func expectRefusal(
    _ kind: HTTPServerRefusal.Kind, of bytes: String, at server: HTTPServer, path: String? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) async throws {
    let client = try RawClient(port: server.port)
    client.write(bytes)
    let reply = try await client.reply()
    #expect(reply.status == HTTPServerRefusal(kind: kind).status, sourceLocation: sourceLocation)
    #expect(reply.body.hasPrefix("{\"kind\":\"\(kind.rawValue)\""), sourceLocation: sourceLocation)
    #expect(reply["Content-Type"] == "application/problem+json", sourceLocation: sourceLocation)
    #expect(reply["Connection"] == "close", sourceLocation: sourceLocation)
    #expect(reply["Date"] != nil, sourceLocation: sourceLocation)
    if let path { #expect(reply.body.hasSuffix("\"path\":\"\(path)\"}"), sourceLocation: sourceLocation) }
    client.finishWriting()
    #expect(try await client.isEnded(), sourceLocation: sourceLocation)
    #expect(server.statistics.refused[kind] == 1, sourceLocation: sourceLocation)
    #expect(server.statistics.requestsServed == 0, "no handler may see it", sourceLocation: sourceLocation)
}
