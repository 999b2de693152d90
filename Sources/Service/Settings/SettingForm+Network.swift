import Basics
import Foundation

/// Where the service listens.
public struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
    /// An IP address or a host's name, without brackets.
    public let host: String
    /// 0 takes any port that is free.
    public let port: UInt16

    public init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

extension SettingForm where Value == ListenAddress {
    static let listen = SettingForm("an address and a port, like 127.0.0.1:8080 or [::1]:8080") { text in
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]),
            text[text.index(after: colon)...].utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        var host = String(text[..<colon])
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = String(host.dropFirst().dropLast())
        } else if host.contains(":") {
            return nil
        }
        // `:8080` listens on all addresses, as in other programs.
        return ListenAddress(host: host.isEmpty ? "0.0.0.0" : host, port: port)
    }
}

/// An address that is called, or told to others: http or https, a host, no user and no fragment.
public struct ServiceURL: Hashable, Sendable, CustomStringConvertible {
    /// Without a slash at its end.
    public let text: String
    /// As it was given: to some receivers a slash at the end makes another address.
    public let exact: String
    public let host: String
    public let isPlain: Bool

    /// Nil for anything else, also for an address that holds credentials: addresses are logged.
    public init?(_ text: String) {
        guard text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), let parts = URLComponents(string: text),
            let scheme = parts.scheme?.lowercased(), scheme == "http" || scheme == "https",
            let host = parts.host?.lowercased(), !host.isEmpty, parts.user == nil, parts.password == nil,
            parts.fragment == nil, parts.port.map({ (1...65_535).contains($0) }) ?? true
        else { return nil }
        exact = text
        self.text = text.hasSuffix("/") ? String(text.dropLast()) : text
        self.host = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
        isPlain = scheme == "http"
    }

    /// Whether the host is the machine itself.
    public var isThisMachine: Bool {
        host == "localhost" || host == "::1"
            || host.wholeMatch(of: /127\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}/) != nil
    }

    /// Whether the host is an IP address instead of a name.
    public var hasNumericHost: Bool {
        host.contains(":") || host.wholeMatch(of: /[0-9]{1,3}(\.[0-9]{1,3}){3}/) != nil
    }

    public var description: String { text }
}

extension SettingForm where Value == ServiceURL {
    static let url = SettingForm(
        "an address like https://shop.example/path, without a password", optionally: ServiceURL.init)
}

extension SettingForm where Value == Set<String> {
    /// Scheme, host and port, as browsers send them in `Origin`.
    static let origins = SettingForm("origins with commas between them, like https://shop.example") { text in
        guard let parts = SettingText.list(text) else { return nil }
        let fits = parts.allSatisfy { part in
            guard let url = ServiceURL(part), url.text == part, part == part.lowercased() else { return false }
            return part.split(separator: "/", omittingEmptySubsequences: false).count == 3 && !part.contains("?")
        }
        return fits ? Set(parts) : nil
    }
}

extension SettingForm where Value == [Secret<Data>] {
    /// Secrets of Standard Webhooks, `whsec_<base64>`, 24 to 64 bytes as that specification says. Several sign together.
    static let signingSecrets = SettingForm(
        "whsec_ and 24 to 64 bytes in base64 (made by: echo whsec_$(openssl rand -base64 32)), several with commas"
    ) { text in
        guard let parts = SettingText.list(text) else { return nil }
        let secrets: [Secret<Data>] = parts.compactMap { part in
            guard part.hasPrefix("whsec_"), let bytes = Data(base64Encoded: String(part.dropFirst(6))),
                (24...64).contains(bytes.count)
            else { return nil }
            return Secret(bytes)
        }
        return secrets.count == parts.count ? secrets : nil
    }
}

extension SettingForm where Value == TimeZone {
    /// An offset or a zone of IANA.
    static let zone = SettingForm("an offset like -12:00, or a zone like Europe/Berlin") { text in
        if text == "Z" || text == "UTC" { return TimeZone(secondsFromGMT: 0) }
        if let match = text.wholeMatch(of: /([+-])([0-9]{2}):([0-9]{2})/) {
            guard let hours = Int(match.2), let minutes = Int(match.3), hours <= 14, minutes < 60 else { return nil }
            return TimeZone(secondsFromGMT: (match.1 == "-" ? -1 : 1) * (hours * 3600 + minutes * 60))
        }
        return text.contains("/") ? TimeZone(identifier: text) : nil
    }
}
