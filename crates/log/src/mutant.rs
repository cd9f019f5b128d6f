//! Deliberate breakages of the log and of the commit path, for whoever has to show that it would notice them (`crates/sim`). Compiled
//! out without the feature `mutants`: [`is`] is constant false then.

/// What is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mutant {
    /// Nothing.
    None,
    /// A group is published before it is written.
    PublishEarly,
    /// The last member of a group is not woken.
    ForgetWakeUp,
    /// Two neighbours in a group are told each other's number.
    SwapNumbers,
    /// What is written without a sync counts as synced.
    DurableUnsynced,
    /// Groups are acknowledged as their writes end, in any order.
    AcknowledgeOutOfOrder,
    /// Recovery replays what may be in the page cache only.
    RecoveryUnsynced,
    /// Recovery leaves the torn tail where it is.
    KeepTail,
    /// A GTID's number is left out.
    GtidGap,
    /// A large transaction's file is not synced.
    LargeUnsynced,
    /// Recovery begins one transaction late.
    ReplayLate,
    /// What is unsynced counts as synced when its sync begins, so that a second job skips it.
    SyncForgetsEarly,
    /// A synced job does not wait for the unsynced ones before it.
    SyncAlone,
    /// A purged file is cut while a backup has it.
    ShrinkLinked,
    /// The tail is cut and its file marked as closed under one sync.
    CutWithFlag,
    /// Recovery looks a bounded distance behind a torn place.
    SearchBounded,
    /// Recovery reads what is cached, also after a sync that failed.
    TrustCache,
    /// What passes a held group is published, and the held one behind it.
    PublishBackwards,
    /// A reply leaves before what it tells of is durable.
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

    /// Breaks this and nothing else, in the whole process.
    pub fn set_mutant(mutant: Mutant) {
        NOW.store(mutant as u8, Ordering::SeqCst);
    }

    /// Breaks this on the calling thread alone, so that other tests can run beside it.
    pub fn set_for_thread(mutant: Mutant) {
        HERE.set(mutant);
    }

    /// Whether this is broken now.
    #[must_use]
    pub fn is(mutant: Mutant) -> bool {
        NOW.load(Ordering::Relaxed) == mutant as u8 || HERE.get() == mutant
    }
}

#[cfg(any(test, feature = "mutants"))]
pub use switch::{is, set_for_thread, set_mutant};

/// Whether this is broken now: never.
#[cfg(not(any(test, feature = "mutants")))]
#[inline]
#[must_use]
pub const fn is(_mutant: Mutant) -> bool {
    false
}
