//! Two-phase participation (RECOVER-1). An engine that is no participant passes by saying so.

use super::*;
use crate::{EngineError, TrxId};

fn set(writes: &[(&str, &str)]) -> WriteSet {
    let mut set = WriteSet::default();
    writes.iter().for_each(|(name, text)| set.put(key(1, name), value(text)));
    set
}

/// The engine, if it takes part.
fn participant(bench: &Bench<'_>) -> Option<Arc<dyn Engine>> {
    let engine = bench.open();
    if engine.two_phase() {
        return Some(engine);
    }
    let refused = engine.prepare(TrxId(1), &set(&[("k", "one")]));
    assert!(matches!(refused, Err(EngineError::NotTwoPhase { .. })));
    assert_eq!(engine.prepared(), []);
    None
}

/// Does the parts of a session and of the commit thread.
fn commit_live(engine: &dyn Engine, trx: u64, no: u64, writes: &[(&str, &str)]) {
    let writes = set(writes);
    engine.prepare(TrxId(trx), &writes).unwrap();
    engine.flush_logs().unwrap();
    engine.prepare_ordered(CommitNo(no), writes);
    engine.commit_prepared(TrxId(trx), CommitNo(no));
    engine.commit_ordered(CommitNo(no));
}

pub(super) fn prepared_transactions_survive_and_wait_for_a_decision(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let Some(engine) = participant(&bench) else { return };
    commit(&*engine, 1, &[("k", Some("zero")), ("other", Some("zero"))]);
    engine.checkpoint().unwrap();
    for (trx, name) in [(7, "k"), (5, "l"), (9, "m")] {
        engine.prepare(TrxId(trx), &set(&[(name, "prepared")])).unwrap();
    }
    engine.flush_logs().unwrap();
    assert_eq!(get_at(&*engine, u64::MAX, "k").as_deref(), Some("zero"), "visible before it is committed");
    assert_eq!(engine.prepared(), [], "those of this run are their sessions'");
    // A crash before anything is decided, twice.
    let engine = bench.reopen(bench.reopen(engine));
    let mut prepared = engine.prepared();
    prepared.sort_unstable();
    assert_eq!(prepared, [TrxId(5), TrxId(7), TrxId(9)]);
    assert_eq!(get_at(&*engine, u64::MAX, "k").as_deref(), Some("zero"));
    engine.commit_prepared(TrxId(9), CommitNo(3));
    engine.commit_prepared(TrxId(7), CommitNo(4));
    engine.commit_ordered(CommitNo(4));
    engine.rollback(TrxId(5));
    engine.rollback(TrxId(1000));
    engine.commit_prepared(TrxId(1001), CommitNo(4));
    let check = |engine: &dyn Engine| {
        assert_eq!(get_at(engine, 4, "k").as_deref(), Some("prepared"));
        assert_eq!(get_at(engine, 4, "m").as_deref(), Some("prepared"));
        assert_eq!(get_at(engine, u64::MAX, "l"), None, "rolled back");
    };
    check(&*engine);
    assert_eq!(get_at(&*engine, 3, "k").as_deref(), Some("zero"));
    assert_eq!(get_at(&*engine, 2, "m"), None);
    engine.flush_logs().unwrap();
    assert_eq!(engine.checkpoint().unwrap(), CommitNo(4));
    let engine = bench.reopen(engine);
    check(&*engine);
    assert_eq!(engine.prepared(), []);
}

pub(super) fn what_replay_installed_is_not_installed_again(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let Some(engine) = participant(&bench) else { return };
    for no in 1..=5 {
        commit_live(&*engine, 100 + no, no, &[("k", &no.to_string()), (&format!("k{no}"), "x")]);
    }
    assert_eq!(get_at(&*engine, 5, "k").as_deref(), Some("5"));
    let engine = bench.reopen(engine);
    let applied = engine.applied().0;
    for no in applied + 1..=5 {
        commit(&*engine, no, &[("k", Some(&format!("replayed {no}")))]);
    }
    for trx in engine.prepared() {
        engine.commit_prepared(trx, CommitNo(trx.0 - 100));
    }
    engine.commit_ordered(CommitNo(5));
    let expected = if applied < 5 { "replayed 5" } else { "5" };
    assert_eq!(get_at(&*engine, 5, "k").as_deref(), Some(expected));
    engine.checkpoint().unwrap();
    assert_eq!(bench.reopen(engine).prepared(), []);
}

pub(super) fn sessions_prepare_at_once(make: MakeEngine<'_>) {
    let bench = Bench::new(make);
    let Some(engine) = participant(&bench) else { return };
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let engine = &*engine;
            scope.spawn(move || {
                for n in 0..25 {
                    let trx = thread * 100 + n;
                    engine.prepare(TrxId(trx), &set(&[(&format!("k{trx}"), "x")])).unwrap();
                    engine.flush_logs().unwrap();
                    if n % 5 == 0 {
                        engine.rollback(TrxId(trx));
                    }
                }
            });
        }
    });
    engine.flush_logs().unwrap();
    let engine = bench.reopen(engine);
    let mut prepared = engine.prepared();
    prepared.sort_unstable();
    assert_eq!(prepared.len(), 80);
    for (at, trx) in prepared.iter().enumerate() {
        engine.commit_prepared(*trx, CommitNo(at as u64 + 1));
    }
    engine.commit_ordered(CommitNo(80));
    assert_eq!(all(&*engine.snapshot(CommitNo(80)), 1).len(), 80);
    assert_eq!(all(&*engine.snapshot(CommitNo(40)), 1).len(), 40);
}
