import Foundation

/// A query string, decoded as a form: `%XX`, and `+` for a space.
struct Query: Sendable {
    let items: [(name: String, value: String)]

    init(_ text: String?) {
        items = (text ?? "").split(separator: "&").map { pair in
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (Query.decode(parts[0]), parts.count == 2 ? Query.decode(parts[1]) : "")
        }
    }

    private init(items: [(name: String, value: String)]) { self.items = items }

    /// The first value of the name.
    subscript(_ name: String) -> String? { items.first { $0.name == name }?.value }

    func filter(_ name: String) -> String? { self["filter[\(name)]"] }

    /// Whether there is no such filter, or it is this value.
    func matches(_ filter: String, _ value: String?) -> Bool {
        guard let wanted = self.filter(filter) else { return true }
        return wanted == value
    }

    /// A filter that the list doesn't have is refused, so that a misspelt one shows.
    func refuseUnknownFilters(_ known: Set<String>) throws(APIError) {
        for item in items where item.name.hasPrefix("filter[") {
            let name = item.name.dropFirst("filter[".count).dropLast()
            guard known.contains(String(name)) else { throw .invalid("\(item.name) is not a known filter") }
        }
    }

    func without(_ names: Set<String>) -> Query { Query(items: items.filter { !names.contains($0.name) }) }
    func adding(_ more: [(String, String)]) -> Query { Query(items: items + more.map { ($0.0, $0.1) }) }

    /// Encoded again.
    var text: String {
        items.map { "\(Query.encode($0.name))=\(Query.encode($0.value))" }.joined(separator: "&")
    }

    private static func decode(_ text: Substring) -> String {
        let spaced = text.replacing("+", with: " ")
        return spaced.removingPercentEncoding ?? String(spaced)
    }

    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~[]:,")

    private static func encode(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? text
    }
}
