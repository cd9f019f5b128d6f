//! Aggregates: what they yield, and how a group's rows are taken up one by one.
//!
//! Grouping itself is in `exec::group`. An accumulator belongs to one group; on the session's
//! thread.

use super::group_concat::{PART_COST, PRUNE_AT, concat, prune};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::types::{BINARY, ExprType, Family, NOT_FIXED};
use crate::expr::{BindContext, Context, Expr, Kind as ExprKind, bits, compare, eval, hash_key, json};
use crate::memory::{Account, memory_of};
use crate::rows::distinct::{Distinct, KEY_COST, Seen};
use crate::rows::{Flow, codec, held};
use bytes::Bytes;
use foldhash::fast::RandomState;
use omnibus_parser::ast::AggregateKind as Kind;
use omnibus_value::Value;
use omnibus_value::decimal::Decimal;
use omnibus_value::json::Json;
use std::cmp::Ordering;
use std::collections::{HashSet, VecDeque};

/// One aggregate of a query block.
#[derive(Clone, Debug)]
pub struct AggregateSpec {
    /// The function.
    pub kind: Kind,
    /// DISTINCT.
    pub distinct: bool,
    /// Arguments; none for COUNT(*).
    pub args: Vec<Expr>,
    /// Result type.
    pub ty: ExprType,
    /// GROUP_CONCAT's order: expression, descending.
    pub order: Vec<(Expr, bool)>,
    /// GROUP_CONCAT's separator.
    pub separator: Bytes,
    /// GROUP_CONCAT's limit.
    pub limit: Option<usize>,
}

/// The type of an aggregate's result.
///
/// # Errors
/// Illegal mixes of collations, wrong argument counts.
pub fn result_type(kind: Kind, args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let first = args.first().map(|a| &a.ty);
    if kind == Kind::JsonObjectAgg && args.len() != 2 {
        return Err(SqlError::wrong_parameter_count_to_native_fct("json_objectagg"));
    }
    if let (Some(operation), Some(ty)) = (of_numbers(kind), first) {
        crate::expr::types::refuse_fixed(ty, operation)?;
    }
    Ok(match (kind, first) {
        (Kind::Count, _) => {
            let mut ty = ExprType::bigint();
            ty.column.length = 21;
            ty
        }
        (Kind::BitAnd | Kind::BitOr | Kind::BitXor, Some(ty))
            if !cx.session.settings.mariadb && bits::is_bits_of_bytes(ty) =>
        {
            let length = crate::expr::types::bytes(ty);
            // Of others the length is a guess.
            if length as usize > bits::LONGEST && matches!(args[0].kind, ExprKind::Column { .. }) {
                return Err(bits::too_long());
            }
            ExprType::varchar(length, BINARY)
        }
        (Kind::BitAnd | Kind::BitOr | Kind::BitXor, _) => ExprType::ubigint(),
        (Kind::Sum, Some(ty)) => match ty.family() {
            Family::Integer | Family::Decimal | Family::Date | Family::Time | Family::DateTime => {
                let scale = ty.scale();
                ExprType::decimal(ty.integer_part() + u32::from(scale) + 22, scale)
            }
            _ => real(ty, 0),
        }
        .nullable(true),
        (Kind::Avg, Some(ty)) => match ty.family() {
            Family::Integer | Family::Decimal | Family::Date | Family::Time | Family::DateTime => {
                let scale = (ty.scale() + cx.session.settings.div_precision_increment).min(30);
                ExprType::decimal(ty.integer_part() + u32::from(scale), scale)
            }
            _ => real(ty, cx.session.settings.div_precision_increment),
        }
        .nullable(true),
        (Kind::StdDevPop | Kind::StdDevSamp | Kind::VarPop | Kind::VarSamp, _) => {
            ExprType::double().nullable(true)
        }
        (Kind::GroupConcat, _) => {
            let length = u32::try_from(cx.session.settings.group_concat_max_len).unwrap_or(u32::MAX);
            super::ty::string_of(args, length, cx)?
        }
        (Kind::JsonArrayAgg | Kind::JsonObjectAgg, _) => ExprType::json().nullable(true),
        (_, Some(ty)) => ty.clone().nullable(true),
        (_, None) => return Err(SqlError::invalid_group_func_use()),
    })
}

