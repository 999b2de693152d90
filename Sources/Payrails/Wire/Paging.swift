import Basics
import Foundation

/// Where the next page of a list is (section 1.7): `links.next`, else `paging.next`, absolute or relative.
enum Paging: Equatable {
    case end
    /// The query of the next page. Only the query of a link is ever used, so that no answer can send our token,
    /// or us, to another host or path.
    case next(String)
    /// There is a next page, but not one that can be asked for. A list that ends here would hide what follows.
    case broken

    /// `query`: the one that gave this page; its filters are kept where the link doesn't repeat them.
    init(_ body: JSON, after query: String) {
        var link = body["links"]?["next"] ?? .null
        if link.isNull { link = body["paging"]?["next"] ?? .null }
        guard !link.isNull, link != .string("") else {
            self = .end
            return
        }
        guard let href = PayrailsLink(link)?.href, let mark = href.firstIndex(of: "?") else {
            self = .broken
            return
        }
        let parameters = Paging.parameters(href[href.index(after: mark)...].prefix { $0 != "#" })
        guard !parameters.isEmpty else {
            self = .broken
            return
        }
        let names = Set(parameters.map(\.name))
        let before = Paging.parameters(query)
        let kept = before.filter { $0.name.hasPrefix("filter[") && !names.contains($0.name) }
        let next = (parameters + kept).map(\.text).joined(separator: "&")
        self = next == before.map(\.text).joined(separator: "&") ? .broken : .next(next)
    }

    private struct Parameter {
        /// Decoded, to be compared.
        let name: String
        /// As it stood, so that the server meets its own cursor again, but for what no address may hold.
        let text: String
    }

    private static func parameters(_ query: some StringProtocol) -> [Parameter] {
        query.split(separator: "&").map { part in
            let name = part.prefix { $0 != "=" }
            return Parameter(name: name.removingPercentEncoding ?? String(name), text: Address.encodeQuery(part))
        }
    }
}
