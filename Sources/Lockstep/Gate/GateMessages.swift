import Basics
import Foundation

/// Why a payment isn't let through, in sentences that a customer can read: by language, then by reason.
///
/// A table is JSON: `{"de": {"already-paid": "Diese Bestellung ist bereits bezahlt."}}`, the languages by their tags of
/// BCP 47. It is laid over ``standard``, so that it may hold a single sentence, or a language of its own.
public struct GateMessages: Sendable, Hashable {
    /// A sentence, and the language that it is in.
    public struct Sentence: Sendable, Hashable {
        public let text: String
        /// As the table writes it: `de`, `pt-BR`.
        public let language: String
    }

    /// What a table does wrong; reads after "must".
    public struct Fault: Error, Hashable, Sendable {
        public let words: String
    }

    /// What the shop's own check may say at most, and so may a table. Unicode scalars.
    public static let maximumCharacters = 200

    /// The language of those who read none of the table's.
    public let usualLanguage: String
    /// By lower-case tag, since tags are the same in either case (RFC 5646 section 2.1.1).
    private let languages: [String: [Gate.Reason: Sentence]]

    /// `config/messages.json`, compiled in.
    public static let standard: GateMessages = {
        let text = Data(PackageResources.messages_json)
        guard let table = try? GateMessages.read(text), let messages = try? GateMessages(table, usualLanguage: "en")
        else {
            preconditionFailure("config/messages.json isn't a whole table")
        }
        return messages
    }()

    /// Lays a table over the ``standard`` one.
    ///
    /// - Parameters:
    ///   - table: nil for none.
    ///   - usualLanguage: has a sentence for every reason.
    public init(overlaying table: Data?, usualLanguage: String) throws(Fault) {
        var languages = Self.standard.languages
        if let table {
            for (language, sentences) in try Self.read(table) {
                languages[language, default: [:]].merge(sentences) { _, given in given }
            }
        }
        try self.init(languages, usualLanguage: usualLanguage)
    }

    private init(_ languages: [String: [Gate.Reason: Sentence]], usualLanguage: String) throws(Fault) {
        let missing = Gate.Reason.allCases.filter { languages[usualLanguage.lowercased()]?[$0] == nil }
        guard missing.isEmpty else {
            throw Fault(words: "have \(missing.map(\.rawValue).joined(separator: ", ")) in \(usualLanguage)")
        }
        self.languages = languages
        self.usualLanguage = usualLanguage
    }

    /// The best sentence for a customer, by RFC 4647 section 3.4: of each language in turn the tag itself, then what is
    /// left of it when its last part goes.
    ///
    /// - Parameter preferences: tags in lower case, best first; `*` stands for any.
    public func sentence(for reason: Gate.Reason, preferring preferences: [String]) -> Sentence {
        for preference in preferences {
            var parts = preference.split(separator: "-")
            while !parts.isEmpty, preference != "*" {
                if let sentence = languages[parts.joined(separator: "-")]?[reason] { return sentence }
                parts.removeLast()
                // A part of one character only says what the next one is about.
                if parts.last?.count == 1 { parts.removeLast() }
            }
            if preference == "*" { break }
        }
        guard let usual = languages[usualLanguage.lowercased()]?[reason] else {
            preconditionFailure("the usual language was checked to have every reason")
        }
        return usual
    }

    private static func read(_ text: Data) throws(Fault) -> [String: [Gate.Reason: Sentence]] {
        guard let table = try? JSON(parsing: text), case .object(let members) = table else {
            throw Fault(words: "be a JSON object of languages, like config/messages.json")
        }
        var languages: [String: [Gate.Reason: Sentence]] = [:]
        for (language, sentences) in members {
            guard language.wholeMatch(of: /[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*/) != nil else {
                throw Fault(words: "name languages by their tags, like de or pt-BR")
            }
            guard case .object(let sentences) = sentences else {
                throw Fault(words: "have an object of reasons in \(language)")
            }
            for (name, text) in sentences {
                guard let reason = Gate.Reason(rawValue: name) else {
                    throw Fault(words: "hold reasons only, and a name in \(language) is none")
                }
                guard let text = text.string, isSentence(text) else {
                    throw Fault(words: "have 1 to \(maximumCharacters) characters for \(name) in \(language)")
                }
                languages[language.lowercased(), default: [:]][reason] = Sentence(text: text, language: language)
            }
        }
        return languages
    }

    /// Whether the text says something, and no more than fits.
    private static func isSentence(_ text: String) -> Bool {
        text.unicodeScalars.count <= maximumCharacters && text.contains { !$0.isWhitespace }
    }

    /// What the shop says, as far as it may go to a customer: all of it, or, where it is longer than
    /// ``maximumCharacters``, its beginning up to a whole character, and an ellipsis. Nil where it says nothing, and where
    /// a card number stands in it.
    public static func passable(_ text: String) -> String? {
        guard text.contains(where: { !$0.isWhitespace }), !CardNumber.appears(in: text) else { return nil }
        guard text.unicodeScalars.count > maximumCharacters else { return text }
        var kept = ""
        var length = 1
        for character in text {
            length += character.unicodeScalars.count
            if length > maximumCharacters { break }
            kept.append(character)
        }
        return kept.isEmpty ? nil : kept + "…"
    }
}