/// The beginning of a call as errors have it, of those that compute with numbers.
fn of_numbers(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::Sum => "sum(",
        Kind::Avg => "avg(",
        Kind::BitAnd => "bit_and(",
        Kind::BitOr => "bit_or(",
        Kind::BitXor => "bit_xor(",
        Kind::StdDevPop => "std(",
        Kind::StdDevSamp => "stddev_samp(",
        Kind::VarPop => "variance(",
        Kind::VarSamp => "var_samp(",
        _ => return None,
    })
}

/// DOUBLE, with as many decimals as the argument has and some more if it has a fixed number of them.
fn real(argument: &ExprType, more: u8) -> ExprType {
    let mut ty = ExprType::double();
    ty.column.decimals = argument.fixed_decimals().saturating_add(more).min(NOT_FIXED);
    ty
}

/// The state of one aggregate of a group.
#[derive(Debug)]
pub struct Accumulator {
    pub(super) state: AggregateState,
    pub(super) seen: Option<Values>,
}

/// DISTINCT: the arguments that were taken up.
#[derive(Debug)]
pub(super) enum Values {
    /// Of one group of many: in memory only.
    Set(HashSet<Box<[u8]>, RandomState>),
    /// The same of integers.
    Integers(HashSet<i128, RandomState>),
    /// Of the only group.
    Alone(Distinct),
}

/// Bytes of an integer in a set that has grown by doubling.
const INTEGER_COST: usize = 40;

/// How many groups there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupCount {
    /// All rows are one.
    One,
    /// Any number.
    Many,
}

#[derive(Clone, Debug)]
pub(super) enum AggregateState {
    Count(i64),
    /// Sum, count.
    SumInt(i128, i64),
    /// Sum, count.
    SumDecimal(Decimal, i64),
    SumReal(Option<f64>),
    /// Sum, count.
    Avg(Decimal, i64),
    AvgReal(f64, i64),
    Extreme(Value),
    Bits(u64),
    BitsOfBytes(Option<Vec<u8>>),
    /// Count, mean, sum of squared differences (Welford).
    Variance(u64, f64, f64),
    /// Sort keys and text of each part.
    Concat(Vec<(Vec<Value>, Bytes)>, usize),
    Array(VecDeque<Json>),
    Object(Vec<(String, Json)>),
}

impl AggregateSpec {
    /// Whether both compute the same of every group.
    #[must_use]
    pub fn same(&self, other: &AggregateSpec) -> bool {
        let args =
            self.args.len() == other.args.len() && self.args.iter().zip(&other.args).all(|(a, b)| a.same(b));
        let mut order = self.order.iter().zip(&other.order);
        let order = self.order.len() == other.order.len() && order.all(|(a, b)| a.1 == b.1 && a.0.same(&b.0));
        args && order
            && (self.kind, self.distinct, &self.separator, self.limit)
                == (other.kind, other.distinct, &other.separator, other.limit)
    }

    /// An empty group's state.
    #[must_use]
    pub fn start(&self, groups: GroupCount, cx: &Context<'_>) -> Accumulator {
        let real = self.ty.family() == Family::Real;
        let integer = self.args.first().is_some_and(|a| a.ty.family() == Family::Integer);
        let state = match self.kind {
            Kind::Count => AggregateState::Count(0),
            Kind::Sum if real => AggregateState::SumReal(None),
            Kind::Sum if integer => AggregateState::SumInt(0, 0),
            Kind::Sum => AggregateState::SumDecimal(Decimal::ZERO, 0),
            Kind::Avg if real => AggregateState::AvgReal(0.0, 0),
            Kind::Avg => AggregateState::Avg(Decimal::ZERO, 0),
            Kind::Min | Kind::Max => AggregateState::Extreme(Value::Null),
            Kind::BitAnd | Kind::BitOr | Kind::BitXor if self.ty.family() == Family::String => {
                AggregateState::BitsOfBytes(None)
            }
            Kind::BitAnd => AggregateState::Bits(u64::MAX),
            Kind::BitOr | Kind::BitXor => AggregateState::Bits(0),
            Kind::StdDevPop | Kind::StdDevSamp | Kind::VarPop | Kind::VarSamp => {
                AggregateState::Variance(0, 0.0, 0.0)
            }
            Kind::GroupConcat => AggregateState::Concat(Vec::new(), 0),
            Kind::JsonArrayAgg => AggregateState::Array(VecDeque::new()),
            Kind::JsonObjectAgg => AggregateState::Object(Vec::new()),
        };
        let seen = self.distinct.then(|| match groups {
            GroupCount::One => Values::Alone(Distinct::new(cx)),
            GroupCount::Many if integer && self.args.len() == 1 => Values::Integers(HashSet::default()),
            GroupCount::Many => Values::Set(HashSet::default()),
        });
        Accumulator { state, seen }
    }
}

