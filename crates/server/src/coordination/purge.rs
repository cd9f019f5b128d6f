//! Which log files may go (PURGE-1), for PURGE BINARY LOGS and for the housekeeping.
//!
//! The engine's checkpoint decides what recovery needs. A purge that meets this limit asks the engine to
//! persist what it has, once, and tries again: commits go on meanwhile. On a full disk it does not wait for that.

use omnibus_commit::Coordinator;
use omnibus_engine::EngineError;
use omnibus_log::{FileSeq, PurgeError, PurgeLimit, Purged};
use std::time::SystemTime;

/// Which files are wanted gone.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wish {
    /// All before this one.
    To(FileSeq),
    /// The oldest, as far as they were finished before this time.
    Before(SystemTime),
    /// The oldest, until all together have at most so many bytes.
    Total(u64),
}

/// Why nothing was removed.
#[derive(Debug, thiserror::Error)]
pub(super) enum PurgeFailure {
    #[error(transparent)]
    Purge(#[from] PurgeError),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Removes what is wanted and not needed.
pub(super) fn purge(coordinator: &Coordinator, wish: Wish) -> Result<Purged, PurgeFailure> {
    let first = attempt(coordinator, wish)?;
    if !matches!(first.limit, Some(PurgeLimit::Recovery(_))) {
        return Ok(first);
    }
    match coordinator.engine().checkpoint_if_room() {
        Ok(_) => {}
        // It waits for room, and would for ever: the purge is what is to make it.
        Err(error) if error.is_full() => return Ok(first),
        Err(error) => return Err(error.into()),
    }
    let mut second = attempt(coordinator, wish)?;
    second.files.splice(0..0, first.files);
    Ok(second)
}

fn attempt(coordinator: &Coordinator, wish: Wish) -> Result<Purged, PurgeFailure> {
    let keep_from = || coordinator.recovery_start();
    let log = coordinator.log().files();
    let purged = match wish {
        Wish::To(file) => log.purge_to(file, keep_from),
        Wish::Before(time) => log.purge_before(time, keep_from),
        Wish::Total(bytes) => log.purge_to_total(bytes, keep_from),
    }?;
    if let (Some(first), Some(last)) = (purged.files.first(), purged.files.last()) {
        let names = log.names();
        tracing::info!(first = names.log(*first), last = names.log(*last), "purged binary log files");
    }
    Ok(purged)
}

/// What stopped a purge before its wish was fulfilled, in words. The active file is no such thing: it is
/// never wanted gone, only reached.
pub(super) fn hindrance(coordinator: &Coordinator, purged: &Purged) -> Option<String> {
    let names = coordinator.log().files().names();
    let count = purged.files.len();
    match purged.limit? {
        PurgeLimit::Active(_) => None,
        PurgeLimit::Recovery(file) => Some(format!(
            "{} is needed for crash recovery, because the storage engine has not persisted its transactions yet; \
             {count} files were purged",
            names.log(file)
        )),
        PurgeLimit::Reader(file) => {
            Some(format!("{} is being read; {count} files were purged", names.log(file)))
        }
    }
}
