import Lockstep
import Store

/// Tells those who run Lockstep of attempts that failed by its own set-up at Payrails. They are made again and burn
/// nothing, but nothing is paid before somebody has mended the cause.
struct ConfigurationAlarm: Sendable {
    private let failures: CounterFamily
    private let log: Log

    init(_ metrics: Metrics, log: Log) {
        failures = metrics.counter(
            "lockstep_charges_configuration_failures_total",
            help: "Attempts of charges that this process found to have failed by our own set-up at Payrails.")
        self.log = log
    }

    func raise(_ failure: ConfigurationFailure) {
        failures.add()
        log.error(
            "an attempt failed by our set-up at Payrails; it is made again, and somebody must mend the cause",
            .id("chargeId", failure.charge.uuid), .count("attempt", failure.number), .detail(failure.reason ?? "-"))
    }
}