impl Accumulator {
    /// Takes up the row now in the frame. What the group keeps of it is taken from `account`.
    ///
    /// # Errors
    /// As evaluation of the arguments; 1690 when a sum overflows; 3170 when memory is out.
    pub fn add(
        &mut self,
        spec: &AggregateSpec,
        account: &mut Account,
        cx: &mut Context<'_>,
    ) -> ExecResult<()> {
        if self.seen.is_some() && !self.is_new(spec, account, cx)? {
            return Ok(());
        }
        self.take(spec, account, cx)
    }

    fn take(&mut self, spec: &AggregateSpec, account: &mut Account, cx: &mut Context<'_>) -> ExecResult<()> {
        match &mut self.state {
            AggregateState::Count(n) => {
                for arg in &spec.args {
                    if matches!(arg.eval(cx)?, Value::Null) {
                        return Ok(());
                    }
                }
                *n += 1;
            }
            AggregateState::SumInt(sum, count) => {
                if let Some(n) = whole_number(spec, cx)? {
                    *sum += n;
                    *count += 1;
                }
            }
            AggregateState::SumReal(sum) => {
                if let Some(n) = spec.args[0].eval_f64(cx)? {
                    *sum = Some(sum.unwrap_or(0.0) + n);
                }
            }
            AggregateState::SumDecimal(sum, count) | AggregateState::Avg(sum, count) => {
                let value = spec.args[0].eval(cx)?;
                if !matches!(value, Value::Null) {
                    *sum = add_decimal(sum, &spec.args[0].to_decimal(&value, cx))?;
                    *count += 1;
                }
            }
            AggregateState::AvgReal(sum, count) => {
                if let Some(n) = spec.args[0].eval_f64(cx)? {
                    *sum += n;
                    *count += 1;
                }
            }
            AggregateState::Extreme(best) => {
                let value = spec.args[0].eval(cx)?;
                let wanted = if spec.kind == Kind::Min { Ordering::Less } else { Ordering::Greater };
                let better = match (&value, &*best) {
                    (Value::Null, _) => false,
                    (_, Value::Null) => true,
                    (value, best) => {
                        // Documents are read to be compared.
                        let read = document_memory(value) + document_memory(best);
                        account.grow(read, &cx.session.settings)?;
                        let order = compare::values(value, best, spec.args[0].ty.column.collation);
                        account.shrink(read);
                        order == Some(wanted)
                    }
                };
                if better {
                    keep(best, value, account, cx)?;
                }
            }
            AggregateState::Bits(bits) => {
                if let Some(n) = spec.args[0].eval_int(cx)?.map(|n| n as u64) {
                    *bits = match spec.kind {
                        Kind::BitAnd => *bits & n,
                        Kind::BitOr => *bits | n,
                        _ => *bits ^ n,
                    };
                }
            }
            AggregateState::BitsOfBytes(so_far) => bits::take(so_far, spec, account, cx)?,
            AggregateState::Variance(count, mean, squares) => {
                if let Some(x) = spec.args[0].eval_f64(cx)? {
                    *count += 1;
                    let delta = x - *mean;
                    *mean += delta / *count as f64;
                    *squares += delta * (x - *mean);
                }
            }
            AggregateState::Concat(parts, length) => {
                let mut text = Vec::new();
                for arg in &spec.args {
                    match arg.eval_str(cx)? {
                        Some(part) => text.extend_from_slice(&part),
                        None => return Ok(()),
                    }
                }
                let mut keys = Vec::with_capacity(spec.order.len());
                for (expr, _) in &spec.order {
                    keys.push(eval::own(expr.eval(cx)?));
                }
                let max = usize::try_from(cx.session.settings.group_concat_max_len).unwrap_or(usize::MAX);
                // Without an order what is past the limit is never shown.
                if !spec.order.is_empty() || *length <= max {
                    *length += text.len() + spec.separator.len();
                    account.grow(memory_of(&keys) + text.len() + PART_COST, &cx.session.settings)?;
                    parts.push((keys, text.into()));
                }
                if *length / 2 > max.saturating_add(PRUNE_AT) {
                    prune(parts, length, max, spec, account);
                }
            }
            AggregateState::Array(items) => {
                let value = spec.args[0].eval(cx)?;
                account.grow(json_cost(&value), &cx.session.settings)?;
                items.push_back(json::member(&spec.args[0], &value));
            }
            AggregateState::Object(members) => {
                let Some(key) = spec.args[0].eval_str(cx)? else {
                    return Err(SqlError::new(
                        3158,
                        b"22032",
                        "JSON documents may not contain NULL member names.",
                    )
                    .into());
                };
                let value = spec.args[1].eval(cx)?;
                account.grow(2 * key.len() + json_cost(&value), &cx.session.settings)?;
                members.push((json::string(&spec.args[0], &key)?, json::member(&spec.args[1], &value)));
            }
        }
        Ok(())
    }

