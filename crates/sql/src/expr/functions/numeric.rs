//! Numbers: ABS, ROUND, POW, logarithms, trigonometry, RAND.

use super::{Def, int_arg, real_arg, str_arg, ty, value_arg};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::arith::with_zero;
use crate::expr::types::{Family, NOT_FIXED};
use crate::expr::{BindContext, Context, Expr, ExprType, bits};
use omnibus_value::Value;
use omnibus_value::decimal::Decimal;

pub(super) const DEFS: &[Def] = &[
    Def::new("ABS", 1, 1, number_type, abs),
    Def::new("CEIL", 1, 1, whole_type, ceil),
    Def::new("CEILING", 1, 1, whole_type, ceil),
    Def::new("FLOOR", 1, 1, whole_type, floor),
    Def::new("ROUND", 1, 2, round_type, round),
    Def::new("TRUNCATE", 2, 2, truncate_type, truncate),
    Def::new("MOD", 2, 2, mod_type, modulo),
    Def::new("POW", 2, 2, ty::double, pow),
    Def::new("POWER", 2, 2, ty::double, pow),
    Def::new("SQRT", 1, 1, ty::double, |a, _, cx| defined(a, cx, |x| x >= 0.0, f64::sqrt)),
    Def::new("EXP", 1, 1, ty::double, |a, _, cx| finite(a, cx, f64::exp, "exp")),
    Def::new("LN", 1, 1, ty::double, |a, _, cx| logarithm(a, cx, f64::ln)),
    Def::new("LOG", 1, 2, ty::double, log),
    Def::new("LOG2", 1, 1, ty::double, |a, _, cx| logarithm(a, cx, |x| x.ln() / std::f64::consts::LN_2)),
    Def::new("LOG10", 1, 1, ty::double, |a, _, cx| logarithm(a, cx, f64::log10)),
    Def::new("SIGN", 1, 1, ty::int, sign),
    Def::new("PI", 0, 0, pi_type, |_, _, _| Ok(Value::Double(std::f64::consts::PI))),
    Def::new("SIN", 1, 1, ty::double, |a, _, cx| defined(a, cx, |_| true, f64::sin)),
    Def::new("COS", 1, 1, ty::double, |a, _, cx| defined(a, cx, |_| true, f64::cos)),
    Def::new("TAN", 1, 1, ty::double, |a, _, cx| defined(a, cx, |_| true, f64::tan)),
    Def::new("COT", 1, 1, ty::double, |a, _, cx| finite(a, cx, |x| 1.0 / x.tan(), "cot")),
    Def::new("ASIN", 1, 1, ty::double, |a, _, cx| defined(a, cx, |x| x.abs() <= 1.0, f64::asin)),
    Def::new("ACOS", 1, 1, ty::double, |a, _, cx| defined(a, cx, |x| x.abs() <= 1.0, f64::acos)),
    Def::new("ATAN", 1, 2, ty::double, atan),
    Def::new("ATAN2", 2, 2, ty::double, atan),
    Def::new("DEGREES", 1, 1, ty::double, |a, _, cx| finite(a, cx, f64::to_degrees, "degrees")),
    Def::new("RADIANS", 1, 1, ty::double, |a, _, cx| defined(a, cx, |_| true, f64::to_radians)),
    Def::volatile("RAND", 0, 1, rand_type, rand),
    Def::new("BIT_COUNT", 1, 1, ty::int, bit_count),
];

