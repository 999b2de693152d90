/// Why a server could not start.
public struct HTTPServerError: Error, Hashable, Sendable, CustomStringConvertible {
    public enum Code: Hashable, Sendable {
        /// `host` is neither an address literal nor `localhost`.
        case badAddress
        /// Another process has the port.
        case addressInUse
        /// The system refused to listen there.
        case cannotListen
        /// libmicrohttpd could not start its threads.
        case cannotStart
        /// `start` was called before.
        case alreadyStarted
    }

    public let code: Code
    public let context: String
    /// The system's `errno`, where it gave one.
    public let systemError: Int32?

    public var description: String { "HTTP server: \(code): \(context)" }

    init(_ code: Code, _ context: String, systemError: Int32? = nil) {
        self.code = code
        self.context = context
        self.systemError = systemError
    }
}
