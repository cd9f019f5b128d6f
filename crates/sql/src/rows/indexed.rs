//! Records that are asked for by their number, any number of times: in memory up to a budget, then in a temporary file.

use super::Running;
use super::collected::temporary_table_max;
use super::spill::{RunWriter, SpillFile};
use crate::error::{ExecResult, SqlResult};
use crate::memory::Account;
use bytes::Bytes;
use std::sync::atomic::Ordering;

/// Bytes of a record beside its own.
const RECORD_COST: usize = 64;

/// Records by number. Pushed first, read after `finish`.
#[derive(Debug)]
pub struct IndexedRecords {
    memory: Vec<Bytes>,
    account: Account,
    rest: Option<Rest>,
}

/// The records that did not fit.
#[derive(Debug)]
struct Rest {
    file: SpillFile,
    writer: Option<RunWriter>,
    places: Vec<u64>,
}

impl IndexedRecords {
    /// None yet.
    #[must_use]
    pub fn new(cx: &impl Running) -> IndexedRecords {
        IndexedRecords {
            memory: Vec::new(),
            account: Account::new(&cx.session().connection.memory),
            rest: None,
        }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// As a temporary file; a limit of memory that not even the places fit.
    pub fn push(&mut self, record: &[u8], cx: &mut impl Running) -> ExecResult<()> {
        let Some(rest) = &mut self.rest else {
            let more = RECORD_COST + record.len();
            if self.account.has_room(more, temporary_table_max(cx), &cx.session().settings) {
                self.memory.push(Bytes::copy_from_slice(record));
                return Ok(());
            }
            cx.session().connection.memory.server().tmp_disk_tables.fetch_add(1, Ordering::Relaxed);
            let file = SpillFile::create(cx)?;
            self.rest = Some(Rest { file, writer: Some(RunWriter::default()), places: Vec::new() });
            return self.push(record, cx);
        };
        // Twice, because the places grow by doubling.
        self.account.grow(2 * size_of::<u64>(), &cx.session().settings)?;
        if let Some(writer) = &mut rest.writer {
            rest.places.push(writer.push_alone(&mut rest.file, record)?);
        }
        Ok(())
    }

    /// No record follows.
    ///
    /// # Errors
    /// As a temporary file.
    pub fn finish(&mut self) -> SqlResult<()> {
        if let Some(rest) = &mut self.rest
            && let Some(writer) = rest.writer.take()
        {
            writer.finish(&mut rest.file)?;
        }
        Ok(())
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.memory.len() + self.rest.as_ref().map_or(0, |rest| rest.places.len())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A record; empty for a number that none has.
    ///
    /// # Errors
    /// The temporary file cannot be read.
    pub fn get(&self, at: usize) -> SqlResult<Bytes> {
        if let Some(record) = self.memory.get(at) {
            return Ok(record.clone());
        }
        let place = |rest: &Rest| rest.places.get(at - self.memory.len()).copied();
        match self.rest.as_ref().and_then(|rest| Some((rest, place(rest)?))) {
            Some((rest, place)) => rest.file.record_at(place),
            None => Ok(Bytes::new()),
        }
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.memory.clear();
        self.account.clear();
        self.rest = None;
    }
}
