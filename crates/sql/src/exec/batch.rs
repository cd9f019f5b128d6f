//! The rows that a reader has read and not given yet, and the conditions that are asked while it reads.

use crate::api::sql_mode;
use crate::catalog::Table;
use crate::error::ExecResult;
use crate::expr::sieve::{Sieve, Verdict};
use crate::expr::{Context, Slot};
use crate::plan::physical::path::{Access, TableAccess};
use crate::storage::Scan;
use bytes::Bytes;
use std::sync::Arc;

/// Rows from which on it is worth seeing which conditions can be asked so.
const WORTH_A_SIEVE: f64 = 64.0;

/// Rows that were read together, and how many of them have come.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) rows: Vec<Bytes>,
    pub(super) at: usize,
    /// They are known to meet the path's conditions.
    pub(super) sifted: bool,
}

/// Entries of an index that covers what is wanted, and how many of them have come.
#[derive(Default)]
pub(super) struct Entries {
    pairs: Vec<(Bytes, Bytes)>,
    at: usize,
}

impl Batch {
    /// Makes room for the next ones.
    pub(super) fn begin(&mut self) {
        self.rows.clear();
        (self.at, self.sifted) = (0, false);
    }

    /// Reads a batch, without the rows that a sieve refuses: how many these were.
    pub(super) fn sift(
        &mut self,
        sieve: &Sieve<'_>,
        table: &Arc<Table>,
        scan: &mut Scan,
        want: usize,
        cx: &mut Context<'_>,
    ) -> ExecResult<u64> {
        let pads = cx.session.settings.sql_mode & sql_mode::PAD_CHAR_TO_FULL_LENGTH != 0;
        let Context { storage, frame, .. } = cx;
        let frame: &[Slot] = frame;
        let (mut sifted, mut refused) = (true, 0);
        let mut keep = |row: &[u8]| {
            let verdict = sieve.ask(table, row, frame, pads);
            sifted &= verdict != Verdict::Open;
            refused += u32::from(verdict == Verdict::Refused);
            verdict != Verdict::Refused
        };
        if !storage.fetch_kept(table, scan, &mut self.rows, want, &mut keep)? {
            storage.fetch(table, scan, &mut self.rows, want)?;
            return Ok(0);
        }
        self.sifted = sifted;
        cx.session.budget.spend(refused)?;
        Ok(refused.into())
    }
}

impl Entries {
    pub(super) fn next(&mut self) -> Option<&(Bytes, Bytes)> {
        self.at += 1;
        self.pairs.get(self.at - 1)
    }

    /// Makes room for the next ones.
    pub(super) fn emptied(&mut self) -> &mut Vec<(Bytes, Bytes)> {
        self.pairs.clear();
        self.at = 0;
        &mut self.pairs
    }
}

/// The conditions of a path that can be asked of rows before they are taken, if it reads many rows of the clustered index.
pub(super) fn sieve<'p>(table: &Table, path: &'p TableAccess, slot: u16) -> Option<Sieve<'p>> {
    let clustered = match &path.access {
        Access::Full { index } => *index == 0,
        Access::Ranges(ranges) => ranges.index == 0,
        Access::Point { .. } | Access::Union(_) => false,
    };
    if clustered && path.rows >= WORTH_A_SIEVE { Sieve::of(&path.filter, slot, table) } else { None }
}
