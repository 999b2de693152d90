import Foundation
import Synchronization

@testable import Service

/// What a service logged, kept so that a test can look for what must never be in it.
final class LogLines: Sendable {
    private let bytes = Mutex(Data())

    /// Each service gets a writer of its own, so that one that stops doesn't end another's.
    func writer() -> LogWriter {
        LogWriter { line in self.bytes.withLock { $0.append(contentsOf: line) } }
    }

    var text: String { bytes.withLock { String(decoding: $0, as: UTF8.self) } }

    /// Lines of level `error`: something that a person would have to look at.
    var errors: [String] {
        text.split(separator: "\n").map(String.init).filter { $0.contains(#""level":"error""#) }
    }
}
