import Basics

/// Which languages somebody reads (`Accept-Language`, RFC 9110 section 12.5.4). What isn't of its grammar is left out,
/// since a refusal in another language is better than none.
struct AcceptLanguage: Sendable, Hashable {
    /// Tags in lower case, and `*`, best first; of one weight in the order in which they were sent.
    let preferences: [String]
    /// The field once more, of what was understood only, so that it can be passed on; nil where there was nothing.
    let text: String?

    /// More than anybody reads.
    private static let maximum = 16

    init(_ values: [String]) {
        var ranges: [(tag: String, thousandths: Int)] = []
        for part in values.joined(separator: ",").split(separator: ",") where ranges.count < Self.maximum {
            let pieces = part.split(separator: ";", omittingEmptySubsequences: false).map(SettingText.trimmed)
            guard let tag = pieces.first, tag == "*" || Self.isRange(tag), pieces.count <= 2,
                let weight = pieces.count == 1 ? 1000 : Self.thousandths(pieces[1])
            else { continue }
            ranges.append((tag.lowercased(), weight))
        }
        let order = ranges.enumerated().filter { $0.element.thousandths > 0 }.sorted { left, right in
            (-left.element.thousandths, left.offset) < (-right.element.thousandths, right.offset)
        }
        preferences = order.map(\.element.tag)
        let words = order.map { _, range in
            let digits = String(1000 + range.thousandths).dropFirst()
            return range.thousandths == 1000 ? range.tag : "\(range.tag);q=0.\(digits)"
        }
        text = words.isEmpty ? nil : words.joined(separator: ", ")
    }

    private static func isRange(_ text: String) -> Bool {
        text.wholeMatch(of: /[A-Za-z]{1,8}(-[A-Za-z0-9]{1,8}){0,8}/) != nil
    }

    /// `q=0.8` is 800. Nil for what isn't a weight.
    private static func thousandths(_ text: String) -> Int? {
        guard let match = text.wholeMatch(of: /[qQ]=(?:0(?:\.([0-9]{0,3}))?|1(?:\.0{0,3})?)/) else { return nil }
        guard text.dropFirst(2).first == "0" else { return 1000 }
        let digits = String(match.1 ?? "")
        return Int(digits + String(repeating: "0", count: 3 - digits.count))
    }
}
