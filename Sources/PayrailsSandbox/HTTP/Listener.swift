import Basics
import Foundation
import HTTPServer
import Synchronization

/// The socket in front of the stand-in.
final class Listener: Sendable {
    private let configuration: SandboxConfiguration
    private let server = Mutex<HTTPServer?>(nil)

    init(_ configuration: SandboxConfiguration) { self.configuration = configuration }

    var port: UInt16 { server.withLock { $0?.port } ?? configuration.port }

    func start(_ sandbox: PayrailsSandbox) throws {
        var settings = HTTPServerConfiguration(host: configuration.host, port: configuration.port)
        settings.maximumBodyBytes = { _, _ in 4 * 1024 * 1024 }
        settings.handlerTimeout = configuration.longPollHold + .seconds(120)
        let server = HTTPServer(settings) { [weak sandbox] request in
            guard let sandbox else { return HTTPServerResponse(status: 503) }
            let answer = await sandbox.respond(
                to: APIRequest(
                    method: request.method, path: request.path, query: request.query, headers: request.headers,
                    body: request.body))
            var response = HTTPServerResponse(status: answer.status, headers: answer.headers, body: answer.body)
            switch answer.breaks {
            case .beforeAnything: response.cut = 0
            case .inTheBody: response.cut = max(1, answer.body.count / 2)
            case nil: break
            }
            return response
        }
        try server.start()
        self.server.withLock { $0 = server }
    }

    func stop() async {
        let server = server.withLock { server in
            defer { server = nil }
            return server
        }
        await server?.drain(within: .seconds(1))
    }
}
