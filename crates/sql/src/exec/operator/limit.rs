//! LIMIT and OFFSET over results: the operator below is told which of them are wanted, and leaves the others out before it computes them.

use super::{Consumer, dispatch};
use crate::error::{ExecResult, SqlError};
use crate::expr::{Context, Expr};
use crate::logical::Limit;
use crate::plan::physical::Limited;
use crate::rows::Flow;
use omnibus_value::Value;

/// Runs the operator below for what LIMIT leaves of its results.
pub(super) fn run(limited: &Limited, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow> {
    let bounds = Bounds::of(&limited.limit, cx)?;
    if bounds.count == 0 {
        return Ok(Flow::Continue);
    }
    dispatch::results(&limited.input, bounds, cx, out)
}

/// The results that are wanted, by number: those of LIMIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::exec) struct Bounds {
    /// Rows to leave out first.
    pub offset: u64,
    /// Rows to give then.
    pub count: u64,
}

impl Bounds {
    /// All results.
    pub(super) const ALL: Bounds = Bounds { offset: 0, count: u64::MAX };

    /// Evaluates a LIMIT.
    ///
    /// # Errors
    /// 1210 for what is no count.
    pub(in crate::exec) fn of(limit: &Limit, cx: &mut Context<'_>) -> ExecResult<Bounds> {
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
        Ok(Bounds { offset: number(&limit.offset, 0)?, count: number(&limit.count, u64::MAX)? })
    }

    /// How many results must be computed at most.
    pub(super) fn wanted(&self) -> Option<usize> {
        usize::try_from(self.offset.saturating_add(self.count)).ok()
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