/// 64 bits that nobody can guess, from the operating system by way of the standard library's
/// hasher seeds.
pub(super) fn entropy() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// A number rounded to `places`, as text.
pub(super) fn print_rounded(value: &Value, e: &Expr, places: u8, cx: &mut Context<'_>) -> ExecResult<String> {
    let mut out = Vec::new();
    match value {
        Value::Float(_) | Value::Double(_) | Value::Bytes(_) => {
            let n = round_real(e.to_f64(value, cx), i32::from(places), false);
            omnibus_value::text::write_f64_fixed(n, places, &mut out);
        }
        value => e.to_decimal(value, cx).round(i32::from(places)).rescale(places).write_text(&mut out),
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// The type of the number that a date or a time is; others as they are.
fn numeric(ty: &ExprType) -> ExprType {
    let number = match ty.family() {
        Family::Date => ExprType::bigint(),
        Family::Time | Family::DateTime if ty.column.decimals == 0 => ExprType::bigint(),
        Family::Time | Family::DateTime => {
            ExprType::decimal(ty.integer_part() + u32::from(ty.scale()), ty.scale())
        }
        _ => return ty.clone(),
    };
    number.nullable(ty.nullable)
}

/// The number that a date, a time, a year or bits are; others as they are.
fn as_number(e: &Expr, value: Value, cx: &mut Context<'_>) -> Value {
    match value {
        Value::Year(n) => Value::UInt(u64::from(n)),
        Value::Bit(n) => Value::UInt(n),
        Value::Date(d) => Value::Int(i64::from(d.to_number())),
        Value::DateTime(_) | Value::Time(_) => {
            let number = e.to_decimal(&value, cx);
            match (e.ty.column.decimals, number.to_i64()) {
                (0, Ok(n)) => Value::Int(n),
                _ => Value::Decimal(number),
            }
        }
        value => value,
    }
}

fn number_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    let ty = &numeric(&args[0].ty);
    Ok(match ty.family() {
        Family::Integer if ty.is_unsigned() => ExprType::ubigint(),
        Family::Integer => ExprType::bigint(),
        Family::Decimal => ty.clone(),
        Family::Real => ExprType::double().decimals(ty.column.decimals),
        _ => ExprType::double(),
    }
    .nullable(ty.nullable))
}

fn whole_type(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let ty = &numeric(&args[0].ty);
    Ok(match ty.family() {
        Family::Integer if ty.is_unsigned() => ExprType::ubigint(),
        Family::Integer => ExprType::bigint(),
        Family::Decimal if ty.integer_part() < 18 => {
            let mut whole = ExprType::bigint();
            whole.column.length = ty.integer_part() + 1 + u32::from(ty.column.decimals > 0);
            whole
        }
        Family::Decimal => ExprType::decimal(ty.integer_part() + 1, 0),
        _ if cx.session.settings.mariadb => ExprType::double().decimals(0),
        _ => ExprType::double(),
    }
    .nullable(ty.nullable))
}

/// The number of places of ROUND and TRUNCATE, if it is constant.
fn constant_places(args: &[Expr]) -> Option<i64> {
    match args.get(1).map(Expr::as_const) {
        None => Some(0),
        Some(Some(Value::Int(n))) => Some(*n),
        Some(Some(Value::Decimal(n))) => n.to_i64().ok(),
        Some(Some(Value::Bytes(text))) => i64::try_from(crate::expr::convert::text_to_int(text).0).ok(),
        _ => None,
    }
}

fn round_type(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    rounded_type(args, 1, cx)
}

fn truncate_type(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    rounded_type(args, 0, cx)
}

/// `carry`: digits that rounding may add in front.
fn rounded_type(args: &[Expr], carry: u32, cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let ty = &numeric(&args[0].ty);
    let nullable = ty::any_null(args);
    Ok(match (ty.family(), constant_places(args)) {
        (Family::Integer, _) => {
            if ty.is_unsigned() {
                ExprType::ubigint()
            } else {
                ExprType::bigint()
            }
        }
        (Family::Decimal, Some(places)) => {
            let scale = places.clamp(0, i64::from(ty.column.decimals)) as u8;
            let carry = if scale < ty.column.decimals { carry } else { 0 };
            ExprType::decimal(ty.integer_part() + carry + u32::from(scale), scale)
        }
        (Family::Decimal, None) => ty.clone(),
        // MySQL 9 shows the digits that there are, MariaDB as many as are asked for.
        _ if !cx.session.settings.mariadb => ExprType::double(),
        (_, Some(places)) => ExprType::double().decimals(places.clamp(0, i64::from(NOT_FIXED)) as u8),
        (Family::Real, None) => ExprType::double().decimals(ty.column.decimals),
        _ => ExprType::double(),
    }
    .nullable(nullable))
}

fn mod_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    let exact = |f: Family| matches!(f, Family::Integer | Family::Decimal);
    let (a, b) = (&numeric(&args[0].ty), &numeric(&args[1].ty));
    Ok(match (a.family(), b.family()) {
        (Family::Integer, Family::Integer) if a.is_unsigned() => ExprType::ubigint(),
        (Family::Integer, Family::Integer) => ExprType::bigint(),
        (x, y) if exact(x) && exact(y) => {
            let scale = a.scale().max(b.scale());
            ExprType::decimal(a.integer_part().max(b.integer_part()) + u32::from(scale), scale)
        }
        _ => ExprType::double().decimals(a.fixed_decimals().max(b.fixed_decimals()).min(NOT_FIXED)),
    }
    .nullable(true))
}

