import Basics
import Foundation

/// What goes back. `Content-Length`, `Date`, `Connection` and `Transfer-Encoding` are the server's business and are
/// dropped from `headers`. A header that could not be sent as one line turns the whole answer into an empty 500.
public struct HTTPServerResponse: Sendable {
    /// 200 to 599; anything else is sent as 500.
    public var status: Int
    public var headers: HTTPHeaders
    /// Not sent in answer to `HEAD`, whose `Content-Length` still tells its size.
    public var body: Data
    /// Sends `Connection: close` and closes after this answer.
    public var closesConnection = false
    /// Breaks the connection off after this many bytes of the body; 0: before anything is sent. For a stand-in that
    /// plays a server that fails.
    public var cut: Int?

    public init(status: Int, headers: HTTPHeaders = HTTPHeaders(), body: Data = Data()) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

extension HTTPServerResponse {
    /// The response as it may go onto the wire: framing headers taken out, and 500 for what would break the framing.
    var sendable: HTTPServerResponse {
        guard (200...599).contains(status), headers.fields.allSatisfy(\.isSendable) else {
            return HTTPServerResponse(status: 500)
        }
        guard headers.fields.contains(where: \.isFraming) else { return self }
        var cleaned = self
        cleaned.headers = HTTPHeaders(headers.fields.filter { !$0.isFraming })
        return cleaned
    }
}

extension HTTPHeaders.Field {
    /// A name made of token characters, and a value without line breaks or other control characters (RFC 9110, 5.5).
    fileprivate var isSendable: Bool {
        !name.isEmpty && name.utf8.allSatisfy(\.isTokenCharacter) && value.utf8.allSatisfy(\.isFieldValueByte)
    }

    fileprivate var isFraming: Bool {
        switch name.utf8.count {
        case 4, 10, 14, 17: framingNames.contains { name.equalsIgnoringASCIICase($0) }
        default: false
        }
    }
}

private let framingNames = ["content-length", "transfer-encoding", "connection", "date", "keep-alive"]
