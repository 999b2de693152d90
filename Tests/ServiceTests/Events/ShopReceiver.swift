import Basics
import Foundation
import HTTPServer
import Synchronization

/// The shop's end of the webhooks: a real HTTP server that keeps what comes, and answers as it is told.
final class ShopReceiver: Sendable {
    struct Received: Sendable {
        let headers: HTTPHeaders
        let body: Data
        /// How many requests of the same lane were being answered when it came, itself not counted.
        let alongside: Int
        var json: JSON { (try? JSON(parsing: body)) ?? .null }
        var id: String { headers["webhook-id"] ?? "-" }
        var type: String { json["type"]?.string ?? "-" }
        /// The checkout that it is about; an event without one is alone in its lane.
        var lane: String {
            let data = json["data"]
            return data?["checkout"]?["id"]?.string ?? data?["execution"]?["checkoutId"]?.string ?? id
        }
    }

    /// What to answer: the n-th time (from 1) that this event comes.
    typealias Answering = @Sendable (_ event: Received, _ time: Int) async -> HTTPServerResponse

    private struct State {
        var received: [Received] = []
        var answered: [(id: String, status: Int)] = []
        var running: [String: Int] = [:]
    }

    private final class Book: Sendable { let state = Mutex(State()) }

    private let server: HTTPServer
    private let book: Book
    var port: UInt16 { server.port }
    var url: String { "http://127.0.0.1:\(server.port)/hook/" }

    /// - Parameter port: 0 for any.
    init(port: UInt16 = 0, answer: @escaping Answering = { _, _ in HTTPServerResponse(status: 204) }) throws {
        let book = Book()
        self.book = book
        server = HTTPServer(HTTPServerConfiguration(host: "127.0.0.1", port: port)) { request in
            guard request.method == "POST", request.path == "/hook/" else { return HTTPServerResponse(status: 404) }
            let (event, time) = book.state.withLock { state in
                let bare = Received(headers: request.headers, body: request.body, alongside: 0)
                let event = Received(
                    headers: request.headers, body: request.body, alongside: state.running[bare.lane] ?? 0)
                state.received.append(event)
                state.running[event.lane, default: 0] += 1
                return (event, state.received.count { $0.id == event.id })
            }
            let response = await answer(event, time)
            book.state.withLock { state in
                state.running[event.lane, default: 0] -= 1
                state.answered.append((event.id, response.status))
            }
            return response
        }
        try server.start()
    }

    var received: [Received] { book.state.withLock(\.received) }

    /// What came about a checkout, in the order in which it came.
    func received(about checkout: String) -> [Received] { received.filter { $0.lane == checkout } }

    /// The types that were accepted about a checkout, in order, each once.
    func accepted(about checkout: String) -> [String] {
        let answered = book.state.withLock(\.answered)
        let about = Dictionary(
            received(about: checkout).map { ($0.id, $0.type) }, uniquingKeysWith: { first, _ in first })
        var seen: Set<String> = []
        return answered.filter { (200...299).contains($0.status) && about[$0.id] != nil && seen.insert($0.id).inserted }
            .compactMap { about[$0.id] }
    }

    func stop() async { await server.drain(within: .seconds(2)) }
}
