//! Random histories against a map of versions: writes, durability in steps, snapshots, watermark,
//! loads, checkpoints, crashes with replay.

use super::*;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

const STEPS: usize = 300;
const SEEDS: u64 = 3;

/// Versions of each key, by number.
type History = BTreeMap<Bytes, BTreeMap<u64, Option<Bytes>>>;

struct Run<'a> {
    bench: Bench<'a>,
    /// `None` only within `crash`.
    engine: Option<Arc<dyn Engine>>,
    rng: StdRng,
    history: History,
    /// Everything installed, to replay after a crash.
    log: BTreeMap<u64, Vec<(Bytes, Option<Bytes>)>>,
    installed: u64,
    durable: u64,
    watermark: u64,
    snapshots: Vec<(u64, Box<dyn Snapshot>)>,
    next_space: u32,
}

pub(super) fn random_histories_agree_with_a_model(make: MakeEngine<'_>) {
    (0..SEEDS).for_each(|seed| random_history(make, seed));
}

/// One random history, for a failure to be looked at or for many more of them.
pub fn random_history(make: MakeEngine<'_>, seed: u64) {
    let bench = Bench::new(make);
    let engine = bench.open();
    let mut run = Run {
        bench,
        engine: Some(engine),
        rng: StdRng::seed_from_u64(seed),
        history: History::new(),
        log: BTreeMap::new(),
        installed: 0,
        durable: 0,
        watermark: 0,
        snapshots: Vec::new(),
        next_space: 100,
    };
    for step in 0..STEPS {
        run.step();
        if step % 20 == 0 {
            run.check(&format!("seed {seed} step {step}"));
        }
    }
    run.check(&format!("seed {seed} at the end"));
}

