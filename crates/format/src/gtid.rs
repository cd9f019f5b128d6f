//! MySQL GTIDs: server UUIDs, single GTIDs, and sets of them as intervals.
//!
//! Text form: `uuid:1-5:7,uuid2:3`, with tags (8.3 and later) `uuid:1-5:7:tag:1-3:tag2:9`.

use crate::server_uuid::malformed;
pub use crate::server_uuid::{GtidParseError, ServerUuid};
use crate::tsid::{Tag, Tsid};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Transaction numbers `start..end`, `end` not included; both at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// First number.
    pub start: u64,
    /// The number behind the last one.
    pub end: u64,
}

/// Largest transaction number (2^63 - 2), as in MySQL.
pub const GNO_MAX: u64 = i64::MAX as u64 - 1;

/// So many intervals are added one by one, which moves those behind them each time.
const FEW: usize = 8;

/// Returns the first interval that ends behind a number.
fn behind(intervals: &[Interval], number: u64) -> Option<&Interval> {
    intervals.get(intervals.partition_point(|i| i.end <= number))
}

/// Sorts intervals and merges those that overlap or touch.
fn merge(intervals: &mut Vec<Interval>) {
    intervals.sort_by_key(|i| i.start);
    intervals.dedup_by(|later, before| {
        let touches = later.start <= before.end;
        if touches {
            before.end = before.end.max(later.end);
        }
        touches
    });
}

/// Returns the parts of intervals that are in no hole; both are sorted and disjoint.
fn without(intervals: &[Interval], holes: &[Interval]) -> Vec<Interval> {
    let mut left = Vec::with_capacity(intervals.len());
    let mut at = 0;
    for i in intervals {
        let mut start = i.start;
        while let Some(hole) = holes.get(at).filter(|hole| hole.start < i.end) {
            if start < hole.start {
                left.push(Interval { start, end: hole.start });
            }
            start = start.max(hole.end);
            // One that ends behind this interval may be in the next one, too.
            if hole.end > i.end {
                break;
            }
            at += 1;
        }
        if start < i.end {
            left.push(Interval { start, end: i.end });
        }
    }
    left
}

/// A set of GTIDs: per UUID and tag, sorted disjoint intervals that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GtidSet {
    sets: BTreeMap<Tsid, Vec<Interval>>,
}

impl GtidSet {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the set `uuid:1-last`, which is empty if `last` is 0.
    pub fn up_to(uuid: ServerUuid, last: u64) -> Self {
        let mut set = Self::new();
        set.add_interval(uuid, Interval { start: 1, end: last + 1 });
        set
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }

