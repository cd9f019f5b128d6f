//! LIMIT and OFFSET over results.

use super::Consumer;
use crate::error::{ExecResult, SqlError};
use crate::expr::{Context, Expr};
use crate::logical;
use crate::rows::Flow;
use omnibus_value::Value;

/// LIMIT's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::exec) struct Limit {
    /// Rows to leave out first.
    pub offset: u64,
    /// Rows to give then.
    pub count: u64,
}

impl Limit {
    /// Evaluates a LIMIT.
    ///
    /// # Errors
    /// 1210 for what is no count.
    pub(in crate::exec) fn of(limit: &logical::Limit, cx: &mut Context<'_>) -> ExecResult<Limit> {
        let mut number = |e: &Option<Expr>, missing: u64| -> ExecResult<u64> {
            let Some(e) = e else { return Ok(missing) };
            match e.eval(cx)? {
                Value::Int(n) => u64::try_from(n).map_err(|_| SqlError::wrong_arguments("LIMIT").into()),
                Value::UInt(n) => Ok(n),
                Value::Null => Ok(0),
                Value::Bytes(text) if !text.trim_ascii().iter().all(u8::is_ascii_digit) => {
                    Err(SqlError::wrong_arguments("EXECUTE").into())
                }
                value => Ok(u64::try_from(e.to_int(&value, cx)).unwrap_or(0)),
            }
        };
        Ok(Limit { offset: number(&limit.offset, 0)?, count: number(&limit.count, u64::MAX)? })
    }

    /// Whether OFFSET leaves the next row out; counts it then.
    pub(super) fn skips(&mut self, cx: &mut Context<'_>) -> bool {
        if self.offset == 0 {
            return false;
        }
        self.offset -= 1;
        cx.skipped += 1;
        true
    }

    /// Gives a row, if it is wanted. `Flow::Stop` after the last one.
    pub(super) fn give(
        &mut self,
        values: &[Value],
        cx: &mut Context<'_>,
        out: &mut Consumer<'_>,
    ) -> ExecResult<Flow> {
        if self.skips(cx) {
            return Ok(Flow::Continue);
        }
        let flow = out(cx, values)?;
        self.count -= 1;
        Ok(if self.count == 0 { Flow::Stop } else { flow })
    }
}
