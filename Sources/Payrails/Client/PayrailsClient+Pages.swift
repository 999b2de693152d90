import Basics
import Lockstep

/// One page of a list.
struct ListPage<Item: Sendable>: Sendable {
    let items: [Item]
    /// The query of the next page.
    let next: String?
}

extension PayrailsClient {
    /// A page; unknown when it, one of its items, or the way to the next one can't be read.
    func readPage<Item: Sendable>(
        _ path: String, query: String, what: String, read item: (JSON) -> Item?
    ) async -> Outcome<ListPage<Item>> {
        await read(path, query: query, what: what) { json in
            guard let results = json["results"]?.array else { return nil }
            let items = results.compactMap(item)
            guard items.count == results.count else { return nil }
            switch Paging(json, after: query) {
            case .end: return ListPage(items: items, next: nil)
            case .next(let next): return ListPage(items: items, next: next)
            case .broken: return nil
            }
        }
    }

    func readAllPages<Item: Sendable>(
        _ path: String, query: String, what: String, read item: (JSON) -> Item?
    ) async -> Outcome<[Item]> {
        var items: [Item] = []
        var query = query
        for _ in 0..<configuration.maximumPages {
            switch await readPage(path, query: query, what: what, read: item) {
            case .done(let page):
                items += page.items
                guard let next = page.next else { return .done(items) }
                query = next
            case .refused(let refusal): return .refused(refusal)
            case .unknown(let doubt): return .unknown(doubt)
            }
        }
        return .unknown(
            Doubt(kind: .unreadable, detail: "\(what) has more than \(configuration.maximumPages) pages"))
    }
}
