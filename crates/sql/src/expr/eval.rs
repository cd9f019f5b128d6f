//! Evaluation of compiled expressions over the frame of a running statement.
//!
//! Dynamic on the values' own tags: the same node serves whatever a parameter turns out to be. NULL
//! and three-valued logic are handled here; what an operator computes is in `arith`, `compare`,
//! `like`, `cast`. On the session's thread; no allocation for columns, constants and comparisons.

use super::context::Context;
use super::convert::is_no_double;
use super::node::{CompareOp, Expr, IsKind, Kind};
use super::types::Family;
use super::{compare, in_place, in_place_number};
use crate::error::ExecResult;
use crate::rows::held;
use bytes::Bytes;
use omnibus_value::{ColumnKind, ColumnType, Value};
use std::cmp::Ordering;

/// The three-valued truth of NOT, AND, OR.
fn truth(value: Option<bool>) -> Value {
    value.map_or(Value::Null, |b| Value::Int(i64::from(b)))
}

impl Expr {
    /// The value for the rows now in the frame.
    ///
    /// # Errors
    /// MySQL's error, or an interrupt from a subquery's storage.
    pub fn eval(&self, cx: &mut Context<'_>) -> ExecResult<Value> {
        match &self.kind {
            Kind::Const(value) => Ok(value.clone()),
            Kind::Column { slot, column, utc } => {
                let value = cx.column(*slot, *column, *utc)?;
                Ok(if self.ty.column.kind == ColumnKind::Char {
                    cx.padded(value, &self.ty.column)
                } else {
                    value
                })
            }
            Kind::RowKey(slot) => Ok(cx.row_key(*slot)),
            Kind::Present(slot) => Ok(Value::Int(i64::from(cx.has_row(*slot)))),
            Kind::Param(number) => Ok(cx.params.get(*number).cloned().unwrap_or(Value::Null)),
            Kind::Once(number, e) => cx.once(*number, e),
            // A number is none of the long texts that others have to look for.
            Kind::Arith(op, pair) => {
                cx.check_stack()?;
                cx.tick()?;
                let value = super::arith::binary(*op, &pair[0], &pair[1], &self.ty, cx)?;
                cx.refuse_bad_data()?;
                Ok(value)
            }
            _ => {
                cx.check_stack()?;
                cx.tick()?;
                let working = cx.session.command.working.used();
                let computed = self.compute(cx);
                cx.session.command.working.shrink_to(working);
                let mut value = computed?;
                // Whoever takes a long text looks at each of its bytes.
                if let Value::Bytes(text) | Value::Json(text) = &mut value {
                    cx.bytes(text.len())?;
                    if text.len() >= held::LONG {
                        *text = held::hold(std::mem::take(text), cx.session)?;
                    }
                }
                cx.refuse_bad_data()?;
                Ok(value)
            }
        }
    }

    fn compute(&self, cx: &mut Context<'_>) -> ExecResult<Value> {
        match &self.kind {
            Kind::Const(_)
            | Kind::Column { .. }
            | Kind::RowKey(_)
            | Kind::Present(_)
            | Kind::Param(_)
            | Kind::Once(..)
            | Kind::Arith(..) => self.eval(cx),
            Kind::Compare(..)
            | Kind::And(_)
            | Kind::Or(_)
            | Kind::Xor(_)
            | Kind::Not(_)
            | Kind::Is { .. }
            | Kind::In { .. }
            | Kind::Between { .. }
            | Kind::Like(_)
            | Kind::Regexp(_) => Ok(truth(self.eval_bool(cx)?)),
            Kind::Negate(e) => super::arith::negate(e, &self.ty, cx),
            Kind::Bits(op, pair) => super::bits::binary(*op, pair, &self.ty, cx),
            Kind::BitNot(e) => super::bits::not(e, &self.ty, cx),
            Kind::Call(def, args) => (def.eval)(args, &self.ty, cx),
            Kind::Case { whens, otherwise } => self.case(whens, otherwise.as_deref(), cx),
            Kind::Cast(e) => super::cast::cast(e, &self.ty, cx),
            Kind::Comparable(what, e) => super::comparable::eval(*what, e, cx),
            Kind::Text(e) => Ok(super::functions::text_arg(e, cx)?.map_or(Value::Null, Value::Bytes)),
            Kind::Transcode(e) => super::cast::transcode(e, &self.ty, cx),
            Kind::Retype(e) => e.eval(cx),
            Kind::Local(number) => {
                let locals = &cx.session.programs.locals;
                Ok(locals.values.get(*number as usize).cloned().unwrap_or(Value::Null))
            }
            Kind::Stored(call) => call.eval(cx),
            Kind::UserVariable(name) => {
                Ok(cx.session.values.get(name).map_or(Value::Null, |(value, _)| value.clone()))
            }
            Kind::Assign(pair) => assign(&pair.0, &pair.1, cx),
            Kind::SystemVariable(variable) => {
                let (value, _) = super::sysvar::read(cx.session, variable.0, &variable.1)?;
                Ok(value)
            }
            Kind::DateArith { args, unit, subtract } => {
                super::interval::date_arith(args, *unit, *subtract, &self.ty, cx)
            }
            Kind::JsonValue(call) => call.eval(cx),
            Kind::Extract(unit, e) => super::interval::extract(*unit, e, cx),
            Kind::Unit(_) => Ok(Value::Null),
            Kind::Row(_) => Err(crate::error::SqlError::operand_columns(1).into()),
            Kind::Subquery(subquery) => subquery.eval(cx),
            Kind::ServerCall(name, args) => server_call(name, args, cx),
            Kind::Sequence(call) => call.eval(cx),
        }
    }

