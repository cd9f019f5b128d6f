//! Deliberate breakages, each of which the simulation must find. Those of the device and of the engine are here always; those of the
//! code under test need the feature `mutants`.

use crate::disk::Lie;
use omnibus_log::LogConfig;

/// The fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// The device does not do what it says.
    Lie(Lie),
    /// The engine persists what is not durable in the log.
    HastyEngine,
    /// The engine gives up a dropped space before the drop is durable.
    HastyDrop,
    /// The engine persists no record of a prepared XA branch.
    ForgetBranches,
    /// The second engine persists its newest transaction without its rows.
    ForgetPart,
    /// The second engine takes the first one's position for its own when it is opened.
    OtherPosition,
    /// Replay takes a prepared XA branch for a committed one.
    ReplayNoPrepare,
    /// Replay leaves out how an XA branch ended.
    ReplayNoEnd,
    /// Sessions are told that a phase of XA is over when it has its place in the order.
    AnswerEarly,
    /// PURGE does not ask what recovery needs.
    PurgeTooMuch,
    /// PURGE asks what recovery needs first, and looks at the list of files later.
    PurgeAsksEarly,
    /// A step of the log is left out.
    #[cfg(feature = "mutants")]
    Skip(omnibus_log::Point),
    /// A breakage of the commit path or of recovery.
    #[cfg(feature = "mutants")]
    Commit(omnibus_commit::Mutant),
}

/// The faults of the device and of the engine.
const OUTSIDE: &[Mutant] = &[
    Mutant::Lie(Lie::SyncData),
    Mutant::Lie(Lie::SyncAll),
    Mutant::Lie(Lie::SyncDir),
    Mutant::Lie(Lie::WriteThrough),
    Mutant::Lie(Lie::SyncLess),
    Mutant::Lie(Lie::HideFailedSync),
    Mutant::Lie(Lie::SetLen),
    Mutant::Lie(Lie::RenameAsLink),
    Mutant::Lie(Lie::ShortWriteHidden),
    Mutant::HastyEngine,
    Mutant::HastyDrop,
    Mutant::ForgetBranches,
    Mutant::ForgetPart,
    Mutant::OtherPosition,
    Mutant::ReplayNoPrepare,
    Mutant::ReplayNoEnd,
    Mutant::AnswerEarly,
    Mutant::PurgeTooMuch,
    Mutant::PurgeAsksEarly,
];

impl Mutant {
    /// All of them.
    #[must_use]
    pub fn all() -> Vec<Mutant> {
        #[allow(unused_mut)]
        let mut all = OUTSIDE.to_vec();
        #[cfg(feature = "mutants")]
        all.extend(inside::all());
        all
    }

    /// The one of that name, as it is printed.
    #[must_use]
    pub fn named(name: &str) -> Option<Mutant> {
        Mutant::all().into_iter().find(|mutant| format!("{mutant:?}") == name)
    }

    pub(crate) fn lie(self) -> Option<Lie> {
        match self {
            Mutant::Lie(lie) => Some(lie),
            _ => None,
        }
    }

    /// Breaks the log of a life, and the commit path from here on.
    #[cfg(feature = "mutants")]
    pub(crate) fn plant(self, config: &LogConfig) {
        match self {
            Mutant::Skip(point) => config.faults.plant(point, omnibus_log::Action::Skip),
            Mutant::Commit(mutant) => omnibus_commit::set_mutant(mutant),
            _ => {}
        }
    }

    /// Injects no fault in the code under test.
    #[cfg(not(feature = "mutants"))]
    pub(crate) fn plant(self, _config: &LogConfig) {}
}

#[cfg(feature = "mutants")]
mod inside {
    use super::Mutant;
    use omnibus_commit::Mutant as Commit;
    use omnibus_log::Point;

    pub(super) fn all() -> impl Iterator<Item = Mutant> {
        let points = [
            Point::JobWrite,
            Point::JobSync,
            Point::FileNameSync,
            Point::FinishTruncate,
            Point::FinishSync,
            Point::IndexWrite,
            Point::IndexSync,
            Point::IndexRename,
            Point::IndexDirSync,
        ];
        let commit = [
            Commit::PublishEarly,
            Commit::ForgetWakeUp,
            Commit::SwapNumbers,
            Commit::AcknowledgeOutOfOrder,
            Commit::KeepTail,
            Commit::GtidGap,
            Commit::LargeUnsynced,
            Commit::ReplayLate,
            Commit::DurableUnsynced,
            Commit::RecoveryUnsynced,
            Commit::SyncForgetsEarly,
            Commit::SyncAlone,
            Commit::ShrinkLinked,
            Commit::CutWithFlag,
            Commit::SearchBounded,
            Commit::TrustCache,
            Commit::PublishBackwards,
            Commit::ReplyEarly,
        ];
        points.into_iter().map(Mutant::Skip).chain(commit.into_iter().map(Mutant::Commit))
    }
}
