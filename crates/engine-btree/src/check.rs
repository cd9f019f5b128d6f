//! Searches the files of an engine that is not open for damage, without changing them.

use crate::scratch::Scratch;
use crate::store::{FILE, GARBAGE, SUMS, VERSIONS, initialize};
use crate::sums::Sums;
use crate::{damage, io_error, store_error};
use omnibus_disk::{Disk, Open};
use omnibus_engine::{CommitNo, EngineError};
use omnibus_redo::Participant;
use redb::{Database, ReadableDatabase, ReadableTable};
use std::path::Path;
use std::sync::Arc;

const CACHE: usize = 16 << 20;

/// Reads everything in an engine's directory, on a disk that keeps in memory what is written. Returns a line for each damaged file.
#[must_use]
pub fn check(directory: &Path, disk: &Disk) -> Vec<String> {
    let (path, mut found, mut database) = (directory.join(FILE), Vec::new(), None);
    if path.exists() {
        let read = damage::caught(&path, || look(disk, &path, &mut database, &mut found));
        // Closing reads, and may meet damage that was told already.
        let _ = damage::caught(&path, || {
            drop(database);
            Ok(())
        });
        found.extend(read.err().map(|error| error.to_string()));
    }
    let redo = directory.join("redo");
    let read = Participant::open(disk, &redo, omnibus_redo::SEGMENT_SIZE, CommitNo::ZERO);
    found.extend(read.err().map(|error| error.to_string()));
    found
}

fn look(
    disk: &Disk,
    path: &Path,
    slot: &mut Option<Database>,
    found: &mut Vec<String>,
) -> Result<(), EngineError> {
    let file = disk.open(path, Open::Write).map_err(io_error)?;
    let beside = path.with_extension(SUMS);
    let sums = Sums::read(disk, &beside, file.len().map_err(io_error)?).map_err(io_error)?.map(Arc::new);
    let scratch = Scratch::new(file, sums.clone());
    let database = redb::Builder::new().set_cache_size(CACHE).create_with_backend(scratch);
    let database = slot.insert(database.map_err(store_error)?);
    if sums.is_none() {
        found.push(format!("{}: missing or damaged; the next start makes it anew", beside.display()));
        if !database.check_integrity().map_err(store_error)? {
            return Err(damage::error(path, "a page's checksum does not match"));
        }
    }
    let state = initialize(database)?;
    if let Some(sums) = sums.filter(|sums| state.applied < sums.applied()) {
        let what = format!("it was at commit {} and is at {} now", sums.applied(), state.applied);
        return Err(damage::error(path, &what));
    }
    let read = database.begin_read().map_err(store_error)?;
    let versions = read.open_table(VERSIONS).map_err(store_error)?;
    versions.iter().map_err(store_error)?.try_for_each(|pair| pair.map(|_| ()).map_err(store_error))?;
    let garbage = read.open_table(GARBAGE).map_err(store_error)?;
    garbage.iter().map_err(store_error)?.try_for_each(|pair| pair.map(|_| ()).map_err(store_error))
}
