import CCurl

// The options of a transfer. libcurl's names are in its manual, one page each.

extension EasyHandle {
    /// Everything that `transfer` is, with `remaining` of its time left (more than zero).
    func configure(
        for transfer: Transfer, _ configuration: HTTPClientConfiguration, remaining: Duration
    ) throws(HTTPClientError) {
        try setCallbacks(transfer)
        try setTransport(configuration, remaining: remaining)
        try setTrust(configuration)
        try setRequest(transfer.request)
        try set(CURLOPT_USERAGENT, configuration.userAgent)
    }

    private func setCallbacks(_ transfer: Transfer) throws(HTTPClientError) {
        // Not retained: the driver keeps the transfer until libcurl has let go of the handle.
        let context = UnsafeRawPointer(Unmanaged.passUnretained(transfer).toOpaque())
        try useErrorText()
        try set(CURLOPT_PRIVATE, pointer: context)
        try set(CURLOPT_WRITEDATA, pointer: context)
        try set(CURLOPT_WRITEFUNCTION, function: receiveBody)
        try set(CURLOPT_HEADERDATA, pointer: context)
        try set(CURLOPT_HEADERFUNCTION, function: receiveHeader)
        try set(CURLOPT_PREREQDATA, pointer: context)
        try setBeforeRequest(beforeRequest)
    }

    private func setTransport(_ configuration: HTTPClientConfiguration, remaining: Duration) throws(HTTPClientError) {
        try set(CURLOPT_NOSIGNAL, 1)
        // Ending a transfer must not wait for its name server: the resolver's thread is left to end by itself.
        try set(CURLOPT_QUICK_EXIT, 1)
        try set(CURLOPT_TIMEOUT_MS, remaining.wholeMilliseconds)
        try set(CURLOPT_CONNECTTIMEOUT_MS, configuration.connectTimeout.wholeMilliseconds)
        try set(CURLOPT_TCP_KEEPALIVE, 1)
        try set(CURLOPT_TCP_KEEPIDLE, 30)
        try set(CURLOPT_TCP_KEEPINTVL, 10)
        // Most load balancers close what was idle for 60 seconds; one that is closed just as we write is a request
        // with an unknown outcome.
        try set(CURLOPT_MAXAGE_CONN, 50)
        // Where the name points now, and a renewed client certificate, are in use after this many seconds at most.
        try set(CURLOPT_MAXLIFETIME_CONN, 600)
        let version = configuration.usesHTTP2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1
        try set(CURLOPT_HTTP_VERSION, Int(version))
        try set(CURLOPT_PROTOCOLS_STR, "https,http")
        try set(CURLOPT_FOLLOWLOCATION, 0)
        // An empty string, not nil: nil would mean the environment's proxy.
        try set(CURLOPT_PROXY, "")
        try set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
    }

    private func setTrust(_ configuration: HTTPClientConfiguration) throws(HTTPClientError) {
        try set(CURLOPT_SSL_VERIFYPEER, 1)
        try set(CURLOPT_SSL_VERIFYHOST, 2)
        try set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        if let authorities = configuration.authorityFile ?? CurlLibrary.systemAuthorityFile {
            try set(CURLOPT_CAINFO, authorities)
            // The built-in folder would be trusted beside the file. Without a folder, libcurl can keep the parsed file.
            try set(CURLOPT_CAPATH, nil)
            try set(CURLOPT_CA_CACHE_TIMEOUT, 600)
        }
        if let certificate = configuration.clientCertificateFile, let key = configuration.clientKeyFile {
            try set(CURLOPT_SSLCERTTYPE, "PEM")
            try set(CURLOPT_SSLCERT, certificate)
            try set(CURLOPT_SSLKEYTYPE, "PEM")
            try set(CURLOPT_SSLKEY, key)
        }
    }

    private func setRequest(_ request: PreparedRequest) throws(HTTPClientError) {
        try set(CURLOPT_URL, request.url)
        try set(CURLOPT_PATH_AS_IS, 1)
        if request.method == "HEAD" {
            // Its Content-Length is that of a body which does not come, so it is not held against a limit.
            try set(CURLOPT_NOBODY, 1)
        } else {
            try set(CURLOPT_MAXFILESIZE_LARGE, offset: request.maximumResponseBytes)
            if let body = request.body {
                try set(CURLOPT_POST, 1)
                try setBody(body)
            }
            if request.method != (request.body == nil ? "GET" : "POST") {
                try set(CURLOPT_CUSTOMREQUEST, request.method)
            }
        }
        try setHeaders(request.headerLines)
    }
}

extension Duration {
    /// Rounded up and at least 1, because 0 means "no limit" to libcurl; at most a day.
    var wholeMilliseconds: Int {
        guard self < .seconds(86_400) else { return 86_400_000 }
        let (seconds, attoseconds) = components
        return max(1, Int(seconds) * 1000 + Int((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000))
    }
}

// libcurl calls these from inside curl_multi_perform, on the transfer thread.

private func receiveBody(
    bytes: UnsafeMutablePointer<CChar>?, size: Int, count: Int, context: UnsafeMutableRawPointer?
) -> Int {
    guard let transfer = Transfer.from(context) else { return 0 }
    let taken = transfer.collector.takeBody(UnsafeRawBufferPointer(start: bytes, count: size * count))
    return taken ? size * count : refusedByteCount(size * count)
}

private func receiveHeader(
    bytes: UnsafeMutablePointer<CChar>?, size: Int, count: Int, context: UnsafeMutableRawPointer?
) -> Int {
    guard let transfer = Transfer.from(context) else { return 0 }
    let taken = transfer.collector.takeHeaderLine(UnsafeRawBufferPointer(start: bytes, count: size * count))
    return taken ? size * count : refusedByteCount(size * count)
}

private func beforeRequest(
    context: UnsafeMutableRawPointer?, remoteAddress: UnsafeMutablePointer<CChar>?,
    localAddress: UnsafeMutablePointer<CChar>?, remotePort: Int32, localPort: Int32
) -> Int32 {
    guard let transfer = Transfer.from(context), transfer.mayBegin() else { return CURL_PREREQFUNC_ABORT }
    return CURL_PREREQFUNC_OK
}

/// Any other number than the one given stops the transfer; for nothing given, that can't be 0.
private func refusedByteCount(_ given: Int) -> Int { given == 0 ? 1 : 0 }

extension Transfer {
    fileprivate static func from(_ context: UnsafeMutableRawPointer?) -> Transfer? {
        context.map { Unmanaged<Transfer>.fromOpaque($0).takeUnretainedValue() }
    }
}
