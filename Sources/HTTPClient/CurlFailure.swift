import CCurl

/// What went wrong, from libcurl's code, from how far the request came, and from what the collector refused.
struct CurlFailure {
    let code: CURLcode
    /// libcurl's words.
    let message: String
    /// Whether a connection was once ready for the request, or libcurl counted bytes of it.
    let mayHaveBeenSent: Bool
    let nameWasResolved: Bool
    /// Whether the time of the whole request was over, not only the time to connect.
    let deadlinePassed: Bool
    let refusal: ResponseCollector.Refusal?

    func error(for request: PreparedRequest) -> HTTPClientError {
        HTTPClientError(
            kind, mayHaveBeenSent: mayHaveBeenSent, detail: Self.scrubbed(words, of: request.secrets),
            curlCode: Int32(bitPattern: code.rawValue))
    }

    private var words: String {
        switch refusal {
        case .headersTooLarge: "the response's header is longer than allowed"
        case .bodyTooLarge: "the response's body is longer than allowed"
        case .notHTTP: "the response does not begin with an HTTP status line"
        case nil: code == CURLE_ABORTED_BY_CALLBACK ? "the connection ended before an answer; not sent again" : message
        }
    }

    private var kind: HTTPClientError.Code {
        switch refusal {
        case .headersTooLarge, .bodyTooLarge: return .responseTooLarge
        case .notHTTP: return .malformedResponse
        case nil: break
        }
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: return .cannotResolve
        case CURLE_COULDNT_CONNECT, CURLE_INTERFACE_FAILED: return .cannotConnect
        case CURLE_OPERATION_TIMEDOUT:
            if deadlinePassed || mayHaveBeenSent { return .timedOut }
            return nameWasResolved ? .cannotConnect : .cannotResolve
        case CURLE_FILESIZE_EXCEEDED: return .responseTooLarge
        // Before the request they are about the URL. After it: an answer in HTTP/0.9, a trailer without a colon.
        case CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT, CURLE_BAD_FUNCTION_ARGUMENT:
            return mayHaveBeenSent ? .malformedResponse : .invalidRequest
        case CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING: return .malformedResponse
        // libcurl's own limit of one header line.
        case CURLE_OUT_OF_MEMORY: return mayHaveBeenSent ? .responseTooLarge : .other
        case CURLE_ABORTED_BY_CALLBACK, CURLE_GOT_NOTHING, CURLE_PARTIAL_FILE, CURLE_HTTP2, CURLE_HTTP2_STREAM,
            CURLE_SEND_FAIL_REWIND:
            return .connectionLost
        // In TLS 1.3 a server refuses the client's certificate after the handshake, in an alert that libcurl meets
        // while it reads or writes. Only its words tell that from a lost connection.
        case CURLE_SEND_ERROR, CURLE_RECV_ERROR: return message.contains("alert") ? .tls : .connectionLost
        default: return Self.tlsCodes.contains(code) ? .tls : .other
        }
    }

    private static let tlsCodes = [
        CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_ENGINE_NOTFOUND,
        CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_USE_SSL_FAILED,
        CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_SHUTDOWN_FAILED, CURLE_SSL_CRL_BADFILE,
        CURLE_SSL_ISSUER_ERROR, CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT,
    ]

    /// `words` in one printable line of at most 300 characters, without any of `secrets`.
    static func scrubbed(_ words: String, of secrets: [String]) -> String {
        var words = words
        for secret in secrets { words = words.replacing(secret, with: "…") }
        let line = words.unicodeScalars.map { $0.properties.generalCategory == .control ? " " : Character($0) }
        return String(line.prefix(300))
    }
}
