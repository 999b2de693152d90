import Basics

/// A refusal, with the code and the status of section 1.8.
struct APIError: Error, Sendable {
    struct Entry: Sendable {
        let code: String
        let detail: String
    }
    let status: Int
    let entries: [Entry]
    /// Kept under the idempotency key (section 1.5).
    var isStored = true

    init(_ status: Int, _ code: String, _ detail: String, isStored: Bool = true) {
        self.status = status
        entries = [Entry(code: code, detail: detail)]
        self.isStored = isStored
    }

    /// Every fault of the parameters at once; never kept under a key.
    init(faults: [Shape.Fault]) {
        status = 400
        entries = faults.map {
            Entry(code: $0.isMissing ? "request.param.missing" : "request.param.invalid", detail: $0.detail)
        }
        isStored = false
    }

    static func invalid(_ detail: String) -> APIError {
        APIError(400, "request.param.invalid", detail, isStored: false)
    }
    static func headerMissing(_ name: String) -> APIError {
        APIError(400, "request.header.missing", "header \(name) is required", isStored: false)
    }
    static func headerInvalid(_ detail: String) -> APIError {
        APIError(400, "request.header.invalid", detail, isStored: false)
    }
    static func unauthorized(_ detail: String, isStored: Bool = false) -> APIError {
        APIError(401, "request.unauthorized", detail, isStored: isStored)
    }
    static func notFound(_ detail: String) -> APIError { APIError(404, "request.not-found", detail) }
    static func notAllowed(_ detail: String) -> APIError { APIError(409, "workflow.action.not-allowed", detail) }

    /// The envelope of section 1.8.
    func body(using random: inout SeededGenerator) -> JSON {
        var list: [JSON] = []
        for entry in entries {
            list.append([
                "id": .string(random.uuid()), "code": .string(entry.code), "detail": .string(entry.detail),
                "docUrl": .string("https://docs.payrails.com/docs/error-codes#\(entry.code)"), "reason": [:],
            ])
        }
        return ["errors": .array(list)]
    }
}

/// An answer before it becomes bytes.
struct Answer: Sendable {
    let status: Int
    let body: JSON
    init(_ status: Int, _ body: JSON) {
        self.status = status
        self.body = body
    }
}
