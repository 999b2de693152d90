/// `traceparent` of W3C Trace Context, version 00.
public struct TraceParent: Hashable, Sendable, CustomStringConvertible {
    /// `00-<32 hex>-<16 hex>-<2 hex>`, as it came and as it is passed on.
    public let text: String

    /// Nil for anything else, also for ids that are all zeros.
    public init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        let isHex = { (part: Substring) in
            part.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
        }
        guard parts.count == 4, parts[0] == "00", parts.map(\.utf8.count) == [2, 32, 16, 2], parts.allSatisfy(isHex),
            parts[1].contains(where: { $0 != "0" }), parts[2].contains(where: { $0 != "0" })
        else { return nil }
        self.text = text
    }

    /// The 32 hex digits that one trace's spans share.
    public var traceID: String { String(text.dropFirst(3).prefix(32)) }
    public var description: String { text }

    /// The one that what runs now is done for, set for the time of a request. Whoever calls others for it passes it on.
    @TaskLocal public static var current: TraceParent?
}
