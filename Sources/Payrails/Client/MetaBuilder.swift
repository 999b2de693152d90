import Basics

/// Adds to the shop's own `meta` without taking anything away from it.
struct MetaBuilder {
    /// Nil while there is nothing to send.
    private(set) var json: JSON?

    init(_ meta: JSON?) { json = meta.flatMap { $0.isNull ? nil : $0 } }

    /// Sets a member, with the objects on the way to it.
    mutating func set(_ path: [String], _ value: JSON) {
        json = MetaBuilder.setting(json ?? [:], path[...], value, replacing: true)
    }

    /// The shop's own value wins.
    mutating func setIfAbsent(_ path: [String], _ value: JSON) {
        json = MetaBuilder.setting(json ?? [:], path[...], value, replacing: false)
    }

    /// What isn't an object stays as the shop sent it, for Payrails to judge.
    private static func setting(_ json: JSON, _ path: ArraySlice<String>, _ value: JSON, replacing: Bool) -> JSON {
        guard let name = path.first else { return value }
        guard var members = json.object else { return json }
        if path.count == 1 {
            if replacing || members[name] == nil { members[name] = value }
        } else {
            members[name] = setting(members[name] ?? [:], path.dropFirst(), value, replacing: replacing)
        }
        return .object(members)
    }
}
