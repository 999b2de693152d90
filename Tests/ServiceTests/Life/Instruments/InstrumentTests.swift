import Basics
import Foundation
import PayrailsSandbox
import TestKit
import Testing

@Suite("Saved instruments")
struct InstrumentTests {
    private static let shared = Task { try await ServiceHarness.shared(["PAYRAILS_CALL_TIMEOUT_MS": "1500"]) }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    private func link(_ card: SavedCard, to holder: String? = nil) async throws -> JSONCaller.Reply {
        try await lockstep.shop.post(
            "/v1/holders/\(holder ?? card.holder)/instruments", ["instrumentId": .string(card.id)],
            key: freshWord("link"))
    }

    private func list(_ holder: String, _ query: String = "") async throws -> [JSON] {
        let reply = try await lockstep.shop.get("/v1/holders/\(holder)/instruments\(query)")
        try #require(reply.status == 200, "\(reply.text)")
        return try #require(reply.json["items"]?.array)
    }

    private func patch(_ id: String, _ body: JSON) async throws -> JSONCaller.Reply {
        try await lockstep.shop.call("PATCH", "/v1/instruments/\(id)", body: body.bytes)
    }

    private func delete(_ id: String) async throws -> JSONCaller.Reply {
        try await lockstep.shop.call("DELETE", "/v1/instruments/\(id)")
    }

    /// What was told of an instrument, oldest first.
    private func changes(of card: SavedCard) async throws -> [JSON] {
        try await lockstep.feed().filter {
            $0["type"] == "instrument.changed" && $0["data"]?["instrument"]?["id"]?.string == card.id
        }.compactMap { $0["data"]?["instrument"] }
    }

    private func tells(_ count: Int, _ card: SavedCard) async throws -> [JSON] {
        _ = try await waitUntil { try await changes(of: card).count >= count }
        let told = try await changes(of: card)
        #expect(told.count == count)
        return told
    }

    @Test("a card that the app saved is linked to its holder, as Payrails shows it")
    func link() async throws {
        let card = try lockstep.card("4242", month: "09", year: "2031", hasNetworkToken: true)
        let reply = try await link(card)
        #expect(reply.status == 201)
        #expect(SchemaCheck.faults(reply.json, ["$ref": "#/components/schemas/Instrument"]) == [])
        #expect(reply.json["holderReference"]?.string == card.holder && reply.json["suffix"] == "4242")
        #expect(reply.json["expiry"] == ["month": 9, "year": 2031, "state": "valid"])
        #expect(reply.json["hasNetworkToken"] == true && reply.json["default"] == false)
        #expect(try await list(card.holder) == [reply.json])
        #expect(try await link(card).json == reply.json)
        #expect(try await changes(of: card).isEmpty)
    }

    @Test("somebody else's is refused, and one that isn't there is 404")
    func anothers() async throws {
        let (mine, theirs) = (try lockstep.card(), try lockstep.card())
        #expect(try await link(theirs, to: mine.holder).outcome == "422 instrument-of-another-holder")
        let nobodys = SavedCard(holder: mine.holder, id: "0197c0de-0000-7000-8000-000000000004")
        #expect(try await link(nobodys).outcome == "404 not-found")
        #expect(try await list(mine.holder).map { $0["id"]?.string } == [mine.id])
        let bad = try await lockstep.shop.post(
            "/v1/holders/\(mine.holder)/instruments", ["instrumentId": 1, "holder": "x"], key: freshWord("key"))
        #expect(bad.outcome == "422 invalid" && bad.pointers == ["/holder", "/instrumentId"])
    }

    @Test(
        "E1, E3: a card is valid through its month, one without an expiry is unknown, and only expired ones are left out"
    )
    func expiry() async throws {
        let expired = try lockstep.card(month: "01", year: "2020")
        let holder = expired.holder
        let unknown = try lockstep.card(holder: holder, method: "payPal")
        let valid = try lockstep.card(holder: holder)
        func states(_ query: String) async throws -> [String: String] {
            let items = try await list(holder, query)
            return Dictionary(
                uniqueKeysWithValues: items.map { ($0["id"]?.string ?? "", $0["expiry"]?["state"]?.string ?? "") })
        }
        let all = [expired.id: "expired", unknown.id: "unknown", valid.id: "valid"]
        #expect(try await states("") == all)
        #expect(try await states("?includeExpired=true") == all)
        #expect(try await states("?includeExpired=false") == [unknown.id: "unknown", valid.id: "valid"])
        let bad = try await lockstep.shop.get("/v1/holders/\(holder)/instruments?includeExpired=yes&limit=0")
        #expect(bad.outcome == "422 invalid" && bad.pointers == ["/includeExpired", "/limit"])
        // Pages go on where the last one ended.
        var seen: [String] = []
        var after = ""
        repeat {
            let page = try await lockstep.shop.get("/v1/holders/\(holder)/instruments?limit=2\(after)").json
            seen += page["items"]?.array?.compactMap { $0["id"]?.string } ?? []
            after = page["next"]?.string.map { "&after=\($0)" } ?? ""
        } while !after.isEmpty
        #expect(seen.count == 3 && Set(seen) == Set(all.keys))
    }

