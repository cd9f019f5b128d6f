//! INTERSECT and EXCEPT: which rows have a match among others.
//!
//! The others are counted by key, in memory up to `tmp_table_size`. Keys behind that, and the rows that ask for them, go to
//! disk in parts by their keys; each part is matched by itself.

use super::collected::temporary_table_max;
use super::distinct::KEY_COST;
use super::partition::{Partition, Partitions};
use super::{Flow, Running, codec};
use crate::error::ExecResult;
use crate::memory::Account;
use foldhash::fast::RandomState;
use omnibus_value::Value;
use std::collections::HashMap;

/// Takes the rows that pass.
pub type Passed<'p, R> = dyn FnMut(&mut R, Vec<Value>) -> ExecResult<Flow> + 'p;

/// The condition of rows that pass.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// INTERSECT: a match. EXCEPT: none.
    pub wants_match: bool,
    /// ALL: a match is used up.
    pub all: bool,
}

/// Rows to match, counted by key.
#[derive(Debug)]
pub struct Matches {
    counts: HashMap<Box<[u8]>, u64, RandomState>,
    account: Account,
    rule: Rule,
    level: u64,
    /// Keys that are not in memory, and the rows that ask for them.
    later: Option<(Partitions, Partitions)>,
}

impl Matches {
    /// None yet.
    #[must_use]
    pub fn new(rule: Rule, cx: &impl Running) -> Matches {
        Matches::at(0, rule, cx)
    }

    fn at(level: u64, rule: Rule, cx: &impl Running) -> Matches {
        Matches {
            counts: HashMap::default(),
            account: Account::new(&cx.session().connection.memory),
            rule,
            level,
            later: None,
        }
    }

    /// Counts a row that others may match.
    ///
    /// # Errors
    /// As a temporary file.
    pub fn count(&mut self, key: &[u8], cx: &mut impl Running) -> ExecResult<()> {
        if let Some(count) = self.counts.get_mut(key) {
            *count += 1;
            return Ok(());
        }
        if self.later.is_none() {
            let more = key.len() + KEY_COST + 8;
            let fits = self.account.has_room(more, temporary_table_max(cx), &cx.session().settings);
            if fits || self.counts.is_empty() {
                self.counts.insert(key.into(), 1);
                return Ok(());
            }
            self.later = Some((Partitions::create(self.level, cx)?, Partitions::create(self.level, cx)?));
        }
        if let Some((keys, _)) = &mut self.later {
            keys.push(key, &[])?;
        }
        Ok(())
    }

    /// Whether a row passes; `None` if `finish` says it.
    ///
    /// # Errors
    /// As a temporary file.
    pub fn passes(&mut self, key: &[u8], row: &[Value]) -> ExecResult<Option<bool>> {
        let matched = match self.counts.get_mut(key) {
            Some(0) => false,
            Some(count) => {
                *count -= u64::from(self.rule.all);
                true
            }
            None => {
                let Some((_, rows)) = &mut self.later else { return Ok(Some(!self.rule.wants_match)) };
                let mut record = Vec::new();
                codec::write_values(row, &mut record);
                rows.push(key, &record)?;
                return Ok(None);
            }
        };
        Ok(Some(matched == self.rule.wants_match))
    }

    /// Gives the rows that pass among those that were put off.
    ///
    /// # Errors
    /// As a temporary file, and as `each`.
    pub fn finish<R: Running>(self, cx: &mut R, each: &mut Passed<'_, R>) -> ExecResult<Flow> {
        let Matches { counts, account, rule, later, .. } = self;
        drop((counts, account));
        let Some((keys, rows)) = later else { return Ok(Flow::Continue) };
        for (keys, rows) in keys.finish()?.into_iter().zip(rows.finish()?) {
            if match_part(&keys, &rows, rule, cx, each)? == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::Continue)
    }
}

fn match_part<R: Running>(
    keys: &Partition,
    rows: &Partition,
    rule: Rule,
    cx: &mut R,
    each: &mut Passed<'_, R>,
) -> ExecResult<Flow> {
    let mut matches = Matches::at(keys.level + 1, rule, cx);
    let mut reader = keys.read();
    while let Some((key, _)) = reader.next_record()? {
        cx.tick()?;
        matches.count(&key, cx)?;
    }
    let mut reader = rows.read();
    while let Some((key, mut record)) = reader.next_record()? {
        cx.tick()?;
        let row = codec::read_values(&mut record)?;
        if matches.passes(&key, &row)? == Some(true) && each(cx, row)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    matches.finish(cx, each)
}
