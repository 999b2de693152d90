import Basics

/// The `Retry-After` header (RFC 9110 section 10.2.3) in its form of seconds, which is the one that APIs use.
enum RetryAfter {
    /// 0 to 86,400; nil when there is none, or it is a date or nonsense.
    static func seconds(_ headers: HTTPHeaders) -> Int? {
        guard let text = headers["Retry-After"], !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return min(Int(text) ?? 86_400, 86_400)
    }
}
