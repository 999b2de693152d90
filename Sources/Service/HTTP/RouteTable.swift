/// Finds the route of a request.
struct RouteTable: Sendable {
    private let byCount: [Int: [Route]]
    let routes: [Route]

    /// - Precondition: no two routes have the same method and pattern.
    init(_ routes: [Route]) {
        let names = routes.map { "\($0.endpoint.method) \($0.endpoint.pattern)" }
        precondition(Set(names).count == names.count, "two routes have the same method and path")
        self.routes = routes
        byCount = Dictionary(grouping: routes) { $0.endpoint.pattern.segments.count }
            .mapValues { $0.sorted { $0.endpoint.pattern.literalCount > $1.endpoint.pattern.literalCount } }
    }

    enum Match {
        case route(Route, parameters: [String: String])
        /// The path is there, the method isn't; the routes that are.
        case otherMethods([Route])
        case nothing
    }

    /// `HEAD` finds the route of `GET`.
    func match(method: String, segments: [String]) -> Match {
        let wanted = method == "HEAD" ? "GET" : method
        var others: [Route] = []
        var literals: Int?
        for route in byCount[segments.count] ?? [] {
            guard let parameters = route.endpoint.pattern.match(segments) else { continue }
            // A path that is written out is never taken for a parameter of another pattern.
            if let literals, route.endpoint.pattern.literalCount < literals { break }
            literals = route.endpoint.pattern.literalCount
            if route.endpoint.method == wanted { return .route(route, parameters: parameters) }
            others.append(route)
        }
        return others.isEmpty ? .nothing : .otherMethods(others)
    }

    /// For `Allow`.
    static func allow(_ routes: [Route]) -> String {
        var methods = Set(routes.map(\.endpoint.method))
        if methods.contains("GET") { methods.insert("HEAD") }
        methods.insert("OPTIONS")
        return methods.sorted().joined(separator: ", ")
    }
}
