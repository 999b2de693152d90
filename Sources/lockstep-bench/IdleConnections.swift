import Foundation
import HTTPClient

/// Many connections that are kept alive and idle, while others are served.
struct IdleConnections: Sendable {
    private let options: BenchOptions
    init(_ options: BenchOptions) { self.options = options }

    func run() async throws -> Bool {
        raiseDescriptorLimit()
        let rig = try await Rig(options)
        // Started a second time, on a database that is migrated already: this is the figure.
        let began = try await restart(rig)
        tell("start to ready: \(began.milliseconds)")
        let figures = Figures()
        try await serve(rig, figures)
        let alone = figures.take()["read"] ?? []
        let before = rig.service.residentMebibytes
        let count = options.number("connections", 5000)
        let sockets = try connect(count, rig.service.port)
        defer { for socket in sockets { close(socket) } }
        try await serve(rig, figures)
        let beside = figures.take()["read"] ?? []
        let with = rig.service.residentMebibytes
        let alive = sockets.filter { isAlive($0) }.count
        tell("resident memory: \(before) MiB without, \(with) MiB with \(alive) of \(count) idle connections alive")
        tell(
            "served beside them: p50 \(beside.quantile(500).milliseconds), p99 \(beside.quantile(990).milliseconds); "
                + "alone: p50 \(alone.quantile(500).milliseconds), p99 \(alone.quantile(990).milliseconds)")
        await rig.stop()
        return alive == count && before < 64 && with < 192 && began < .milliseconds(500)
    }

    private func restart(_ rig: Rig) async throws -> Duration {
        let port = try FreePort.find()
        let probe = try ServiceProcess(port: port, rig.environment(port: port))
        defer { probe.stop() }
        return try await probe.waitUntilReady(rig.client)
    }

    /// Two thousand requests from eight callers.
    private func serve(_ rig: Rig, _ figures: Figures) async throws {
        await withTaskGroup { group in
            for _ in 0..<8 {
                group.addTask {
                    for _ in 0..<250 {
                        let began = ContinuousClock.now
                        let request = HTTPClientRequest(
                            method: "GET", url: "\(rig.service.url)/v1/events?limit=1",
                            headers: ["Authorization": "Bearer \(rig.key)"])
                        guard let answer = try? await rig.client.send(request), answer.status == 200 else {
                            figures.fail("read")
                            continue
                        }
                        figures.record("read", .now - began)
                    }
                }
            }
        }
        guard figures.errorCount == 0 else { throw Rig.Failure(description: "reads failed: \(figures.errors)") }
    }

    /// Connections that have each made one request and are kept alive.
    private func connect(_ count: Int, _ port: UInt16) throws -> [Int32] {
        try (0..<count).map { _ in
            let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = inet_addr("127.0.0.1")
            let isConnected = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    Glibc.connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
                }
            }
            guard isConnected, isAlive(socket) else { throw Rig.Failure(description: "a connection was refused") }
            return socket
        }
    }

    /// Whether the connection still answers.
    private func isAlive(_ socket: Int32) -> Bool {
        let request = Array("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        guard send(socket, request, request.count, Int32(MSG_NOSIGNAL)) == request.count else { return false }
        var answer = [UInt8](repeating: 0, count: 1024)
        let count = recv(socket, &answer, answer.count, 0)
        return count > 12 && answer.starts(with: Array("HTTP/1.1 200".utf8))
    }
}