    /// Whether a MIN or MAX has met a value that is not NULL.
    #[must_use]
    pub fn has_value(&self) -> bool {
        matches!(&self.state, AggregateState::Extreme(value) if !matches!(value, Value::Null))
    }

    /// Whether the arguments were not there before; never for NULL.
    fn is_new(
        &mut self,
        spec: &AggregateSpec,
        account: &mut Account,
        cx: &mut Context<'_>,
    ) -> ExecResult<bool> {
        if let Some(Values::Integers(seen)) = &mut self.seen {
            let value = spec.args[0].eval(cx)?;
            if matches!(value, Value::Null) || !seen.insert(spec.args[0].to_int(&value, cx)) {
                return Ok(false);
            }
            account.grow(INTEGER_COST, &cx.session.settings)?;
            return Ok(true);
        }
        let mut key = Vec::new();
        let mut values = Vec::with_capacity(spec.args.len() + spec.order.len());
        for arg in &spec.args {
            let value = arg.eval(cx)?;
            if matches!(value, Value::Null) {
                return Ok(false);
            }
            hash_key::write(&value, arg.ty.column.collation, &mut key);
            values.push(value);
        }
        match &mut self.seen {
            None | Some(Values::Integers(_)) => Ok(true),
            Some(Values::Set(seen)) => {
                if seen.contains(&key[..]) {
                    return Ok(false);
                }
                account.grow(key.len() + KEY_COST, &cx.session.settings)?;
                Ok(seen.insert(key.into()))
            }
            Some(Values::Alone(seen)) => {
                for (expr, _) in &spec.order {
                    values.push(expr.eval(cx)?);
                }
                Ok(seen.add(&key, |out| codec::write_values(&values, out), cx)? == Seen::First)
            }
        }
    }

    /// Takes up the distinct arguments that did not fit memory.
    fn take_rest(&mut self, spec: &AggregateSpec, cx: &mut Context<'_>) -> ExecResult<()> {
        let Some(Values::Alone(seen)) = self.seen.take() else { return Ok(()) };
        let mut account = Account::new(&cx.session.connection.memory);
        let mut known = spec.clone();
        seen.finish(cx, &mut |cx, values| {
            let places = known.args.iter_mut().chain(known.order.iter_mut().map(|(expr, _)| expr));
            for (place, value) in places.zip(values) {
                place.kind = ExprKind::Const(value);
            }
            self.take(&known, &mut account, cx)?;
            Ok(Flow::Continue)
        })?;
        Ok(())
    }

    /// The group's result.
    ///
    /// # Errors
    /// As `add`, where rows were put off.
    pub fn finish(mut self, spec: &AggregateSpec, cx: &mut Context<'_>) -> ExecResult<Value> {
        self.take_rest(spec, cx)?;
        // What was gathered is there until the result is.
        let mut account = Account::new(&cx.session.connection.memory);
        account.grow(self.result_memory(), &cx.session.settings)?;
        let result = self.result(spec, cx)?;
        cx.refuse_bad_data()?;
        refuse_infinite(&result, spec, cx)?;
        Ok(match result {
            Value::Bytes(text) => Value::Bytes(held::hold(text, cx.session)?),
            Value::Json(document) => Value::Json(held::hold(document, cx.session)?),
            other => other,
        })
    }

    /// How much making the result takes.
    pub(super) fn result_memory(&self) -> usize {
        match &self.state {
            AggregateState::Concat(_, length) => *length,
            AggregateState::Array(items) => items.iter().map(Json::memory).sum(),
            AggregateState::Object(members) => {
                members.iter().map(|(name, member)| name.len() + member.memory()).sum()
            }
            _ => 0,
        }
    }

