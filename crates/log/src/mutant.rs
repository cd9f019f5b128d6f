//! Deliberate faults in the log and the commit path, for tests that must show that they would find them (`crates/sim`).
//! Without the feature `mutants` they are compiled out: [`is`] is then constant false.

/// The fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mutant {
    /// No fault.
    None,
    /// A group is published before it is written.
    PublishEarly,
    /// The last member of a group is not woken.
    ForgetWakeUp,
    /// Two neighbours in a group are told each other's number.
    SwapNumbers,
    /// Writes without a sync count as durable.
    DurableUnsynced,
    /// Groups are acknowledged as their writes end, in any order.
    AcknowledgeOutOfOrder,
    /// Recovery replays events that may be in the page cache only.
    RecoveryUnsynced,
    /// Recovery leaves the torn tail in place.
    KeepTail,
    /// A GTID's number is skipped.
    GtidGap,
    /// A large transaction's file is not synced.
    LargeUnsynced,
    /// Recovery begins one transaction late.
    ReplayLate,
    /// Unsynced writes count as synced when their sync begins, so that a second job skips its own.
    SyncForgetsEarly,
    /// A synced job does not wait for the unsynced ones before it.
    SyncAlone,
    /// A purged file is shortened although a backup shares it.
    ShrinkLinked,
    /// The tail is cut and its file marked as closed with one sync.
    CutWithFlag,
    /// Recovery searches only a bounded distance behind a torn place.
    SearchBounded,
    /// Recovery trusts the page cache after a sync that failed.
    TrustCache,
    /// A group passes the gate while an earlier one is held, and is published before it.
    PublishBackwards,
    /// A reply is sent before the commits that it reveals are durable.
    ReplyEarly,
}

#[cfg(any(test, feature = "mutants"))]
mod switch {
    use super::Mutant;
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU8, Ordering};

    static NOW: AtomicU8 = AtomicU8::new(Mutant::None as u8);
    thread_local! {
        static HERE: Cell<Mutant> = const { Cell::new(Mutant::None) };
    }

    /// Injects this fault, and only this one, in the whole process.
    pub fn set_mutant(mutant: Mutant) {
        NOW.store(mutant as u8, Ordering::SeqCst);
    }

    /// Injects this fault on the calling thread only, so that other tests can run beside it.
    pub fn set_for_thread(mutant: Mutant) {
        HERE.set(mutant);
    }

    /// Returns whether this fault is injected now.
    #[must_use]
    pub fn is(mutant: Mutant) -> bool {
        NOW.load(Ordering::Relaxed) == mutant as u8 || HERE.get() == mutant
    }
}

#[cfg(any(test, feature = "mutants"))]
pub use switch::{is, set_for_thread, set_mutant};

/// Returns whether this fault is injected: never in this build.
#[cfg(not(any(test, feature = "mutants")))]
#[inline]
#[must_use]
pub const fn is(_mutant: Mutant) -> bool {
    false
}
