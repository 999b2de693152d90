import Basics
import Lockstep
import Store

extension API {
    /// `GET /v1/discrepancies?state=&class=`
    func listDiscrepancies(_ request: Request) async throws -> Answer {
        let query = try request.readQuery { query in
            (
                state: query.choice("state", of: Discrepancy.State.self),
                kind: query.choice("class", of: Discrepancy.Class.self), limit: query.limit(),
                after: query.parsed("after", "must be the next of an earlier page") { DiscrepancyID($0) }
            )
        }
        let found = try await store.listDiscrepancies(
            state: query.state, kind: query.kind, after: query.after, limit: query.limit + 1)
        let page = found.prefix(query.limit)
        let next = found.count > query.limit ? page.last : nil
        return .ok(
            .compact(["items": .array(page.map(\.json)), "next": next.map { .string($0.id.description) }]))
    }

    /// `POST /v1/discrepancies/{id}/resolve`
    func resolveDiscrepancy(_ request: Request) async throws -> Answer {
        let id: DiscrepancyID = try request.id()
        let note = try request.read { $0.string("note", .note) }
        guard let discrepancy = try await store.resolveDiscrepancy(id, note: note) else { throw Problem.notFound }
        bells.feed.ring()
        return .ok(discrepancy.json)
    }
}
