import Basics

/// How much a line matters. By the contract: debug, info, notice, warning, error.
public enum LogLevel: String, Sendable, CaseIterable, Comparable {
    case debug, info, notice, warning, error
    private var rank: Int {
        switch self {
        case .debug: 0
        case .info: 1
        case .notice: 2
        case .warning: 3
        case .error: 4
        }
    }
    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rank < right.rank }
}

/// Writes JSON lines. A message is a text of the code; whatever varies is a ``LogField``.
///
/// ```swift
/// log.warning("the amount is unknown", .checkout(id), .after(.seconds(30)))
/// let log = request.log.with(.checkout(id))
/// ```
public struct Log: Sendable {
    let minimum: LogLevel
    let clock: WallClock
    let writer: LogWriter
    private var fields: [LogField] = []

    public init(minimum: LogLevel = .info, clock: WallClock = .system, writer: LogWriter) {
        self.minimum = minimum
        self.clock = clock
        self.writer = writer
    }

    /// Says nothing to anyone.
    public static let silent = Log(minimum: .error, writer: LogWriter { _ in })

    /// The same log, with these fields in every line.
    public func with(_ more: LogField...) -> Log {
        var copy = self
        copy.fields += more
        return copy
    }

    public func debug(_ message: StaticString, _ fields: LogField...) { write(.debug, message, fields) }
    public func info(_ message: StaticString, _ fields: LogField...) { write(.info, message, fields) }
    public func notice(_ message: StaticString, _ fields: LogField...) { write(.notice, message, fields) }
    public func warning(_ message: StaticString, _ fields: LogField...) { write(.warning, message, fields) }
    public func error(_ message: StaticString, _ fields: LogField...) { write(.error, message, fields) }

    /// Whether lines of this level are written, for callers to whom making the fields is too dear.
    public func writes(_ level: LogLevel) -> Bool { level >= minimum }

    /// One line at a level that is only known when the program runs.
    public func write(_ level: LogLevel, _ message: StaticString, _ more: [LogField]) {
        guard writes(level) else { return }
        writer.enqueue(LogLine(time: clock.now(), level: level, message: message, fields: fields + more).bytes)
    }
}

/// One line: time, level and message first, then the fields in the order in which they were given.
struct LogLine {
    let time: Timestamp
    let level: LogLevel
    let message: StaticString
    let fields: [LogField]

    /// A JSON object and a newline. Of two fields of one name the later one stands.
    var bytes: [UInt8] {
        var parts: [(String, JSON)] = [
            ("time", .string(time.rfc3339)), ("level", .string(level.rawValue)), ("message", .string("\(message)")),
        ]
        for field in fields {
            let name = "\(field.name)"
            if let index = parts.firstIndex(where: { $0.0 == name }) {
                if index > 2 { parts[index].1 = field.value }
            } else {
                parts.append((name, field.value))
            }
        }
        let members = parts.map { "\(JSON.string($0.0).text):\($0.1.text)" }
        return Array("{\(members.joined(separator: ","))}\n".utf8)
    }
}
