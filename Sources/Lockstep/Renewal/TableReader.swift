import Basics
import Foundation

/// What is wrong with a table that people tune, and where.
public struct TableFault: Error, Hashable, Sendable {
    public let detail: String
    init(_ detail: String) { self.detail = detail }
}

/// Reads one object of such a table strictly: a member that it doesn't know is a fault, since it is a typing error.
struct TableReader {
    private let members: [String: JSON]
    private let place: String
    /// What was asked for; the rest is a fault.
    private let known: Known = Known()

    private final class Known { var names: Set<String> = [] }

    init(_ json: JSON, at place: String) throws(TableFault) {
        guard let members = json.object else { throw TableFault("\(place): must be an object") }
        self.members = members
        self.place = place
    }

    /// The document's object.
    static func document(_ bytes: Data) throws(TableFault) -> TableReader {
        let json: JSON
        do { json = try JSON(parsing: bytes) } catch { throw TableFault("is not JSON: \(error.reason)") }
        return try TableReader(json, at: "the table")
    }

    /// The only member of the document, a list that isn't empty.
    static func list(_ name: String, in bytes: Data) throws(TableFault) -> [JSON] {
        let reader = try document(bytes)
        let list = try reader.list(name)
        try reader.end()
        return list
    }

    func list(_ name: String) throws(TableFault) -> [JSON] {
        guard let list = member(name)?.array, !list.isEmpty else { throw fault(name, "must be a list, not empty") }
        return list
    }

    func text(_ name: String) throws(TableFault) -> String {
        guard let text = member(name)?.string, !text.isEmpty else { throw fault(name, "must be a text") }
        return text
    }

    func optionalText(_ name: String) throws(TableFault) -> String? {
        guard let value = member(name) else { return nil }
        guard let text = value.string, !text.isEmpty else { throw fault(name, "must be a text, or not there") }
        return text
    }

    func word<Word>(_ name: String, of type: Word.Type) throws(TableFault) -> Word
    where Word: RawRepresentable & CaseIterable, Word.RawValue == String {
        guard let word = member(name)?.string.flatMap(Word.init(rawValue:)) else {
            throw fault(name, "must be one of \(Word.allCases.map(\.rawValue).joined(separator: ", "))")
        }
        return word
    }

    func integer(_ name: String, in range: ClosedRange<Int>) throws(TableFault) -> Int {
        guard let value = member(name)?.integer.flatMap(Int.init(exactly:)), range.contains(value) else {
            throw fault(name, "must be a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    func object(_ name: String) throws(TableFault) -> [String: JSON] {
        guard let object = member(name)?.object else { throw fault(name, "must be an object") }
        return object
    }

    /// Nothing else may be there.
    func end() throws(TableFault) {
        if let other = members.keys.sorted().first(where: { !known.names.contains($0) }) {
            throw TableFault("\(place): \(other) is unknown")
        }
    }

    private func member(_ name: String) -> JSON? {
        known.names.insert(name)
        return members[name]
    }

    private func fault(_ name: String, _ detail: String) -> TableFault { TableFault("\(place): \(name) \(detail)") }
}
