import CCurl

extension Transfer {
    /// The answer, once libcurl is done with `code`.
    func result(of easy: EasyHandle, _ code: CURLcode) -> Result<HTTPClientResponse, HTTPClientError> {
        guard code == CURLE_OK else {
            let failure = CurlFailure(
                code: code, message: easy.message(for: code), mayHaveBeenSent: mayHaveBeenSent(by: easy),
                nameWasResolved: easy.offset(CURLINFO_NAMELOOKUP_TIME_T) > 0, deadlinePassed: deadline <= .now,
                refusal: collector.refusal)
            return .failure(failure.error(for: request))
        }
        // libcurl takes a connection's end inside the header section for the end of the answer.
        guard collector.hasFinalHeaders, collector.status == easy.number(CURLINFO_RESPONSE_CODE) else {
            let error = HTTPClientError(
                .malformedResponse, mayHaveBeenSent: true, detail: "the response ended inside its header")
            return .failure(error)
        }
        return .success(
            HTTPClientResponse(
                status: collector.status, headers: collector.headers, body: collector.body,
                httpVersion: Self.httpVersion(easy.number(CURLINFO_HTTP_VERSION)), wasResent: attempts > 1))
    }

    /// The count of ``mayBegin()`` alone would do; libcurl's own counts are asked too, since here a wrong "no" costs
    /// money and a wrong "yes" costs one look.
    func mayHaveBeenSent(by easy: EasyHandle) -> Bool {
        attempts > 0 || easy.number(CURLINFO_REQUEST_SIZE) > 0 || easy.offset(CURLINFO_PRETRANSFER_TIME_T) > 0
            || easy.offset(CURLINFO_SIZE_UPLOAD_T) > 0
    }

    private static func httpVersion(_ number: Int) -> String {
        switch number {
        case Int(CURL_HTTP_VERSION_1_0): "1.0"
        case Int(CURL_HTTP_VERSION_2_0): "2"
        case Int(CURL_HTTP_VERSION_3): "3"
        default: "1.1"
        }
    }
}
