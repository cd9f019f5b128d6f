//! Removes old parts of an archive.
//!
//! To restore to any time of the last days, an archive needs the newest base backup that is older than them, and the
//! log from there on; older parts are removed. A backup's list is removed first and its files after it; log files are
//! removed oldest first. So an interrupted removal is finished by the next one, and never leaves a backup that looks
//! complete and is not.

use crate::error::ArchiveError;
use crate::inventory::{Inventory, split};
use crate::layout;
use crate::note::{Note, Notes};
use crate::store::Store;
use std::time::Duration;

/// Removes what no restore to the last `keep` needs.
pub(crate) fn remove_old(
    store: &Store,
    now_us: u64,
    keep: Duration,
    notes: Notes<'_>,
) -> Result<(), ArchiveError> {
    let there = Inventory::of(store)?;
    let limit = now_us.saturating_sub(u64::try_from(keep.as_micros()).unwrap_or(u64::MAX));
    let Some(base) = there.backups.iter().rposition(|backup| backup.taken_us <= limit) else { return Ok(()) };
    for backup in &there.backups[..base] {
        store.delete(&layout::backup_list(&backup.id))?;
        remove_folder(store, &layout::backup_folder(&backup.id))?;
        notes(Note::Removed { what: format!("backup {}", backup.id) });
    }
    let Some((_, first)) = split(&there.backups[base].info.file) else { return Ok(()) };
    for range in there.log.iter().filter(|range| range.seq < first) {
        store.delete(&layout::log_end(&range.file))?;
        remove_folder(store, &layout::log_folder(&range.file))?;
        notes(Note::Removed { what: range.file.clone() });
    }
    Ok(())
}

/// Removes what backups left that never ended. Only one program takes base backups into an archive.
pub(crate) fn remove_unfinished(
    store: &Store,
    there: &Inventory,
    notes: Notes<'_>,
) -> Result<(), ArchiveError> {
    for id in &there.unfinished {
        remove_folder(store, &layout::backup_folder(id))?;
        notes(Note::Removed { what: format!("backup {id}, which was not finished") });
    }
    Ok(())
}

fn remove_folder(store: &Store, folder: &str) -> Result<(), ArchiveError> {
    let there = store.list(folder)?;
    for name in there.objects {
        store.delete(&format!("{folder}/{name}"))?;
    }
    for name in there.folders {
        remove_folder(store, &format!("{folder}/{name}"))?;
    }
    Ok(())
}
