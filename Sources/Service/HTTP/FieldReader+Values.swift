import Basics
import Foundation
import Lockstep

/// Required members.
extension FieldReader {
    public func string(_ name: String, _ rule: TextRule = .short) -> String {
        optional.string(name, rule) ?? absent(name, "")
    }

    /// A reference of the shop's: 1 to 128 characters without blanks.
    public func reference(_ name: String) -> String { string(name, .reference) }

    public func integer(_ name: String, in range: ClosedRange<Int>) -> Int {
        optional.integer(name, in: range) ?? absent(name, range.lowerBound)
    }

    public func flag(_ name: String) -> Bool { optional.flag(name) ?? absent(name, false) }

    /// A word of the enum.
    public func choice<Word>(_ name: String, of type: Word.Type = Word.self) -> Word
    where Word: RawRepresentable & CaseIterable, Word.RawValue == String {
        optional.choice(name, of: type) ?? absent(name, StandIn.first(of: type))
    }

    /// `{"value": "49.99", "currency": "EUR"}`, more than zero.
    public func money(_ name: String) -> Money { optional.money(name) ?? absent(name, StandIn.money) }

    /// The object itself as money: the body `{value, currency}` of the SDK's guide.
    public func moneyHere() -> Money { Self.money(in: self) ?? StandIn.money }

    public func uuid(_ name: String) -> UUID { optional.uuid(name) ?? absent(name, StandIn.uuid) }

    public func id<ID: Identifier>(_ name: String, as type: ID.Type = ID.self) -> ID {
        optional.id(name, as: type) ?? absent(name, ID(StandIn.uuid))
    }

    /// A day, `2026-12-31`.
    public func date(_ name: String) -> CivilDate { optional.date(name) ?? absent(name, StandIn.date) }

    /// RFC 3339.
    public func time(_ name: String) -> Timestamp { optional.time(name) ?? absent(name, Timestamp(seconds: 0)) }

    /// An object, read by the closure.
    public func object<Value>(_ name: String, standIn: Value, _ reading: (FieldReader) -> Value) -> Value {
        optional.object(name, reading) ?? absent(name, standIn)
    }

    /// Anything that a reader of one's own makes of a string; nil is told as `wording`.
    public func parsed<Value>(_ name: String, standIn: Value, _ wording: String, _ parse: (String) -> Value?) -> Value {
        optional.parsed(name, wording, parse) ?? absent(name, standIn)
    }

    /// Tells that a required member is missing, unless it is there and was found to be wrong.
    private func absent<Value>(_ name: String, _ standIn: Value) -> Value {
        guard let value = members[name], !value.isNull else { return missing(name, standIn) }
        return standIn
    }
}

/// Members that may be missing or `null`: nil then, and for a wrong value, which is told.
public struct OptionalFieldReader {
    let reader: FieldReader

    public func string(_ name: String, _ rule: TextRule = .short) -> String? {
        read(name, "must be a string") { value in
            guard let text = value.string else { return nil }
            if let fault = rule.fault(in: text) { return .failure(fault) }
            return .success(text)
        }
    }

    public func reference(_ name: String) -> String? { string(name, .reference) }

    public func integer(_ name: String, in range: ClosedRange<Int>) -> Int? {
        let wording = "must be a whole number from \(range.lowerBound) to \(range.upperBound)"
        return read(name, wording) { value in
            value.integer.flatMap { Int(exactly: $0) }.flatMap { range.contains($0) ? .success($0) : nil }
        }
    }

    public func flag(_ name: String) -> Bool? { read(name, "must be true or false") { $0.bool.map { .success($0) } } }

    public func choice<Word>(_ name: String, of type: Word.Type = Word.self) -> Word?
    where Word: RawRepresentable & CaseIterable, Word.RawValue == String {
        read(name, "must be one of \(type.allCases.map(\.rawValue).joined(separator: ", "))") {
            $0.string.flatMap(Word.init(rawValue:)).map { .success($0) }
        }
    }

    public func money(_ name: String) -> Money? {
        guard let value = reader.value(name) else { return nil }
        guard let nested = nested(name, value, "must be an object like {\"value\": \"49.99\", \"currency\": \"EUR\"}")
        else { return nil }
        let money = FieldReader.money(in: nested)
        nested.reportUnknownMembers()
        return money
    }

