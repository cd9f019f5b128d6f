//! NEXTVAL, LASTVAL and SETVAL of a sequence (MariaDB's). The numbers are [`Storage`](crate::storage::Storage)'s.

use super::context::Context;
use super::node::Expr;
use crate::catalog::Table;
use crate::error::{ExecResult, SqlError};
use crate::storage::SequenceAsk;
use omnibus_value::Value;
use std::sync::Arc;

/// A call.
#[derive(Clone, Debug)]
pub struct SequenceCall {
    /// The sequence.
    pub table: Arc<Table>,
    /// The question.
    pub what: SequenceFunction,
    /// Of SETVAL behind the sequence.
    pub args: Box<[Expr]>,
}

/// The function's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SequenceFunction {
    NextVal,
    LastVal,
    SetVal,
}

impl SequenceFunction {
    /// The function of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<SequenceFunction> {
        [SequenceFunction::NextVal, SequenceFunction::LastVal, SequenceFunction::SetVal]
            .into_iter()
            .find(|function| name.eq_ignore_ascii_case(function.name()))
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            SequenceFunction::NextVal => "nextval",
            SequenceFunction::LastVal => "lastval",
            SequenceFunction::SetVal => "setval",
        }
    }
}

impl SequenceCall {
    pub(super) fn eval(&self, cx: &mut Context<'_>) -> ExecResult<Value> {
        let id = self.table.def.id;
        if self.what == SequenceFunction::LastVal {
            return Ok(cx
                .session
                .values
                .sequences
                .get(&id)
                .map_or(Value::Null, |number| Value::Int(*number)));
        }
        let to = match &self.args[..] {
            [] => None,
            [value, rest @ ..] => {
                let Some(value) = value.eval_int(cx)? else { return Ok(Value::Null) };
                let used = rest.first().map_or(Ok(Some(true)), |used| used.eval_bool(cx))?.unwrap_or(false);
                let round = rest.get(1).map_or(Ok(Some(0)), |round| round.eval_int(cx))?.unwrap_or(0);
                let number = |n: i128| n.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64;
                Some((number(value), used, number(round)))
            }
        };
        let info = cx.session.info(&cx.session.command.text);
        let ask = SequenceAsk {
            settings: info.settings,
            database: info.database,
            sql: info.sql,
            timestamp: info.timestamp,
            connection_id: info.connection_id,
        };
        match to {
            Some(to) => {
                let set = cx.storage.set_value(&self.table, to, &ask)?;
                Ok(if set { Value::Int(to.0) } else { Value::Null })
            }
            None if self.table.is_stale() => {
                Err(SqlError::new(1615, b"HY000", "Prepared statement needs to be re-prepared").into())
            }
            None => {
                let number = cx.storage.next_value(&self.table, &ask)?;
                cx.session.values.sequences.insert(id, number);
                Ok(Value::Int(number))
            }
        }
    }
}
