import Basics

/// The schemas of the document, by name. A noun's schemas stand in a file of their own.
enum Schemas {
    static let all: [String: JSON] = [
        common, checkouts, payments, charges, subscriptions, instruments, operations,
    ].reduce(into: [:]) { all, part in
        all.merge(part) { _, _ in preconditionFailure("two schemas have one name") }
    }

    /// A member of an object; a name that ends in `?` may be missing.
    typealias Members = KeyValuePairs<String, JSON>

    /// An object that has these members and no others.
    static func object(_ description: String, _ members: Members, example: JSON? = nil) -> JSON {
        var properties: [String: JSON] = [:]
        var required: [JSON] = []
        for (name, schema) in members {
            if name.hasSuffix("?") {
                properties[String(name.dropLast())] = schema
            } else {
                properties[name] = schema
                required.append(.string(name))
            }
        }
        return .compact([
            "type": "object", "description": .string(description), "properties": .object(properties),
            "required": required.isEmpty ? nil : .array(required), "additionalProperties": false,
            "examples": example.map { [$0] },
        ])
    }

    static func ref(_ name: String) -> JSON { ["$ref": .string("#/components/schemas/\(name)")] }
    static func list(of item: JSON) -> JSON { ["type": "array", "items": item] }
    static func words(_ words: [String]) -> JSON { ["type": "string", "enum": .array(words.map { .string($0) })] }
    static func words<Word: RawRepresentable & CaseIterable>(of type: Word.Type) -> JSON
    where Word.RawValue == String { words(type.allCases.map(\.rawValue)) }
    static func integer(_ range: ClosedRange<Int>) -> JSON {
        ["type": "integer", "minimum": JSON(range.lowerBound), "maximum": JSON(range.upperBound)]
    }
    static func text(upTo length: Int) -> JSON { ["type": "string", "maxLength": JSON(length)] }

    static let uuid: JSON = ["type": "string", "format": "uuid"]
    static let time: JSON = ["type": "string", "format": "date-time"]
    static let date: JSON = ["type": "string", "format": "date"]
    static let flag: JSON = ["type": "boolean"]
    static let word: JSON = ["type": "string"]
    static let decimal: JSON = ["type": "string", "pattern": "^(0|[1-9][0-9]*)(\\.[0-9]+)?$"]
    static let reference: JSON = ["type": "string", "minLength": 1, "maxLength": 128]
    /// ``TextRule/code``.
    static let code: JSON = ["type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"]
    static let meta: JSON = ["type": "object", "description": "The shop's own; passed on to Payrails. Up to 16 KiB."]
    static let money: JSON = ref("Money")

    /// A page of items.
    static func page(of name: String) -> JSON {
        object("A page; follow `next` until it is missing.", ["items": list(of: ref(name)), "next?": word])
    }

    static let discrepancyClasses = [
        "missing-here", "missing-there", "state-mismatch", "amount-mismatch", "captured-mismatch",
        "refunded-mismatch", "duplicate-payment", "unresolved-operation", "overdue-final-state",
    ]
}
