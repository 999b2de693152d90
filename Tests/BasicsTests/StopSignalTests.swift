import Basics
import Foundation
import Testing

@Suite("Being told to stop")
struct StopSignalTests {
    /// Ends a process that waits in vain; alarm(2) ends it by a signal.
    fileprivate static let patienceSeconds: UInt32 = 30

    @Test("a signal that comes as early as it can is heard", arguments: [SIGTERM, SIGINT])
    func atOnce(signal: Int32) async {
        await #expect(processExitsWith: .success) { [signal] in
            alarm(StopSignalTests.patienceSeconds)
            let stop = StopSignal()
            kill(getpid(), signal)
            await stop.wait()
        }
    }

    @Test("the second signal ends the process, whatever it does")
    func second() async {
        await #expect(processExitsWith: .exitCode(130)) {
            alarm(StopSignalTests.patienceSeconds)
            let stop = StopSignal()
            kill(getpid(), SIGTERM)
            await stop.wait()
            kill(getpid(), SIGTERM)
            while true { pause() }
        }
    }
}
