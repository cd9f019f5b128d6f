//! The suite that every engine must pass, run from the engine's own tests:
//!
//! ```ignore
//! omnibus_engine::conformance::run_all(|directory| Arc::new(MyEngine::open(directory).unwrap()));
//! ```
//!
//! `make_engine` opens the engine in a directory, new or used before; dropping the last reference
//! must close it, as a crash would: only what was persistent may be there afterwards. An engine
//! with memory limits should also be run with tiny ones, so that flushes happen everywhere.
//!
//! Every check panics with what it expected, and random ones with their seed.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

mod backup;
mod durability;
mod model;
mod spaces;
mod two_phase;
mod visibility;

pub use model::random_history;

use crate::{CommitNo, Engine, Snapshot, WriteSet};
use bytes::Bytes;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

/// Opens an engine in a directory.
pub type MakeEngine<'a> = &'a dyn Fn(&Path) -> Arc<dyn Engine>;

/// A conformance check.
pub type Check = fn(MakeEngine<'_>);

/// All checks by name, for an engine that wants a test each.
pub const CHECKS: &[(&str, Check)] = &[
    (
        "a large transaction is persistent as a whole",
        durability::a_large_transaction_is_persistent_as_a_whole,
    ),
    ("versions are visible from their number on", visibility::versions_are_visible_from_their_number_on),
    ("deletions hide and versions after them show", visibility::deletions_hide_and_versions_after_them_show),
    ("the latest snapshot sees what is installed", visibility::the_latest_snapshot_sees_what_is_installed),
    ("a version tells its number", visibility::a_version_tells_its_number),
    ("snapshots stay as they are", visibility::snapshots_stay_as_they_are),
    ("scans go both ways within bounds", visibility::scans_go_both_ways_within_bounds),
    ("scans see one version of many", visibility::scans_see_one_version_of_many),
    ("odd keys and values survive", visibility::odd_keys_and_values_survive),
    (
        "a staged transaction shows from its number on",
        visibility::a_staged_transaction_shows_from_its_number_on,
    ),
    ("readers run beside the writer", visibility::readers_run_beside_the_writer),
    ("a checkpoint survives and says how far", durability::a_checkpoint_survives_and_says_how_far),
    ("nothing beyond the log is persistent", durability::nothing_beyond_the_log_is_persistent),
    ("what was installed but not durable is gone", durability::what_was_installed_but_not_durable_is_gone),
    ("replay continues where the engine stopped", durability::replay_continues_where_the_engine_stopped),
    ("transactions without writes count", durability::transactions_without_writes_count),
    ("deletions are persistent", durability::deletions_are_persistent),
    ("the watermark keeps what snapshots need", durability::the_watermark_keeps_what_snapshots_need),
    ("a backup is a prefix of the commits", backup::a_backup_is_a_prefix_of_the_commits),
    ("a backup shares nothing that changes", backup::a_backup_shares_nothing_that_changes),
    ("a backup leaves prepared transactions behind", backup::a_backup_leaves_prepared_transactions_behind),
    ("a load is there and stays", spaces::a_load_is_there_and_stays),
    ("a dropped space goes and never comes back", spaces::a_dropped_space_goes_and_never_comes_back),
    ("a space is kept for old snapshots", spaces::a_space_is_kept_for_old_snapshots),
    (
        "prepared transactions survive and wait for a decision",
        two_phase::prepared_transactions_survive_and_wait_for_a_decision,
    ),
    ("what replay installed is not installed again", two_phase::what_replay_installed_is_not_installed_again),
    ("sessions prepare at once", two_phase::sessions_prepare_at_once),
    ("random histories agree with a model", model::random_histories_agree_with_a_model),
];

/// Runs every check, each in a directory of its own.
pub fn run_all(make_engine: impl Fn(&Path) -> Arc<dyn Engine>) {
    for (name, check) in CHECKS {
        let start = std::time::Instant::now();
        check(&make_engine);
        eprintln!("conformance: {name}: {:?}", start.elapsed());
    }
}

/// A directory and the way to open an engine in it.
struct Bench<'a> {
    directory: tempfile::TempDir,
    make: MakeEngine<'a>,
}

impl<'a> Bench<'a> {
    fn new(make: MakeEngine<'a>) -> Bench<'a> {
        Bench { directory: tempfile::tempdir().unwrap(), make }
    }

    fn open(&self) -> Arc<dyn Engine> {
        (self.make)(self.directory.path())
    }

    /// Closes the engine, which must be the last reference, and opens it again.
    fn reopen(&self, engine: Arc<dyn Engine>) -> Arc<dyn Engine> {
        assert_eq!(Arc::strong_count(&engine), 1, "the check still holds the engine");
        drop(engine);
        self.open()
    }
}

fn key(space: u32, name: &str) -> Bytes {
    let mut key = space.to_be_bytes().to_vec();
    key.extend_from_slice(name.as_bytes());
    key.into()
}

fn numbered(space: u32, number: u32) -> Bytes {
    let mut key = space.to_be_bytes().to_vec();
    key.extend_from_slice(&number.to_be_bytes());
    key.into()
}

fn value(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Installs writes at `no`.
fn prepare(engine: &dyn Engine, no: u64, writes: &[(&str, Option<&str>)]) {
    engine.prepare_ordered(CommitNo(no), write_set(writes));
}

fn write_set(writes: &[(&str, Option<&str>)]) -> WriteSet {
    let mut set = WriteSet::default();
    for (name, text) in writes {
        match text {
            Some(text) => set.put(key(1, name), value(text)),
            None => set.delete(key(1, name)),
        }
    }
    set
}

fn commit(engine: &dyn Engine, no: u64, writes: &[(&str, Option<&str>)]) {
    prepare(engine, no, writes);
    engine.commit_ordered(CommitNo(no));
}

fn get(snapshot: &dyn Snapshot, name: &str) -> Option<String> {
    snapshot.get(&key(1, name)).unwrap().map(|found| String::from_utf8(found.to_vec()).unwrap())
}

fn get_at(engine: &dyn Engine, at: u64, name: &str) -> Option<String> {
    get(&*engine.snapshot(CommitNo(at)), name)
}

/// Returns everything in a space, ascending.
fn all(snapshot: &dyn Snapshot, space: u32) -> Vec<(Bytes, Bytes)> {
    let (from, to) = (space.to_be_bytes(), (space + 1).to_be_bytes());
    snapshot.scan(Bound::Included(&from), Bound::Excluded(&to), false).map(Result::unwrap).collect()
}

/// Returns the entries that a visit passes.
fn visited(snapshot: &dyn Snapshot, from: Bound<&[u8]>, to: Bound<&[u8]>) -> Vec<(Bytes, Bytes)> {
    let mut pairs = Vec::new();
    let all = snapshot.visit(from, to, &mut |key, value| {
        pairs.push((key.to_bytes(), value.to_bytes()));
        true
    });
    assert!(all.unwrap());
    // Told to stop, it stops there.
    let mut first = Vec::new();
    let more = snapshot.visit(from, to, &mut |key, value| {
        first.push((key.to_bytes(), value.to_bytes()));
        false
    });
    assert_eq!((more.unwrap(), &first[..]), (pairs.is_empty(), &pairs[..pairs.len().min(1)]));
    pairs
}
