import Testing

@testable import HTTPClient

extension HTTPClientTests {
    @Suite("which libcurl is good enough")
    struct LibraryTests {
        /// Every feature that there is a bit for.
        private let everything = Int(Int32.max)

        @Test("Q13: a libcurl that would resolve names by a signal, or hold every transfer up meanwhile, is refused")
        func resolver() throws {
            try CurlLibrary.check(version: 0x08_00_00, features: everything)
            // CURL_VERSION_ASYNCHDNS
            let asynchronousResolver = 1 << 7
            let refusal = #expect(throws: HTTPClientError.self) {
                try CurlLibrary.check(version: 0x08_00_00, features: everything & ~asynchronousResolver)
            }
            #expect(refusal?.code == .other)
            #expect(refusal?.detail == "libcurl was built without an asynchronous resolver")
        }

        @Test("one that is too old is refused, and the one that is here is not")
        func version() throws {
            #expect(throws: HTTPClientError.self) { try CurlLibrary.check(version: 0x07_56_FF, features: everything) }
            try CurlLibrary.check(version: 0x07_57_00, features: everything)
            try CurlLibrary.check()
        }
    }
}
