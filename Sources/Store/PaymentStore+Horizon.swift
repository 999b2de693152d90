import Postgres

extension PaymentStore {
    /// How many transactions have begun since the oldest one that something still holds open: a session, a prepared
    /// transaction, a replication slot. No row that died since then can be removed, so while this grows, every search for
    /// work walks over more of them. Sessions of other users are seen only with the role `pg_read_all_stats`.
    public func oldestSnapshotAge() async throws -> Int {
        let age = try await pool.query(
            """
            SELECT greatest(
                (SELECT max(age(backend_xmin)) FROM pg_stat_activity),
                (SELECT max(age(transaction)) FROM pg_prepared_xacts),
                (SELECT max(greatest(age(xmin), age(catalog_xmin))) FROM pg_replication_slots), 0) AS transactions
            """
        ).first?.decode("transactions", as: Int32.self)
        return Int(age ?? 0)
    }
}
