//! Backups: a copy that opens by itself, taken while commits continue.

use super::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// Takes a backup and says where its engine is and what number it has.
fn take(bench: &Bench<'_>, engine: &dyn Engine, root: &Path) -> (PathBuf, CommitNo) {
    let at = engine.backup_to(root, &|| Ok(())).unwrap();
    // A set of engines is opened in the root itself, and one engine in its folder.
    let own = root.join(bench.directory.path().file_name().unwrap());
    (if own.exists() { own } else { root.to_owned() }, at)
}

/// A copy has at least the commits up to `at`, and is whole once the log's later ones are replayed. Members of a set are
/// copied one after the other, so that one may have more than the set as a whole: it skips what it is given again.
fn expect_prefix(engine: &dyn Engine, at: CommitNo, end: u64) {
    assert_eq!(engine.applied(), at, "a copy has what its backup said");
    let found = all(&*engine.snapshot(CommitNo::MAX), 1).len() as u64;
    assert!((at.0..=end).contains(&found), "one key a commit, {found} for {at} of {end}");
    for no in at.0 + 1..=end {
        put_one(engine, no);
    }
    assert_eq!(all(&*engine.snapshot(CommitNo::MAX), 1).len() as u64, end, "replayed from {at}");
    for no in [1, at.0 / 2 + 1, at.0, end] {
        let value = get_at(engine, u64::MAX, &format!("{no:08}")).unwrap();
        assert!(value.starts_with(&format!("{no} ")), "{no}: {value}");
    }
}

fn put_one(engine: &dyn Engine, no: u64) {
    commit(engine, no, &[(&format!("{no:08}"), Some(&format!("{no} {}", "x".repeat(200))))]);
}

pub(super) fn a_backup_is_a_prefix_of_the_commits(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    for no in 1..=500 {
        put_one(&*engine, no);
    }
    assert_eq!(engine.checkpoint().unwrap(), CommitNo(500));
    let last = AtomicU64::new(500);
    let done = AtomicU64::new(0);
    let roots: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let backups: Vec<_> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while done.load(Ordering::SeqCst) == 0 {
                let no = last.fetch_add(1, Ordering::SeqCst) + 1;
                put_one(&*engine, no);
                if no.is_multiple_of(300) {
                    engine.checkpoint().unwrap();
                }
                std::thread::sleep(engine.write_stall());
            }
        });
        let backups = roots.iter().map(|root| take(&bench, &*engine, root.path())).collect();
        done.store(1, Ordering::SeqCst);
        backups
    });
    let end = last.load(Ordering::SeqCst);
    for (directory, at) in backups {
        assert!(at >= CommitNo(500) && at.0 <= end, "{at} of {end}");
        expect_prefix(&*make(&directory), at, end);
    }
    assert_eq!(all(&*engine.snapshot(CommitNo::MAX), 1).len() as u64, end, "the original is unharmed");
    assert!(engine.failure().is_none());
}

pub(super) fn a_backup_shares_nothing_that_changes(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    for no in 1..=200 {
        put_one(&*engine, no);
    }
    engine.checkpoint().unwrap();
    let root = tempfile::tempdir().unwrap();
    let (directory, at) = take(&bench, &*engine, root.path());
    // Both go on, differently.
    let copy = make(&directory);
    for no in at.0 + 1..=at.0 + 300 {
        commit(&*copy, no, &[("copy", Some(&no.to_string()))]);
    }
    copy.checkpoint().unwrap();
    for no in 201..=600 {
        put_one(&*engine, no);
        engine.gc_watermark(CommitNo(no));
    }
    engine.checkpoint().unwrap();
    let engine = bench.reopen(engine);
    expect_prefix(&*engine, CommitNo(600), 600);
    drop(copy);
    let copy = make(&directory);
    assert_eq!(copy.applied().0, at.0 + 300);
    assert_eq!(get_at(&*copy, u64::MAX, "copy"), Some((at.0 + 300).to_string()));
    assert_eq!(get_at(&*copy, u64::MAX, "00000600"), None, "a commit of the original");
    assert!(get_at(&*copy, u64::MAX, "00000001").is_some());
}

pub(super) fn a_backup_leaves_prepared_transactions_behind(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    if !engine.two_phase() {
        return;
    }
    for no in 1..=20 {
        put_one(&*engine, no);
    }
    let trx = crate::TrxId(7);
    engine.prepare(trx, &write_set(&[("prepared", Some("1"))])).unwrap();
    engine.flush_logs().unwrap();
    engine.checkpoint().unwrap();
    let root = tempfile::tempdir().unwrap();
    let (directory, at) = take(&bench, &*engine, root.path());
    let copy = make(&directory);
    assert_eq!((copy.prepared(), copy.applied()), (Vec::new(), at));
    // Its own redo log is another one.
    copy.prepare(crate::TrxId(8), &write_set(&[("other", Some("1"))])).unwrap();
    copy.flush_logs().unwrap();
    let engine = bench.reopen(engine);
    assert_eq!(engine.prepared(), [trx], "the original still waits for its fate");
    expect_prefix(&*engine, CommitNo(20), 20);
}