    /// The truth value: NULL, false or true. Numbers are true when not zero.
    ///
    /// # Errors
    /// As `eval`.
    pub fn eval_bool(&self, cx: &mut Context<'_>) -> ExecResult<Option<bool>> {
        cx.tick()?;
        let working = cx.session.command.working.used();
        let computed = self.compute_bool(cx);
        cx.session.command.working.shrink_to(working);
        let truth = computed?;
        cx.refuse_bad_data()?;
        Ok(truth)
    }

    fn compute_bool(&self, cx: &mut Context<'_>) -> ExecResult<Option<bool>> {
        match &self.kind {
            Kind::Compare(op, collation, pair) => compare(*op, *collation, pair, cx),
            Kind::And(list) => and(list, cx),
            Kind::Or(list) => or(list, cx),
            Kind::Xor(pair) => {
                let Some(a) = pair[0].eval_bool(cx)? else { return Ok(None) };
                Ok(pair[1].eval_bool(cx)?.map(|b| a ^ b))
            }
            Kind::Not(e) => Ok(e.eval_bool(cx)?.map(|b| !b)),
            Kind::Is { expr, what, negated } => {
                let holds = match what {
                    IsKind::Null => matches!(expr.eval(cx)?, Value::Null),
                    IsKind::True => expr.eval_bool(cx)? == Some(true),
                    IsKind::False => expr.eval_bool(cx)? == Some(false),
                };
                Ok(Some(holds != *negated))
            }
            Kind::In { args, collation, negated } => {
                let found = is_in(&args[0], &args[1..], *collation, cx)?;
                Ok(found.map(|f| f != *negated))
            }
            Kind::Between { args, collation, negated } => {
                let found = between(args, *collation, cx)?;
                Ok(found.map(|f| f != *negated))
            }
            Kind::Like(like) => like.matches(cx),
            Kind::Regexp(regexp) => regexp.matches(cx),
            _ => {
                let value = self.eval(cx)?;
                Ok(self.to_bool(&value, cx))
            }
        }
    }

    fn case(
        &self,
        whens: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        cx: &mut Context<'_>,
    ) -> ExecResult<Value> {
        for (condition, result) in whens {
            if condition.eval_bool(cx)? == Some(true) {
                return super::cast::to_common(result, &self.ty, cx);
            }
        }
        match otherwise {
            Some(result) => super::cast::to_common(result, &self.ty, cx),
            None => Ok(Value::Null),
        }
    }
}

fn compare(
    op: CompareOp,
    collation: u16,
    pair: &[Expr; 2],
    cx: &mut Context<'_>,
) -> ExecResult<Option<bool>> {
    if op != CompareOp::NullSafeEq {
        if let Some(result) = in_place::compare(op, collation, pair, cx)? {
            return Ok(result);
        }
        if let Some(order) = in_place_number::order(&pair[0], &pair[1], cx)? {
            return Ok(order.map(|order| op.accepts(order)));
        }
    }
    let left = pair[0].eval(cx)?;
    if op == CompareOp::NullSafeEq {
        let right = pair[1].eval(cx)?;
        ask_to_compare(&left, &right, cx)?;
        return Ok(Some(match (&left, &right) {
            (Value::Null, Value::Null) => true,
            (Value::Null, _) | (_, Value::Null) => false,
            _ => compare::values(&left, &right, collation).is_some_and(Ordering::is_eq),
        }));
    }
    if matches!(left, Value::Null) {
        return Ok(None);
    }
    let right = pair[1].eval(cx)?;
    ask_to_compare(&left, &right, cx)?;
    Ok(order(&pair[0], &left, &pair[1], &right, collation, cx).map(|order| op.accepts(order)))
}

/// Documents are read to be compared.
#[inline]
fn ask_to_compare(left: &Value, right: &Value, cx: &mut Context<'_>) -> ExecResult<()> {
    for value in [left, right] {
        if let Value::Json(binary) = value {
            cx.ask(omnibus_value::json::memory_of_binary(binary))?;
        }
    }
    Ok(())
}

/// The order of two operands' values; complains of text that is compared with a number and is none.
pub(crate) fn order(
    a: &Expr,
    left: &Value,
    b: &Expr,
    right: &Value,
    collation: u16,
    cx: &mut Context<'_>,
) -> Option<Ordering> {
    if let (Value::Bytes(text), number) | (number, Value::Bytes(text)) = (left, right)
        && compare::is_number(number)
        && is_no_double(text, cx)
        && ![a, b].into_iter().any(|e| super::convert::is_quiet(e, cx))
    {
        let constant = [a, b].into_iter().any(|e| e.ty.family() == Family::String && e.as_const().is_some());
        super::comparable::no_number(text, constant, cx);
    }
    compare::values(left, right, collation)
}

