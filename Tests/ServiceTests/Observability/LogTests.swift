import Basics
import Foundation
import Lockstep
import Synchronization
import TestKit
import Testing

@testable import Service

@Suite("The log")
struct LogTests {
    private let lines = Lines()
    private func log(_ minimum: LogLevel = .debug) -> Log {
        let clock = WallClock { Timestamp(seconds: 0) }
        return Log(minimum: minimum, clock: clock, writer: LogWriter(clock: clock) { [lines] in lines.add($0) })
    }

    @Test("a line is one JSON object with time, level, message and fields, in this order")
    func oneLine() {
        let log = log().with(.checkout(CheckoutID(StandInIDs.one)))
        log.warning("the amount is unknown", .took(.microseconds(1_234_567)), .count("attempt", 3))
        log.writer.flush()
        #expect(
            lines.text
                == #"{"time":"1970-01-01T00:00:00Z","level":"warning","message":"the amount is unknown","#
                + #""checkoutId":"01000000-0000-7000-8000-000000000001","durationMs":1234.567,"attempt":3}"# + "\n")
    }

    @Test("less than the minimum isn't written, each level is above the one before")
    func levels() {
        for (index, minimum) in LogLevel.allCases.enumerated() {
            let log = log(minimum)
            let before = lines.objects.count
            log.debug("a")
            log.info("a")
            log.notice("a")
            log.warning("a")
            log.error("a")
            log.writer.flush()
            #expect(lines.objects.count - before == 5 - index)
        }
    }

    @Test("time, level and message can't be overwritten by a field, and a later field of a name wins")
    func names() {
        let log = log().with(.count("n", 1))
        log.info("real", .text("message", "forged"), .text("level", "forged"), .count("n", 2))
        log.writer.flush()
        #expect(lines.objects[0]["message"] == "real" && lines.objects[0]["level"] == "info")
        #expect(lines.objects[0]["n"] == 2)
        #expect(!lines.text.contains("forged"))
    }

    @Test("free text can't begin a new line or a new member")
    func injection() {
        let log = log()
        log.info("a", .detail("x\"}\n{\"level\":\"error\",\"message\":\"forged\u{0}\u{1B}[31m"))
        log.writer.flush()
        #expect(lines.objects.count == 1)
        #expect(lines.text.split(separator: "\n").count == 1)
        #expect(!lines.text.contains("\u{1B}"))
    }

    @Test("what is logged is written in its order, from many threads whole lines only")
    func concurrent() async {
        let log = log()
        await withTaskGroup { group in
            for task in 0..<8 {
                group.addTask { for index in 0..<200 { log.info("x", .count("task", task), .count("index", index)) } }
            }
        }
        log.writer.flush()
        let objects = lines.objects
        #expect(objects.count == 1600)
        for task in 0..<8 {
            let own = objects.filter { $0["task"] == JSON(task) }.compactMap { $0["index"]?.integer }
            #expect(own == Array(0..<200).map(Int64.init))
        }
    }

    @Test("a sink that hangs costs lines, not time; what was dropped is told", .timeLimit(.minutes(1)), .ownThread)
    func hangingSink() {
        let hanging = Mutex(())
        let count = Tally()
        let lines = lines
        let writer = LogWriter(capacity: 10) { line in
            hanging.withLock { _ in lines.add(line) }
            count.hit()
        }
        let log = Log(minimum: .debug, writer: writer)
        let took = hanging.withLock { _ in
            ContinuousClock().measure { for index in 0..<1000 { log.info("x", .count("index", index)) } }
        }
        #expect(took < .seconds(5))
        writer.flush()
        let dropped = lines.objects.compactMap { $0["dropped"]?.integer }.reduce(0, +)
        let written = lines.objects.count { $0["message"] == "x" }
        #expect(dropped >= 970)
        #expect(Int64(written) + dropped == 1000)
        #expect(writer.droppedLines == 0)
    }

    @Test("an error says its type only, unless it has promised to say nothing secret")
    func errors() {
        struct Leaky: Error, CustomStringConvertible { let description = "hunter2" }
        let log = log()
        log.error("a", .error(Leaky()))
        log.error("b", .error(Refusal(kind: .rejected, code: "request.malformed", detail: "no")))
        log.error("c", .error(Problem(.alreadyPaid, "said to the caller")))
        log.writer.flush()
        #expect(!lines.text.contains("hunter2") && lines.text.contains("Leaky"))
        #expect(lines.objects[1]["error"] == "Refusal: rejected request.malformed no")
        #expect(lines.objects[2]["error"] == "Problem: already-paid")
    }

    @Test(
        "free text loses what must not be seen (M9, P1, P2)",
        arguments: [
            "4111111111111111", "5555 5555 5555 4444", "3782-822463-10005",
            "lsk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "lsc_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
            "abcdefghij1234567890",
            "s3cret-word",
        ])
    func scrubbed(secret: String) {
        let texts = [
            "Authorization: Bearer \(secret)", "bearer \(secret)!", "https://user:\(secret)@host/x",
            "password=\(secret) ",
            "x-api-key: \(secret)",
        ]
        for text in texts { #expect(!Scrubber.scrub(text).contains(secret), "\(text)") }
        if !secret.hasPrefix("abc"), !secret.hasPrefix("s3") {
            #expect(!Scrubber.scrub("say \(secret), will you").contains(secret))
            #expect(Scrubber.scrub("say \(secret), will you").hasPrefix("say "))
        }
    }

    @Test("ordinary words stay, and a long text is cut")
    func kept() {
        for text in [
            "execution 0197c0de-0000-7000-8000-000000000001 is authorized", "order-1001 12345678", "49.90 EUR",
        ] {
            #expect(Scrubber.scrub(text) == text)
        }
        #expect(Scrubber.scrub(String(repeating: "ab ", count: 1000)).count <= 301)
        // A card that the cut would halve is gone before the cut.
        let atTheCut = String(repeating: "x", count: 290) + " 4111111111111111"
        #expect(!Scrubber.scrub(atTheCut).contains("4111"))
    }

    @Test("the writer to standard error gives up on a descriptor that is gone instead of spinning")
    func reopening() {
        let log = Log(minimum: .error, writer: .standardError())
        log.debug("never seen")
        log.writer.flush()
        #expect(log.writer.droppedLines == 0)
    }
}
