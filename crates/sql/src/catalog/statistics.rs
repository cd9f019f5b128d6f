//! Statistics of a table's contents: how many rows, how many different values, and how keys are spread. What
//! ANALYZE TABLE counts is kept (`store::kept_statistics`); what nobody has analysed is counted when a query first asks for it,
//! and not kept (`store::statistics`).

use super::{Table, TableState};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Samples of an index: between this and half of it, where it has as many entries.
const MOST_SAMPLES: usize = 256;
/// Differences between tables smaller than this matter to no plan.
const SMALL: u64 = 50;
/// Bytes of a sampled key that are kept; what is behind them tells no more.
const SAMPLE_BYTES: usize = 64;

/// The statistics of a table's indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Rows in the table.
    pub rows: u64,
    /// By index space.
    pub indexes: BTreeMap<u32, IndexStatistics>,
}

/// The statistics of one index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IndexStatistics {
    /// How many different values one, two, … leading parts have.
    pub distinct: Vec<u64>,
    /// Keys without the space, the first and the last among them, with as many entries between one and the next everywhere.
    pub samples: Vec<Bytes>,
}

/// How far a key is from `low` on the way to `high`, by the first bytes in which these two differ.
pub(super) fn distance(low: &[u8], key: &[u8], high: &[u8]) -> f64 {
    let common = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let number = |key: &[u8]| {
        let mut bytes = [0; 8];
        let rest = key.get(common..).unwrap_or_default();
        let width = rest.len().min(8);
        bytes[..width].copy_from_slice(&rest[..width]);
        u64::from_be_bytes(bytes) as f64
    };
    let (low, key, high) = (number(low), number(key), number(high));
    if high > low { ((key - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 }
}

impl IndexStatistics {
    /// Where a key stands among the entries: 0 before the first, 1 behind the last. Between two samples by how far its bytes are
    /// from theirs. `None` without samples.
    #[must_use]
    pub fn position(&self, key: &[u8]) -> Option<f64> {
        let last = self.samples.len().checked_sub(1).filter(|last| *last > 0)?;
        let above = self.samples.partition_point(|sample| &**sample < key);
        if above == 0 {
            return Some(0.0);
        }
        let Some(next) = self.samples.get(above) else { return Some(1.0) };
        let before = &self.samples[above - 1];
        let within = distance(before, key, next);
        Some(((above - 1) as f64 + within) / last as f64)
    }

    /// The share of the entries that lies between two neighbouring samples.
    #[must_use]
    pub fn bucket(&self) -> f64 {
        1.0 / self.samples.len().saturating_sub(1).max(1) as f64
    }
}

/// Bytes that an entry is taken to need as long as there is no sample of them: of the clustered index, and of another one.
const GUESSED_BYTES: (u64, u64) = (128, 16);

/// Rows of a table in its present form, spread evenly over it.
#[derive(Debug)]
pub struct RowSample {
    /// Row images.
    pub rows: Vec<Bytes>,
    /// The counts from when they were read.
    counted: Arc<Statistics>,
}

impl RowSample {
    /// Rows that were read where `counted` has keys.
    #[must_use]
    pub fn new(rows: Vec<Bytes>, counted: &Arc<Statistics>) -> RowSample {
        RowSample { rows, counted: counted.clone() }
    }

    /// Whether these are all the rows that the table had.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.rows.len() as u64 == self.counted.rows
    }
}

impl Table {
    /// Rows of it, if some were read since it is as it is.
    #[must_use]
    pub fn sample(&self) -> Option<Arc<RowSample>> {
        self.sample.read().clone()
    }

    /// About how many bytes an entry of an index has, key and value: the mean of those that were sampled.
    #[must_use]
    pub fn entry_bytes(&self, index: usize) -> u64 {
        let mean = |entries: &[Bytes]| {
            let bytes: usize = entries.iter().map(Bytes::len).sum();
            bytes.div_ceil(entries.len().max(1)) as u64
        };
        let statistics = self.statistics();
        let sampled =
            statistics.as_ref().and_then(|found| found.indexes.get(&self.def.indexes[index].space.0));
        let key = sampled.map_or(0, |found| mean(&found.samples));
        let entry = if index == 0 { key + self.sample().map_or(0, |sample| mean(&sample.rows)) } else { key };
        let (row, other) = GUESSED_BYTES;
        match entry {
            0 if index == 0 => row,
            0 => other,
            bytes => bytes,
        }
    }

    /// Whether its sample is as new as what was counted.
    pub(crate) fn is_sampled_for(&self, counted: &Arc<Statistics>) -> bool {
        self.sample.read().as_ref().is_some_and(|sample| Arc::ptr_eq(&sample.counted, counted))
    }

    pub(crate) fn set_sample(&self, sample: RowSample) {
        *self.sample.write() = Some(Arc::new(sample));
    }
}

impl TableState {
    /// Takes what was counted.
    pub(crate) fn set_statistics(&self, found: Statistics) {
        self.rows_estimate.store(found.rows.max(1), Ordering::Relaxed);
        *self.statistics.write() = Some(Arc::new(found));
        self.counting.store(false, Ordering::Release);
    }

    /// Whether a table has grown or shrunk by half since it was counted, or never was.
    pub(crate) fn is_outdated(&self) -> bool {
        let now = self.rows_estimate.load(Ordering::Relaxed);
        let statistics = self.statistics.read();
        let counted =
            |known: &Arc<Statistics>| now / 2 <= known.rows.max(SMALL) && known.rows / 2 <= now.max(SMALL);
        !statistics.as_ref().is_some_and(counted) && !self.counting.load(Ordering::Acquire)
    }

    /// ALTER TABLE AUTO_INCREMENT = next has been committed.
    pub(crate) fn reset_auto_increment(&self, next: u64) {
        self.auto_increment.store(next, Ordering::Release);
        self.auto_covered.store(next, Ordering::Release);
    }
}

/// Takes keys in order and keeps some of them at equal distances.
#[derive(Debug)]
struct Sampler {
    kept: Vec<Bytes>,
    step: u64,
    seen: u64,
}

impl Sampler {
    fn add(&mut self, key: &[u8]) {
        if self.seen.is_multiple_of(self.step) {
            if self.kept.len() == MOST_SAMPLES {
                let mut at = 0;
                self.kept.retain(|_| {
                    at += 1;
                    at % 2 == 1
                });
                self.step *= 2;
            }
            if self.seen.is_multiple_of(self.step) {
                self.kept.push(Bytes::copy_from_slice(&key[..key.len().min(SAMPLE_BYTES)]));
            }
        }
        self.seen += 1;
    }
}

/// Counts the entries of one index and the different values of its leading parts, and takes samples.
#[derive(Debug)]
pub struct Counter<'t> {
    table: &'t Table,
    index: usize,
    distinct: Vec<u64>,
    last: Vec<u8>,
    sampler: Sampler,
}

