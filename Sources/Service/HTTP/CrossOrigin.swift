import Basics

/// What browsers are told (CORS). Only the origins of `LOCKSTEP_CORS_ORIGINS`, and only calls that a client token may
/// make; a merchant key has no place in a browser. No cookies, hence no credentials mode.
struct CrossOrigin: Sendable {
    let origins: Set<String>

    /// Fields that let the page read this answer.
    func fields(for headers: HTTPHeaders, _ endpoint: Endpoint) -> HTTPHeaders {
        guard !origins.isEmpty, case .scopeOrClient = endpoint.access else { return [:] }
        var fields: HTTPHeaders = ["Vary": "Origin"]
        guard let origin = headers["Origin"], origins.contains(origin) else { return fields }
        fields["Access-Control-Allow-Origin"] = origin
        fields["Access-Control-Expose-Headers"] =
            "ETag, Location, X-Request-Id, Retry-After, Idempotent-Replayed, RateLimit, RateLimit-Policy"
        return fields
    }

    /// The answer to `OPTIONS`, with the methods of the path.
    func preflight(_ headers: HTTPHeaders, endpoints: [Endpoint], allow: String) -> Answer {
        var answer = Answer(status: 204, headers: ["Allow": allow])
        guard let method = headers["Access-Control-Request-Method"],
            let endpoint = endpoints.first(where: { $0.method == method }),
            case let fields = fields(for: headers, endpoint), fields["Access-Control-Allow-Origin"] != nil
        else { return answer }
        for field in fields.fields where field.name != "Access-Control-Expose-Headers" {
            answer.headers[field.name] = field.value
        }
        answer.headers["Access-Control-Allow-Methods"] = allow
        answer.headers["Access-Control-Allow-Headers"] =
            "Authorization, Content-Type, Idempotency-Key, If-Match, X-Request-Id, traceparent"
        answer.headers["Access-Control-Max-Age"] = "600"
        return answer
    }
}
