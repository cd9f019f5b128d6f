//! Base backups: BACKUP TO a folder of the server's machine, which is this one; then its files into the archive, its list last.
//!
//! The server writes the folder as its own user, readable by that user only: run this program as that user, or as root.

use crate::error::ArchiveError;
use crate::layout::{self, BaseBackup};
use crate::note::{Note, Notes};
use crate::store::Store;
use omnibus_replication::client::LogSource;
use std::fs;
use std::path::Path;
use std::time::Duration;

/// A backup answers when it is whole.
const BACKUP_TIME: Duration = Duration::from_secs(24 * 3600);

/// Takes one and ships it. What it leaves in `folder` is gone when it returns.
pub(crate) fn take(
    store: &Store,
    source: &LogSource,
    folder: &Path,
    notes: Notes<'_>,
) -> Result<BaseBackup, ArchiveError> {
    // None above it: a file system that is not mounted must not be written beside.
    if !folder.is_dir() {
        fs::create_dir(folder).map_err(ArchiveError::io(folder))?;
    }
    let folder = folder.canonicalize().map_err(ArchiveError::io(folder))?;
    let place = folder.join(format!("omnibus-base-{}", std::process::id()));
    let _ = fs::remove_dir_all(&place);
    let result = take_in(store, source, &place, notes);
    // What is left of one that failed is in the way of nobody but the next.
    let _ = fs::remove_dir_all(&place);
    result
}

fn take_in(
    store: &Store,
    source: &LogSource,
    place: &Path,
    notes: Notes<'_>,
) -> Result<BaseBackup, ArchiveError> {
    let mut source = source.clone();
    source.endpoint.net_timeout = BACKUP_TIME;
    let mut connection = source.connect()?;
    let quoted = place.to_string_lossy().replace('\\', "\\\\").replace('\'', "\\'");
    connection.query(&format!("BACKUP TO '{quoted}'"))?;
    let now = connection.ask("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS UNSIGNED)")?;
    let taken_us: u64 = now.and_then(|now| now.parse().ok()).unwrap_or_else(omnibus_log::now_us);
    drop(connection);
    if !place.exists() {
        return Err(ArchiveError::Unfit(format!(
            "the server's backup is not in {} of this machine: base backups are taken where the server runs",
            place.display()
        )));
    }
    let info = omnibus_server::backup::verify(place)?;
    let id = id_of(taken_us);
    let folder = layout::backup_folder(&id);
    for path in info.files.keys() {
        store.put_file(&format!("{folder}/{path}"), &place.join(path))?;
    }
    let backup = BaseBackup { id: id.clone(), taken_us, info };
    store.put(&layout::backup_list(&id), layout::bytes(&backup.document()))?;
    let (file, position, bytes) = (backup.info.file.clone(), backup.info.position, backup.info.bytes());
    notes(Note::Backup { id, file, position, bytes });
    Ok(backup)
}

/// `20260131T120000.000000Z`: names sort as times do.
fn id_of(us: u64) -> String {
    let time = i64::try_from(us).ok().and_then(|us| jiff::Timestamp::from_microsecond(us).ok());
    time.map_or_else(|| format!("{us:020}"), |time| time.strftime("%Y%m%dT%H%M%S.%6fZ").to_string())
}
