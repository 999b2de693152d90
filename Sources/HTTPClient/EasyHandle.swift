import CCurl
import Foundation

/// A `CURL *` with what must live as long as its transfer: the error text and the list of header lines.
///
/// Handles are used again, because each keeps the TLS sessions that it met.
final class EasyHandle {
    let pointer: UnsafeMutableRawPointer
    private let errorText: UnsafeMutablePointer<CChar>
    private var headerList: UnsafeMutablePointer<curl_slist>?

    init() throws(HTTPClientError) {
        guard let pointer = curl_easy_init() else { throw HTTPClientError(.other, detail: "out of memory") }
        self.pointer = pointer
        errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    }

    deinit {
        curl_easy_cleanup(pointer)
        curl_slist_free_all(headerList)
        errorText.deallocate()
    }

    /// Forgets everything about the last transfer; connections and TLS sessions stay.
    func reset() {
        curl_easy_reset(pointer)
        curl_slist_free_all(headerList)
        headerList = nil
        errorText[0] = 0
    }

    /// What libcurl has to say about `code`, in this transfer's words if it found some.
    func message(for code: CURLcode) -> String {
        if errorText[0] != 0 { return String(cString: errorText) }
        return curl_easy_strerror(code).map { String(cString: $0) } ?? "error \(code.rawValue)"
    }

    func useErrorText() throws(HTTPClientError) { try set(CURLOPT_ERRORBUFFER, pointer: errorText) }

    /// `CURLOPT_HTTPHEADER`
    func setHeaders(_ lines: [String]) throws(HTTPClientError) {
        for line in lines {
            guard let longer = curl_slist_append(headerList, line) else {
                throw HTTPClientError(.other, detail: "out of memory")
            }
            headerList = longer
        }
        try check(lockstep_curl_set_list(pointer, CURLOPT_HTTPHEADER, headerList))
    }

    /// `CURLOPT_COPYPOSTFIELDS`, whose length must be told first. Even an empty body needs a place: without one
    /// libcurl would read from standard input.
    func setBody(_ body: Data) throws(HTTPClientError) {
        try check(lockstep_curl_set_offset(pointer, CURLOPT_POSTFIELDSIZE_LARGE, Int(body.count)))
        let result = body.withUnsafeBytes { bytes in
            withUnsafePointer(to: 0 as UInt8) { empty in
                lockstep_curl_set_pointer(
                    pointer, CURLOPT_COPYPOSTFIELDS, bytes.baseAddress ?? UnsafeRawPointer(empty))
            }
        }
        try check(result)
    }

    func set(_ option: CURLoption, _ value: Int) throws(HTTPClientError) {
        try check(lockstep_curl_set_long(pointer, option, value))
    }

    func set(_ option: CURLoption, offset: Int) throws(HTTPClientError) {
        try check(lockstep_curl_set_offset(pointer, option, offset))
    }

    func set(_ option: CURLoption, _ value: String?) throws(HTTPClientError) {
        try check(lockstep_curl_set_string(pointer, option, value))
    }

    func set(_ option: CURLoption, pointer value: UnsafeRawPointer?) throws(HTTPClientError) {
        try check(lockstep_curl_set_pointer(pointer, option, value))
    }

    func set(_ option: CURLoption, function: @escaping lockstep_curl_data_function) throws(HTTPClientError) {
        try check(lockstep_curl_set_data_function(pointer, option, function))
    }

    func setBeforeRequest(_ function: @escaping lockstep_curl_prereq_function) throws(HTTPClientError) {
        try check(lockstep_curl_set_prereq_function(pointer, function))
    }

    /// A number of `curl_easy_getinfo`; 0 where libcurl has none.
    func number(_ info: CURLINFO) -> Int {
        var value = 0
        return lockstep_curl_get_long(pointer, info, &value) == CURLE_OK ? value : 0
    }

    func offset(_ info: CURLINFO) -> Int {
        var value: curl_off_t = 0
        return lockstep_curl_get_offset(pointer, info, &value) == CURLE_OK ? Int(value) : 0
    }

    /// New connections that the last transfer took.
    var connectionsOpened: Int { number(CURLINFO_NUM_CONNECTS) }

    private func check(_ code: CURLcode) throws(HTTPClientError) {
        guard code != CURLE_OK else { return }
        let words = curl_easy_strerror(code).map { String(cString: $0) } ?? ""
        throw HTTPClientError(.other, detail: "libcurl refused an option: \(words)", curlCode: Int32(code.rawValue))
    }
}
