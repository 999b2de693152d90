import Foundation
import Glibc
import HTTPClient
import Testing

extension HTTPClientTests {
    @Suite("what a client is made of")
    struct ConfigurationTests {
        @Test("a limit of nothing is refused, and a user agent that would end its header")
        func limits() {
            let changes: [(inout HTTPClientConfiguration) -> Void] = [
                { $0.maximumConnections = 0 }, { $0.maximumConnectionsPerHost = -1 }, { $0.maximumRequests = 0 },
                { $0.maximumResponseBytes = 0 }, { $0.maximumHeaderBytes = 0 }, { $0.connectTimeout = .zero },
                { $0.userAgent = "a\r\nX: y" },
            ]
            for change in changes {
                var configuration = HTTPClientConfiguration()
                change(&configuration)
                let result = Result { () throws(HTTPClientError) in try HTTPClient(configuration) }
                guard case .failure(let error) = result else {
                    Issue.record("taken")
                    continue
                }
                #expect(error.code == .invalidRequest)
            }
        }

        @Test("its thread takes no signal of the process's, and no SIGPIPE (Q13)")
        func signals() async throws {
            try await withClient { client in
                _ = try await client.failure(
                    HTTPClientRequest(method: "GET", url: "http://127.0.0.1:\(try closedPort())/"))
                var threads = 0
                for task in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task") {
                    let folder = "/proc/self/task/\(task)"
                    guard let name = try? String(contentsOfFile: folder + "/comm", encoding: .utf8),
                        name == "http-client\n"
                    else { continue }
                    threads += 1
                    let status = try String(contentsOfFile: folder + "/status", encoding: .utf8)
                    let line = status.split(separator: "\n").first { $0.hasPrefix("SigBlk:") }
                    let blocked = line.flatMap { UInt64($0.dropFirst(7).filter { !$0.isWhitespace }, radix: 16) }
                    for signal in [SIGPIPE, SIGALRM, SIGTERM, SIGINT, SIGHUP] {
                        #expect((blocked ?? 0) & (1 << UInt64(signal - 1)) != 0)
                    }
                }
                #expect(threads >= 1)
            }
        }

        @Test("a timeout of any length is taken")
        func endlessTimeout() async throws {
            let server = try await TestServer.shared.value
            try await withClient { client in
                let response = try await client.get(server.url("/echo"), timeout: .seconds(Int64.max))
                #expect(response.status == 200)
            }
        }
    }
}
