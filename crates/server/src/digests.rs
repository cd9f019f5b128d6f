//! The cost of each kind of statement since the start: `performance_schema.events_statements_summary_by_digest`.
//!
//! Statements are told apart by default database and digest (`omnibus_parser::Digest`), under a number of 64 bits that is
//! made from their tokens; the text is made once. At most `performance_schema_digests_size` kinds are kept, what comes later is in one
//! row of all others (`Performance_schema_digest_lost`). Counting is a shared lock and a dozen relaxed additions; prepared statements
//! keep their row, so theirs is the additions alone. `performance_schema=OFF` at the start costs nothing.

use crate::consumers::Consumers;
use crate::parsed::Parsed;
use omnibus_parser::Digest;
use omnibus_parser::ast::{Spanned, Statement};
use parking_lot::{Mutex, RwLock};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

const SHARDS: usize = 16;
/// Powers of two of microseconds, for quantiles.
const BUCKETS: usize = 32;
/// Of the sample that is shown.
const SAMPLE: usize = 1024;

/// A kind of statement.
#[derive(Debug, Default)]
pub(crate) struct Kind {
    /// Default database; empty for none.
    pub schema: String,
    /// Its text; empty for the row of all others.
    pub text: String,
    /// Its first statement, and when that was, in microseconds since the epoch.
    sample: Mutex<(Vec<u8>, i64, u64)>,
    /// By `Figure`.
    figures: [AtomicU64; FIGURES],
    buckets: [AtomicU64; BUCKETS],
}

/// The cost of one statement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    pub ended_us: i64,
    pub took_us: u64,
    pub lock_us: u64,
    pub failed: bool,
    pub warnings: u64,
    pub affected: u64,
    pub sent: u64,
    pub examined: u64,
    pub unindexed: bool,
}

/// Places in `Kind::figures`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Figure {
    Count,
    Time,
    Min,
    Max,
    Lock,
    Errors,
    Warnings,
    Affected,
    Sent,
    Examined,
    Unindexed,
    First,
    Last,
}
const FIGURES: usize = 13;

impl Kind {
    fn new(schema: &str, text: String, sql: &[u8], cost: &Cost) -> Kind {
        let kind = Kind { schema: schema.to_owned(), text, ..Kind::default() };
        let sample = omnibus_parser::redact(&sql[..sql.len().min(SAMPLE)]).into_owned();
        *kind.sample.lock() = (sample, cost.ended_us, cost.took_us);
        kind.clear();
        kind
    }

    fn clear(&self) {
        self.figures.iter().chain(&self.buckets).for_each(|figure| figure.store(0, Ordering::Relaxed));
        self.figures[Figure::Min as usize].store(u64::MAX, Ordering::Relaxed);
    }

    /// Counts a statement.
    pub(crate) fn add(&self, cost: &Cost) {
        let sum = |figure: Figure, n: u64| {
            if n > 0 {
                self.figures[figure as usize].fetch_add(n, Ordering::Relaxed);
            }
        };
        sum(Figure::Count, 1);
        sum(Figure::Time, cost.took_us);
        sum(Figure::Lock, cost.lock_us);
        sum(Figure::Errors, u64::from(cost.failed));
        sum(Figure::Warnings, cost.warnings);
        sum(Figure::Affected, cost.affected);
        sum(Figure::Sent, cost.sent);
        sum(Figure::Examined, cost.examined);
        sum(Figure::Unindexed, u64::from(cost.unindexed));
        let ended = cost.ended_us.unsigned_abs();
        let cell = |figure: Figure| &self.figures[figure as usize];
        // Mostly nothing changes, and a load is cheaper than an attempt.
        if cost.took_us < cell(Figure::Min).load(Ordering::Relaxed) {
            cell(Figure::Min).fetch_min(cost.took_us, Ordering::Relaxed);
        }
        if cost.took_us > cell(Figure::Max).load(Ordering::Relaxed) {
            cell(Figure::Max).fetch_max(cost.took_us, Ordering::Relaxed);
        }
        if cell(Figure::First).load(Ordering::Relaxed) == 0 {
            cell(Figure::First).store(ended, Ordering::Relaxed);
        }
        cell(Figure::Last).store(ended, Ordering::Relaxed);
        let bucket = (64 - cost.took_us.leading_zeros() as usize).min(BUCKETS - 1);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
    }