impl Run<'_> {
    fn engine(&self) -> &dyn Engine {
        &**self.engine.as_ref().unwrap()
    }

    fn step(&mut self) {
        match self.rng.random_range(0..100) {
            0..60 => self.transaction(),
            60..75 => {
                self.durable = self.rng.random_range(self.durable..=self.installed);
                self.engine().commit_ordered(CommitNo(self.durable));
            }
            75..82 => {
                let at = self.rng.random_range(self.watermark..=self.durable);
                self.snapshots.push((at, self.engine().snapshot(CommitNo(at))));
            }
            82..88 => {
                if !self.snapshots.is_empty() {
                    let which = self.rng.random_range(0..self.snapshots.len());
                    self.snapshots.swap_remove(which);
                }
                let oldest = self.snapshots.iter().map(|(at, _)| *at).min().unwrap_or(self.durable);
                self.watermark = self.rng.random_range(self.watermark..=oldest.max(self.watermark));
                self.engine().gc_watermark(CommitNo(self.watermark));
            }
            88..95 => {
                let persisted = self.engine().checkpoint().unwrap();
                assert_eq!(persisted, CommitNo(self.durable));
            }
            95..97 => self.load(),
            _ => self.crash(),
        }
    }

    fn transaction(&mut self) {
        let mut set = WriteSet::default();
        for _ in 0..self.rng.random_range(0..6) {
            let key = numbered(self.rng.random_range(1..4), self.rng.random_range(0..40));
            if self.rng.random_bool(0.3) {
                set.delete(key);
            } else {
                let size = self.rng.random_range(0..200);
                set.put(key, Bytes::from(vec![self.rng.random(); size]));
            }
            if self.rng.random_bool(0.05) {
                set.spill(&|| omnibus_temporary::TempFolder::default().file()).unwrap();
            }
        }
        let writes: Vec<_> = set
            .iter()
            .map(Result::unwrap)
            .map(|one| (Bytes::copy_from_slice(one.key()), one.write()))
            .collect();
        self.installed += 1;
        if self.rng.random_bool(0.3) {
            let staged = self.engine().stage(set);
            self.engine().prepare_staged(CommitNo(self.installed), staged);
        } else {
            self.engine().prepare_ordered(CommitNo(self.installed), set);
        }
        self.record(self.installed, &writes);
        self.log.insert(self.installed, writes);
    }

    fn record(&mut self, no: u64, writes: &[(Bytes, Option<Bytes>)]) {
        for (key, write) in writes {
            self.history.entry(key.clone()).or_default().insert(no, write.clone());
        }
    }

    fn load(&mut self) {
        let space = self.next_space;
        self.next_space += 1;
        let pairs: Vec<_> =
            (0..self.rng.random_range(1..80)).map(|n| (numbered(space, n), value("loaded"))).collect();
        self.engine().load(CommitNo(self.durable), &mut pairs.iter().cloned()).unwrap();
        let writes: Vec<_> = pairs.into_iter().map(|(key, text)| (key, Some(text))).collect();
        self.record(self.durable, &writes);
        // So that the model need not know whether an engine persists loads by themselves.
        self.engine().checkpoint().unwrap();
    }

    /// The log keeps what is durable and, of the rest, some prefix; the engine keeps what it did.
    fn crash(&mut self) {
        self.snapshots.clear();
        let kept = self.rng.random_range(self.durable..=self.installed);
        let persisted = self.engine().persisted().0;
        self.engine = self.engine.take().map(|engine| self.bench.reopen(engine));
        let applied = self.engine().applied().0;
        assert!((persisted..=self.durable).contains(&applied), "{persisted} {applied} {}", self.durable);
        self.log.split_off(&(kept + 1));
        for versions in self.history.values_mut() {
            versions.split_off(&(kept + 1));
        }
        for (no, writes) in self.log.range(applied + 1..) {
            let mut set = WriteSet::default();
            for (key, write) in writes {
                match write {
                    Some(text) => set.put(key.clone(), text.clone()),
                    None => set.delete(key.clone()),
                }
            }
            self.engine().prepare_ordered(CommitNo(*no), set);
        }
        (self.installed, self.durable) = (kept, kept);
        self.engine().commit_ordered(CommitNo(kept));
        // No snapshot from before the crash is left.
        self.watermark = kept;
        self.engine().gc_watermark(CommitNo(kept));
    }

    fn check(&self, context: &str) {
        let latest = [
            (u64::MAX, self.engine().snapshot(CommitNo::MAX)),
            (self.durable, self.engine().snapshot(CommitNo(self.durable))),
        ];
        for (at, snapshot) in self.snapshots.iter().chain(&latest) {
            let context = format!("{context}, snapshot {at}");
            let seen = self.history.iter().filter_map(|(key, versions)| {
                let (no, write) = versions.range(..=*at).next_back()?;
                Some((key.clone(), write.clone()?, *no))
            });
            let seen: Vec<(Bytes, Bytes, u64)> = seen.collect();
            let mut pairs: Vec<_> = seen.iter().map(|(key, text, _)| (key.clone(), text.clone())).collect();
            let scan = |reverse| {
                let pairs = snapshot.scan(Bound::Unbounded, Bound::Unbounded, reverse);
                pairs.map(Result::unwrap).collect::<Vec<_>>()
            };
            assert_eq!(scan(false), pairs, "{context}");
            assert_eq!(visited(&**snapshot, Bound::Unbounded, Bound::Unbounded), pairs, "{context}, visited");
            pairs.reverse();
            assert_eq!(scan(true), pairs, "{context}, reverse");
            for key in self.history.keys() {
                let expected = seen.binary_search_by(|(k, ..)| k.cmp(key)).ok();
                let expected = expected.map(|at| (CommitNo(seen[at].2), seen[at].1.clone()));
                assert_eq!(snapshot.get_version(key).unwrap(), expected, "{context}, {key:?}");
            }
        }
        assert!(self.engine().failure().is_none(), "{context}: {:?}", self.engine().failure());
    }
}
