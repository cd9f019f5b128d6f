//! Visibility of versions in snapshots.

use super::*;
use std::sync::atomic::{AtomicU64, Ordering};

pub(super) fn versions_are_visible_from_their_number_on(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    assert_eq!(engine.applied(), CommitNo::ZERO);
    for no in 1..=20 {
        commit(&*engine, no, &[("k", Some(&no.to_string()))]);
    }
    assert_eq!(get_at(&*engine, 0, "k"), None);
    for no in 1..=20 {
        assert_eq!(get_at(&*engine, no, "k"), Some(no.to_string()));
    }
    assert_eq!(get_at(&*engine, 1000, "k"), Some("20".into()));
    assert_eq!(get_at(&*engine, 20, "kk"), None);
    assert_eq!(get_at(&*engine, 20, ""), None);
}

pub(super) fn deletions_hide_and_versions_after_them_show(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    commit(&*engine, 1, &[("k", Some("one"))]);
    commit(&*engine, 2, &[("k", None), ("absent", None)]);
    commit(&*engine, 3, &[("k", Some("three"))]);
    for expected in [(1, Some("one")), (2, None), (3, Some("three"))] {
        assert_eq!(get_at(&*engine, expected.0, "k").as_deref(), expected.1, "at {}", expected.0);
        let found = all(&*engine.snapshot(CommitNo(expected.0)), 1);
        assert_eq!(found.len(), usize::from(expected.1.is_some()), "scan at {}", expected.0);
    }
}

pub(super) fn the_latest_snapshot_sees_what_is_installed(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    let latest = engine.snapshot(CommitNo::MAX);
    assert_eq!(get(&*latest, "k"), None);
    prepare(&*engine, 1, &[("k", Some("one")), ("l", Some("one"))]);
    assert_eq!(get(&*engine.snapshot(CommitNo::MAX), "k").as_deref(), Some("one"), "before commit_ordered");
    assert_eq!(get(&*latest, "k").as_deref(), Some("one"), "a snapshot taken before");
    prepare(&*engine, 2, &[("k", None)]);
    assert_eq!(get(&*latest, "k"), None);
    assert_eq!(all(&*latest, 1), [(key(1, "l"), value("one"))]);
}

pub(super) fn a_staged_transaction_shows_from_its_number_on(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    commit(&*engine, 1, &[("gone", Some("one")), ("k", Some("one")), ("stays", Some("one"))]);
    let before = engine.snapshot(CommitNo(2));
    let staged = engine.stage(write_set(&[("gone", None), ("k", Some("three")), ("new", Some("three"))]));
    assert_eq!(get(&*engine.snapshot(CommitNo::MAX), "k").as_deref(), Some("one"), "staged, no number yet");
    // Others commit between staging and numbering.
    prepare(&*engine, 2, &[("other", Some("two"))]);
    engine.prepare_staged(CommitNo(3), staged);
    prepare(&*engine, 4, &[("k", Some("four")), ("new", None)]);
    let check = |engine: &dyn Engine| {
        let expected: [(u64, &[(&str, &str)]); 3] = [
            (2, &[("gone", "one"), ("k", "one"), ("other", "two"), ("stays", "one")]),
            (3, &[("k", "three"), ("new", "three"), ("other", "two"), ("stays", "one")]),
            (4, &[("k", "four"), ("other", "two"), ("stays", "one")]),
        ];
        for (at, rows) in expected {
            let rows: Vec<_> = rows.iter().map(|(name, text)| (key(1, name), value(text))).collect();
            let snapshot = engine.snapshot(CommitNo(at));
            assert_eq!(all(&*snapshot, 1), rows, "at {at}");
            assert_eq!(get(&*snapshot, "gone").as_deref(), (at == 2).then_some("one"), "at {at}");
        }
        let newest = engine.snapshot(CommitNo::MAX).get_version(&key(1, "k")).unwrap();
        assert_eq!(newest, Some((CommitNo(4), value("four"))));
        let staged = engine.snapshot(CommitNo(3)).get_version(&key(1, "k")).unwrap();
        assert_eq!(staged, Some((CommitNo(3), value("three"))));
    };
    check(&*engine);
    assert_eq!(get(&*before, "k").as_deref(), Some("one"), "a snapshot from before");
    drop(before);
    // ENGINE-1: the log has it up to 2 only.
    engine.commit_ordered(CommitNo(2));
    assert_eq!(engine.checkpoint().unwrap(), CommitNo(2));
    check(&*engine);
    engine.commit_ordered(CommitNo(4));
    assert_eq!(engine.checkpoint().unwrap(), CommitNo(4));
    check(&*engine);
    // Dropped before it got a number: as if it had never been.
    drop(engine.stage(write_set(&[("stays", None)])));
    let engine = bench.reopen(engine);
    assert_eq!(engine.applied(), CommitNo(4));
    assert_eq!(get(&*engine.snapshot(CommitNo::MAX), "stays").as_deref(), Some("one"));
    assert_eq!(get(&*engine.snapshot(CommitNo::MAX), "k").as_deref(), Some("four"));
}

