//! The state that a stop leaves (ENGINE-1, RECOVER-2), and the versions that the watermark releases.

use super::*;

pub(super) fn a_checkpoint_survives_and_says_how_far(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    for no in 1..=100 {
        commit(&*engine, no, &[(&format!("k{no}"), Some(&no.to_string())), ("same", Some(&no.to_string()))]);
    }
    assert_eq!(engine.checkpoint().unwrap(), CommitNo(100));
    assert_eq!(engine.persisted(), CommitNo(100));
    let engine = bench.reopen(engine);
    assert_eq!(engine.applied(), CommitNo(100));
    assert_eq!(engine.persisted(), CommitNo(100));
    for no in 1..=100u64 {
        assert_eq!(get_at(&*engine, 100, &format!("k{no}")), Some(no.to_string()));
    }
    assert_eq!(get_at(&*engine, 100, "same").as_deref(), Some("100"));
    assert_eq!(all(&*engine.snapshot(CommitNo(100)), 1).len(), 101);
    assert!(engine.failure().is_none());
}

pub(super) fn a_large_transaction_is_persistent_as_a_whole(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    for no in 1..=10 {
        commit(&*engine, no, &[("a", Some("old")), ("b", Some("old")), (&format!("k{no:04}"), Some("old"))]);
    }
    let writes = |fails_at: usize| {
        let rows = (0..3000)
            .map(|n| (key(1, &format!("k{n:04}")), (n % 10 != 3).then(|| Bytes::from(vec![7; 200]))));
        let other = (0..500).map(|n| (numbered(2, n), Some(Bytes::from_static(b"x"))));
        let mut all: Vec<_> = std::iter::once((key(1, "b"), None)).chain(rows).chain(other).map(Ok).collect();
        if fails_at < all.len() {
            all[fails_at] = Err(std::io::Error::other("the source of writes failed"));
        }
        all.into_iter()
    };
    // COMMIT-3: half of one is none.
    assert!(engine.install_sorted(CommitNo(11), &mut writes(2000)).is_err());
    let engine = bench.reopen(engine);
    let applied = engine.applied().0;
    assert!(applied <= 10, "{applied}");
    assert_eq!(get_at(&*engine, u64::MAX, "k2000"), None);
    for no in applied + 1..=10 {
        commit(&*engine, no, &[("a", Some("old")), ("b", Some("old")), (&format!("k{no:04}"), Some("old"))]);
    }
    engine.install_sorted(CommitNo(11), &mut writes(usize::MAX)).unwrap();
    engine.commit_ordered(CommitNo(11));
    commit(&*engine, 12, &[("k0500", Some("later"))]);
    let look = |engine: &dyn Engine| {
        assert_eq!(get_at(engine, 12, "a").as_deref(), Some("old"));
        assert_eq!(get_at(engine, 12, "b"), None);
        assert_eq!(get_at(engine, 12, "k0003"), None);
        assert_eq!(get_at(engine, 12, "k0500").as_deref(), Some("later"));
        assert_eq!(all(&*engine.snapshot(CommitNo(12)), 1).len(), 2701);
        assert_eq!(all(&*engine.snapshot(CommitNo(12)), 2).len(), 500);
    };
    look(&*engine);
    engine.checkpoint().unwrap();
    let engine = bench.reopen(engine);
    assert_eq!(engine.applied(), CommitNo(12));
    look(&*engine);
}

pub(super) fn nothing_beyond_the_log_is_persistent(make: MakeEngine<'_>) {
    for (installed, durable) in [(50, 20), (50, 49), (50, 0)] {
        let bench = Bench::new(make);
        let engine = bench.open();
        for no in 1..=installed {
            prepare(
                &*engine,
                no,
                &[("k", Some(&no.to_string())), (&format!("k{no}"), Some(&"x".repeat(500)))],
            );
        }
        engine.commit_ordered(CommitNo(durable));
        assert_eq!(engine.checkpoint().unwrap(), CommitNo(durable));
        assert_eq!(get_at(&*engine, installed, "k"), Some(installed.to_string()), "still in memory");
        let engine = bench.reopen(engine);
        assert_eq!(engine.applied(), CommitNo(durable));
        let expected = (durable > 0).then(|| durable.to_string());
        assert_eq!(get(&*engine.snapshot(CommitNo::MAX), "k"), expected);
        for no in 1..=installed {
            assert_eq!(get_at(&*engine, u64::MAX, &format!("k{no}")).is_some(), no <= durable, "{no}");
        }
    }
}

