import HTTPServer
import Postgres

extension Assembly {
    /// Figures that are read when somebody asks for them.
    func observe(_ server: HTTPServer) {
        let pool = pool
        let inbox = inbox
        metrics.gauge("lockstep_http_connections", help: "Open connections.") {
            [(labels: [], value: Double(server.statistics.connectionsOpen))]
        }
        metrics.gauge("lockstep_database_connections_open", help: "Open connections of the pool.") {
            [(labels: [], value: Double(pool.statistics.open))]
        }
        metrics.gauge("lockstep_database_connections_in_use", help: "Connections of the pool that work.") {
            [(labels: [], value: Double(pool.statistics.inUse))]
        }
        metrics.gauge("lockstep_database_waiting", help: "Requests that wait for a connection.") {
            [(labels: [], value: Double(pool.statistics.waiting))]
        }
        metrics.gauge("lockstep_notifications_waiting", help: "Notifications that wait to be written.") {
            [(labels: [], value: Double(inbox.backlog))]
        }
    }
}
