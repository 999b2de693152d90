import Foundation

extension TimeZone {
    /// A zone of IANA's list by its name: `Europe/Berlin`, `UTC`. Nil for abbreviations (`CET`), which mean different
    /// zones to different people, for offsets, and for what isn't in the list.
    public init?(iana name: String) {
        guard name == "UTC" || name.contains("/"), !name.hasPrefix("/"), name.utf8.count <= 64,
            name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), let zone = TimeZone(identifier: name)
        else { return nil }
        self = zone
    }
}
