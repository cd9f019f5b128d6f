//! The second engine on the simulated disk: its file, which redb writes, the checksums beside it, and its own recovery. Its threads are
//! not scheduled: what a power cut finds is decided by the number of the request.
#![allow(clippy::unwrap_used, missing_docs)]

use bytes::Bytes;
use omnibus_engine::{CommitNo, Engine, WriteSet};
use omnibus_engine_btree::{BtreeConfig, BtreeEngine};
use omnibus_sim::{NameRule, Random, Rules, Schedule, SimDisk, Trouble};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

const SEEDS: u64 = 40;
const LIVES: u64 = 6;

type Rows = BTreeMap<Bytes, Bytes>;

/// All transactions there were, in order, and what the engine may have of them after a power cut.
#[derive(Default)]
struct Model {
    transactions: Vec<Vec<(Bytes, Option<Bytes>)>>,
    /// The commit number that it has reported as persistent.
    persisted: u64,
    /// The commit number that it was told is durable in the log.
    durable: u64,
}

impl Model {
    fn rows(&self, up_to: u64) -> Rows {
        let mut rows = Rows::new();
        for (key, value) in self.transactions[..up_to as usize].iter().flatten() {
            match value {
                Some(value) => rows.insert(key.clone(), value.clone()),
                None => rows.remove(key),
            };
        }
        rows
    }

    fn add(&mut self, random: &mut Random) {
        let write = |random: &mut Random| {
            let key = Bytes::from(format!("\0\0\0\x09{:03}", random.below(200)));
            let len = random.pick(&[5, 50, 50, 3000]);
            (key, (!random.one_in(4)).then(|| Bytes::from(vec![random.below(256) as u8; len])))
        };
        let writes = (0..1 + random.below(4)).map(|_| write(random)).collect();
        self.transactions.push(writes);
    }

    fn install(&self, engine: &BtreeEngine, no: u64) {
        let mut set = WriteSet::default();
        for (key, value) in &self.transactions[no as usize - 1] {
            match value {
                Some(value) => set.put(key.clone(), value.clone()),
                None => set.delete(key.clone()),
            }
        }
        engine.prepare_ordered(CommitNo(no), set);
    }
}

fn open(disk: &SimDisk) -> Result<BtreeEngine, String> {
    let config = BtreeConfig {
        disk: disk.disk(),
        cache_size: 256 << 10,
        durable_every: 20_000,
        ..BtreeConfig::new(Path::new("/data/btree"))
    };
    BtreeEngine::open(config).map_err(|error| error.to_string())
}

fn contents(engine: &BtreeEngine) -> Rows {
    let snapshot = engine.snapshot(CommitNo::MAX);
    snapshot.scan(Bound::Unbounded, Bound::Unbounded, false).map(Result::unwrap).collect()
}

/// Transactions until the process ends, or for a while.
fn live(engine: &BtreeEngine, disk: &SimDisk, model: &mut Model, random: &mut Random) {
    for _ in 0..20 + random.below(150) {
        model.add(random);
        let no = model.transactions.len() as u64;
        model.install(engine, no);
        if random.one_in(3) {
            model.durable = no;
            engine.commit_ordered(CommitNo(no));
            engine.gc_watermark(CommitNo(no));
        }
        if random.one_in(15)
            && let Ok(persisted) = engine.checkpoint()
            && !disk.is_dead()
        {
            model.persisted = model.persisted.max(persisted.0);
        }
        if disk.is_dead() {
            break;
        }
    }
}

fn run(seed: u64) -> Result<u64, String> {
    let mut random = Random::new(seed);
    let free = || {
        let schedule = Schedule::new();
        schedule.let_go();
        schedule
    };
    let rules = Rules {
        unit: random.pick(&[512, 4096]),
        names: random.pick(&[NameRule::Strict, NameRule::Journal]),
        capacity: u64::MAX,
        short_writes: random.one_in(4),
    };
    let (mut disk, mut model) = (SimDisk::new(seed, rules, free()), Model::default());
    let mut crashes = 0;
    for _ in 0..LIVES {
        if random.one_in(3) {
            disk.plan(random.below(60), Trouble::Die);
        }
        match open(&disk) {
            Ok(engine) if !disk.is_dead() => {
                let applied = engine.applied().0;
                if applied < model.persisted || applied > model.durable {
                    return Err(format!("it has {applied}, of {} to {}", model.persisted, model.durable));
                }
                if contents(&engine) != model.rows(applied) {
                    return Err(format!("its rows are not those of {applied}"));
                }
                // What the log had not made durable is gone.
                model.transactions.truncate(model.durable as usize);
                (applied + 1..=model.durable).for_each(|no| model.install(&engine, no));
                engine.commit_ordered(CommitNo(model.durable));
                disk.forget_plans();
                disk.plan(
                    random.below(600),
                    random.pick(&[Trouble::Die, Trouble::Die, Trouble::FailSync, Trouble::FailWrite]),
                );
                live(&engine, &disk, &mut model, &mut random);
                disk.die();
            }
            Ok(engine) => drop(engine),
            Err(_) if disk.is_dead() => {}
            Err(reason) => return Err(format!("it does not start: {reason}")),
        }
        disk.die();
        crashes += 1;
        disk = disk.crash_or_kill(!random.one_in(4), &free());
    }
    Ok(crashes)
}

/// ENGINE-1, RECOVER-2: the file is always that of one commit number, which is no older than a checkpoint that returned and no newer
/// than what the log has made durable.
#[test]
fn the_file_is_one_prefix_of_the_commit_order_after_every_power_cut() {
    let next = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let first = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let count = std::env::var("SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(SEEDS);
    let (first, count) = first.map_or((0, count), |seed| (seed, 1));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(at) =
                    Some(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)).filter(|at| *at < count)
                {
                    let seed = first + at;
                    if let Err(what) = run(seed) {
                        panic!("seed {seed}: {what}");
                    }
                }
            });
        }
    });
}
