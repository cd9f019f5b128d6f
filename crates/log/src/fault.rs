//! Fault points: places where a test can make a file operation fail, stop half way, or simulate the death of the
//! process.
//!
//! A release build has no faults: [`Faults`] is empty there and every check compiles to nothing. In tests each log
//! directory has its own plan, so tests can run in parallel. The crash tables iterate over [`Point::ALL`].

use std::io;

macro_rules! points {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// A step of a file operation at which a fault can be planted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Point { $($(#[$doc])* $name,)* }

        impl Point {
            /// All fault points.
            pub const ALL: &'static [Point] = &[$(Point::$name,)*];

            /// The point's name, `module::step::fault`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Point::$name => $text,)* }
            }
        }
    };
}

points! {
    /// Writing a group's bytes.
    JobWrite = "job::write::fault",
    /// Syncing after a group's bytes.
    JobSync = "job::sync::fault",
    /// Zero-filling the next part of a growing file.
    FileExtend = "file::extend::fault",
    /// Syncing those zeros.
    FileExtendSync = "file::extend_sync::fault",
    /// Creating a log file that was not prepared.
    FileCreate = "file::create::fault",
    /// Giving a new log file the key that it is encrypted with.
    FileBegin = "file::begin::fault",
    /// Renaming a prepared file to its log name.
    PreparedTake = "prealloc::take::fault",
    /// Renaming a large transaction's file to its log name.
    PromoteRename = "promote::rename::fault",
    /// Syncing the directory after a log file got its name.
    FileNameSync = "file::name_sync::fault",
    /// Cutting the spare tail off a finished file.
    FinishTruncate = "finish::truncate::fault",
    /// Putting a copy in the place of a file that a backup has too.
    FinishCopyRename = "finish::copy_rename::fault",
    /// Clearing the in-use flag of a finished file.
    FinishClearFlag = "finish::clear_flag::fault",
    /// Syncing a finished file.
    FinishSync = "finish::sync::fault",
    /// Writing the temporary index file.
    IndexWrite = "index::write::fault",
    /// Syncing the temporary index file.
    IndexSync = "index::sync::fault",
    /// Renaming it over the index.
    IndexRename = "index::rename::fault",
    /// Syncing the directory after the rename.
    IndexDirSync = "index::dir_sync::fault",
    /// Writing the list of files to delete.
    PurgeListWrite = "purge::list_write::fault",
    /// Deleting a purged file.
    PurgeRemove = "purge::remove::fault",
    /// Syncing the directory after purged files were deleted.
    PurgeDirSync = "purge::dir_sync::fault",
    /// Removing the list of files to delete.
    PurgeListRemove = "purge::list_remove::fault",
    /// Removing a file whose rotation never completed.
    OrphanRemove = "dir::orphan_remove::fault",
}

/// The effect of a planted fault.
#[cfg(any(test, feature = "faults"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The operation is not done and returns this error number.
    Fail(i32),
    /// The operation is not done, and the caller is told that it succeeded, as if the step had been forgotten in the
    /// code.
    Skip,
    /// A write stops after this many bytes and gives an I/O error.
    Short(usize),
    /// Neither the operation nor any later one is done, as if the process had been killed right before it.
    CrashBefore,
    /// The operation is done and no later one, as if the process had been killed right after it.
    CrashAfter,
}

#[cfg(any(test, feature = "faults"))]
mod plan {
    use super::{Action, Point};
    use std::collections::HashMap;

    /// The closure that a test runs when a point is passed.
    pub(super) struct Hook(pub(super) Box<dyn FnOnce() + Send>);

    impl std::fmt::Debug for Hook {
        fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.write_str("Hook")
        }
    }

    #[derive(Debug, Default)]
    pub(super) struct Plan {
        pub(super) hooks: HashMap<Point, Hook>,
        pub(super) actions: HashMap<Point, Action>,
        pub(super) dead: bool,
        pub(super) passed: Vec<Point>,
        pub(super) crash_at_step: Option<usize>,
    }
}

/// The fault plan of one log directory. Clones share the plan.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    #[cfg(any(test, feature = "faults"))]
    plan: std::sync::Arc<omnibus_sync::Mutex<plan::Plan>>,
}

/// The instruction to the caller of a fault point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Go,
    #[cfg(any(test, feature = "faults"))]
    Skip,
    #[cfg(any(test, feature = "faults"))]
    Short(usize),
}

impl Faults {
    /// Runs `operation` unless a fault is planted at `point`.
    #[inline]
    pub(crate) fn around<T>(&self, point: Point, operation: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.before(point)?;
        let result = operation();
        self.after(point);
        result
    }

    /// As [`Faults::around`], for an operation that a test may skip.
    #[inline]
    pub(crate) fn around_step(
        &self,
        point: Point,
        operation: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        if self.before(point)? != Verdict::Go {
            return Ok(());
        }
        let result = operation();
        self.after(point);
        result
    }

    #[cfg(not(any(test, feature = "faults")))]
    #[inline]
    pub(crate) fn before(&self, _point: Point) -> io::Result<Verdict> {
        Ok(Verdict::Go)
    }

    #[cfg(not(any(test, feature = "faults")))]
    #[inline]
    pub(crate) fn after(&self, _point: Point) {}
}

#[cfg(any(test, feature = "faults"))]
impl Faults {
    /// Plants a fault; it stays until [`Faults::clear`].
    pub fn plant(&self, point: Point, action: Action) {
        self.plan.lock().actions.insert(point, action);
    }

    /// Runs `work` the next time that `point` is passed, before the operation.
    pub fn when(&self, point: Point, work: impl FnOnce() + Send + 'static) {
        self.plan.lock().hooks.insert(point, plan::Hook(Box::new(work)));
    }

    /// Plants a kill before the operation that is number `step` of all that pass a fault point, counted from 0.
    pub fn crash_at_step(&self, step: usize) {
        self.plan.lock().crash_at_step = Some(step);
    }

    /// Removes every fault and ends a simulated crash.
    pub fn clear(&self) {
        *self.plan.lock() = plan::Plan::default();
    }

    /// The points passed since the last [`Faults::clear`], in order.
    #[must_use]
    pub fn passed(&self) -> Vec<Point> {
        self.plan.lock().passed.clone()
    }

    /// Returns whether a planted crash has happened.
    #[must_use]
    pub fn crashed(&self) -> bool {
        self.plan.lock().dead
    }

    pub(crate) fn before(&self, point: Point) -> io::Result<Verdict> {
        let hook = self.plan.lock().hooks.remove(&point);
        if let Some(plan::Hook(work)) = hook {
            work();
        }
        let mut plan = self.plan.lock();
        if plan.dead {
            return Err(io::Error::other("the process was killed (planted fault)"));
        }
        if plan.crash_at_step == Some(plan.passed.len()) {
            plan.dead = true;
            return Err(io::Error::other("the process was killed (planted fault)"));
        }
        plan.passed.push(point);
        match plan.actions.get(&point) {
            None | Some(Action::CrashAfter) => Ok(Verdict::Go),
            Some(Action::Skip) => Ok(Verdict::Skip),
            Some(Action::Short(bytes)) => Ok(Verdict::Short(*bytes)),
            Some(Action::Fail(errno)) => Err(io::Error::from_raw_os_error(*errno)),
            Some(Action::CrashBefore) => {
                plan.dead = true;
                Err(io::Error::other("the process was killed (planted fault)"))
            }
        }
    }

    pub(crate) fn after(&self, point: Point) {
        let mut plan = self.plan.lock();
        if plan.actions.get(&point) == Some(&Action::CrashAfter) {
            plan.dead = true;
        }
    }
}
