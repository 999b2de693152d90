import Basics
import Foundation
import Lockstep

/// Reads the parameters of a query and collects everything that is wrong with them. All of them are optional unless the
/// method says otherwise; an empty value (`?after=`) is as good as none.
public final class QueryReader {
    private let values: [String: String]
    private let collector = FaultCollector()

    private init(_ values: [String: String]) { self.values = values }

    static func read<Value>(
        _ pairs: [(name: String, value: String)], _ reading: (QueryReader) -> Value
    ) throws(Problem) -> Value {
        let reader = QueryReader(Dictionary(pairs.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first }))
        let value = reading(reader)
        try reader.collector.throwIfAny()
        return value
    }

    /// How many items a page has: 1 to `maximum`.
    public func limit(maximum: Int = 200, default usual: Int = 50) -> Int {
        integer("limit", in: 1...maximum) ?? usual
    }

    /// Digits only, no sign.
    public func integer(_ name: String, in range: ClosedRange<Int>) -> Int? {
        parsed(name, "must be a whole number from \(range.lowerBound) to \(range.upperBound)") { text in
            guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            return Int(text).flatMap { range.contains($0) ? $0 : nil }
        }
    }

    public func string(_ name: String, _ rule: TextRule = .short) -> String? {
        guard let text = values[name], !text.isEmpty else { return nil }
        if let fault = rule.fault(in: text) {
            collector.add(Fault("/\(name)", fault))
            return nil
        }
        return text
    }

    public func reference(_ name: String) -> String? { string(name, .reference) }

    public func choice<Word>(_ name: String, of type: Word.Type = Word.self) -> Word?
    where Word: RawRepresentable & CaseIterable, Word.RawValue == String {
        parsed(name, "must be one of \(type.allCases.map(\.rawValue).joined(separator: ", "))", Word.init(rawValue:))
    }

    /// `true` or `false`.
    public func flag(_ name: String) -> Bool? { parsed(name, "must be true or false") { Bool($0) } }

    public func uuid(_ name: String) -> UUID? {
        parsed(name, "must be a UUID") { UUID(canonical: $0) }
    }

    public func time(_ name: String) -> Timestamp? { parsed(name, TextForm.timeWording, Timestamp.init(rfc3339:)) }

    /// Anything else that a text can stand for, such as a cursor.
    public func parsed<Value>(_ name: String, _ wording: String, _ parse: (String) -> Value?) -> Value? {
        guard let text = values[name], !text.isEmpty else { return nil }
        guard let value = parse(text) else {
            collector.add(Fault("/\(name)", wording))
            return nil
        }
        return value
    }

    /// Adds a fault that only the handler can see.
    public func fault(_ name: String, _ detail: String) { collector.add(Fault("/\(name)", detail)) }
}
