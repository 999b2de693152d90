import Lockstep

/// What a text in a request must be like.
public struct TextRule: Sendable {
    let characters: ClosedRange<Int>
    /// Refuses blanks at the ends and anywhere, beyond control characters.
    let isVisibleOnly: Bool
    /// Nobody reads it and it is only compared: control characters are as good as others.
    let isOpaque: Bool
    let pattern: (@Sendable (String) -> Bool)?
    let wording: String

    /// 1 to 128 characters without blanks or control characters: a reference of the shop's.
    public static let reference = TextRule(1...128, isVisibleOnly: true, "must be 1 to 128 characters without blanks")
    /// Up to 128 characters of text.
    public static let short = TextRule(0...128, "must be up to 128 characters")
    /// Up to 128 characters of whatever the shop likes. Only NUL is refused, by whoever reads the body.
    public static let opaque = TextRule(0...128, isOpaque: true, "must be up to 128 characters")
    /// 1 to 1,000 characters of text, for people.
    public static let note = TextRule(1...1000, "must be 1 to 1000 characters")
    /// A provider's word, like `payment-acceptance` or `creditCard`.
    public static let code = TextRule(1...64, isVisibleOnly: true, "must be a word of letters, digits, dots and dashes")
    {
        $0.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                true
            default: false
            }
        }
    }

    public init(
        _ characters: ClosedRange<Int>, isVisibleOnly: Bool = false, isOpaque: Bool = false, _ wording: String,
        pattern: (@Sendable (String) -> Bool)? = nil
    ) {
        self.characters = characters
        self.isVisibleOnly = isVisibleOnly
        self.isOpaque = isOpaque
        self.wording = wording
        self.pattern = pattern
    }

    /// Whether a text is one line that reads as it is written: without control characters, line breaks, and marks that turn
    /// its direction around, by which it could look like something else than it says.
    static func isOneLine(_ text: String) -> Bool {
        text.unicodeScalars.allSatisfy { scalar in
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: false
            default: !scalar.properties.isBidiControl
            }
        }
    }

    /// What is wrong with the text; nil where nothing is. Lengths count Unicode scalars, as PostgreSQL counts them.
    func fault(in text: String) -> String? {
        for scalar in text.unicodeScalars where !isOpaque {
            // Line and paragraph separators and the marks that turn the direction of text around are controls too.
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: return "must not hold control characters"
            case .format where isVisibleOnly: return "must not hold control characters"
            case .spaceSeparator where isVisibleOnly: return wording
            default: break
            }
        }
        guard characters.contains(text.unicodeScalars.count), pattern?(text) ?? true else { return wording }
        return nil
    }
}