    @Test("default, disabled, enabled, deleted: said twice the same, told once each")
    func changes() async throws {
        let card = try lockstep.card()
        _ = try await link(card)
        for (body, status, isDefault): (JSON, String, Bool) in [
            (["default": true], "enabled", true), (["status": "disabled"], "disabled", true),
            (["status": "enabled", "default": true], "enabled", true),
        ] {
            let first = try await patch(card.id, body)
            #expect(first.status == 200, "\(first.text)")
            #expect(first.json["status"]?.string == status && first.json["default"]?.bool == isDefault)
            #expect(try await patch(card.id, body).json == first.json)
        }
        let told = try await tells(3, card)
        #expect(told.map { $0["status"]?.string } == ["enabled", "disabled", "enabled"])
        #expect(lockstep.sandbox.calls(to: .updateInstrument).filter { $0.path.contains(card.id) }.count == 3)
        #expect(try await delete(card.id).status == 204)
        #expect(try await delete(card.id).status == 204)
        #expect(try await tells(4, card).last?["status"] == "deleted")
        #expect(try await list(card.holder).isEmpty)
        #expect(try await patch(card.id, ["default": true]).outcome == "404 not-found")
        #expect(lockstep.sandbox.calls(to: .deleteInstrument).filter { $0.path.contains(card.id) }.count == 1)
    }

    @Test("one that was never known is 404; what is wrong with a change is told by its pointer")
    func badInput() async throws {
        let nobodys = "0197c0de-0000-7000-8000-000000000009"
        #expect(try await delete(nobodys).outcome == "404 not-found")
        #expect(try await patch(nobodys, ["default": true]).outcome == "404 not-found")
        #expect(try await delete("card").outcome == "404 not-found")
        let card = try lockstep.card()
        for (body, pointers): (JSON, [String]) in [
            ([:], [""]), (["default": false], ["/default"]), (["status": "deleted"], ["/status"]),
            (["default": "yes", "status": 1, "expiry": [:]], ["/default", "/expiry", "/status"]),
        ] {
            let reply = try await patch(card.id, body)
            #expect(reply.outcome == "422 invalid" && reply.pointers == pointers, "\(body.text)")
        }
    }

    @Test("a card that changed at Payrails is told of when it is read: replaced, disabled, gone")
    func changedThere() async throws {
        let card = try lockstep.card("4242", month: "01", year: "2030", hasNetworkToken: true)
        _ = try await link(card)
        _ = lockstep.sandbox.changeInstrument(card.id, expiryMonth: "01", expiryYear: "2034", suffix: "1881")
        #expect(try await list(card.holder).first?["suffix"] == "1881")
        let replaced = try await tells(1, card)
        #expect(replaced[0]["expiry"] == ["month": 1, "year": 2034, "state": "valid"])
        #expect(replaced[0]["hasNetworkToken"] == true, "a list doesn't tell of tokens, and takes none away")
        // Read by a charge.
        _ = lockstep.sandbox.changeInstrument(card.id, status: "disabled")
        #expect(try await lockstep.charge(card).reply.json["reason"] == "instrument-disabled")
        #expect(try await tells(2, card)[1]["status"] == "disabled")
        _ = lockstep.sandbox.changeInstrument(card.id, status: "deleted")
        #expect(try await list(card.holder).isEmpty)
        #expect(try await tells(3, card)[2]["status"] == "deleted")
        #expect(try await list(card.holder).isEmpty)
        _ = try await tells(3, card)
    }

    @Test(
        "a change whose answer is lost is looked into, and the answer is the truth",
        arguments: [SandboxFault.Kind.halfBody, .errorAfter(status: 500), .html(status: 200, effect: true)])
    func lostAnswer(_ kind: SandboxFault.Kind) async throws {
        let card = try lockstep.card()
        lockstep.sandbox.add(SandboxFault(kind, on: .updateInstrument, containing: card.id))
        let changed = try await patch(card.id, ["status": "disabled"])
        #expect(changed.status == 200 && changed.json["status"] == "disabled")
        lockstep.sandbox.add(SandboxFault(kind, on: .deleteInstrument, containing: card.id))
        #expect(try await delete(card.id).status == 204)
        #expect(try await delete(card.id).status == 204)
        let open = try await lockstep.books.query(
            """
            SELECT count(*) AS open FROM operations
            WHERE instrument_id = \(try #require(UUID(uuidString: card.id))) AND finished_at IS NULL
            """
        ).first?.decode("open", as: Int.self)
        #expect(open == 0)
    }

