import Basics
import Foundation
import Payrails
import Synchronization

@testable import HTTPClient
@testable import PayrailsSandbox

/// The line between a process and Payrails, in the simulation's time: it breaks where the stand-in breaks it, gives up
/// when the request's time is over, and behaves as ``HTTPClient`` does on a connection that ends.
struct SimulatedLink: HTTPTransport {
    let sandbox: PayrailsSandbox
    let time: VirtualTime
    let trouble: LinkTrouble

    func send(_ request: HTTPClientRequest) async throws(HTTPClientError) -> HTTPClientResponse {
        guard trouble.connects() else {
            throw HTTPClientError(
                .cannotConnect, mayHaveBeenSent: false, detail: "the simulation refused the connection")
        }
        let question = APIRequest(request, at: sandbox.baseURL)
        let end = time.now + request.timeout
        var wasResent = false
        while true {
            let sandbox = sandbox
            guard let answer = await time.race(within: end - time.now, { await sandbox.answer(question) }) else {
                throw HTTPClientError(.timedOut, mayHaveBeenSent: true, detail: "no answer in its time")
            }
            switch answer.breaks {
            case nil:
                return HTTPClientResponse(
                    status: answer.status, headers: answer.headers, body: answer.body, httpVersion: "1.1",
                    wasResent: wasResent)
            case .beforeAnything where !wasResent && trouble.connectionWasKept(): wasResent = true
            case .beforeAnything, .inTheBody:
                throw HTTPClientError(.connectionLost, mayHaveBeenSent: true, detail: "the connection ended")
            }
        }
    }
}

/// What goes wrong on the way to Payrails, by chance.
final class LinkTrouble: Sendable {
    private let state: Mutex<(dice: Dice, unreachable: Double)>

    /// - Parameter unreachable: the chance that a connection can't be made.
    init(_ dice: Dice, unreachable: Double) { state = Mutex((dice, unreachable)) }

    func connects() -> Bool { state.withLock { !$0.dice.chance($0.unreachable) } }
    /// A connection that was used before and ended without an answer: libcurl sends a request with a key, or one that only
    /// reads, again.
    func connectionWasKept() -> Bool { state.withLock { $0.dice.chance(0.5) } }
    func end() { state.withLock { $0.unreachable = 0 } }
}

extension APIRequest {
    fileprivate init(_ request: HTTPClientRequest, at base: String) {
        let address = request.url.dropFirst(base.count).split(separator: "?", maxSplits: 1)
        self.init(
            method: request.method, path: address.first.map(String.init) ?? "/",
            query: address.count > 1 ? String(address[1]) : nil, headers: request.headers, body: request.body ?? Data())
    }
}
