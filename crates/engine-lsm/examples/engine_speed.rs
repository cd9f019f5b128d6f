//! Measures the engine's part of a one-row transaction: one read, three writes.
//!
//! `cargo run --release -p omnibus-engine-lsm --example engine_speed [rows] [transactions]`

use bytes::Bytes;
use omnibus_engine::{CommitNo, Engine, WriteSet};
use omnibus_engine_lsm::{LsmConfig, LsmEngine};
use std::hint::black_box;
use std::ops::Bound;
use std::time::{Duration, Instant};

/// The server's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failed = Box<dyn std::error::Error>;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % u64::from(limit)) as u32
    }
}

fn row_key(id: u32) -> Bytes {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&1u32.to_be_bytes());
    key[4..].copy_from_slice(&id.to_be_bytes());
    Bytes::copy_from_slice(&key)
}

fn index_key(k: u32, id: u32) -> Bytes {
    let mut key = [0; 12];
    key[..4].copy_from_slice(&2u32.to_be_bytes());
    key[4..8].copy_from_slice(&k.to_be_bytes());
    key[8..].copy_from_slice(&id.to_be_bytes());
    Bytes::copy_from_slice(&key)
}

fn row(k: u32) -> Bytes {
    let mut row = vec![b'r'; 190];
    row[..4].copy_from_slice(&k.to_be_bytes());
    Bytes::from(row)
}

/// Time passed, and processor time of this thread where the system tells it (other processes do not
/// count there).
struct Watch(Instant, Duration);

impl Watch {
    fn start() -> Watch {
        Watch(Instant::now(), processor_time())
    }

    fn report(&self, what: &str, count: u32) {
        let (passed, used) = (self.0.elapsed(), processor_time() - self.1);
        let each = |time: Duration| time.as_nanos() as f64 / f64::from(count);
        println!("{what:<46} {:>9.0} ns {:>9.0} ns of processor", each(passed), each(used));
    }
}

fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

fn fill(engine: &LsmEngine, rows: u32) -> Result<u64, Failed> {
    let watch = Watch::start();
    let mut no = 0;
    for first in (0..rows).step_by(1000) {
        let mut set = WriteSet::default();
        for id in first..(first + 1000).min(rows) {
            set.put(row_key(id), row(id));
            set.put(index_key(id, id), Bytes::new());
        }
        no += 1;
        engine.prepare_ordered(CommitNo(no), set);
        engine.commit_ordered(CommitNo(no));
        engine.gc_watermark(CommitNo(no));
        std::thread::sleep(engine.write_stall());
    }
    engine.checkpoint()?;
    watch.report("fill and checkpoint, per row", rows);
    Ok(no)
}

fn reads(engine: &LsmEngine, at: u64, rows: u32, what: &str) -> Result<(), Failed> {
    let mut random = Random(7);
    let snapshot = engine.snapshot(CommitNo(at));
    let count = 300_000;
    for _ in 0..50_000 {
        black_box(snapshot.get(&row_key(random.below(rows)))?);
    }
    let watch = Watch::start();
    for _ in 0..count {
        black_box(snapshot.get(&row_key(random.below(rows)))?.ok_or("a row is missing")?);
    }
    watch.report(&format!("get, {what}"), count);
    let watch = Watch::start();
    for _ in 0..count {
        black_box(snapshot.get(&row_key(rows + random.below(rows)))?);
    }
    watch.report(&format!("get of an absent key, {what}"), count);
    let watch = Watch::start();
    for _ in 0..3000 {
        let from = row_key(random.below(rows));
        for pair in snapshot.scan(Bound::Included(&from), Bound::Unbounded, false).take(100) {
            black_box(pair?);
        }
    }
    watch.report(&format!("scan of 100 rows, {what}"), 3000);
    let watch = Watch::start();
    for _ in 0..30_000 {
        let from = row_key(random.below(rows));
        black_box(snapshot.scan(Bound::Included(&from), Bound::Unbounded, false).next());
    }
    watch.report(&format!("scan of 1 row, {what}"), 30_000);
    Ok(())
}

fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u32>());
    let rows = arguments.next().transpose()?.unwrap_or(1_000_000);
    let transactions = arguments.next().transpose()?.unwrap_or(1_000_000);
    let directory = tempfile::tempdir()?;
    let engine = LsmEngine::open(LsmConfig::new(directory.path()))?;
    let mut no = fill(&engine, rows)?;
    while engine.stats().memtable_bytes > 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    reads(&engine, no, rows, "tables")?;
    let mut slowest = Duration::ZERO;
    let mut random = Random(3);
    let watch = Watch::start();
    for _ in 0..transactions {
        let (id, k) = (random.below(rows), random.below(rows));
        let old = engine.snapshot(CommitNo::MAX).get_version(&row_key(id))?.ok_or("a row is missing")?;
        let old_k = u32::from_be_bytes(old.1[..4].try_into()?);
        let mut set = WriteSet::default();
        set.put(row_key(id), row(k));
        set.delete(index_key(old_k, id));
        set.put(index_key(k, id), Bytes::new());
        no += 1;
        let prepared = Instant::now();
        engine.prepare_ordered(CommitNo(no), set);
        slowest = slowest.max(prepared.elapsed());
        engine.commit_ordered(CommitNo(no));
        engine.gc_watermark(CommitNo(no));
        std::thread::sleep(engine.write_stall());
    }
    watch.report("transaction: 1 get and 3 writes", transactions);
    println!("slowest prepare_ordered: {slowest:?}; {:?}", engine.stats());
    reads(&engine, no, rows, "memtables and tables")?;
    let start = Instant::now();
    engine.checkpoint()?;
    println!("last checkpoint {:?}", start.elapsed());
    let start = Instant::now();
    drop(engine);
    println!("close {:?}", start.elapsed());
    let start = Instant::now();
    let engine = LsmEngine::open(LsmConfig::new(directory.path()))?;
    println!("open {:?}, applied {}", start.elapsed(), engine.applied());
    Ok(())
}
