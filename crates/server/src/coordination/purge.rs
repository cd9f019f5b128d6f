//! The log files that may go (PURGE-1), for PURGE BINARY LOGS and for the housekeeping.
//!
//! The engine's checkpoint decides what recovery needs. A purge that meets this limit asks the engine to
//! persist what it has, and tries again: commits go on meanwhile.
//!
//! On a full disk the purge makes the room for that itself (SPACE-2): it gives back what is kept for later, and what it could
//! purge already helps, too, and what it has given back it keeps again of the room that it made. Commits that wait for room wait until it has done. So it
//! fails only where there is nothing to give back and the engine has persisted nothing more.

use omnibus_commit::Coordinator;
use omnibus_engine::EngineError;
use omnibus_log::{FileSeq, PurgeError, PurgeLimit, Purged};
use std::time::SystemTime;

/// The files that are wanted gone.
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
    let log = coordinator.log().files();
    let _making = log.full_disk().make_room();
    let mut purged = attempt(coordinator, wish)?;
    while matches!(purged.limit, Some(PurgeLimit::Recovery(_))) {
        let persisted = coordinator.engine().checkpoint_if_room();
        let mut more = attempt(coordinator, wish)?;
        let went = !more.files.is_empty();
        more.files.splice(0..0, std::mem::take(&mut purged.files));
        purged = more;
        match persisted {
            Ok(_) => break,
            Err(error) if !error.is_full() => return Err(error.into()),
            // What went has its space until it is deleted.
            Err(_) if went => log.wait_for_background(),
            Err(_) if log.give_back_room().map_err(PurgeError::from)? => {}
            Err(_) => break,
        }
        log.full_disk().room_was_made();
    }
    // Commits fill what was made within moments, and the next purge needs the reserve.
    if log.full_disk().is_full() && !purged.files.is_empty() {
        log.restore_reserve();
    }
    Ok(purged)
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

/// The hindrance of a purge before its wish was fulfilled, in words. The active file is no such thing: it is
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
