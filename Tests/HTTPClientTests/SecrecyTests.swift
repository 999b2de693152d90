import Basics
import Foundation
import TestKit
import Testing

@testable import HTTPClient

extension HTTPClientTests {
    @Suite("what an error must not tell")
    struct SecrecyTests {
        private let secret = "s3cr3t-t0k3n"

        @Test(
            "no failure repeats the query, a header or a body",
            arguments: ["/half", "/garbage", "/silent", "/close", "/long-field", "/bad-chunk", "/bad-trailer"])
        func failures(path: String) async throws {
            let server = try await TestServer.shared.value
            try await withClient { client in
                let request = HTTPClientRequest(
                    method: "POST", url: server.url("\(path)?key=\(secret)"),
                    headers: ["Authorization": "Bearer \(secret)"],
                    body: Data(secret.utf8), timeout: .milliseconds(500))
                let error = try await client.failure(request)
                #expect(!"\(error)".contains(secret))
                #expect(!error.detail.contains("key="))
                #expect(!error.detail.isEmpty)
            }
        }

        @Test("nor does a request that is refused here")
        func refusals() async throws {
            try await withClient { client in
                for request in [
                    HTTPClientRequest(method: "GET", url: "http://example.com/?key=\(secret)"),
                    HTTPClientRequest(method: "GET", url: "https://nowhere.invalid/?key=\(secret)"),
                    HTTPClientRequest(method: "GET", url: "https://[\(secret)/?key=\(secret)"),
                    HTTPClientRequest(method: "GET", url: "https://a/", headers: ["Authorization": "\(secret)\n"]),
                    HTTPClientRequest(method: "GET", url: "https://user:\(secret)@a/"),
                ] {
                    let error = try await client.failure(request)
                    #expect(!"\(error)".contains(secret))
                }
            }
        }

        @Test("libcurl's words lose what is secret and every control character, and are cut")
        func scrubbed() {
            let words = CurlFailure.scrubbed("Bad \(secret)\r\nX: \(secret)\u{1B}[0m", of: [secret])
            #expect(words == "Bad …  X: … [0m")
            #expect(CurlFailure.scrubbed(String(repeating: "a", count: 1000), of: []).count == 300)
        }

        @Test("printing a request or a response shows no header, URL or body (P2)")
        func printing() {
            let request = HTTPClientRequest(
                method: "POST", url: "https://a/?\(secret)", headers: ["X-Api-Key": secret], body: Data(secret.utf8))
            let response = HTTPClientResponse(
                status: 200, headers: ["Set-Cookie": secret], body: Data(secret.utf8), httpVersion: "2")
            for text in ["\(request)", "\(response)", String(reflecting: request), String(reflecting: response)] {
                #expect(!text.contains(secret))
                #expect(text.contains("\(secret.utf8.count) bytes"))
            }
            var dumped = ""
            dump(request, to: &dumped)
            dump(response, to: &dumped)
            #expect(!dumped.contains(secret))
        }
    }
}
