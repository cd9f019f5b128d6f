//! Loads and drops of whole spaces.

use super::*;
use crate::SpaceId;

fn pairs(space: u32, count: u32) -> Vec<(Bytes, Bytes)> {
    (0..count).map(|n| (numbered(space, n), value(&format!("{n}{}", "q".repeat(60))))).collect()
}

pub(super) fn a_load_is_there_and_stays(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    for no in 1..=30 {
        commit(&*engine, no, &[(&format!("k{no}"), Some("x"))]);
    }
    let expected = pairs(5, 5000);
    // Not in key order: a scan of another index gives any order.
    engine.load(CommitNo(30), &mut expected.iter().rev().cloned()).unwrap();
    engine.load(CommitNo(30), &mut std::iter::empty()).unwrap();
    assert_eq!(all(&*engine.snapshot(CommitNo(30)), 5), expected);
    assert_eq!(all(&*engine.snapshot(CommitNo(29)), 5), []);
    for no in 31..=40 {
        commit(&*engine, no, &[(&format!("k{no}"), Some("x"))]);
    }
    let mut set = WriteSet::default();
    set.delete(numbered(5, 0));
    set.put(numbered(5, 1), value("changed"));
    engine.prepare_ordered(CommitNo(41), set);
    engine.commit_ordered(CommitNo(41));
    let mut changed = expected.clone();
    changed.remove(0);
    changed[0].1 = value("changed");
    assert_eq!(all(&*engine.snapshot(CommitNo(41)), 5), changed);
    assert_eq!(all(&*engine.snapshot(CommitNo(40)), 5), expected);
    engine.checkpoint().unwrap();
    let engine = bench.reopen(engine);
    assert_eq!(engine.applied(), CommitNo(41));
    assert_eq!(all(&*engine.snapshot(CommitNo(41)), 5), changed);
    assert_eq!(all(&*engine.snapshot(CommitNo(41)), 1).len(), 40);
}

pub(super) fn a_dropped_space_goes_and_never_comes_back(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    let mut set = WriteSet::default();
    for (key, text) in [pairs(6, 500), pairs(7, 500), pairs(8, 500)].concat() {
        set.put(key, text);
    }
    engine.prepare_ordered(CommitNo(1), set);
    engine.commit_ordered(CommitNo(1));
    engine.checkpoint().unwrap();
    engine.load(CommitNo(1), &mut pairs(9, 500).into_iter()).unwrap();
    engine.drop_space(SpaceId(7), CommitNo(2));
    engine.drop_space(SpaceId(9), CommitNo(2));
    let mut no = 1;
    for round in 0..4 {
        for _ in 0..20 {
            no += 1;
            commit(&*engine, no, &[(&format!("k{no}"), Some(&"x".repeat(100)))]);
        }
        engine.gc_watermark(CommitNo(no));
        engine.checkpoint().unwrap();
        for space in [6, 8] {
            assert_eq!(all(&*engine.snapshot(CommitNo(no)), space), pairs(space, 500), "round {round}");
        }
    }
    let left = |engine: &dyn Engine| {
        [7, 9].map(|space| all(&*engine.snapshot(CommitNo::MAX), space).len()).iter().sum::<usize>()
    };
    let before = left(&*engine);
    assert!(engine.failure().is_none());
    let engine = bench.reopen(engine);
    assert!(left(&*engine) <= before, "a dropped space grew back");
    // The server names the dead again, and more of them may go.
    engine.drop_space(SpaceId(7), CommitNo(2));
    engine.gc_watermark(CommitNo(no));
    engine.checkpoint().unwrap();
    assert!(left(&*engine) <= before, "a dropped space grew back");
    assert_eq!(all(&*engine.snapshot(CommitNo(no)), 6), pairs(6, 500));
    assert_eq!(all(&*engine.snapshot(CommitNo(no)), 1).len(), no as usize - 1);
}

pub(super) fn a_space_is_kept_for_old_snapshots(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    let mut set = WriteSet::default();
    pairs(6, 300).into_iter().for_each(|(key, text)| set.put(key, text));
    engine.prepare_ordered(CommitNo(1), set);
    engine.commit_ordered(CommitNo(1));
    let old = engine.snapshot(CommitNo(1));
    engine.drop_space(SpaceId(6), CommitNo(2));
    for no in 2..=50 {
        commit(&*engine, no, &[(&format!("k{no}"), Some(&"x".repeat(300)))]);
        engine.gc_watermark(CommitNo(1));
        if no % 10 == 0 {
            engine.checkpoint().unwrap();
        }
    }
    assert_eq!(all(&*old, 6), pairs(6, 300));
}
