import Basics
import Foundation
import HTTPServer
import Synchronization

/// A real HTTP server that takes notifications, and answers them as it is told.
final class Receiver: Sendable {
    struct Received: Sendable {
        let path: String
        let signature: String?
        let contentType: String?
        let body: Data
        let time: ContinuousClock.Instant
        var json: JSON { (try? JSON(parsing: body)) ?? .null }
        var event: String? { json["event"]?.string }
    }

    private let server: HTTPServer
    private let shared: Shared
    let url: String

    /// `status` is asked for each delivery, with how many came before it.
    init(status: @escaping @Sendable (Int, Received) -> Int = { _, _ in 200 }) throws {
        let shared = Shared()
        let server = HTTPServer(HTTPServerConfiguration(host: "127.0.0.1", port: 0)) { request in
            let received = Received(
                path: request.path, signature: request.headers["X-Signature"],
                contentType: request.headers["Content-Type"], body: request.body, time: .now)
            let before = shared.add(received)
            return HTTPServerResponse(status: status(before, received))
        }
        try server.start()
        self.server = server
        self.shared = shared
        url = "http://127.0.0.1:\(server.port)/hook"
    }

    /// What the handler and the test share.
    private final class Shared: Sendable {
        private let list = Mutex<[Received]>([])
        func add(_ received: Received) -> Int {
            list.withLock {
                $0.append(received)
                return $0.count - 1
            }
        }
        var all: [Received] { list.withLock { $0 } }
    }

    var received: [Received] { shared.all }
    var events: [String] { received.compactMap(\.event) }

    func stop() async { await server.drain(within: .seconds(1)) }
}