fn and(list: &[Expr], cx: &mut Context<'_>) -> ExecResult<Option<bool>> {
    let mut result = Some(true);
    for e in list {
        match e.eval_bool(cx)? {
            Some(false) => return Ok(Some(false)),
            Some(true) => {}
            None => result = None,
        }
    }
    Ok(result)
}

fn or(list: &[Expr], cx: &mut Context<'_>) -> ExecResult<Option<bool>> {
    let mut result = Some(false);
    for e in list {
        match e.eval_bool(cx)? {
            Some(true) => return Ok(Some(true)),
            Some(false) => {}
            None => result = None,
        }
    }
    Ok(result)
}

fn is_in(operand: &Expr, list: &[Expr], collation: u16, cx: &mut Context<'_>) -> ExecResult<Option<bool>> {
    if let Some(result) = in_place::is_in(operand, list, collation, cx)? {
        return Ok(result);
    }
    if let Some(result) = in_place_number::is_in(operand, list, cx)? {
        return Ok(result);
    }
    let value = operand.eval(cx)?;
    if matches!(value, Value::Null) {
        return Ok(None);
    }
    let mut unknown = false;
    for member in list {
        cx.tick()?;
        let compared = match &member.kind {
            Kind::Const(constant) => order(operand, &value, member, constant, collation, cx),
            _ => {
                let other = member.eval(cx)?;
                ask_to_compare(&value, &other, cx)?;
                order(operand, &value, member, &other, collation, cx)
            }
        };
        match compared {
            Some(Ordering::Equal) => return Ok(Some(true)),
            Some(_) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(false) })
}

fn between(args: &[Expr; 3], collation: u16, cx: &mut Context<'_>) -> ExecResult<Option<bool>> {
    if let Some(result) = in_place_number::is_between(args, cx)? {
        return Ok(result);
    }
    let value = args[0].eval(cx)?;
    if matches!(value, Value::Null) {
        return Ok(None);
    }
    let bound = args[1].eval(cx)?;
    ask_to_compare(&value, &bound, cx)?;
    let low = order(&args[0], &value, &args[1], &bound, collation, cx).map(Ordering::is_ge);
    if low == Some(false) {
        return Ok(Some(false));
    }
    let bound = args[2].eval(cx)?;
    ask_to_compare(&value, &bound, cx)?;
    let high = order(&args[0], &value, &args[2], &bound, collation, cx).map(Ordering::is_le);
    Ok(both(low, high))
}

/// AND of two comparisons.
pub(super) fn both(low: Option<bool>, high: Option<bool>) -> Option<bool> {
    match (low, high) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

fn assign(name: &str, value: &Expr, cx: &mut Context<'_>) -> ExecResult<Value> {
    let result = value.eval(cx)?;
    let kept = for_variable(result.clone(), &value.ty.column, cx.session.settings.collation_connection);
    cx.session.set_user_variable(name.to_owned(), kept)?;
    Ok(result)
}

/// A value and its type as a user variable keeps them: an integer, a decimal, a double or text.
/// Everything else (times, labels, JSON, bits) becomes what it prints as; so the variable can also
/// be written into the binary log, which knows no other kinds.
#[must_use]
pub fn for_variable(value: Value, ty: &ColumnType, collation: u16) -> (Value, ColumnType) {
    match value {
        Value::Null | Value::Int(_) | Value::UInt(_) | Value::Double(_) => (value, ty.clone()),
        Value::Decimal(d) => {
            let d = d.in_full();
            (Value::Decimal(d), super::ExprType::decimal(u32::from(d.precision()), d.scale()).column)
        }
        Value::Bytes(_) => (own(value), ty.clone()),
        Value::Float(n) => (Value::Double(f64::from(n)), super::ExprType::double().column),
        Value::Bit(n) => (Value::UInt(n), super::ExprType::ubigint().column),
        Value::Year(n) => (Value::UInt(u64::from(n)), super::ExprType::ubigint().column),
        value => {
            let labels = matches!(value, Value::Enum(_) | Value::Set(_) | Value::Json(_));
            let collation = if labels && ty.collation != 0 { ty.collation } else { collation };
            let text = super::convert::to_text(&value, ty);
            let length = super::charset::char_count(&text, collation) as u32;
            (Value::Bytes(text), super::types::string_column(length, collation))
        }
    }
}

/// A value that no longer holds on to a whole row image.
#[must_use]
pub fn own(value: Value) -> Value {
    match value {
        Value::Bytes(bytes) => Value::Bytes(Bytes::copy_from_slice(&bytes)),
        other => other,
    }
}

fn server_call(name: &str, args: &[Expr], cx: &mut Context<'_>) -> ExecResult<Value> {
    let mut values = Vec::with_capacity(args.len());
    for arg in args {
        values.push(arg.eval(cx)?);
    }
    super::sysvar::call(cx, name, &values)
}
