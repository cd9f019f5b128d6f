//! Window functions over the rows that they see.

use super::window_frame::Partition;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::Context;
use crate::expr::functions::aggregate::{Accumulator, AggregateSpec, GroupCount};
use crate::logical::window::{WindowCall, WindowFunction};
use crate::memory::Account;
use omnibus_value::Value;
use std::ops::Range;
use std::rc::Rc;

/// A function, as it moves through a partition.
pub(super) struct ValueOf<'p> {
    call: &'p WindowCall,
    running: Option<Running>,
}

/// An aggregate over a frame that moves.
struct Running {
    frame: Range<usize>,
    accumulator: Accumulator,
    account: Account,
    value: Value,
}

impl<'p> ValueOf<'p> {
    pub(super) fn new(function: &'p WindowFunction, cx: &Context<'_>) -> ValueOf<'p> {
        let running = match &function.call {
            WindowCall::Aggregate(spec) => Some(Running::new(spec, cx)),
            _ => None,
        };
        ValueOf { call: &function.call, running }
    }

    /// The value for the present row.
    pub(super) fn at(
        &mut self,
        rows: &Partition<'_>,
        frame: Range<usize>,
        cx: &mut Context<'_>,
    ) -> ExecResult<Value> {
        let count = |n: usize| Value::Int(n as i64);
        let (at, len) = (rows.at, rows.len());
        let pick = |at: usize, input: usize| SqlResult::Ok(rows.inputs_of(at)?.swap_remove(input));
        Ok(match self.call {
            WindowCall::RowNumber => count(at + 1),
            WindowCall::Rank => count(rows.peers.start + 1),
            WindowCall::DenseRank => Value::Int(rows.groups_before as i64 + 1),
            WindowCall::PercentRank if len == 1 => Value::Double(0.0),
            WindowCall::PercentRank => Value::Double(rows.peers.start as f64 / (len - 1) as f64),
            WindowCall::CumeDist => Value::Double(rows.peers.end as f64 / len as f64),
            WindowCall::Ntile(input) => match number(&rows.inputs[*input]) {
                Some(buckets @ 1..) => count(bucket(at, len, usize::try_from(buckets).unwrap_or(usize::MAX))),
                _ => return Err(SqlError::wrong_arguments("ntile").into()),
            },
            WindowCall::Other { value, distance, default, before } => {
                let far = match distance {
                    None => Some(1),
                    Some(input) => number(&rows.inputs[*input]),
                };
                let (Some(far), false) =
                    (far, far.is_some_and(|far| far < 0) && !cx.session.settings.mariadb)
                else {
                    if far.is_none() && cx.session.settings.mariadb {
                        return Ok(Value::Null);
                    }
                    return Err(SqlError::wrong_arguments(if *before { "lag" } else { "lead" }).into());
                };
                let wanted =
                    if *before { (at as i64).checked_sub(far) } else { (at as i64).checked_add(far) };
                match wanted.and_then(|wanted| usize::try_from(wanted).ok()).filter(|wanted| *wanted < len) {
                    Some(wanted) => pick(wanted, *value)?,
                    None => default.map_or(Value::Null, |input| rows.inputs[input].clone()),
                }
            }
            WindowCall::First(input) if !frame.is_empty() => pick(frame.start, *input)?,
            WindowCall::Last(input) if !frame.is_empty() => pick(frame.end - 1, *input)?,
            WindowCall::Nth(input, which) => match number(&rows.inputs[*which]) {
                Some(nth @ 1..) => {
                    let wanted = usize::try_from(nth - 1).ok().and_then(|nth| frame.start.checked_add(nth));
                    match wanted.filter(|wanted| frame.contains(wanted)) {
                        Some(wanted) => pick(wanted, *input)?,
                        None => Value::Null,
                    }
                }
                _ if cx.session.settings.mariadb => Value::Null,
                _ => return Err(SqlError::wrong_arguments("nth_value").into()),
            },
            WindowCall::First(_) | WindowCall::Last(_) => Value::Null,
            WindowCall::Aggregate(spec) => match &mut self.running {
                Some(running) => running.over(frame, spec, rows, cx)?,
                None => Value::Null,
            },
        })
    }
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Int(n) => Some(*n),
        Value::UInt(n) => Some(i64::try_from(*n).unwrap_or(i64::MAX)),
        Value::Null => None,
        value => Some(crate::expr::compare::as_f64(value).round() as i64),
    }
}

/// The number of a row's bucket, of so many: the first ones have one row more where they can't be equal.
fn bucket(at: usize, len: usize, buckets: usize) -> usize {
    let (each, longer) = (len / buckets, len % buckets);
    let in_longer = longer * (each + 1);
    if at < in_longer { at / (each + 1) + 1 } else { longer + (at - in_longer) / each.max(1) + 1 }
}

impl Running {
    fn new(spec: &AggregateSpec, cx: &Context<'_>) -> Running {
        Running {
            frame: 0..0,
            accumulator: spec.start(GroupCount::Many, cx),
            account: Account::new(&cx.session.connection.memory),
            value: Value::Null,
        }
    }

    /// The aggregate of a frame. One that only grew takes up the new rows; one that moved gives up the old ones where the
    /// aggregate can, and begins anew where it cannot.
    fn over(
        &mut self,
        frame: Range<usize>,
        spec: &AggregateSpec,
        rows: &Partition<'_>,
        cx: &mut Context<'_>,
    ) -> ExecResult<Value> {
        if frame == self.frame && rows.at > 0 {
            return Ok(self.value.clone());
        }
        let before = self.frame.clone();
        let follows = frame.start >= before.start && frame.end >= before.end && frame.start < before.end;
        let kept = match follows {
            true if frame.start == before.start => true,
            true if frame.start - before.start < frame.len() => {
                self.give_up(before.start..frame.start, spec, rows, cx)?
            }
            _ => false,
        };
        let new = if kept {
            before.end..frame.end
        } else {
            *self = Running::new(spec, cx);
            frame.clone()
        };
        for at in new {
            cx.tick()?;
            rows.enter(Rc::from(rows.inputs_of(at)?), cx);
            self.accumulator.add(spec, &mut self.account, cx)?;
        }
        rows.enter(rows.inputs.clone(), cx);
        self.frame = frame;
        self.value = self.accumulator.value(spec, cx)?;
        Ok(self.value.clone())
    }

    /// Takes rows back; false if that can't be done exactly.
    fn give_up(
        &mut self,
        old: Range<usize>,
        spec: &AggregateSpec,
        rows: &Partition<'_>,
        cx: &mut Context<'_>,
    ) -> ExecResult<bool> {
        for at in old {
            cx.tick()?;
            rows.enter(Rc::from(rows.inputs_of(at)?), cx);
            if !self.accumulator.give_up(spec, &mut self.account, cx)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::bucket;

    #[test]
    fn buckets_differ_by_one_row_at_most() {
        let of = |len, buckets| (0..len).map(|at| bucket(at, len, buckets)).collect::<Vec<_>>();
        assert_eq!(of(7, 3), [1, 1, 1, 2, 2, 3, 3]);
        assert_eq!(of(2, 5), [1, 2]);
        assert_eq!(of(4, 1), [1, 1, 1, 1]);
    }
}
