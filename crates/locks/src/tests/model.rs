//! Random single-threaded histories against a naive model that sees only requests and outcomes.
//!
//! After every step: no two transactions hold what does not go together; whoever still waits has a
//! reason, which is a holder in its way or somebody who waits ahead of it; nobody is granted what somebody ahead waits
//! for (LOCK-1); and the waits-for relation, recomputed from scratch, has no cycle (LOCK-2), also where two
//! transactions are beside each other (LOCK-3).

use super::lock::{KEYS, Lock, TABLES, name};
use super::*;
use crate::TableMode;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::ops::Bound::{Excluded, Included};

const TRXS: usize = 7;
/// These two are one session's.
const BESIDE: [usize; 2] = [5, 6];

fn session(who: usize) -> usize {
    if who == BESIDE[1] { BESIDE[0] } else { who }
}

impl Lock {
    /// Returns whether both are about the same key, or the same table.
    fn of_one(self, other: Lock) -> bool {
        match (self, other) {
            (Lock::Record { key, .. }, Lock::Record { key: other, .. }) => key == other,
            (Lock::Table { table, .. }, Lock::Table { table: other, .. }) => table == other,
            _ => false,
        }
    }

    fn whole_table(self) -> bool {
        matches!(self, Lock::Table { mode: TableMode::Exclusive, .. })
    }
}

#[derive(Default)]
struct Model {
    held: [Vec<Lock>; TRXS],
    /// The lock that each waits for, and the step since which it waits.
    waiting: [Option<(Lock, usize)>; TRXS],
}

impl Model {
    /// Returns the transactions that `who` has reason to wait for.
    fn blockers(&self, who: usize) -> Vec<usize> {
        let Some((wanted, since)) = self.waiting[who] else { return Vec::new() };
        let blocks = |other: usize| {
            let holds = self.held[other].iter().any(|held| wanted.waits_for(*held));
            let ahead = self.waiting[other].is_some_and(|(theirs, at)| {
                wanted.waits_for(theirs) && (at < since || self.upgrades(other) || theirs.whole_table())
            });
            holds || ahead
        };
        (0..TRXS).filter(|other| *other != who && blocks(*other)).collect()
    }

    /// Returns whether what `who` waits for is a key that it holds already: that goes to the front.
    fn upgrades(&self, who: usize) -> bool {
        self.waiting[who].is_some_and(|(wanted, _)| self.holds_some(who, wanted))
    }

    fn holds_some(&self, who: usize, wanted: Lock) -> bool {
        self.held[who].iter().any(|held| held.of_one(wanted))
    }

    /// Somebody who waits for the same, ahead of a request of step `since`, and not together with it. LOCK-1: who asks for
    /// a whole table is ahead of others, who holds something of it already ahead of all.
    fn passed_over(&self, who: usize, granted: Lock, since: usize) -> Option<usize> {
        (0..TRXS).find(|&other| {
            let Some((theirs, at)) = self.waiting[other] else { return false };
            let ahead = match (granted.whole_table(), theirs.whole_table()) {
                (true, false) => false,
                (false, true) => true,
                _ => at < since,
            };
            other != who && granted.of_one(theirs) && granted.waits_for(theirs) && ahead
        })
    }

    fn session_holds_against(&self, who: usize, lock: Lock) -> bool {
        let mut beside = (0..TRXS).filter(|other| *other != who && session(*other) == session(who));
        beside.any(|other| self.held[other].iter().any(|held| lock.waits_for(*held)))
    }

    fn holds_conflict(&self) -> Option<(usize, Lock, usize, Lock)> {
        for a in 0..TRXS {
            for b in (0..TRXS).filter(|b| *b != a) {
                for (x, y) in self.held[a].iter().flat_map(|x| self.held[b].iter().map(move |y| (*x, *y))) {
                    // A range that was there first admits no insert, and the other way round.
                    if x.waits_for(y) {
                        return Some((a, x, b, y));
                    }
                }
            }
        }
        None
    }

    /// Only edges to holders: every cycle of those is a deadlock without any doubt.
    fn holder_cycle(&self) -> bool {
        let edges = |who: usize| {
            let wanted = self.waiting[who].map(|(wanted, _)| wanted);
            let blocks = move |other: &usize| {
                *other != who
                    && wanted.is_some_and(|w| self.held[*other].iter().any(|held| w.waits_for(*held)))
            };
            // Of a session, the one that waits stands for both.
            let that_waits = |other: usize| {
                let beside = (0..TRXS).filter(|o| session(*o) == session(other));
                beside.clone().find(|o| self.waiting[*o].is_some()).unwrap_or(other)
            };
            (0..TRXS).filter(blocks).map(that_waits)
        };
        (0..TRXS).any(|start| {
            let (mut seen, mut stack) = ([false; TRXS], edges(start).collect::<Vec<_>>());
            while let Some(at) = stack.pop() {
                if at == start {
                    return true;
                }
                if !std::mem::replace(&mut seen[at], true) {
                    stack.extend(edges(at));
                }
            }
            false
        })
    }
}

