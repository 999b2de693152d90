import Testing

@testable import Postgres

@Suite("connection strings")
struct ConnectionParametersTests {
    private func hosts(_ string: String) throws -> [[String: String]] {
        try ConnectionParameters(PostgresConfiguration(connectionString: string)).hosts
    }

    @Test("one host stays one, with what makes a dead line noticed")
    func defaults() throws {
        let hosts = try hosts("host=db.example dbname=lockstep user=app")
        #expect(hosts.count == 1)
        #expect(hosts[0]["host"] == "db.example")
        #expect(hosts[0]["keepalives"] == "1")
        #expect(hosts[0]["tcp_user_timeout"] == "20000")
        #expect(hosts[0]["connect_timeout"] == "5")
        #expect(hosts[0]["application_name"] == "lockstep")
        #expect(hosts[0]["target_session_attrs"] == nil)
        #expect(
            hosts[0]["options"] == "-c statement_timeout=15000 -c idle_in_transaction_session_timeout=60000")
    }

    @Test("what the string says wins, but for the encoding")
    func ownValues() throws {
        let string =
            "application_name=mine tcp_user_timeout=1 options='-c statement_timeout=7' client_encoding=LATIN1"
        let host = try hosts(string)[0]
        #expect(host["application_name"] == "mine")
        #expect(host["tcp_user_timeout"] == "1")
        #expect(host["options"]?.hasSuffix("-c statement_timeout=7") == true)
        #expect(host["client_encoding"] == "UTF8")
    }

    @Test("several hosts are taken apart, each with its port, and must take writes")
    func severalHosts() throws {
        let hosts = try hosts("postgresql://app@a:5001,b:5002,c/lockstep?sslmode=require")
        #expect(hosts.map { $0["host"] } == ["a", "b", "c"])
        #expect(hosts.map { $0["port"] } == ["5001", "5002", ""])
        #expect(hosts.allSatisfy { $0["target_session_attrs"] == "read-write" && $0["sslmode"] == "require" })
        #expect(try self.hosts("host=a,b port=6000").map { $0["port"] } == ["6000", "6000"])
        #expect(try self.hosts("hostaddr=10.0.0.1,10.0.0.2").count == 2)
        #expect(try self.hosts("host=a,b target_session_attrs=any")[1]["target_session_attrs"] == "any")
        #expect(try self.hosts("host=a,b target_session_attrs=prefer-standby").count == 1)
    }

    @Test("behind a proxy no start-up options are sent")
    func proxy() throws {
        var configuration = PostgresConfiguration(connectionString: "host=a")
        configuration.usesPreparedStatements = false
        #expect(try ConnectionParameters(configuration).hosts[0]["options"] == nil)
    }

    @Test("durations become whole milliseconds, never 0, which would be no limit at all")
    func milliseconds() {
        #expect(Duration.seconds(15).wholeMilliseconds == 15000)
        #expect(Duration.microseconds(1).wholeMilliseconds == 1)
        #expect(Duration.zero.wholeMilliseconds == 1)
        #expect(Duration.seconds(Int64.max).wholeMilliseconds == Int64(Int32.max))
    }
}
