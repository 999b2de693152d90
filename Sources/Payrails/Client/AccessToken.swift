import Basics
import Foundation
import HTTPClient
import Lockstep

/// A bearer token, and which of this client's tokens it is, so that a late 401 can't drop its successor.
struct AccessToken: Sendable {
    let value: Secret<String>
    let generation: Int
    /// By the steady clock, with the margin already taken off.
    let goodUntil: Duration
}

/// The token call (section 1.3), without keeping what it gives.
struct TokenCall: Sendable {
    let configuration: PayrailsConfiguration

    struct Grant: Sendable {
        let value: Secret<String>
        /// How long it may be used, counted from when it was asked for.
        let usable: Duration
    }

    var request: HTTPClientRequest {
        let address = configuration.baseURL + "/auth/token/" + Address.encode(configuration.clientID)
        var request = HTTPClientRequest(
            method: "POST", url: address,
            headers: ["x-api-key": configuration.clientSecret.reveal, "Accept": "application/json"],
            timeout: configuration.tokenTimeout)
        request.maximumResponseBytes = 256 * 1024
        return request
    }

    func read(_ response: HTTPClientResponse) -> Outcome<Grant> {
        OutcomeTable.outcome(of: response, changesSomething: false, what: "an access token", read: grant)
    }

    private func grant(_ body: JSON) -> Grant? {
        // A token goes into a header, so nothing but visible ASCII can be one.
        guard let token = body["access_token"]?.string, !token.isEmpty,
            token.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { return nil }
        let told = body["expires_in"]?.integer ?? body["expires_in"]?.string.flatMap { Int64($0) }
        let life = told.map { Duration.seconds(min(max($0, 0), 86_400)) } ?? configuration.assumedTokenLifetime
        return Grant(value: Secret(token), usable: life - min(configuration.tokenRefreshMargin, life / 2))
    }
}
