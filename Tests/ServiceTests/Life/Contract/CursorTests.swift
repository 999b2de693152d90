import Basics
import TestKit
import Testing

@Suite("Where a list goes on")
struct CursorTests {
    private static let shared = Task { try await ServiceHarness.shared() }
    private let lockstep: ServiceHarness
    init() async throws { lockstep = try await Self.shared.value }

    @Test("behind an order's only checkout there is nothing, for the shop and for the app")
    func checkouts() async throws {
        let order = try await lockstep.order()
        for caller in [try lockstep.shop, try lockstep.app(order)] {
            func found(after: String) async throws -> [String] {
                let path = "/v1/checkouts?merchantReference=\(order.reference)&after=\(after)"
                let reply = try await caller.get(path)
                #expect(reply.status == 200 && reply.json["next"] == nil, "\(reply.text)")
                return try #require(reply.json["items"]?.array).compactMap { $0["id"]?.string }
            }
            #expect(try await found(after: "") == [order.checkout])
            #expect(try await found(after: "00000000-0000-7000-8000-000000000000") == [order.checkout])
            #expect(try await found(after: order.checkout) == [])
            #expect(try await found(after: "ffffffff-ffff-7fff-bfff-ffffffffffff") == [])
        }
        let strange = try await lockstep.shop.get("/v1/checkouts?merchantReference=\(order.reference)&after=1")
        #expect(strange.outcome == "422 invalid" && strange.json["errors"]?[0]?["pointer"] == "/after")
    }

    @Test("what can't be the number of a subscription's period is 422")
    func charges() async throws {
        let subscription = try await lockstep.subscription(try lockstep.card())
        let path = "\(subscription.path)/charges?after="
        for wrong in ["-3", "+3", "%2B3", "0", "1.5", "x", "99999999999999999999"] {
            let reply = try await lockstep.shop.get(path + wrong)
            #expect(reply.outcome == "422 invalid", "\(wrong)")
            #expect(reply.json["errors"]?[0]?["pointer"] == "/after")
        }
        for right in ["", "1", "12"] {
            #expect(try await lockstep.shop.get(path + right).json == ["items": []], "\(right)")
        }
    }
}