    @Test("a change that didn't happen is 503, the books don't say that it did, and the same again does it")
    func lostBefore() async throws {
        let card = try lockstep.card()
        lockstep.sandbox.add(SandboxFault(.html(status: 200), on: .updateInstrument, containing: card.id))
        #expect(try await patch(card.id, ["status": "disabled"]).outcome == "502 provider-unreadable")
        #expect(try await list(card.holder).first?["status"] == "enabled")
        #expect(try await patch(card.id, ["status": "disabled"]).json["status"] == "disabled")
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 403), on: .deleteInstrument, containing: card.id))
        #expect(try await delete(card.id).outcome == "502 provider-refused")
        #expect(try await delete(card.id).status == 204)
    }
}

@Suite("Tokenizations")
struct TokenizationTests {
    private static let shared = Task { try await ServiceHarness.shared(["PAYRAILS_CALL_TIMEOUT_MS": "1500"]) }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    private func tokenize(_ body: JSON, key: String = freshWord("key")) async throws -> JSONCaller.Reply {
        try await lockstep.shop.post("/v1/tokenizations", body, key: key)
    }

    @Test("an init to save a card, and one to collect a security code again")
    func kinds() async throws {
        let card = try lockstep.card()
        let save = try await tokenize(["holderReference": .string(card.holder)])
        #expect(
            save.status == 201 && SchemaCheck.faults(save.json, ["$ref": "#/components/schemas/Tokenization"]) == [])
        let again: JSON = [
            "holderReference": .string(card.holder), "kind": "secureFields", "instrumentId": .string(card.id),
        ]
        #expect(try await tokenize(again).status == 201)
        let sent = lockstep.sandbox.calls(to: .clientInit).filter { $0.body?["holderReference"]?.string == card.holder }
        #expect(sent.map { $0.body?["type"]?.string } == ["tokenization", "secureFields"])
        #expect(sent.last?.body?["instrumentId"]?.string == card.id)
    }

    @Test("the same request gets the same init, also where its answer was lost")
    func repeated() async throws {
        let holder = freshWord("cust")
        let body: JSON = ["holderReference": .string(holder)]
        lockstep.sandbox.add(SandboxFault(.html(status: 200, effect: true), on: .clientInit, containing: holder))
        let key = freshWord("key")
        let lost = try await tokenize(body, key: key)
        #expect(lost.outcome == "502 provider-unreadable")
        let made = try await tokenize(body, key: key)
        #expect(made.status == 201)
        #expect(try await tokenize(body, key: key).json == made.json)
        let keys = lockstep.sandbox.calls(to: .clientInit).filter { $0.body?["holderReference"]?.string == holder }
            .map(\.key)
        #expect(keys.count == 2 && Set(keys).count == 1)
        // An error that Payrails keeps doesn't keep the shop from it.
        let other = freshWord("cust")
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 500, stored: true), on: .clientInit, containing: other))
        #expect(try await tokenize(["holderReference": .string(other)]).status == 201)
    }

    @Test("what is wrong is told by its pointer, somebody else's card is refused, and so is what Payrails refuses")
    func badInput() async throws {
        let (mine, theirs) = (try lockstep.card(), try lockstep.card())
        let bad = try await tokenize(["kind": "card", "instrumentId": "x", "amount": 1])
        #expect(bad.outcome == "422 invalid" && bad.pointers.contains("/holderReference"))
        #expect(Set(bad.pointers) == ["/amount", "/holderReference", "/instrumentId", "/kind"])
        let holder = JSON.string(mine.holder)
        let bare = try await tokenize(["holderReference": holder, "kind": "secureFields"])
        #expect(bare.outcome == "422 invalid" && bare.pointers == ["/instrumentId"])
        let misplaced = try await tokenize(["holderReference": holder, "instrumentId": .string(mine.id)])
        #expect(misplaced.outcome == "422 invalid" && misplaced.pointers == ["/instrumentId"])
        let anothers = try await tokenize([
            "holderReference": holder, "kind": "secureFields", "instrumentId": .string(theirs.id),
        ])
        #expect(anothers.outcome == "422 instrument-of-another-holder")
        let nobodys = try await tokenize([
            "holderReference": holder, "kind": "secureFields", "instrumentId": "0197c0de-0000-7000-8000-000000000004",
        ])
        #expect(nobodys.outcome == "422 invalid" && nobodys.pointers == ["/instrumentId"])
        lockstep.sandbox.add(SandboxFault(.errorBefore(status: 403), on: .clientInit, containing: mine.holder))
        #expect(try await tokenize(["holderReference": holder]).outcome == "502 creation-refused")
    }
}
