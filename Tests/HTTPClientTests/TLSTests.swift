import Basics
import Foundation
import HTTPClient
import Synchronization
import TestKit
import Testing

extension HTTPClientTests {
    @Suite("whom it trusts, and who it says it is")
    struct TLSTests {
        private let authority: TLSAuthority
        private let serverPair: TLSAuthority.Pair

        init() async throws {
            authority = try await TLSAuthority()
            serverPair = try await authority.issue("server")
        }

        private func trusting(_ authority: TLSAuthority, as pair: TLSAuthority.Pair? = nil) -> HTTPClientConfiguration {
            var configuration = HTTPClientConfiguration()
            configuration.authorityFile = authority.certificateFile
            configuration.clientCertificateFile = pair?.certificateFile
            configuration.clientKeyFile = pair?.keyFile
            return configuration
        }

        /// The failure of a POST over TLS, of which nothing may have been read by the server.
        private func refusal(
            by server: TestServer, _ configuration: HTTPClientConfiguration, host: String = "localhost"
        ) async throws -> HTTPClientError {
            let error = try await withClient(configuration) { client in
                try await client.failure(
                    HTTPClientRequest(
                        method: "POST", url: server.url("/echo", host: host, scheme: "https"), body: Data("money".utf8))
                )
            }
            #expect(try await server.countLines("request") == 0)
            return error
        }

        @Test("a server of the trusted authority, by name and by address", arguments: ["localhost", "127.0.0.1"])
        func trusted(host: String) async throws {
            let server = try await TestServer.tls(serverPair)
            try await withClient(trusting(authority)) { client in
                for _ in 0..<3 {
                    let response = try await client.get(server.url("/echo", host: host, scheme: "https"))
                    #expect(response.status == 200)
                }
            }
            #expect(try await server.countLines("connection") == 1)
        }

        @Test("a server of another authority is refused, and so is ours by the system's authorities")
        func otherAuthority() async throws {
            let server = try await TestServer.tls(serverPair)
            let stranger = try await TLSAuthority()
            for configuration in [trusting(stranger), HTTPClientConfiguration()] {
                let error = try await refusal(by: server, configuration)
                #expect(error.code == .tls)
                #expect(!error.mayHaveBeenSent)
            }
            withExtendedLifetime(stranger) {}
        }

        @Test("an expired certificate is refused")
        func expired() async throws {
            let server = try await TestServer.tls(try await authority.issue("expired", expired: true))
            let error = try await refusal(by: server, trusting(authority))
            #expect(error.code == .tls)
            #expect(error.detail.contains("expired"))
            #expect(!error.mayHaveBeenSent)
        }

        @Test("a certificate for another name is refused")
        func otherName() async throws {
            let server = try await TestServer.tls(try await authority.issue("other", names: ["DNS:other.example"]))
            for host in ["localhost", "127.0.0.1"] {
                let error = try await refusal(by: server, trusting(authority), host: host)
                #expect(error.code == .tls)
                #expect(!error.mayHaveBeenSent)
            }
        }

        @Test("a server that speaks TLS 1.1 at most is refused, one that speaks 1.2 is not")
        func oldVersion() async throws {
            let old = try await TestServer.tls(serverPair, ["--tls", "1.1"])
            let error = try await refusal(by: old, trusting(authority))
            #expect(error.code == .tls)
            #expect(!error.mayHaveBeenSent)
            let newer = try await TestServer.tls(serverPair, ["--tls", "1.2"])
            try await withClient(trusting(authority)) { client in
                let response = try await client.get(newer.url("/echo", scheme: "https"))
                #expect(response.status == 200)
            }
        }

        @Test("a server that speaks no TLS is refused")
        func noTLS() async throws {
            let server = try await TestServer()
            var configuration = HTTPClientConfiguration()
            configuration.connectTimeout = .milliseconds(500)
            // What it makes of a handshake is its own business; it never gets to see a request.
            let error = try await refusal(by: server, configuration)
            #expect([.tls, .cannotConnect].contains(error.code))
            #expect(!error.mayHaveBeenSent)
        }

