import Basics
import Foundation
import Synchronization
import TestKit
import Testing

@testable import HTTPServer

/// Answers with what it got, one line each, so that a test sees it from outside.
let echo: @Sendable (HTTPServerRequest) async -> HTTPServerResponse = { request in
    let text =
        "\(request.method) \(request.path) \(request.query ?? "-") \(String(decoding: request.body, as: UTF8.self))"
    return HTTPServerResponse(status: 200, headers: ["X-Echo": "1"], body: Data(text.utf8))
}

/// Starts a server on a free port, and drains it afterwards.
func withServer(
    _ configure: (inout HTTPServerConfiguration) -> Void = { _ in },
    handler: @escaping @Sendable (HTTPServerRequest) async -> HTTPServerResponse = echo,
    _ body: (HTTPServer) async throws -> Void
) async throws {
    var configuration = HTTPServerConfiguration(host: "127.0.0.1", port: 0)
    configure(&configuration)
    let server = HTTPServer(configuration, handler: handler)
    try server.start()
    do {
        try await body(server)
    } catch {
        await server.drain(within: .zero)
        throw error
    }
    await server.drain(within: .seconds(1))
    #expect(server.statistics.connectionsOpen == 0)
}

/// Waits until it is so; an issue is recorded when it never is.
func eventually(
    _ what: Comment, within limit: Duration = .seconds(30), sourceLocation: SourceLocation = #_sourceLocation,
    _ condition: () async throws -> Bool
) async rethrows {
    if try await !waitUntil(limit, condition) { Issue.record(what, sourceLocation: sourceLocation) }
}

/// A door that handlers wait at until a test opens it.
final class Gate: Sendable {
    private let state = Mutex<(isOpen: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))

    func pass() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLock { state in
                if !state.isOpen { state.waiting.append(continuation) }
                return state.isOpen
            }
            if isOpen { continuation.resume() }
        }
    }

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
}
