//! Outcomes of waits.

/// The outcome of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitOutcome {
    /// The lock is held.
    Granted,
    /// The transaction was chosen to break a deadlock (error 1213): roll it back.
    Deadlock,
    /// The caller gave up (error 1205).
    Timeout,
    /// `TrxHandle::kill` (error 1317).
    Killed,
}