    /// Iterates over UUIDs with tags and their intervals, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Tsid, &[Interval])> {
        self.sets.iter().map(|(source, intervals)| (*source, intervals.as_slice()))
    }

    /// Number of UUIDs, each counted with every tag that it has.
    pub fn source_count(&self) -> usize {
        self.sets.len()
    }

    /// Returns whether the set has tags.
    pub fn has_tags(&self) -> bool {
        self.sets.keys().any(|source| !source.tag.is_none())
    }

    /// Adds one GTID.
    pub fn add(&mut self, source: impl Into<Tsid>, gno: u64) {
        self.add_interval(source, Interval { start: gno, end: gno + 1 });
    }

    /// Adds an interval and merges it with those that it touches. Empty intervals are ignored.
    pub fn add_interval(&mut self, source: impl Into<Tsid>, new: Interval) {
        if new.start >= new.end {
            return;
        }
        let intervals = self.sets.entry(source.into()).or_default();
        let first = intervals.partition_point(|i| i.end < new.start);
        let last = intervals.partition_point(|i| i.start <= new.end);
        let merged = intervals[first..last]
            .iter()
            .fold(new, |acc, i| Interval { start: acc.start.min(i.start), end: acc.end.max(i.end) });
        intervals.splice(first..last, [merged]);
    }

    /// Adds everything in `other`.
    pub fn union(&mut self, other: &GtidSet) {
        for (uuid, intervals) in &other.sets {
            if intervals.len() <= FEW {
                intervals.iter().for_each(|interval| self.add_interval(*uuid, *interval));
                continue;
            }
            let own = self.sets.entry(*uuid).or_default();
            own.extend_from_slice(intervals);
            merge(own);
        }
    }

    /// Removes everything in `other`.
    pub fn subtract(&mut self, other: &GtidSet) {
        for (uuid, holes) in &other.sets {
            let Some(intervals) = self.sets.get_mut(uuid) else { continue };
            *intervals = without(intervals, holes);
            if intervals.is_empty() {
                self.sets.remove(uuid);
            }
        }
    }

    /// Returns whether the GTID is in the set.
    pub fn contains(&self, source: impl Into<Tsid>, gno: u64) -> bool {
        self.sets.get(&source.into()).is_some_and(|intervals| {
            let at = intervals.partition_point(|i| i.end <= gno);
            intervals.get(at).is_some_and(|i| i.start <= gno)
        })
    }

    /// Returns whether the set contains all of `other`.
    pub fn contains_set(&self, other: &GtidSet) -> bool {
        other.sets.iter().all(|(source, intervals)| {
            let own = self.sets.get(source).map_or(&[][..], Vec::as_slice);
            intervals
                .iter()
                .all(|i| behind(own, i.start).is_some_and(|o| o.start <= i.start && i.end <= o.end))
        })
    }

    /// The number of GTIDs in the set, at most `u64::MAX`: three UUIDs can have more.
    pub fn count(&self) -> u64 {
        self.sets.values().flatten().fold(0, |count: u64, i| count.saturating_add(i.end - i.start))
    }

    /// Returns the smallest number of `source`, from `from` on, that is not in the set.
    #[must_use]
    pub fn free_from(&self, source: impl Into<Tsid>, from: u64) -> u64 {
        let from = from.max(1);
        let Some(intervals) = self.sets.get(&source.into()) else { return from };
        let at = intervals.partition_point(|i| i.end <= from);
        intervals.get(at).filter(|i| i.start <= from).map_or(from, |i| i.end)
    }

    /// Returns whether the two sets have a GTID in common.
    #[must_use]
    pub fn intersects(&self, other: &GtidSet) -> bool {
        self.sets.iter().any(|(source, intervals)| {
            let theirs = other.sets.get(source).map_or(&[][..], Vec::as_slice);
            intervals.iter().any(|i| behind(theirs, i.start).is_some_and(|t| t.start < i.end))
        })
    }

    /// The largest number of `source`, or 0.
    pub fn last(&self, source: impl Into<Tsid>) -> u64 {
        self.sets.get(&source.into()).and_then(|i| i.last()).map_or(0, |i| i.end - 1)
    }
}

impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = None;
        for (source, intervals) in &self.sets {
            if before != Some(source.uuid) {
                // MySQL puts a newline behind the comma in result sets; readers accept both.
                f.write_str(if before.is_some() { "," } else { "" })?;
                write!(f, "{}", source.uuid)?;
            }
            before = Some(source.uuid);
            if !source.tag.is_none() {
                write!(f, ":{}", source.tag)?;
            }
            for i in intervals {
                write!(f, ":{}", i.start)?;
                if i.end - i.start > 1 {
                    write!(f, "-{}", i.end - 1)?;
                }
            }
        }
        Ok(())
    }
}

impl FromStr for GtidSet {
    type Err = GtidParseError;

    fn from_str(text: &str) -> Result<Self, GtidParseError> {
        let mut set = Self::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let mut pieces = part.split(':').map(str::trim);
            let uuid: ServerUuid = pieces.next().unwrap_or_default().parse()?;
            let mut source = Tsid::from(uuid);
            let mut any = false;
            for piece in pieces {
                if !piece.starts_with(|c: char| c.is_ascii_digit()) {
                    // A tag, of the numbers that follow.
                    if !any && !source.tag.is_none() {
                        return Err(malformed(part));
                    }
                    source.tag = piece.parse::<Tag>()?;
                    any = false;
                    continue;
                }
                let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
                let number = |n: &str| n.trim().parse::<u64>().map_err(|_| malformed(piece));
                let (first, last) = (number(first)?, number(last)?);
                if first == 0 || last > GNO_MAX {
                    return Err(malformed(piece));
                }
                if first <= last {
                    // Merged at the end: in which order they come is the writer's choice.
                    set.sets.entry(source).or_default().push(Interval { start: first, end: last + 1 });
                }
                any = true;
            }
            if !any {
                return Err(malformed(part));
            }
        }
        set.sets.values_mut().for_each(merge);
        Ok(set)
    }
}
