import Basics
import Foundation
import PayrailsSandbox

/// The command line.
struct SandboxOptions {
    struct BadUsage: Error { let reason: String }

    var wantsHelp = false
    var configuration = SandboxOptions.unhurried

    /// Times that a person can follow; nearer to what was seen on staging than the library's.
    private static var unhurried: SandboxConfiguration {
        var configuration = SandboxConfiguration()
        configuration.port = 8090
        configuration.authorizeDelay = .milliseconds(400)
        configuration.actionDelay = .milliseconds(400)
        // Doubling ten times from here takes about six hours (section 5.1).
        configuration.notificationBackoff = .seconds(21)
        return configuration
    }

    init(_ arguments: [String]) throws(BadUsage) {
        var rest = arguments[...]
        while let option = rest.popFirst() {
            guard option != "--help", option != "-h" else {
                wantsHelp = true
                return
            }
            var value: String?
            var name = option
            if option.hasPrefix("--"), let equals = option.firstIndex(of: "=") {
                name = String(option[..<equals])
                value = String(option[option.index(after: equals)...])
            }
            try apply(name) { () throws(BadUsage) in
                guard let given = value ?? rest.popFirst() else { throw BadUsage(reason: "\(name) needs a value") }
                return given
            }
        }
    }

    private mutating func apply(_ name: String, _ value: () throws(BadUsage) -> String) throws(BadUsage) {
        switch name {
        case "--listen": try listen(on: value())
        case "--notify":
            let text = try value()
            guard let split = text.lastIndex(of: "="), let url = URL(string: String(text[..<split])),
                url.host() != nil, text.index(after: split) < text.endIndex
            else { throw BadUsage(reason: "--notify takes URL=KEY, not \(text)") }
            configuration.notificationTargets.append(
                NotificationTarget(url: String(text[..<split]), key: String(text[text.index(after: split)...])))
        case "--client-id": configuration.clientID = try value()
        case "--client-secret": configuration.clientSecret = try value()
        case "--workspace-id":
            let text = try value()
            guard UUID(canonical: text) != nil else { throw BadUsage(reason: "--workspace-id takes a UUID") }
            configuration.workspaceID = text
        case "--latency-ms": configuration.latency = .milliseconds(try count(name, value()))
        case "--outcome-delay-ms":
            let delay = Duration.milliseconds(try count(name, value()))
            (configuration.authorizeDelay, configuration.actionDelay) = (delay, delay)
        case "--notify-backoff-ms": configuration.notificationBackoff = .milliseconds(try count(name, value()))
        case "--token-seconds": configuration.tokenLifetime = .seconds(try count(name, value()))
        case "--rate-limit": configuration.requestsPerSecond = Double(max(1, try count(name, value())))
        case "--capture-mode":
            let mode = try value()
            guard ["Manual", "Instant", "Delayed"].contains(mode) else {
                throw BadUsage(reason: "--capture-mode takes Manual, Instant or Delayed")
            }
            configuration.captureMode = mode
        case "--seed":
            let text = try value()
            guard let seed = UInt64(text) else { throw BadUsage(reason: "--seed takes a whole number, not \(text)") }
            configuration.seed = seed
        default: throw BadUsage(reason: "unknown option \(name)")
        }
    }

    private mutating func listen(on text: String) throws(BadUsage) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]),
            colon > text.startIndex
        else { throw BadUsage(reason: "--listen takes HOST:PORT, not \(text)") }
        let host = text[..<colon]
        configuration.host = String(host.hasPrefix("[") && host.hasSuffix("]") ? host.dropFirst().dropLast() : host)
        configuration.port = port
    }

    private func count(_ name: String, _ text: String) throws(BadUsage) -> Int {
        guard let count = Int(text), count >= 0 else {
            throw BadUsage(reason: "\(name) takes a whole number, not \(text)")
        }
        return count
    }

    static let help = """
        payrails-sandbox: a stand-in for Payrails on this machine, for trying things and for tests.

        It speaks Payrails' server API strictly, keeps a ledger of what really happened to the money, sends signed
        notifications, plays the app's SDK on request, and misbehaves on request.

          --listen HOST:PORT        where to listen (127.0.0.1:8090); port 0 takes any free one
          --notify URL=KEY          where notifications go, and what signs them; may stand several times
          --client-id ID            the credentials that it takes
          --client-secret SECRET
          --workspace-id UUID
          --latency-ms N            added to every answer (0)
          --outcome-delay-ms N      from an action to its result (400)
          --notify-backoff-ms N     before the first repetition of a notification, doubling (21000)
          --capture-mode MODE       Manual, Instant or Delayed (Manual)
          --token-seconds N         how long an access token lives (3600)
          --rate-limit N            calls in a second before 429 (none)
          --seed N                  the same ids and the same bad luck as another run
          --help

        Exit status: 0 stopped by SIGTERM or SIGINT, 64 bad usage, 69 can't listen.

        \(PayrailsSandbox.usage(baseURL: "http://127.0.0.1:8090"))
        """
}
