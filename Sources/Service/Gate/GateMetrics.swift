import Lockstep

/// What is counted about the gate.
struct GateMetrics: Sendable {
    private let decisions: CounterFamily
    private let questions: CounterFamily
    private let seconds: HistogramFamily

    /// What became of a question to the shop.
    enum Outcome: String, Sendable {
        case valid, refused
        /// It answered something else.
        case unreadable
        /// It took too long.
        case late
        /// It couldn't be reached.
        case failed

        init(_ opinion: MerchantCheck.Opinion) {
            switch opinion {
            case .valid: self = .valid
            case .refused: self = .refused
            case .unavailable: self = .unreadable
            }
        }
    }

    init(_ metrics: Metrics) {
        decisions = metrics.counter(
            "lockstep_gate_decisions_total", help: "Answers of the gate: proceed, or the reason against it.",
            labels: ["decision"])
        questions = metrics.counter(
            "lockstep_gate_shop_questions_total", help: "Questions to the shop's own check, by what became of them.",
            labels: ["outcome"])
        seconds = metrics.histogram(
            "lockstep_gate_shop_question_seconds", help: "How long the shop's own check takes.")
    }

    func decided(_ reason: Gate.Reason?) { decisions.add(1, reason?.rawValue ?? "proceed") }

    func asked(_ outcome: Outcome, took duration: Duration) {
        questions.add(1, outcome.rawValue)
        seconds.observe(duration)
    }
}
