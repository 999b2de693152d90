import Basics
import Foundation

/// A request whose body is still being collected.
struct IncomingRequest {
    let path: String
    let headers: HTTPHeaders
    /// The library takes bare line feeds in chunk framing, which a proxy in front may read otherwise. What follows a
    /// chunked body on the same connection is therefore never taken for a request.
    let closesConnection: Bool
    private let method: String
    private let query: String?
    private let bodyLimit: Int
    private let receivedAt: ContinuousClock.Instant
    private let expectedLength: Int
    private var body = Data()

    init(
        head: RequestHead, target: RequestTarget, framing: BodyFraming, bodyLimit: Int,
        receivedAt: ContinuousClock.Instant
    ) {
        method = head.method
        headers = head.headers
        path = target.path
        query = target.query
        closesConnection = framing == .chunked
        self.bodyLimit = bodyLimit
        self.receivedAt = receivedAt
        if case .length(let length) = framing { expectedLength = length } else { expectedLength = 0 }
    }

    var bodyBytes: Int { body.count }

    /// False when the body has grown past its limit.
    mutating func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard body.count + bytes.count <= bodyLimit, let start = bytes.baseAddress else { return bytes.isEmpty }
        if body.isEmpty, bytes.count < expectedLength {
            // Not all of what was announced: who only announces shall not take memory.
            body.reserveCapacity(min(expectedLength, 64 * 1024))
        }
        body.append(start.assumingMemoryBound(to: UInt8.self), count: bytes.count)
        return true
    }

    func request(from remoteAddress: String) -> HTTPServerRequest {
        HTTPServerRequest(
            method: method, path: path, query: query, headers: headers, body: body, remoteAddress: remoteAddress,
            receivedAt: receivedAt)
    }
}
