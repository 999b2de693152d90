import Basics
import Foundation
import Lockstep

/// Reads the members of a JSON object and collects everything that is wrong with them, each with its JSON Pointer.
///
/// A method on the reader itself reads a required member; the same on ``optional`` gives nil for one that is missing or
/// `null`. Members that nobody asked for are faults as well: a typo in the name of a payment's field must not pass
/// silently. Where a value is missing or wrong, the method gives a stand-in so that reading goes on;
/// ``read(_:unknownMembers:_:)`` then throws, and no stand-in ever leaves it.
public final class FieldReader {
    public enum UnknownMembers: Sendable { case refused, ignored }

    /// The object's own place in the body.
    public let pointer: String
    let members: [String: JSON]
    private(set) var asked: Set<String> = []
    let collector: FaultCollector

    init(_ members: [String: JSON], pointer: String, collector: FaultCollector) {
        self.members = members
        self.pointer = pointer
        self.collector = collector
    }

    /// Runs the closure over the object.
    ///
    /// - Throws: 422 with all faults, in the order of their pointers.
    static func read<Value>(
        _ body: JSON, unknownMembers: UnknownMembers, _ reading: (FieldReader) -> Value
    ) throws(Problem) -> Value {
        guard case .object(let members) = body else { throw .invalid("", "must be an object") }
        let reader = FieldReader(members, pointer: "", collector: FaultCollector())
        let value = reading(reader)
        if unknownMembers == .refused { reader.reportUnknownMembers() }
        try reader.collector.throwIfAny()
        return value
    }

    /// The reader of members that may be missing.
    public var optional: OptionalFieldReader { OptionalFieldReader(reader: self) }

    /// Whether the member is there, also if it is `null`.
    public func has(_ name: String) -> Bool {
        asked.insert(name)
        return members[name] != nil
    }

    /// Says that these members may be there although nobody reads them.
    public func allow(_ names: String...) { asked.formUnion(names) }

    /// Adds a fault that only the handler can see, like bounds in the wrong order.
    public func fault(_ name: String, _ detail: String) {
        collector.add(Fault(name.isEmpty ? pointer : Fault.pointer(pointer, name), detail))
    }

    func reportUnknownMembers() {
        for name in members.keys where !asked.contains(name) { fault(name, "is not a member that is known here") }
    }

    /// The member's value, asked for by its name; nil for a missing one and for `null`.
    func value(_ name: String) -> JSON? {
        asked.insert(name)
        // Not by a closure: there, a bare `nil` would be the JSON value null.
        guard let value = members[name], !value.isNull else { return nil }
        return value
    }

    /// What a required member that isn't there is told.
    func missing<Value>(_ name: String, _ standIn: Value) -> Value {
        fault(name, "is required")
        return standIn
    }
}

/// Faults of a whole document, also of what lies deeper in it.
final class FaultCollector {
    private var faults: [Fault] = []

    /// No answer grows without an end, whatever was sent.
    private static let maximum = 100

    func add(_ fault: Fault) { if faults.count < Self.maximum { faults.append(fault) } }

    var isEmpty: Bool { faults.isEmpty }

    func throwIfAny() throws(Problem) {
        guard !faults.isEmpty else { return }
        throw Problem(.invalid, faults: faults.sorted { ($0.pointer, $0.detail) < ($1.pointer, $1.detail) })
    }
}