    pub(super) fn result(self, spec: &AggregateSpec, cx: &mut Context<'_>) -> ExecResult<Value> {
        Ok(match self.state {
            AggregateState::Count(n) => Value::Int(n),
            AggregateState::SumInt(_, 0) | AggregateState::SumDecimal(_, 0) => Value::Null,
            AggregateState::SumInt(sum, _) => Value::Decimal(Decimal::from_i128(sum, 0)),
            AggregateState::SumDecimal(sum, _) => Value::Decimal(sum.show(spec.ty.column.decimals)),
            AggregateState::SumReal(sum) => sum.map_or(Value::Null, Value::Double),
            AggregateState::Avg(_, 0) | AggregateState::AvgReal(_, 0) => Value::Null,
            AggregateState::Avg(sum, count) => {
                let increment = cx.session.settings.div_precision_increment;
                match sum.div(&Decimal::from_i128(i128::from(count), 0), increment) {
                    Ok(Some(d)) => Value::Decimal(d.show(spec.ty.column.decimals)),
                    _ => Value::Null,
                }
            }
            AggregateState::AvgReal(sum, count) => Value::Double(sum / count as f64),
            AggregateState::Extreme(value) => value,
            AggregateState::Bits(bits) => Value::UInt(bits),
            AggregateState::BitsOfBytes(bytes) => {
                // A blob may be long, and no row says how long the others would be.
                let length = (spec.args[0].ty.column.length as usize).min(bits::LONGEST);
                Value::Bytes(bytes.unwrap_or_else(|| bits::neutral(spec.kind, length)).into())
            }
            AggregateState::Variance(count, _, squares) => variance(spec.kind, count, squares),
            AggregateState::Concat(parts, _) => concat(parts, spec, cx),
            AggregateState::Array(items) if items.is_empty() => Value::Null,
            AggregateState::Array(items) => json::made(&Json::Array(items.into()))?,
            AggregateState::Object(members) if members.is_empty() => Value::Null,
            AggregateState::Object(members) => json::made(&Json::object(members))?,
        })
    }
}

/// Refuses a variance that no DOUBLE holds; sums of doubles pass.
pub(super) fn refuse_infinite(result: &Value, spec: &AggregateSpec, cx: &Context<'_>) -> ExecResult<()> {
    let varies = matches!(spec.kind, Kind::StdDevPop | Kind::StdDevSamp | Kind::VarPop | Kind::VarSamp);
    match (result, of_numbers(spec.kind)) {
        (Value::Double(n), Some(call)) if varies && !n.is_finite() && !cx.session.settings.mariadb => {
            let call = format!("{call}{})", crate::expr::print::list(&spec.args, ",", cx));
            Err(SqlError::data_out_of_range("DOUBLE", call).into())
        }
        _ => Ok(()),
    }
}

/// Puts a value in the place of another.
fn keep(place: &mut Value, value: Value, account: &mut Account, cx: &Context<'_>) -> ExecResult<()> {
    let bytes = |value: &Value| if let Value::Bytes(b) | Value::Json(b) = value { b.len() } else { 0 };
    let (more, less) = (bytes(&value), bytes(place));
    if more > less {
        account.grow(more - less, &cx.session.settings)?;
    } else {
        account.shrink(less - more);
    }
    *place = eval::own(value);
    Ok(())
}

/// The argument of a sum of integers.
pub(super) fn whole_number(spec: &AggregateSpec, cx: &mut Context<'_>) -> ExecResult<Option<i128>> {
    Ok(match spec.args[0].eval(cx)? {
        Value::Null => None,
        Value::Int(n) => Some(i128::from(n)),
        value => Some(spec.args[0].to_int(&value, cx)),
    })
}

fn add_decimal(a: &Decimal, b: &Decimal) -> ExecResult<Decimal> {
    a.add(b).map_err(|_| SqlError::data_out_of_range("DECIMAL", "sum").into())
}

fn variance(kind: Kind, count: u64, squares: f64) -> Value {
    let sample = matches!(kind, Kind::StdDevSamp | Kind::VarSamp);
    let divisor = if sample { count.saturating_sub(1) } else { count };
    if divisor == 0 {
        return Value::Null;
    }
    let variance = squares / divisor as f64;
    let root = matches!(kind, Kind::StdDevPop | Kind::StdDevSamp);
    Value::Double(if root { variance.sqrt() } else { variance })
}

/// The bytes of a document that is read.
fn document_memory(value: &Value) -> usize {
    if let Value::Json(binary) = value { omnibus_value::json::memory_of_binary(binary) } else { 0 }
}

/// About what a value takes as a member of a JSON document, which is encoded as a whole in the end.
pub(super) fn json_cost(value: &Value) -> usize {
    2 * size_of::<Json>() + 2 * memory_of(std::slice::from_ref(value)) + document_memory(value)
}