    /// A decimal string in a currency that is known from elsewhere, more than zero unless `zero` is allowed.
    public func amount(_ name: String, in currency: Currency, allowingZero: Bool = false) -> Money? {
        read(name, "must be a decimal string like \"49.99\"") { value in
            guard let text = value.string else { return nil }
            switch FieldReader.amount(text, currency, allowingZero: allowingZero) {
            case .success(let money): return .success(money)
            case .failure(let fault): return .failure(fault.detail)
            }
        }
    }

    public func uuid(_ name: String) -> UUID? {
        parsed(name, "must be a UUID") { UUID(canonical: $0) }
    }

    public func id<ID: Identifier>(_ name: String, as type: ID.Type = ID.self) -> ID? {
        parsed(name, "must be a UUID") { ID($0) }
    }

    public func date(_ name: String) -> CivilDate? { parsed(name, TextForm.dateWording, TextForm.date) }

    public func time(_ name: String) -> Timestamp? { parsed(name, TextForm.timeWording, Timestamp.init(rfc3339:)) }

    /// Strings, each by the rule; `count` of them.
    public func strings(_ name: String, _ rule: TextRule, count: ClosedRange<Int>) -> [String]? {
        guard let value = reader.value(name) else { return nil }
        guard let items = value.array, count.contains(items.count) else {
            reader.fault(name, "must be a list of \(count.lowerBound) to \(count.upperBound) strings")
            return nil
        }
        let place = Fault.pointer(reader.pointer, name)
        return items.enumerated().compactMap { index, item in
            guard let text = item.string, rule.fault(in: text) == nil else {
                let fault = item.string.flatMap { rule.fault(in: $0) } ?? "must be a string"
                reader.collector.add(Fault("\(place)/\(index)", fault))
                return nil
            }
            return text
        }
    }

    public func object<Value>(_ name: String, _ reading: (FieldReader) -> Value) -> Value? {
        guard let value = reader.value(name), let nested = nested(name, value, "must be an object") else { return nil }
        let result = reading(nested)
        nested.reportUnknownMembers()
        return result
    }

    /// An object of the caller's own making, kept as it is: up to 16 KiB as compact JSON.
    public func freeObject(_ name: String) -> JSON? {
        read(name, "must be an object") { value in
            guard case .object = value else { return nil }
            return value.bytes.count <= 16_384 ? .success(value) : .failure("must be up to 16 KiB of JSON")
        }
    }

    public func parsed<Value>(_ name: String, _ wording: String, _ parse: (String) -> Value?) -> Value? {
        read(name, wording) { value in value.string.flatMap(parse).map { .success($0) } }
    }

    /// For a PATCH: whether the member is left alone, taken away by `null`, or set.
    public func change<Value>(_ name: String, _ reading: (OptionalFieldReader, String) -> Value?) -> Change<Value> {
        guard reader.has(name) else { return .leave }
        if reader.members[name]?.isNull == true { return .clear }
        return reading(self, name).map { .set($0) } ?? .leave
    }

    private enum Reading<Value> {
        case success(Value)
        case failure(String)
    }

    /// Nil from the closure is told in the usual words, a failure in its own.
    private func read<Value>(_ name: String, _ wording: String, _ parse: (JSON) -> Reading<Value>?) -> Value? {
        guard let value = reader.value(name) else { return nil }
        switch parse(value) {
        case .success(let value): return value
        case .failure(let detail): reader.fault(name, detail)
        case nil: reader.fault(name, wording)
        }
        return nil
    }

    private func nested(_ name: String, _ value: JSON, _ wording: String) -> FieldReader? {
        guard case .object(let members) = value else {
            reader.fault(name, wording)
            return nil
        }
        return FieldReader(
            members, pointer: Fault.pointer(reader.pointer, name), collector: reader.collector)
    }
}

/// What a PATCH does to a member.
public enum Change<Value> {
    case leave, clear
    case set(Value)
}

extension Change: Sendable where Value: Sendable {}
extension Change: Equatable where Value: Equatable {}
