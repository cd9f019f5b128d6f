//! DISTINCT over results that come one by one: the first of those that are equal is given, until memory is used up; the others are put off
//! to the end ([`crate::rows::distinct`]).

use crate::error::ExecResult;
use crate::expr::{Context, Expr, hash_key};
use crate::rows::distinct::{Distinct, Seen};
use crate::rows::{Flow, codec};
use omnibus_value::Value;

/// Rows that have been seen.
pub(super) struct Once {
    seen: Distinct,
    collations: Vec<u16>,
    key: Vec<u8>,
}

impl Once {
    /// For rows that begin with these columns, by which they are told apart.
    pub(super) fn new(listed: &[Expr], cx: &Context<'_>) -> Once {
        let collations = listed.iter().map(|e| e.ty.column.collation).collect();
        Once { seen: Distinct::new(cx), collations, key: Vec::new() }
    }

    /// Whether a row is to be given now.
    pub(super) fn is_first(&mut self, row: &[Value], cx: &mut Context<'_>) -> ExecResult<bool> {
        self.key.clear();
        for (value, collation) in row.iter().zip(&self.collations) {
            hash_key::write(value, *collation, &mut self.key);
        }
        Ok(self.seen.add(&self.key, |out| codec::write_values(row, out), cx)? == Seen::First)
    }

    /// Gives the rows that were put off.
    pub(super) fn finish(
        self,
        cx: &mut Context<'_>,
        each: &mut dyn FnMut(&mut Context<'_>, Vec<Value>) -> ExecResult<Flow>,
    ) -> ExecResult<Flow> {
        self.seen.finish(cx, each)
    }
}