    /// One figure.
    pub(crate) fn get(&self, figure: Figure) -> u64 {
        self.figures[figure as usize].load(Ordering::Relaxed)
    }

    /// The time that a share of its statements has taken at most, in microseconds: the end of a power of two, or the longest.
    pub(crate) fn quantile(&self, share: f64) -> u64 {
        let counts: Vec<u64> = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect();
        let mut left = counts.iter().sum::<u64>() as f64 * share;
        for (bits, count) in counts.iter().enumerate() {
            left -= *count as f64;
            if left <= 0.0 {
                return ((1_u64 << bits) - 1).min(self.get(Figure::Max));
            }
        }
        self.get(Figure::Max)
    }

    /// Its first statement, when it was, and what it took, in microseconds.
    pub(crate) fn sample(&self) -> (Vec<u8>, i64, u64) {
        self.sample.lock().clone()
    }
}

/// A number that is spread already is its own hash.
#[derive(Default)]
struct Plain(u64);

impl Hasher for Plain {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }
    fn write_u64(&mut self, n: u64) {
        self.0 = n;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

type Shard = RwLock<HashMap<u64, Arc<Kind>, BuildHasherDefault<Plain>>>;

/// All kinds.
#[derive(Debug, Default)]
pub(crate) struct Digests {
    on: AtomicBool,
    most: AtomicUsize,
    kept: AtomicUsize,
    lost: AtomicU64,
    /// Rows that all statements have examined, also those that are forgotten.
    examined: AtomicU64,
    /// Counts how often they were forgotten, for who has kept a row.
    generation: AtomicU64,
    consumers: Consumers,
    shards: [Shard; SHARDS],
    others: Kind,
}

/// A row that a prepared statement keeps.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    kind: Arc<Kind>,
    generation: u64,
    schema: Option<Arc<str>>,
}

/// Rows that statements of texts keep which were prepared for texts with other values.
#[derive(Debug, Default)]
pub(crate) struct KeptByTexts(Vec<(Weak<Spanned<Statement>>, Option<Kept>)>);

/// As many as a session has such statements.
const KEPT_BY_TEXTS: usize = 64;

