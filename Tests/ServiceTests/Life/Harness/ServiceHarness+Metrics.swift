import Foundation
import TestKit

extension JSONCaller {
    /// What `/metrics` shows for a series, its labels included: `lockstep_x{state="dead"}`; nil when it isn't there.
    func metric(_ series: String) async throws -> Double? {
        try await get("/metrics").text.split(separator: "\n").first { $0.hasPrefix(series + " ") }
            .flatMap { Double($0.dropFirst(series.count + 1)) }
    }
}
