//! Rows that a statement collects and reads again in the same order: derived and common tables, operands of set
//! operations, what INSERT ... SELECT inserts. In memory up to `tmp_table_size`, on disk beyond.

use super::spill::{Run, RunReader, RunWriter, SpillFile};
use super::{Running, codec};
use crate::error::{ExecResult, SqlResult};
use crate::memory::{Account, memory_of};
use omnibus_value::Value;
use std::rc::Rc;
use std::sync::atomic::Ordering;

/// The most bytes of a temporary table that is made for a statement.
#[must_use]
pub fn temporary_table_max(cx: &impl Running) -> u64 {
    cx.session().settings.tmp_table_size
}

/// Rows that are being collected.
#[derive(Debug)]
pub struct RowsBuilder {
    memory: Vec<Rc<[Value]>>,
    account: Account,
    rest: Option<(SpillFile, RunWriter)>,
    record: Vec<u8>,
}

/// Collected rows.
#[derive(Debug, Default)]
pub struct Rows {
    memory: Vec<Rc<[Value]>>,
    /// Those behind.
    rest: Option<(SpillFile, Run)>,
    _account: Option<Account>,
}

/// Reads them in order.
#[derive(Debug)]
pub struct RowsReader {
    rows: Rc<Rows>,
    at: usize,
    rest: Option<RunReader>,
}

impl RowsBuilder {
    /// None yet.
    #[must_use]
    pub fn new(cx: &impl Running) -> RowsBuilder {
        let account = Account::new(&cx.session().connection.memory);
        RowsBuilder { memory: Vec::new(), account, rest: None, record: Vec::new() }
    }

    /// Adds a row, whose values hold on to nothing but themselves.
    ///
    /// # Errors
    /// As a temporary file.
    pub fn push(&mut self, row: Rc<[Value]>, cx: &mut impl Running) -> ExecResult<()> {
        if self.rest.is_none() {
            let more = memory_of(&row);
            if self.account.has_room(more, temporary_table_max(cx), &cx.session().settings) {
                self.memory.push(row);
                return Ok(());
            }
            cx.session().connection.memory.server().tmp_disk_tables.fetch_add(1, Ordering::Relaxed);
            self.rest = Some((SpillFile::create(cx)?, RunWriter::default()));
        }
        let Some((file, writer)) = &mut self.rest else { return Ok(()) };
        self.record.clear();
        codec::write_values(&row, &mut self.record);
        writer.push(file, &[&self.record])?;
        Ok(())
    }

    /// All of them.
    ///
    /// # Errors
    /// As a temporary file.
    pub fn finish(self) -> SqlResult<Rows> {
        let rest = match self.rest {
            None => None,
            Some((mut file, writer)) => {
                let run = writer.finish(&mut file)?;
                Some((file, run))
            }
        };
        Ok(Rows { memory: self.memory, rest, _account: Some(self.account) })
    }
}

impl Rows {
    /// Rows that are there already, and were counted.
    #[must_use]
    pub fn of(rows: Vec<Vec<Value>>, account: Account) -> Rows {
        Rows { memory: rows.into_iter().map(Rc::from).collect(), rest: None, _account: Some(account) }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.memory.len() as u64 + self.rest.as_ref().map_or(0, |(_, run)| run.records())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads them from the first.
    #[must_use]
    pub fn read(self: &Rc<Rows>) -> RowsReader {
        let rest = self.rest.as_ref().map(|(file, run)| file.read(run));
        RowsReader { rows: self.clone(), at: 0, rest }
    }
}

impl RowsReader {
    /// The next row.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub fn next_row(&mut self) -> SqlResult<Option<Rc<[Value]>>> {
        if let Some(row) = self.rows.memory.get(self.at) {
            self.at += 1;
            return Ok(Some(row.clone()));
        }
        let Some(rest) = &mut self.rest else { return Ok(None) };
        match rest.next_record()? {
            None => Ok(None),
            Some(mut record) => Ok(Some(Rc::from(codec::read_values(&mut record)?))),
        }
    }
}