/// Moves ended waits to where their outcome says.
fn collect(
    model: &mut Model,
    waits: &mut [Option<LockWait>],
    trxs: &[TrxLocks],
    granted: &mut Vec<(usize, Lock, usize)>,
) {
    for who in 0..TRXS {
        let Some(outcome) = waits[who].as_ref().and_then(LockWait::outcome) else { continue };
        waits[who] = None;
        let (lock, since) = model.waiting[who].take().unwrap();
        if outcome == WaitOutcome::Granted {
            if !model.holds_some(who, lock) {
                granted.push((who, lock, since));
            }
            model.held[who].push(lock);
        } else if outcome == WaitOutcome::Killed {
            trxs[who].clear_kill();
        } else {
            assert_eq!(outcome, WaitOutcome::Deadlock);
            model.held[who].clear();
            trxs[who].release_all();
        }
    }
}

/// NOWAIT, and giving a fresh lock back early: refused only for a reason, and never noticed by others afterwards.
fn try_one(model: &mut Model, trx: &TrxLocks, who: usize, lock: Lock, step: usize) {
    let Lock::Record { key, exclusive, insert: false } = lock else { return };
    let name = name(key);
    let mode = if exclusive { RowMode::Exclusive } else { RowMode::Shared };
    match trx.try_lock_record(SPACE, &name, mode) {
        Some(true) => trx.release_record(SPACE, &name),
        Some(false) => model.held[who].push(lock),
        None => {
            model.waiting[who] = Some((lock, step));
            assert!(!model.blockers(who).is_empty(), "step {step}: {lock:?} was refused for no reason");
            model.waiting[who] = None;
        }
    }
}

fn run(seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let manager = LockManager::new();
    let trxs: [TrxLocks; TRXS] = trxs(&manager);
    trxs[BESIDE[0]].set_beside(&trxs[BESIDE[1]]);
    let mut waits: [Option<LockWait>; TRXS] = Default::default();
    let mut model = Model::default();
    for step in 0..400 {
        let who = rng.random_range(0..TRXS);
        if (0..TRXS).any(|other| other != who && session(other) == session(who) && waits[other].is_some()) {
            continue;
        }
        trxs[who].set_weight(rng.random_range(0..3));
        match (waits[who].take(), rng.random_range(0..10)) {
            (None, 0..2) => {
                trxs[who].release_all();
                model.held[who].clear();
            }
            (None, 2) => try_one(&mut model, &trxs[who], who, Lock::random(&mut rng, KEYS, TABLES), step),
            (None, _) => {
                let lock = Lock::random(&mut rng, KEYS, TABLES);
                // A session's locks by name are none of its transaction's.
                if model.session_holds_against(who, lock) {
                    continue;
                }
                match lock.ask(&trxs[who]) {
                    Request::Granted { .. } => {
                        let upgrade = model.holds_some(who, lock);
                        let passed = model.passed_over(who, lock, step);
                        assert!(upgrade || passed.is_none(), "seed {seed} step {step}: {lock:?} out of turn");
                        model.held[who].push(lock);
                    }
                    Request::Wait(wait) => {
                        model.waiting[who] = Some((lock, step));
                        waits[who] = Some(wait);
                    }
                }
            }
            (Some(wait), 0) => {
                assert_eq!(wait.cancel(), WaitOutcome::Timeout, "seed {seed} step {step}");
                model.waiting[who] = None;
            }
            (Some(wait), 1) => {
                waits[who] = Some(wait);
                trxs[who].kill();
            }
            (wait, _) => waits[who] = wait,
        }
        // A rollback may grant others.
        let mut granted = Vec::new();
        for _ in 0..TRXS {
            collect(&mut model, &mut waits, &trxs, &mut granted);
        }
        for (who, lock, since) in granted {
            let passed = model.passed_over(who, lock, since);
            assert_eq!(passed, None, "seed {seed} step {step}: {who} got {lock:?} before its turn");
        }
        assert_eq!(model.holds_conflict(), None, "seed {seed} step {step}");
        assert!(!model.holder_cycle(), "seed {seed} step {step}: a deadlock was not found");
        for waiter in (0..TRXS).filter(|w| waits[*w].is_some()) {
            assert!(!model.blockers(waiter).is_empty(), "seed {seed} step {step}: {waiter} waits for nobody");
        }
    }
    for who in 0..TRXS {
        waits[who] = None;
        trxs[who].release_all();
    }
    let last = manager.begin(99);
    for table in 0..TABLES {
        granted(last.lock_table(table, TableMode::Exclusive));
    }
    granted(last.lock_range(SPACE, Included(&[0]), Excluded(&[KEYS])));
    for key in 0..KEYS {
        granted(last.lock_insert(SPACE, &name(key)));
    }
    assert_eq!(manager.stats().current_waits, 0);
}

#[test]
fn random_histories_agree_with_the_model() {
    for seed in 0..250 {
        run(seed);
    }
}
