import CCurl

/// What this client needs of the libcurl that it finds at run time.
enum CurlLibrary {
    /// `curl_global_init`, once for the process. It is never undone: other users of libcurl may be about.
    private static let initialized: CURLcode = curl_global_init(Int(CURL_GLOBAL_DEFAULT))

    /// The bundle of authorities that libcurl was built with.
    static var systemAuthorityFile: String? {
        guard let info = lockstep_curl_version(), let file = info.pointee.cainfo else { return nil }
        return String(cString: file)
    }

    /// Checks version and features; throws with `other` and what is missing.
    static func check() throws(HTTPClientError) {
        guard initialized == CURLE_OK, let info = lockstep_curl_version() else {
            throw HTTPClientError(.other, detail: "libcurl can't be initialised")
        }
        try check(version: info.pointee.version_num, features: Int(info.pointee.features))
    }

    /// The same of any libcurl.
    static func check(version: UInt32, features: Int) throws(HTTPClientError) {
        // 7.87 brought CURLOPT_QUICK_EXIT, without which giving up on a slow name server stops every other transfer.
        guard version >= 0x07_57_00 else {
            throw HTTPClientError(.other, detail: "libcurl 7.87 or later is needed")
        }
        let needed = [
            (CURL_VERSION_SSL, "TLS"), (CURL_VERSION_ASYNCHDNS, "an asynchronous resolver"),
            (CURL_VERSION_HTTP2, "HTTP/2"), (CURL_VERSION_THREADSAFE, "a thread-safe initialisation"),
        ]
        for (feature, name) in needed where features & Int(feature) == 0 {
            throw HTTPClientError(.other, detail: "libcurl was built without \(name)")
        }
    }
}
