import Testing

@testable import HTTPClient

@Suite("putting a response together")
struct ResponseCollectorTests {
    private var collector = ResponseCollector(maximumHeaderBytes: 200, maximumBodyBytes: 10)

    private mutating func header(_ line: String) -> Bool {
        var line = line
        return line.withUTF8 { collector.takeHeaderLine(UnsafeRawBufferPointer($0)) }
    }

    private mutating func body(_ text: String) -> Bool {
        var text = text
        return text.withUTF8 { collector.takeBody(UnsafeRawBufferPointer($0)) }
    }

    @Test("lines with either line end, blanks around values, colons in them, and empty ones")
    mutating func lines() {
        for line in ["HTTP/1.1 200 OK\r\n", "A:b\n", "C: \t d: e \t\r\n", "F:\r\n", "no colon\r\n", "\r\n"] {
            #expect(header(line))
        }
        #expect(collector.hasFinalHeaders)
        #expect(collector.headers.fields.map(\.name) == ["A", "C", "F"])
        #expect(collector.headers.fields.map(\.value) == ["b", "d: e", ""])
    }

    @Test("bytes that are no UTF-8 do not end it")
    mutating func notUTF8() {
        #expect(header("HTTP/1.1 200 OK\r\n"))
        let bytes: [UInt8] = Array("X-A: ".utf8) + [0xFF, 0xFE, 0x0D, 0x0A]
        #expect(bytes.withUnsafeBytes { collector.takeHeaderLine($0) })
        #expect(collector.headers["x-a"]?.isEmpty == false)
    }

    @Test(
        "what is no status line stops it",
        arguments: ["", "HTTP/1.1", "HTTP/1.1 20", "HTTP/1.1 2000", "HTTP/1.1 abc", "HTTP/1.1 099 x", "200 OK", "\r\n"])
    mutating func notHTTP(line: String) {
        #expect(!header(line))
        #expect(collector.refusal == .notHTTP)
    }

    @Test("the reason is not needed", arguments: ["HTTP/2 200 ", "HTTP/2 200", "HTTP/1.1 200 \r\n"])
    mutating func reason(line: String) {
        #expect(header(line))
        #expect(collector.status == 200)
    }

    @Test("an interim response's fields are forgotten, a trailer's never taken")
    mutating func interim() {
        for line in [
            "HTTP/1.1 103 Hints\r\n", "A: b\r\n", "\r\n", "HTTP/1.1 201 X\r\n", "C: d\r\n", "\r\n", "E: f\r\n",
        ] {
            #expect(header(line))
        }
        #expect(collector.status == 201)
        #expect(collector.headers.fields.map(\.name) == ["C"])
    }

    @Test("an interim response alone is no response")
    mutating func interimAlone() {
        for line in ["HTTP/1.1 100 Continue\r\n", "\r\n"] { #expect(header(line)) }
        #expect(!collector.hasFinalHeaders)
    }

    @Test("both limits are exact, and interim responses and trailers count")
    mutating func limits() {
        #expect(header("HTTP/1.1 100 Continue\r\n"))
        #expect(header("\r\n"))
        #expect(header("HTTP/1.1 200 OK\r\n"))
        #expect(header("\r\n"))
        #expect(body("12345"))
        #expect(body("67890"))
        #expect(body(""))
        #expect(!body("1"))
        #expect(collector.refusal == .bodyTooLarge)
        #expect(collector.body.count == 10)
        let used = 23 + 2 + 17 + 2
        #expect(header(String(repeating: "t", count: 200 - used)))
        #expect(!header("t"))
        #expect(collector.refusal == .headersTooLarge)
    }
}
