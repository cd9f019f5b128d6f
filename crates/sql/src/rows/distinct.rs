//! DISTINCT and UNION: rows of which each comes once.
//!
//! Keys that were seen are in memory up to `tmp_table_size`. Then the rows of all further keys go to disk in parts by their
//! keys, and each part is gone through when the rest has been given.

use super::collected::temporary_table_max;
use super::partition::{Partition, Partitions};
use super::{Flow, Running, codec};
use crate::error::ExecResult;
use crate::memory::Account;
use foldhash::fast::RandomState;
use omnibus_value::Value;
use std::collections::HashSet;

/// The memory of a key in a set beside its bytes.
pub const KEY_COST: usize = 48;

/// Rows that were seen.
#[derive(Debug)]
pub struct Distinct {
    seen: HashSet<Box<[u8]>, RandomState>,
    account: Account,
    later: Option<Partitions>,
    /// How often the rows were parted.
    level: u64,
}

/// The verdict on a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It is the first of its kind.
    First,
    /// There was one.
    Again,
    /// `finish` gives it, or one like it.
    Later,
}

impl Distinct {
    /// A set without rows.
    #[must_use]
    pub fn new(cx: &impl Running) -> Distinct {
        Distinct::at(0, cx)
    }

    fn at(level: u64, cx: &impl Running) -> Distinct {
        Distinct {
            seen: HashSet::default(),
            account: Account::new(&cx.session().connection.memory),
            later: None,
            level,
        }
    }

    /// Takes up a row, which `write` writes if it must be kept.
    ///
    /// # Errors
    /// As a temporary file.
    pub fn add(
        &mut self,
        key: &[u8],
        write: impl FnOnce(&mut Vec<u8>),
        cx: &mut impl Running,
    ) -> ExecResult<Seen> {
        if self.seen.contains(key) {
            return Ok(Seen::Again);
        }
        if self.later.is_none() && self.has_room(key.len(), cx) {
            self.seen.insert(key.into());
            return Ok(Seen::First);
        }
        if self.later.is_none() {
            self.later = Some(Partitions::create(self.level, cx)?);
        }
        let mut record = Vec::new();
        write(&mut record);
        if let Some(later) = &mut self.later {
            later.push(key, &record)?;
        }
        Ok(Seen::Later)
    }

    /// Whether one more key may be kept; the first may always.
    fn has_room(&mut self, key: usize, cx: &impl Running) -> bool {
        let more = key + KEY_COST;
        self.account.has_room(more, temporary_table_max(cx), &cx.session().settings) || self.seen.is_empty()
    }

    /// Gives the rows that `add` put off, each once.
    ///
    /// # Errors
    /// As a temporary file, and as `each`.
    pub fn finish<R: Running>(
        mut self,
        cx: &mut R,
        each: &mut dyn FnMut(&mut R, Vec<Value>) -> ExecResult<Flow>,
    ) -> ExecResult<Flow> {
        let Some(later) = self.later.take() else { return Ok(Flow::Continue) };
        // The memory of what was given is the next ones'.
        let level = self.level + 1;
        drop(self);
        for part in later.finish()? {
            if give(&part, level, cx, each)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }
}

fn give<R: Running>(
    part: &Partition,
    level: u64,
    cx: &mut R,
    each: &mut dyn FnMut(&mut R, Vec<Value>) -> ExecResult<Flow>,
) -> ExecResult<Flow> {
    let mut seen = Distinct::at(level, cx);
    let mut reader = part.read();
    while let Some((key, mut record)) = reader.next_record()? {
        cx.tick()?;
        if seen.add(&key, |out| out.extend_from_slice(&record), cx)? == Seen::First {
            let row = codec::read_values(&mut record)?;
            if each(cx, row)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
    }
    seen.finish(cx, each)
}