pub(super) fn what_was_installed_but_not_durable_is_gone(make: MakeEngine<'_>) {
    // No checkpoint: the engine may have flushed on its own, but only what it was told is durable.
    let bench = Bench::new(make);
    let engine = bench.open();
    for no in 1..=400 {
        prepare(&*engine, no, &[("k", Some(&no.to_string())), (&format!("k{no}"), Some(&"x".repeat(400)))]);
        if no == 300 {
            engine.commit_ordered(CommitNo(300));
        }
    }
    let persisted = engine.persisted();
    let engine = bench.reopen(engine);
    let applied = engine.applied();
    assert!(applied >= persisted && applied <= CommitNo(300), "{persisted} {applied}");
    for no in 1..=400u64 {
        let found = get_at(&*engine, u64::MAX, &format!("k{no}"));
        assert_eq!(found.is_some(), no <= applied.0, "{no}, applied {applied}");
    }
}

pub(super) fn replay_continues_where_the_engine_stopped(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let mut engine = bench.open();
    let writes = |no: u64| {
        [
            (format!("k{}", no % 13), (!no.is_multiple_of(6)).then(|| format!("{no}"))),
            ("n".into(), Some(no.to_string())),
        ]
    };
    let mut log = 0;
    for round in 0..5u64 {
        for no in engine.applied().0 + 1..=log {
            let set = writes(no);
            let set: Vec<_> = set.iter().map(|(name, text)| (&name[..], text.as_deref())).collect();
            commit(&*engine, no, &set);
        }
        for _ in 0..30 {
            log += 1;
            let set = writes(log);
            let set: Vec<_> = set.iter().map(|(name, text)| (&name[..], text.as_deref())).collect();
            commit(&*engine, log, &set);
            if log % 25 == 0 {
                engine.checkpoint().unwrap();
            }
        }
        assert_eq!(get_at(&*engine, log, "n"), Some(log.to_string()), "round {round}");
        for name in 0..13u64 {
            let last = (1..=log).rev().find(|no| no % 13 == name);
            let expected = last.and_then(|no| writes(no)[0].1.clone());
            assert_eq!(get_at(&*engine, log, &format!("k{name}")), expected, "round {round} k{name}");
        }
        engine = bench.reopen(engine);
    }
}

pub(super) fn transactions_without_writes_count(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    commit(&*engine, 1, &[("k", Some("one"))]);
    commit(&*engine, 2, &[]);
    // Another engine's transaction: this one is only told that it is durable.
    engine.commit_ordered(CommitNo(3));
    assert_eq!(engine.checkpoint().unwrap(), CommitNo(3));
    let engine = bench.reopen(engine);
    assert_eq!(engine.applied(), CommitNo(3));
    engine.commit_ordered(CommitNo(9));
    assert_eq!(engine.checkpoint().unwrap(), CommitNo(9));
    let engine = bench.reopen(engine);
    assert_eq!(engine.applied(), CommitNo(9));
    assert_eq!(get_at(&*engine, 9, "k").as_deref(), Some("one"));
}

pub(super) fn deletions_are_persistent(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let mut engine = bench.open();
    let mut no = 0;
    for _ in 0..6 {
        no += 1;
        commit(&*engine, no, &[("k", Some("there")), ("stays", Some("there"))]);
        engine.checkpoint().unwrap();
        no += 1;
        commit(&*engine, no, &[("k", None)]);
        engine.gc_watermark(CommitNo(no));
        assert_eq!(engine.checkpoint().unwrap(), CommitNo(no));
        engine = bench.reopen(engine);
        assert_eq!(engine.applied(), CommitNo(no), "even if the last thing was a deletion");
        assert_eq!(get_at(&*engine, no, "k"), None);
        assert_eq!(get_at(&*engine, no, "stays").as_deref(), Some("there"));
    }
}

pub(super) fn the_watermark_keeps_what_snapshots_need(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let engine = bench.open();
    let pad = "p".repeat(200);
    let mut held = None;
    for no in 1..=600u64 {
        let text = format!("{no}{pad}");
        commit(&*engine, no, &[("hot", Some(&text)), (&format!("k{}", no % 17), Some(&text))]);
        if no == 250 {
            let snapshot = engine.snapshot(CommitNo(no));
            let seen = all(&*snapshot, 1);
            held = Some((snapshot, seen));
        }
        // The oldest snapshot in use: the held one, or the newest.
        engine.gc_watermark(CommitNo(if held.is_some() { 250 } else { no }));
        if no % 40 == 0 {
            engine.checkpoint().unwrap();
        }
        if let Some((snapshot, seen)) = &held
            && no % 50 == 0
        {
            assert_eq!(&all(&**snapshot, 1), seen, "at {no}");
            assert_eq!(get(&**snapshot, "hot"), Some(format!("250{pad}")), "at {no}");
        }
    }
    drop(held);
    engine.gc_watermark(CommitNo(600));
    engine.checkpoint().unwrap();
    assert_eq!(all(&*engine.snapshot(CommitNo(600)), 1).len(), 18);
}