fn abs(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = value_arg!(args, 0, cx);
    let value = as_number(&args[0], value, cx);
    Ok(match value {
        Value::Int(n) => match n.checked_abs() {
            Some(n) => Value::Int(n),
            None => return Err(beyond("BIGINT", "abs", args, cx).into()),
        },
        Value::Decimal(d) => Value::Decimal(d.abs()),
        Value::UInt(_) | Value::Bit(_) => value,
        value => Value::Double(args[0].to_f64(&value, cx).abs()),
    })
}

fn to_whole(d: Decimal, ty: &ExprType) -> Value {
    match (ty.family(), d.to_i64()) {
        (Family::Integer, Ok(n)) => Value::Int(n),
        _ => Value::Decimal(d),
    }
}

fn ceil(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = value_arg!(args, 0, cx);
    let value = as_number(&args[0], value, cx);
    Ok(match value {
        Value::Int(_) | Value::UInt(_) => value,
        Value::Decimal(d) => to_whole(d.ceil(), ty),
        value => Value::Double(with_zero(args[0].to_f64(&value, cx).ceil(), cx)),
    })
}

fn floor(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = value_arg!(args, 0, cx);
    let value = as_number(&args[0], value, cx);
    Ok(match value {
        Value::Int(_) | Value::UInt(_) => value,
        Value::Decimal(d) => to_whole(d.floor(), ty),
        value => Value::Double(with_zero(args[0].to_f64(&value, cx).floor(), cx)),
    })
}

/// A double rounded to `places` (half to even, as the C library's rint does) or cut.
fn round_real(n: f64, places: i32, cut: bool) -> f64 {
    let factor = 10f64.powi(places.unsigned_abs() as i32);
    if !factor.is_finite() {
        return if places < 0 { 0.0 } else { n };
    }
    let scaled = if places < 0 { n / factor } else { n * factor };
    if !scaled.is_finite() {
        return n;
    }
    let whole = if cut { scaled.trunc() } else { scaled.round_ties_even() };
    let rounded = if places < 0 { whole * factor } else { whole / factor };
    if rounded.is_finite() { rounded } else { n }
}

fn rounded(args: &[Expr], ty: &ExprType, cut: bool, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = value_arg!(args, 0, cx);
    let value = as_number(&args[0], value, cx);
    let places = if args.len() > 1 { int_arg!(args, 1, cx).clamp(-400, 400) as i32 } else { 0 };
    Ok(match value {
        Value::Int(_) | Value::UInt(_) if places >= 0 => value,
        Value::Int(n) => match i64::try_from(round_integer(i128::from(n), places, cut)) {
            Ok(n) => Value::Int(n),
            Err(_) => return Err(beyond("BIGINT", "round", args, cx).into()),
        },
        Value::UInt(n) => match u64::try_from(round_integer(i128::from(n), places, cut)) {
            Ok(n) => Value::UInt(n),
            Err(_) => return Err(beyond("BIGINT UNSIGNED", "round", args, cx).into()),
        },
        Value::Decimal(d) => {
            let places = places.clamp(-100, 100);
            let d = if cut { d.truncate(places) } else { d.round(places) };
            Value::Decimal(d.rescale(ty.column.decimals))
        }
        value => {
            let n = args[0].to_f64(&value, cx);
            match ty.family() {
                Family::Integer => Value::Int(n as i64),
                _ => Value::Double(with_zero(round_real(n, places, cut), cx)),
            }
        }
    })
}

fn round_integer(n: i128, places: i32, cut: bool) -> i128 {
    let Some(unit) = 10i128.checked_pow(places.unsigned_abs()) else { return 0 };
    let rest = n % unit;
    let base = n - rest;
    if !cut && rest.abs() * 2 >= unit { base + unit * n.signum() } else { base }
}

fn round(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    rounded(args, ty, false, cx)
}

fn truncate(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    rounded(args, ty, true, cx)
}

fn modulo(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    crate::expr::arith::binary(crate::expr::node::ArithOp::Mod, &args[0], &args[1], ty, cx)
}

/// 1690 of a call.
pub(super) fn beyond(kind: &str, name: &str, args: &[Expr], cx: &Context<'_>) -> SqlError {
    SqlError::data_out_of_range(kind, format!("{name}({})", crate::expr::print::list(args, ",", cx)))
}

