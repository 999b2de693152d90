import Lockstep

/// Takes out of free text what must never be in a log (invariant M9): the last net, not the first.
enum Scrubber {
    /// How much of a free text a log line carries.
    static let maximumCharacters = 300

    /// The text without card numbers, tokens, keys and JWTs, on one line, cut at ``maximumCharacters``.
    static func scrub(_ text: String) -> String {
        var out = CardNumber.blanked(in: String(text.prefix(4 * maximumCharacters)))
        for pattern in patterns { out = out.replacing(pattern.expression) { _ in pattern.replacement } }
        guard out.count > maximumCharacters else { return out }
        return out.prefix(maximumCharacters) + "…"
    }

    private struct Pattern: @unchecked Sendable {
        // Regex isn't marked Sendable; a compiled one is never changed and may be used from any thread.
        let expression: Regex<Substring>
        let replacement: String
    }

    private static let patterns: [Pattern] = [
        Pattern(expression: /(?:lsk_|lsc_|whsec_)[A-Za-z0-9_\-+\/=]+/, replacement: "•••"),
        Pattern(expression: /eyJ[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*)*/, replacement: "•••"),
        Pattern(expression: /(?i:bearer|basic)\s+[A-Za-z0-9_\-.~+\/=]{8,}/, replacement: "•••"),
        Pattern(expression: /:\/\/[^\/@\s]*:[^\/@\s]*@/, replacement: "://•••@"),
        Pattern(expression: /(?i:password|client_secret|x-api-key)\s*[=:]\s*\S+/, replacement: "•••"),
        Pattern(expression: /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*/, replacement: "•••"),
    ]
}
