import HTTPServer
import Postgres

extension Assembly {
    /// Figures that are read when somebody asks for them.
    func observe(_ server: HTTPServer) {
        let pools = gatePool === pool ? [("main", pool)] : [("main", pool), ("gate", gatePool)]
        let inbox = inbox
        let admission = admission
        metrics.gauge("lockstep_http_connections", help: "Open connections.") {
            [(labels: [], value: Double(server.statistics.connectionsOpen))]
        }
        metrics.gauge("lockstep_http_served", help: "Requests that were let in, by lane.", labels: ["lane"]) {
            admission.standing.map { (labels: [$0.lane.rawValue], value: Double($0.count)) }
        }
        metrics.gauge(
            "lockstep_database_connections_open", help: "Open connections, by pool.", labels: ["pool"]
        ) {
            pools.map { (labels: [$0.0], value: Double($0.1.statistics.open)) }
        }
        metrics.gauge(
            "lockstep_database_connections_in_use", help: "Connections that work, by pool.", labels: ["pool"]
        ) {
            pools.map { (labels: [$0.0], value: Double($0.1.statistics.inUse)) }
        }
        metrics.gauge("lockstep_database_waiting", help: "Who waits for a connection, by pool.", labels: ["pool"]) {
            pools.map { (labels: [$0.0], value: Double($0.1.statistics.waiting)) }
        }
        metrics.gauge("lockstep_notifications_waiting", help: "Notifications that wait to be written.") {
            [(labels: [], value: Double(inbox.backlog))]
        }
    }
}