impl KeptByTexts {
    /// The place of a statement's row.
    pub(crate) fn of(&mut self, statement: &Arc<Spanned<Statement>>) -> &mut Option<Kept> {
        let at = self.0.iter().position(|(of, _)| std::ptr::eq(of.as_ptr(), Arc::as_ptr(statement)));
        let at = at.unwrap_or_else(|| {
            if self.0.len() >= KEPT_BY_TEXTS {
                self.0.clear();
            }
            self.0.push((Arc::downgrade(statement), None));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}

impl Digests {
    /// `performance_schema` and `performance_schema_digests_size`.
    pub(crate) fn start(&self, on: bool, most: usize) {
        self.on.store(on && most > 0, Ordering::Relaxed);
        self.most.store(most, Ordering::Relaxed);
        self.others.clear();
    }

    /// Whether statements are counted.
    pub(crate) fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed) && self.consumers.digests()
    }

    /// The table that says what is collected.
    pub(crate) fn consumers(&self) -> &Consumers {
        &self.consumers
    }

    /// Counts a statement; `kept` is a prepared one's own.
    pub(crate) fn count(
        &self,
        parsed: &Parsed,
        schema: Option<&Arc<str>>,
        cost: &Cost,
        kept: Option<&mut Option<Kept>>,
    ) {
        if cost.examined > 0 {
            self.examined.fetch_add(cost.examined, Ordering::Relaxed);
        }
        let generation = self.generation.load(Ordering::Relaxed);
        let same = |kept: &Kept| kept.generation == generation && kept.schema.as_ref() == schema;
        match kept {
            Some(Some(own)) if same(own) => own.kind.add(cost),
            kept => {
                let kind = self.find(&parsed.text, schema.map_or("", |schema| schema), cost);
                kind.as_deref().unwrap_or(&self.others).add(cost);
                if let (Some(place), Some(kind)) = (kept, kind) {
                    *place = Some(Kept { kind, generation, schema: schema.cloned() });
                }
            }
        }
    }

    fn find(&self, sql: &[u8], schema: &str, cost: &Cost) -> Option<Arc<Kind>> {
        let digest = Digest::of(sql);
        let mut number = 0xcbf2_9ce4_8422_2325_u64;
        let mut fold = |byte: u8| number = (number ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        schema.bytes().for_each(&mut fold);
        fold(0);
        digest.fold(&mut fold);
        // The upper bits choose the shard, the lower ones the place in it.
        let shard = &self.shards[(number >> 60) as usize % SHARDS];
        if let Some(found) = shard.read().get(&number) {
            return Some(found.clone());
        }
        if self.kept.load(Ordering::Relaxed) >= self.most.load(Ordering::Relaxed) {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let text = digest.text(omnibus_sql::is_keyword);
        let mut shard = shard.write();
        let kind = shard.entry(number).or_insert_with(|| {
            self.kept.fetch_add(1, Ordering::Relaxed);
            Arc::new(Kind::new(schema, text, sql, cost))
        });
        Some(kind.clone())
    }

    /// TRUNCATE of the table.
    pub(crate) fn forget(&self) {
        self.generation.fetch_add(1, Ordering::Relaxed);
        for shard in &self.shards {
            let mut shard = shard.write();
            self.kept.fetch_sub(shard.len(), Ordering::Relaxed);
            shard.clear();
        }
        self.others.clear();
    }

    /// Calls `each` for all kinds, the row of all others last, if it has counted anything.
    pub(crate) fn for_each(&self, mut each: impl FnMut(&Kind)) {
        for shard in &self.shards {
            let kinds: Vec<Arc<Kind>> = shard.read().values().cloned().collect();
            kinds.iter().for_each(|kind| each(kind));
        }
        if self.others.get(Figure::Count) > 0 {
            each(&self.others);
        }
    }

    /// Statements by the bits of the microseconds that they took, and those that failed.
    pub(crate) fn latencies(&self) -> ([u64; BUCKETS], u64) {
        let (mut buckets, mut failed) = ([0; BUCKETS], 0);
        self.for_each(|kind| {
            for (sum, bucket) in buckets.iter_mut().zip(&kind.buckets) {
                *sum += bucket.load(Ordering::Relaxed);
            }
            failed += kind.get(Figure::Errors);
        });
        (buckets, failed)
    }

    /// Microseconds that all statements took.
    pub(crate) fn time_us(&self) -> u64 {
        let mut took = 0;
        self.for_each(|kind| took += kind.get(Figure::Time));
        took
    }

    /// For SHOW STATUS. Vitess asks for the rows by InnoDB's name.
    pub(crate) fn status(&self) -> Vec<(String, String)> {
        [("Innodb_rows_read", &self.examined), ("Performance_schema_digest_lost", &self.lost)]
            .map(|(name, count)| (name.to_owned(), count.load(Ordering::Relaxed).to_string()))
            .to_vec()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn cost(took_us: u64) -> Cost {
        Cost { took_us, ended_us: 5, sent: 1, ..Cost::default() }
    }

    #[test]
    fn kinds_are_bounded_and_the_rest_is_one_row() {
        let digests = Digests::default();
        digests.start(true, 2);
        for n in 0..10 {
            let table = format!("SELECT {n} FROM t{}", n % 5);
            let kind = digests.find(table.as_bytes(), "d", &cost(n));
            kind.as_deref().unwrap_or(&digests.others).add(&cost(n));
        }
        let mut seen = Vec::new();
        digests.for_each(|kind| seen.push((kind.text.clone(), kind.get(Figure::Count))));
        seen.sort();
        let two = ["SELECT ? FROM `t0`", "SELECT ? FROM `t1`"].map(|text| (text.to_owned(), 2));
        assert_eq!(seen, [(String::new(), 6), two[0].clone(), two[1].clone()]);
        digests.forget();
        digests.for_each(|_| panic!("nothing is left"));
        assert!(digests.find(b"SELECT 1", "", &cost(1)).is_some(), "there is room again");
    }

    #[test]
    fn figures_are_sums_and_ends() {
        let kind = Kind::new("", String::new(), b"SELECT 1", &cost(1));
        (0..1000).for_each(|_| kind.add(&cost(10)));
        kind.add(&cost(5000));
        let get = |figure| kind.get(figure);
        assert_eq!((get(Figure::Count), get(Figure::Time), get(Figure::Sent)), (1001, 15_000, 1001));
        assert_eq!((get(Figure::Min), get(Figure::Max), get(Figure::Unindexed)), (10, 5000, 0));
        assert_eq!((kind.quantile(0.95), kind.quantile(1.0)), (15, 5000));
    }
}