pub(super) fn a_version_tells_its_number(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    commit(&*engine, 1, &[("k", Some("one"))]);
    commit(&*engine, 2, &[("other", Some("two"))]);
    commit(&*engine, 7, &[("k", Some("seven"))]);
    commit(&*engine, 8, &[("other", None)]);
    let check = |engine: &dyn Engine| {
        let version = |at, name| engine.snapshot(at).get_version(&key(1, name)).unwrap();
        assert_eq!(version(CommitNo(6), "k"), Some((CommitNo(1), value("one"))));
        assert_eq!(version(CommitNo::MAX, "k"), Some((CommitNo(7), value("seven"))));
        assert_eq!(version(CommitNo::MAX, "other"), None);
    };
    check(&*engine);
    engine.checkpoint().unwrap();
    check(&*engine);
}

pub(super) fn snapshots_stay_as_they_are(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    let mut snapshots = Vec::new();
    for no in 1..=60u64 {
        let text = format!("{no}{}", "x".repeat(300));
        let name = format!("k{}", no % 7);
        commit(&*engine, no, &[(&name, if no % 11 == 0 { None } else { Some(&text) })]);
        let snapshot = engine.snapshot(CommitNo(no));
        let seen = all(&*snapshot, 1);
        snapshots.push((snapshot, seen));
        if no % 20 == 0 {
            engine.checkpoint().unwrap();
        }
    }
    for (at, (snapshot, seen)) in snapshots.iter().enumerate() {
        assert_eq!(&all(&**snapshot, 1), seen, "snapshot {}", at + 1);
        for (key, value) in seen {
            assert_eq!(snapshot.get(key).unwrap().as_ref(), Some(value), "snapshot {}", at + 1);
        }
    }
}

pub(super) fn scans_go_both_ways_within_bounds(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    for no in 1..=300u32 {
        let mut set = WriteSet::default();
        // Neighbouring spaces must not leak in.
        for space in [1, 2, 3] {
            set.put(numbered(space, no * 2), value(&format!("{space}/{no}")));
        }
        engine.prepare_ordered(CommitNo(u64::from(no)), set);
        engine.commit_ordered(CommitNo(u64::from(no)));
        if no == 200 {
            engine.checkpoint().unwrap();
        }
    }
    let snapshot = engine.snapshot(CommitNo(300));
    let scan = |from: Bound<u32>, to: Bound<u32>, reverse| -> Vec<u32> {
        let (from, to) = (from.map(|n| numbered(2, n)), to.map(|n| numbered(2, n)));
        let pairs = snapshot.scan(from.as_ref().map(|k| &k[..]), to.as_ref().map(|k| &k[..]), reverse);
        let keys = pairs.map(|pair| u32::from_be_bytes(pair.unwrap().0[4..].try_into().unwrap()));
        keys.collect()
    };
    use Bound::{Excluded, Included};
    let bounds = [Included(100), Excluded(100), Included(101), Excluded(101), Included(0), Excluded(600)];
    for from in bounds {
        for to in [Included(500), Excluded(500), Included(499), Excluded(100), Included(100), Included(601)] {
            let within = |n: &u32| std::ops::RangeBounds::contains(&(from, to), n);
            let mut expected: Vec<u32> = (1..=300).map(|n| n * 2).filter(within).collect();
            assert_eq!(scan(from, to, false), expected, "{from:?} {to:?}");
            let keys = (from.map(|n| numbered(2, n)), to.map(|n| numbered(2, n)));
            let pairs = visited(&*snapshot, keys.0.as_ref().map(|k| &k[..]), keys.1.as_ref().map(|k| &k[..]));
            let numbers = pairs.iter().map(|(key, _)| u32::from_be_bytes(key[4..].try_into().unwrap()));
            assert_eq!(numbers.collect::<Vec<_>>(), expected, "{from:?} {to:?} visited");
            expected.reverse();
            assert_eq!(scan(from, to, true), expected, "{from:?} {to:?} reverse");
        }
    }
    let everything: Vec<_> =
        snapshot.scan(Bound::Unbounded, Bound::Unbounded, true).map(Result::unwrap).collect();
    assert_eq!(everything.len(), 900);
    assert!(everything.is_sorted_by(|a, b| a.0 > b.0));
}

