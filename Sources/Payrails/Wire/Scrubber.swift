/// Makes a foreign sentence fit for a log: short, and without anything that could be a card or a token (invariant M9).
enum Scrubber {
    static let maximumLength = 200

    /// Blanks what looks like a card number, a token, an address or a mail address, then cuts to 200 characters.
    static func scrub(_ text: String) -> String {
        var head = text.prefix(2000)
        // What the first cut broke in two might no longer look like what it is.
        if head.endIndex != text.endIndex { head = head.prefix(upTo: head.lastIndex(of: " ") ?? head.startIndex) }
        let words = head.map { $0.isWhitespace || isControl($0) ? " " : $0 }.split(separator: " ")
        let clean = words.map { blank($0) }.joined(separator: " ")
        return String(blankDigitRuns(clean).prefix(maximumLength))
    }

    /// Digits in a row, also in groups with one separator between them, as people write card numbers.
    static func blankDigitRuns(_ text: String) -> String {
        let characters = Array(text)
        var out: [Character] = []
        var index = 0
        while index < characters.count {
            guard characters[index].isNumber else {
                out.append(characters[index])
                index += 1
                continue
            }
            let start = index
            var end = index
            var digits = 0
            while index < characters.count {
                if characters[index].isNumber {
                    digits += 1
                    index += 1
                    end = index
                } else if index + 1 < characters.count, " -._/".contains(characters[index]),
                    characters[index + 1].isNumber
                {
                    index += 1
                } else {
                    break
                }
            }
            out.append(contentsOf: digits >= 12 ? Array("•••") : Array(characters[start..<end]))
        }
        return String(out)
    }

    private static func blank(_ word: some Collection<Character>) -> String {
        let text = String(word)
        return text.contains("eyJ") || text.contains("@") || text.contains("://") || word.count > 48 || isJWT(text)
            ? "•••" : text
    }

    /// Three parts of base64url with dots between them, none of them a short word.
    private static func isJWT(_ text: String) -> Bool {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 3 && parts.allSatisfy { $0.count >= 10 }
    }

    private static func isControl(_ character: Character) -> Bool {
        character.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }
}