        @Test("a server that asks for a client certificate accepts ours", arguments: ["1.2", "1.3"])
        func mutual(version: String) async throws {
            let server = try await TestServer.tls(
                serverPair, ["--client-ca", authority.certificateFile, "--tls", version])
            try await withClient(trusting(authority, as: try await authority.issue("client"))) { client in
                let response = try await client.get(server.url("/echo", scheme: "https"))
                #expect(response.status == 200)
            }
        }

        @Test(
            "a server that asks for a client certificate refuses none, and another authority's",
            arguments: ["1.2", "1.3"])
        func mutualRefused(version: String) async throws {
            let server = try await TestServer.tls(
                serverPair, ["--client-ca", authority.certificateFile, "--tls", version])
            let stranger = try await TLSAuthority()
            for pair in [nil, try await stranger.issue("client")] {
                let error = try await refusal(by: server, trusting(authority, as: pair))
                // In 1.3 the client may write before the server has looked at its certificate. Nobody can tell how far
                // that came, and the server's reset can overtake its alert.
                #expect(error.code == .tls || (version == "1.3" && error.code == .connectionLost), "\(error)")
                #expect(error.mayHaveBeenSent == (version == "1.3"), "\(error)")
            }
            withExtendedLifetime(stranger) {}
        }

        @Test("a renewed client certificate is used by the next connection, without a restart")
        func renewed() async throws {
            let server = try await TestServer.tls(
                serverPair, ["--client-ca", authority.certificateFile, "--tls", "1.2"])
            let otherAuthority = try await TLSAuthority()
            let stranger = try await otherAuthority.issue("client")
            let good = try await authority.issue("client")
            try await withClient(trusting(authority, as: stranger)) { client in
                let request = HTTPClientRequest(method: "GET", url: server.url("/echo", scheme: "https"))
                #expect(try await client.failure(request).code == .tls)
                for (new, old) in [(good.certificateFile, stranger.certificateFile), (good.keyFile, stranger.keyFile)] {
                    try FileManager.default.removeItem(atPath: old)
                    try FileManager.default.copyItem(atPath: new, toPath: old)
                }
                #expect(try await client.send(request).status == 200)
            }
            withExtendedLifetime(otherAuthority) {}
        }

        @Test("half a body over TLS is a lost connection")
        func truncated() async throws {
            let server = try await TestServer.tls(serverPair)
            try await withClient(trusting(authority)) { client in
                let error = try await client.failure(
                    HTTPClientRequest(method: "GET", url: server.url("/half", scheme: "https")))
                #expect(error.code == .connectionLost)
                #expect(error.mayHaveBeenSent)
            }
        }

        @Test("files that can't be used are found when the client is made, not at the first handshake")
        func files() async throws {
            let client = try await authority.issue("client")
            let other = try await authority.issue("another")
            func failure(_ change: (inout HTTPClientConfiguration) -> Void) -> HTTPClientError? {
                var configuration = HTTPClientConfiguration()
                change(&configuration)
                do throws(HTTPClientError) {
                    _ = try HTTPClient(configuration)
                    return nil
                } catch { return error }
            }
            let encrypted = try await authority.encryptedKey(of: client)
            let bad: [(String?, String?, String?)] = [
                (client.certificateFile, nil, nil), (nil, client.keyFile, nil),
                (client.certificateFile, other.keyFile, nil), (client.keyFile, client.keyFile, nil),
                (client.certificateFile, client.certificateFile, nil), (client.certificateFile, encrypted, nil),
                ("/nowhere.pem", client.keyFile, nil), (client.certificateFile, "/nowhere.pem", nil),
                (nil, nil, "/nowhere.pem"), (nil, nil, client.keyFile), (nil, nil, "/dev/null"), (nil, nil, "/tmp"),
            ]
            for (certificate, key, authorities) in bad {
                let error = failure {
                    $0.clientCertificateFile = certificate
                    $0.clientKeyFile = key
                    $0.authorityFile = authorities
                }
                #expect(error?.code == .tls, "\(certificate ?? "-") \(key ?? "-") \(authorities ?? "-")")
                #expect(error?.mayHaveBeenSent == false)
            }
            #expect(
                failure {
                    $0.clientCertificateFile = client.certificateFile
                    $0.clientKeyFile = client.keyFile
                    $0.authorityFile = authority.certificateFile
                } == nil)
        }
    }
}
