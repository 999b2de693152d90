import Foundation
import TestKit
import Testing

@Suite("The program as the system sees it")
struct ProcessStateTests {
    @Test("Q13: a broken pipe never ends the program, since it ignores SIGPIPE from its start")
    func brokenPipe() async throws {
        let lockstep = try await ServiceHarness.start(parts: nil)
        let program = try await lockstep.startProgram()
        let ignored = try #require(program.status("SigIgn").flatMap { UInt64($0, radix: 16) })
        #expect(ignored & (1 << UInt64(SIGPIPE - 1)) != 0)
        program.signal(SIGPIPE)
        #expect(try await program.stranger.get("/healthz").status == 200)
        #expect(await program.end(by: SIGTERM).status == 0)
        await lockstep.stop()
    }

    @Test("Q15: the memory of a serving process reaches a plateau: later requests leave nothing behind")
    func plateau() async throws {
        let lockstep = try await ServiceHarness.start(["LOCKSTEP_LOG_LEVEL": "notice"], parts: nil)
        let program = try await lockstep.startProgram()
        let shop = try lockstep.shop
        let order = try await lockstep.order()
        let callers = 8
        let each = 250
        var kilobytes: [Int] = []
        for _ in 0..<5 {
            let answered = try await atOnce(callers) { _ in
                var good = 0
                for _ in 0..<each {
                    if try await shop.get(order.path).status == 200 { good += 1 }
                }
                return good
            }
            #expect(answered.reduce(0, +) == callers * each)
            let memory = try #require(program.status("VmRSS")?.split(separator: " ").first)
            kilobytes.append(try #require(Int(memory)))
        }
        // The first two rounds fill pools and caches, and what the allocator keeps. 2 KB that each request of the three
        // others left behind would be 12,000.
        #expect(kilobytes[4] - kilobytes[1] < 8000, "\(kilobytes)")
        #expect(await program.end(by: SIGTERM).status == 0)
        await lockstep.stop()
    }
}
