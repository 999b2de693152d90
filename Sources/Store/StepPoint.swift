/// A place between two steps, where a test may hold whoever comes by, so that the steps of several happen in every order.
///
/// Off, and then no more than a look at a value of the task's own, unless a test turns it on for a task.
public enum StepPoint: Sendable {
    /// Before a transaction begins.
    case transaction
    /// Within a transaction, before one of its statements.
    case statement

    @TaskLocal public static var hold: (@Sendable (StepPoint) async -> Void)?
}
