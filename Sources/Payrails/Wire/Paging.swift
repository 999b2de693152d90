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
        let text = href[href.index(after: mark)...].prefix { $0 != "#" }
        let parameters = Paging.parameters(text)
        guard !parameters.isEmpty else {
            self = .broken
            return
        }
        let names = Set(parameters.map(\.name))
        let kept = Paging.parameters(query).filter { $0.name.hasPrefix("filter[") && !names.contains($0.name) }
        let next = Paging.text(parameters + kept)
        self = next == Paging.text(Paging.parameters(query)) ? .broken : .next(next)
    }

    private struct Parameter {
        let name: String
        let value: String?
    }

    private static func parameters(_ query: some StringProtocol) -> [Parameter] {
        query.split(separator: "&").map { part in
            let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return Parameter(name: decode(halves[0]), value: halves.count > 1 ? decode(halves[1]) : nil)
        }
    }

    /// Encoded anew: links come with bare brackets as well as with encoded ones.
    private static func text(_ parameters: [Parameter]) -> String {
        parameters.map { parameter in
            Address.encode(parameter.name) + (parameter.value.map { "=" + Address.encode($0) } ?? "")
        }.joined(separator: "&")
    }

    /// What isn't valid `%XX` stays as it is.
    private static func decode(_ text: some StringProtocol) -> String { text.removingPercentEncoding ?? String(text) }
}