pub(super) fn scans_see_one_version_of_many(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    // Every key has versions before, between and after the snapshots, in tables and in memory.
    let text = |no: u64, n: u64| format!("{no}-{n}-{}", "y".repeat(50));
    for no in 1..=40u64 {
        let mut set = WriteSet::default();
        for n in 0..50u64 {
            if (n + no) % 5 == 0 {
                set.delete(numbered(1, n as u32));
            } else {
                set.put(numbered(1, n as u32), value(&text(no, n)));
            }
        }
        engine.prepare_ordered(CommitNo(no), set);
        engine.commit_ordered(CommitNo(no));
        if no == 15 || no == 30 {
            engine.checkpoint().unwrap();
        }
    }
    for no in [1, 10, 15, 16, 30, 39, 40] {
        let expected = (0..50u64).filter(|n| (n + no) % 5 != 0);
        let expected: Vec<_> = expected.map(|n| (numbered(1, n as u32), value(&text(no, n)))).collect();
        let snapshot = engine.snapshot(CommitNo(no));
        assert_eq!(all(&*snapshot, 1), expected, "at {no}");
        assert_eq!(visited(&*snapshot, Bound::Unbounded, Bound::Unbounded), expected, "at {no}, visited");
        let mut back: Vec<_> =
            snapshot.scan(Bound::Unbounded, Bound::Unbounded, true).map(Result::unwrap).collect();
        back.reverse();
        assert_eq!(back, expected, "at {no}, reverse");
    }
}

pub(super) fn odd_keys_and_values_survive(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    let names: Vec<Vec<u8>> = vec![
        vec![],
        vec![0],
        vec![0, 0],
        vec![0; 12],
        vec![0; 13],
        vec![7; 12],
        [vec![7; 12], vec![0]].concat(),
        [vec![7; 12], vec![0, 1]].concat(),
        [vec![7; 12], vec![1]].concat(),
        vec![0xff; 12],
        vec![0xff; 3000],
        [vec![0xff; 2999], vec![0]].concat(),
    ];
    let pairs: Vec<(Bytes, Bytes)> = names
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let text = if at % 3 == 0 { Bytes::new() } else { Bytes::from(vec![at as u8; at * 40_000]) };
            (Bytes::from([&1u32.to_be_bytes()[..], name].concat()), text)
        })
        .collect();
    let mut set = WriteSet::default();
    pairs.iter().for_each(|(key, text)| set.put(key.clone(), text.clone()));
    engine.prepare_ordered(CommitNo(1), set);
    engine.commit_ordered(CommitNo(1));
    let check = |engine: &dyn Engine| {
        let snapshot = engine.snapshot(CommitNo(1));
        let mut expected = pairs.clone();
        expected.sort();
        assert_eq!(all(&*snapshot, 1), expected);
        for (key, text) in &pairs {
            assert_eq!(snapshot.get(key).unwrap().as_ref(), Some(text), "{key:?}");
        }
        assert_eq!(snapshot.get(&key(1, "\0\0\0")).unwrap(), None);
    };
    check(&*engine);
    engine.checkpoint().unwrap();
    check(&*engine);
    check(&*bench.reopen(engine));
}

pub(super) fn readers_run_beside_the_writer(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    let published = AtomicU64::new(0);
    const LAST: u64 = 1500;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let at = published.load(Ordering::Acquire);
                    let snapshot = engine.snapshot(CommitNo(at));
                    // Every transaction moves all ten keys to its own number.
                    let seen = all(&*snapshot, 1);
                    assert_eq!(seen.len(), if at == 0 { 0 } else { 10 }, "at {at}");
                    for (key, text) in &seen {
                        assert!(text.starts_with(format!("{at}-").as_bytes()), "at {at}: {text:?}");
                        assert_eq!(snapshot.get(key).unwrap().as_ref(), Some(text), "at {at}");
                    }
                    if at == LAST {
                        break;
                    }
                }
            });
        }
        scope.spawn(|| {
            while published.load(Ordering::Acquire) < LAST {
                engine.checkpoint().unwrap();
                std::thread::yield_now();
            }
        });
        for no in 1..=LAST {
            let text = format!("{no}-{}", "z".repeat(40));
            let names: Vec<String> = (0..10).map(|n| format!("k{n}")).collect();
            let writes: Vec<_> = names.iter().map(|name| (&name[..], Some(&text[..]))).collect();
            commit(&*engine, no, &writes);
            published.store(no, Ordering::Release);
        }
    });
}
