import HTTPClient

/// Sends one HTTP request. The real one is ``HTTPClient``; a test scripts its own.
public protocol HTTPTransport: Sendable {
    /// - Throws: when there is no answer; the error tells whether the request may have been sent.
    func send(_ request: HTTPClientRequest) async throws(HTTPClientError) -> HTTPClientResponse
}

extension HTTPClient: HTTPTransport {}
