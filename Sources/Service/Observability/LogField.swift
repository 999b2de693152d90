import Basics
import Foundation
import Lockstep

/// One field of a log line. Only these can be logged, and each takes a type that can't carry a secret: ids, numbers,
/// words of an enum, texts that are written in the code. The one that takes free text scrubs it (invariant M9).
public struct LogField: Sendable {
    let name: StaticString
    let value: JSON

    private init(_ name: StaticString, _ value: JSON) {
        self.name = name
        self.value = value
    }

    public static func request(_ id: RequestID) -> LogField { LogField("requestId", .string(id.text)) }
    public static func trace(_ parent: TraceParent) -> LogField { LogField("traceId", .string(parent.traceID)) }
    public static func checkout(_ id: CheckoutID) -> LogField { LogField("checkoutId", .string(id.description)) }
    public static func execution(_ id: ExecutionID) -> LogField { LogField("executionId", .string(id.description)) }
    public static func operation(_ id: OperationID) -> LogField { LogField("operationId", .string(id.description)) }
    public static func event(_ id: EventID) -> LogField { LogField("eventId", .string(id.description)) }
    public static func instrument(_ id: InstrumentID) -> LogField { LogField("instrumentId", .string(id.description)) }
    public static func key(_ id: MerchantKeyID) -> LogField { LogField("keyId", .string(id.description)) }
    /// Any other row of ours: `.id("subscriptionId", …)`.
    /// What a path of the API is about: of a path, only its id shows, and only one that is an id.
    static func touched(_ path: String) -> LogField? {
        let parts = path.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        guard parts.count >= 3, parts[0].isEmpty, parts[1] == "v1" else { return nil }
        let rest = parts.count > 3 ? parts[3].prefix { $0 != "/" && $0 != "?" } : ""
        guard let id = UUID(canonical: String(rest)) else { return nil }
        switch parts[2] {
        case "checkouts": return .id("checkoutId", id)
        case "executions": return .id("executionId", id)
        case "operations": return .id("operationId", id)
        case "charges": return .id("chargeId", id)
        case "subscriptions": return .id("subscriptionId", id)
        case "instruments": return .id("instrumentId", id)
        case "discrepancies": return .id("discrepancyId", id)
        default: return nil
        }
    }

    public static func id(_ name: StaticString, _ id: UUID) -> LogField { LogField(name, .string(id.lowercased)) }
    /// The SHA-256 under which a notification is stored.
    public static func notification(_ hash: Data) -> LogField {
        LogField("notificationHash", .string(hash.hexadecimal))
    }

    public static func method(_ method: StaticString) -> LogField { LogField("method", .string("\(method)")) }
    public static func endpoint(_ endpoint: Endpoint) -> LogField {
        LogField("route", .string("\(endpoint.method) \(endpoint.pattern)"))
    }
    public static func status(_ status: Int) -> LogField { LogField("status", JSON(status)) }
    public static func problem(_ kind: ProblemKind) -> LogField { LogField("problem", .string(kind.rawValue)) }
    /// Whole milliseconds, with three decimals.
    public static func took(_ duration: Duration) -> LogField {
        let (seconds, attoseconds) = duration.components
        let micros = seconds * 1_000_000 + attoseconds / 1_000_000_000_000
        let fraction = String(micros % 1000)
        return LogField(
            "durationMs", .number("\(micros / 1000)." + String(repeating: "0", count: 3 - fraction.count) + fraction))
    }
    public static func after(_ duration: Duration) -> LogField {
        LogField("afterSeconds", JSON(duration.components.seconds))
    }

    /// A number with a name: `.count("attempt", 3)`.
    public static func count(_ name: StaticString, _ value: some BinaryInteger & Sendable) -> LogField {
        LogField(name, JSON(value))
    }
    public static func flag(_ name: StaticString, _ value: Bool) -> LogField { LogField(name, .bool(value)) }
    /// A word of an enum of ours: `.word("state", execution.state)`.
    public static func word<Word: RawRepresentable>(_ name: StaticString, _ value: Word) -> LogField
    where Word.RawValue == String { LogField(name, .string(value.rawValue)) }
    /// A text that stands in the code.
    public static func text(_ name: StaticString, _ value: StaticString) -> LogField {
        LogField(name, .string("\(value)"))
    }
    /// Money isn't personal: `49.90 EUR`.
    public static func amount(_ money: Money) -> LogField { LogField("amount", .string(money.description)) }
    public static func time(_ name: StaticString, _ time: Timestamp) -> LogField {
        LogField(name, .string(time.rfc3339))
    }

    /// Free text that somebody vouches for (a refusal's detail, a code of the provider). It is scrubbed and cut.
    public static func detail(_ text: String) -> LogField { LogField("detail", .string(Scrubber.scrub(text))) }

    /// The error's type, and what it says about itself if it is ``LogDescribed``. Other errors could hold anything, so
    /// their description stays out.
    public static func error(_ error: any Error) -> LogField {
        let type = String(describing: type(of: error))
        let words = (error as? any LogDescribed)?.logDescription
        return LogField("error", .string(Scrubber.scrub(words.map { "\(type): \($0)" } ?? type)))
    }
}
