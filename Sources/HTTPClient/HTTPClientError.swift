/// Why there is no response.
public struct HTTPClientError: Error, Sendable, CustomStringConvertible {
    public enum Code: Sendable {
        /// The request, or the configuration, is not one that this client sends.
        case invalidRequest
        case plainHTTPRefused
        /// The name has no address, or its resolver did not answer within the connect timeout.
        case cannotResolve
        /// No connection, or none within the connect timeout.
        case cannotConnect
        /// No handshake, no trust, or the server refused the client's certificate.
        case tls
        /// The request's own deadline passed.
        case timedOut
        /// The connection ended before the response did.
        case connectionLost
        case responseTooLarge
        case malformedResponse
        /// The task was cancelled.
        case cancelled
        /// More requests at once than ``HTTPClientConfiguration/maximumRequests``.
        case tooManyRequests
        /// The client was shut down.
        case shutDown
        case other
    }

    public let code: Code
    /// False only when it is certain that not one byte of the request reached the server. True means unknown: the
    /// server may have acted on it.
    public let mayHaveBeenSent: Bool
    /// For an operator: libcurl's words, without the URL's query, headers or bodies.
    public let detail: String
    /// libcurl's `CURLcode`, where it was libcurl that failed.
    public let curlCode: Int32?

    init(_ code: Code, mayHaveBeenSent: Bool = false, detail: String, curlCode: Int32? = nil) {
        self.code = code
        self.mayHaveBeenSent = mayHaveBeenSent
        self.detail = detail
        self.curlCode = curlCode
    }

    public var description: String {
        let number = curlCode.map { ", curl \($0)" } ?? ""
        return "\(code): \(detail) (\(mayHaveBeenSent ? "may have been sent" : "not sent")\(number))"
    }
}