impl<'t> Counter<'t> {
    /// For an index.
    #[must_use]
    pub fn new(table: &'t Table, index: usize) -> Counter<'t> {
        let parts = table.def.indexes[index].parts.len();
        let sampler = Sampler { kept: Vec::new(), step: 1, seen: 0 };
        Counter { table, index, distinct: vec![0; parts], last: Vec::new(), sampler }
    }

    /// Takes the next key, with its space.
    pub fn add(&mut self, key: &[u8]) {
        self.sampler.add(key.get(4..).unwrap_or_default());
        // Keys are sorted: a value of the leading parts is new where it differs from the key before.
        let mut end = 4;
        for (number, part) in self.table.def.indexes[self.index].parts.iter().enumerate() {
            let ty = &self.table.def.columns[part.column].ty;
            let rest = key.get(end..);
            let Some(width) = rest.and_then(|rest| omnibus_value::key::skip(rest, ty, part.descending))
            else {
                break;
            };
            end += width;
            if self.last.get(..end) != key.get(..end) {
                self.distinct[number] += 1;
            }
        }
        self.last.clear();
        self.last.extend_from_slice(key);
    }

    /// Entries so far.
    #[must_use]
    pub fn entries(&self) -> u64 {
        self.sampler.seen
    }

    /// The statistics of the index.
    #[must_use]
    pub fn finish(self) -> IndexStatistics {
        let Sampler { mut kept, step, seen } = self.sampler;
        if seen > 0 && !(seen - 1).is_multiple_of(step) {
            let last = self.last.get(4..).unwrap_or_default();
            kept.push(Bytes::copy_from_slice(&last[..last.len().min(SAMPLE_BYTES)]));
        }
        IndexStatistics { distinct: self.distinct, samples: kept }
    }
}
