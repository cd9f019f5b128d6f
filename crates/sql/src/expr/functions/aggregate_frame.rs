//! Aggregates over the frame of a window, which moves: their value so far, and rows that are given back.

use super::aggregate::{
    Accumulator, AggregateSpec, AggregateState, json_cost, refuse_infinite, whole_number,
};
use crate::error::{ExecResult, SqlError};
use crate::expr::{Context, compare, json};
use crate::memory::Account;
use crate::rows::held;
use omnibus_parser::ast::AggregateKind as Kind;
use omnibus_value::Value;
use omnibus_value::json::Json;
use std::cmp::Ordering;

impl Accumulator {
    /// The result so far, of an aggregate without DISTINCT.
    ///
    /// # Errors
    /// 1690 for a variance that no DOUBLE holds; 3170 when memory is out.
    pub fn value(&mut self, spec: &AggregateSpec, cx: &mut Context<'_>) -> ExecResult<Value> {
        let gathered = self.result_memory();
        if gathered == 0 {
            let result = Accumulator { state: self.state.clone(), seen: None }.result(spec, cx)?;
            refuse_infinite(&result, spec, cx)?;
            return Ok(result);
        }
        // A row may take as long as all those before it.
        cx.bytes(gathered)?;
        let mut account = Account::new(&cx.session.connection.memory);
        account.grow(gathered, &cx.session.settings)?;
        let document = match &mut self.state {
            AggregateState::Array(items) => {
                let array = Json::Array(std::mem::take(items).into());
                let made = json::made(&array);
                if let Json::Array(same) = array {
                    *items = same.into();
                }
                made?
            }
            AggregateState::Object(members) => {
                // Of equal names the last one counts, so the others are not missed.
                let object = Json::object(std::mem::take(members));
                let made = json::made(&object);
                if let Json::Object(same) = object {
                    *members = same;
                }
                made?
            }
            // The copy is there until the result is.
            state => return Accumulator { state: state.clone(), seen: None }.finish(spec, cx),
        };
        Ok(match document {
            Value::Json(document) => Value::Json(held::hold(document, cx.session)?),
            other => other,
        })
    }

    /// Gives the first of the rows back, which is now in the frame; false if that can't be done exactly.
    ///
    /// # Errors
    /// As evaluation of the arguments.
    pub fn give_up(
        &mut self,
        spec: &AggregateSpec,
        account: &mut Account,
        cx: &mut Context<'_>,
    ) -> ExecResult<bool> {
        match &mut self.state {
            AggregateState::Count(n) => {
                for arg in &spec.args {
                    if matches!(arg.eval(cx)?, Value::Null) {
                        return Ok(true);
                    }
                }
                *n -= 1;
            }
            AggregateState::SumInt(sum, count) => {
                if let Some(n) = whole_number(spec, cx)? {
                    *sum -= n;
                    *count -= 1;
                }
            }
            AggregateState::SumDecimal(sum, count) | AggregateState::Avg(sum, count) => {
                let value = spec.args[0].eval(cx)?;
                if !matches!(value, Value::Null) {
                    let value = spec.args[0].to_decimal(&value, cx);
                    *sum = sum.sub(&value).map_err(|_| SqlError::data_out_of_range("DECIMAL", "sum"))?;
                    *count -= 1;
                }
            }
            // One that is worse than the best one leaves that in its place.
            AggregateState::Extreme(best) => {
                let worse = if spec.kind == Kind::Min { Ordering::Greater } else { Ordering::Less };
                return Ok(match spec.args[0].eval(cx)? {
                    Value::Null => true,
                    Value::Json(_) => false,
                    value => compare::values(&value, best, spec.args[0].ty.column.collation) == Some(worse),
                });
            }
            AggregateState::Array(items) => {
                items.pop_front();
                account.shrink(json_cost(&spec.args[0].eval(cx)?));
            }
            // Whether a sum of doubles has any row left, it does not know, and what it has lost to rounding.
            _ => return Ok(false),
        }
        Ok(true)
    }
}
