//! Random single-threaded histories against a naive model that sees only requests and outcomes.
//!
//! After every step: no two transactions hold what does not go together; whoever still waits has a
//! reason, which is a holder in its way or somebody who waits ahead of it; and the waits-for
//! relation, recomputed from scratch, has no cycle (LOCK-2).

use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::ops::Bound::{Excluded, Included};

const TRXS: usize = 7;
const KEYS: u8 = 5;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Lock {
    Record { key: u8, exclusive: bool, insert: bool },
    Range { from: u8, to: u8 },
}

impl Lock {
    /// Whether `self`, wanted, must wait for `held`.
    fn waits_for(self, held: Lock) -> bool {
        match (self, held) {
            (Lock::Record { key, exclusive, .. }, Lock::Record { key: other, exclusive: x, .. }) => {
                key == other && (exclusive || x)
            }
            (Lock::Record { key, insert: true, .. }, Lock::Range { from, to })
            | (Lock::Range { from, to }, Lock::Record { key, insert: true, .. }) => (from..to).contains(&key),
            _ => false,
        }
    }
}

#[derive(Default)]
struct Model {
    held: [Vec<Lock>; TRXS],
    /// What each waits for, and since which step.
    waiting: [Option<(Lock, usize)>; TRXS],
}

impl Model {
    /// Whom `who` has reason to wait for.
    fn blockers(&self, who: usize) -> Vec<usize> {
        let Some((wanted, since)) = self.waiting[who] else { return Vec::new() };
        let blocks = |other: usize| {
            let holds = self.held[other].iter().any(|held| wanted.waits_for(*held));
            let ahead = self.waiting[other]
                .is_some_and(|(theirs, at)| wanted.waits_for(theirs) && (at < since || self.upgrades(other)));
            holds || ahead
        };
        (0..TRXS).filter(|other| *other != who && blocks(*other)).collect()
    }

    /// Whether what `who` waits for is a key that it holds already: that goes to the front.
    fn upgrades(&self, who: usize) -> bool {
        let Some((Lock::Record { key, .. }, _)) = self.waiting[who] else { return false };
        self.held[who].iter().any(|held| matches!(held, Lock::Record { key: k, .. } if *k == key))
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
            (0..TRXS).filter(move |other| {
                *other != who
                    && wanted.is_some_and(|w| self.held[*other].iter().any(|held| w.waits_for(*held)))
            })
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

fn ask(trx: &TrxLocks, lock: Lock) -> Request {
    match lock {
        Lock::Record { key, insert: true, .. } => trx.lock_insert(SPACE, &Bytes::copy_from_slice(&[key])),
        Lock::Record { key, exclusive, .. } => {
            let mode = if exclusive { RowMode::Exclusive } else { RowMode::Shared };
            trx.lock_record(SPACE, &Bytes::copy_from_slice(&[key]), mode)
        }
        Lock::Range { from, to } => trx.lock_range(SPACE, Included(&[from]), Excluded(&[to])),
    }
}

fn random_lock(rng: &mut StdRng) -> Lock {
    let key = rng.random_range(0..KEYS);
    match rng.random_range(0..10) {
        0..3 => Lock::Record { key, exclusive: false, insert: false },
        3..6 => Lock::Record { key, exclusive: true, insert: false },
        6..8 => Lock::Record { key, exclusive: true, insert: true },
        _ => Lock::Range { from: key, to: rng.random_range(key..=KEYS) },
    }
}

/// Moves ended waits to where their outcome says.
fn collect(model: &mut Model, waits: &mut [Option<LockWait>], trxs: &[TrxLocks]) {
    for who in 0..TRXS {
        let Some(outcome) = waits[who].as_ref().and_then(LockWait::outcome) else { continue };
        waits[who] = None;
        let (lock, _) = model.waiting[who].take().unwrap();
        if outcome == WaitOutcome::Granted {
            model.held[who].push(lock);
        } else {
            assert_eq!(outcome, WaitOutcome::Deadlock);
            model.held[who].clear();
            trxs[who].release_all();
        }
    }
}

fn run(seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    let manager = LockManager::new();
    let trxs: [TrxLocks; TRXS] = trxs(&manager);
    let mut waits: [Option<LockWait>; TRXS] = Default::default();
    let mut model = Model::default();
    for step in 0..400 {
        let who = rng.random_range(0..TRXS);
        trxs[who].set_weight(rng.random_range(0..3));
        match (waits[who].take(), rng.random_range(0..10)) {
            (None, 0..2) => {
                trxs[who].release_all();
                model.held[who].clear();
            }
            (None, _) => {
                let lock = random_lock(&mut rng);
                match ask(&trxs[who], lock) {
                    Request::Granted { .. } => model.held[who].push(lock),
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
            (wait, _) => waits[who] = wait,
        }
        // A rollback may grant others.
        for _ in 0..TRXS {
            collect(&mut model, &mut waits, &trxs);
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
    granted(last.lock_range(SPACE, Included(&[0]), Excluded(&[KEYS])));
    for key in 0..KEYS {
        granted(last.lock_insert(SPACE, &Bytes::copy_from_slice(&[key])));
    }
    assert_eq!(manager.stats().current_waits, 0);
}

#[test]
fn random_histories_agree_with_the_model() {
    for seed in 0..600 {
        run(seed);
    }
}