fn out_of_range(name: &str, args: &[Expr], cx: &Context<'_>) -> SqlError {
    beyond("DOUBLE", name, args, cx)
}

fn pow(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let result = real_arg!(args, 0, cx).powf(real_arg!(args, 1, cx));
    if result.is_finite() { Ok(Value::Double(result)) } else { Err(out_of_range("pow", args, cx).into()) }
}

fn defined(
    args: &[Expr],
    cx: &mut Context<'_>,
    domain: fn(f64) -> bool,
    f: fn(f64) -> f64,
) -> ExecResult<Value> {
    let x = real_arg!(args, 0, cx);
    Ok(if domain(x) { Value::Double(f(x)) } else { Value::Null })
}

fn finite(args: &[Expr], cx: &mut Context<'_>, f: fn(f64) -> f64, name: &str) -> ExecResult<Value> {
    let result = f(real_arg!(args, 0, cx));
    if result.is_finite() { Ok(Value::Double(result)) } else { Err(out_of_range(name, args, cx).into()) }
}

fn bad_logarithm(cx: &mut Context<'_>) -> ExecResult<Value> {
    cx.complain(SqlError::new(3020, b"2201E", "Invalid argument for logarithm"))?;
    Ok(Value::Null)
}

fn logarithm(args: &[Expr], cx: &mut Context<'_>, f: fn(f64) -> f64) -> ExecResult<Value> {
    let x = real_arg!(args, 0, cx);
    if x <= 0.0 { bad_logarithm(cx) } else { Ok(Value::Double(f(x))) }
}

fn log(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    if args.len() == 1 {
        return logarithm(args, cx, f64::ln);
    }
    let (base, x) = (real_arg!(args, 0, cx), real_arg!(args, 1, cx));
    if base <= 0.0 || base == 1.0 || x <= 0.0 {
        return bad_logarithm(cx);
    }
    Ok(Value::Double(x.ln() / base.ln()))
}

fn sign(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let x = real_arg!(args, 0, cx);
    Ok(Value::Int(if x > 0.0 { 1 } else { -i64::from(x < 0.0) }))
}

fn pi_type(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    let mut ty = ExprType::double().decimals(6);
    ty.column.length = 8;
    Ok(ty)
}

fn atan(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let y = real_arg!(args, 0, cx);
    if args.len() == 1 {
        return Ok(Value::Double(y.atan()));
    }
    Ok(Value::Double(y.atan2(real_arg!(args, 1, cx))))
}

fn rand_type(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::double())
}

const RAND_MAX: u64 = 0x3FFF_FFFF;

/// One step of MySQL's generator: both seeds, and a number below 1.
fn next_random((one, two): (u64, u64)) -> ((u64, u64), f64) {
    let one = (one * 3 + two) % RAND_MAX;
    let two = (one + two + 33) % RAND_MAX;
    ((one, two), one as f64 / RAND_MAX as f64)
}

/// RAND() continues the session's sequence; RAND(n) with a constant n begins the same sequence in
/// every execution, and a column argument seeds anew for each row.
fn rand(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(arg) = args.first() else {
        let (a, b) = cx.session.connection.rand;
        let (seeds, number) = next_random((a % RAND_MAX, b % RAND_MAX));
        cx.session.connection.rand = seeds;
        return Ok(Value::Double(number));
    };
    let seed = arg.eval_int(cx)?.unwrap_or(0) as u32;
    let first = seed.wrapping_mul(0x10001).wrapping_add(55_555_555);
    let second = seed.wrapping_mul(0x1000_0001);
    let start = (u64::from(first) % RAND_MAX, u64::from(second) % RAND_MAX);
    let key = std::ptr::from_ref(arg) as usize;
    let seeds = if arg.is_fixed() { cx.rand_seeds.get(&key).copied().unwrap_or(start) } else { start };
    let (seeds, number) = next_random(seeds);
    cx.rand_seeds.insert(key, seeds);
    Ok(Value::Double(number))
}

fn bit_count(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    if !cx.session.settings.mariadb && bits::is_bits_of_bytes(&args[0].ty) {
        let bytes = str_arg!(args, 0, cx);
        return Ok(Value::Int(bytes.iter().map(|byte| i64::from(byte.count_ones())).sum()));
    }
    Ok(Value::Int(i64::from((int_arg!(args, 0, cx) as u64).count_ones())))
}
