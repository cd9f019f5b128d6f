//! Now, and arithmetic on dates and times: NOW, CURDATE, UNIX_TIMESTAMP, DATEDIFF, TIMESTAMPDIFF,
//! MAKEDATE, SEC_TO_TIME, CONVERT_TZ. Parts are in `temporal_parts`, text in `temporal_format`.

use super::{Def, int_arg, str_arg, ty, value_arg};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::context::unix_us;
use crate::expr::convert::of_date;
use crate::expr::types::{BINARY, Family};
use crate::expr::{BindContext, Context, Expr, ExprType, Kind};
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::{
    Date, DateMode, DateTime, Instant, Interval, IntervalUnit, Time, Zone, parse_datetime, parse_time,
};
use omnibus_value::{ColumnKind, Value};

/// No name that a statement can have.
pub(crate) const CAST_AT_UTC: &str = "\0CAST_AT_UTC";

pub(super) const DEFS: &[Def] = &[
    Def::session("NOW", 0, 1, now_type, |_, ty, cx| {
        Ok(Value::DateTime(cx.now().truncate(ty.column.decimals)))
    }),
    Def::session("CURRENT_TIMESTAMP", 0, 1, now_type, |_, ty, cx| {
        Ok(Value::DateTime(cx.now().truncate(ty.column.decimals)))
    }),
    Def::volatile("SYSDATE", 0, 1, now_type, sysdate),
    Def::session("CURDATE", 0, 0, curdate_type, |_, _, cx| Ok(Value::Date(cx.now().date()))),
    Def::session("CURTIME", 0, 1, curtime_type, |_, ty, cx| {
        Ok(Value::Time(cx.now().time().truncate(ty.column.decimals)))
    }),
    Def::session("UTC_TIMESTAMP", 0, 1, now_type, |_, ty, cx| {
        Ok(Value::DateTime(unix_us(cx.session.statement.now_us).truncate(ty.column.decimals)))
    }),
    Def::session("UTC_DATE", 0, 0, curdate_type, |_, _, cx| {
        Ok(Value::Date(unix_us(cx.session.statement.now_us).date()))
    }),
    Def::session("UTC_TIME", 0, 1, curtime_type, |_, ty, cx| {
        Ok(Value::Time(unix_us(cx.session.statement.now_us).time().truncate(ty.column.decimals)))
    }),
    Def::session("UNIX_TIMESTAMP", 0, 1, unix_type, unix_timestamp),
    Def::session(CAST_AT_UTC, 1, 1, at_utc_type, at_utc),
    Def::session("DATE", 1, 1, ty::date, |a, ty, cx| crate::expr::cast::cast(&a[0], ty, cx)),
    Def::new("TIME", 1, 1, time_type, |a, _, cx| Ok(a[0].eval_time(cx)?.map_or(Value::Null, Value::Time))),
    Def::session("TIMESTAMP", 1, 2, timestamp_type, timestamp),
    Def::new("DATEDIFF", 2, 2, ty::int_or_null, datediff),
    Def::new("TIMEDIFF", 2, 2, time_type, timediff),
    Def::new("TIMESTAMPDIFF", 3, 3, ty::bigint_or_null, timestampdiff),
    Def::new("TIMESTAMPADD", 3, 3, timestampadd_type, timestampadd),
    Def::new("ADDTIME", 2, 2, addtime_type, |a, ty, cx| addtime(a, ty, 1, cx)),
    Def::new("SUBTIME", 2, 2, addtime_type, |a, ty, cx| addtime(a, ty, -1, cx)),
    Def::new("LAST_DAY", 1, 1, ty::date, last_day),
    Def::new("FROM_DAYS", 1, 1, ty::date, from_days),
    Def::new("TO_SECONDS", 1, 1, ty::bigint_or_null, to_seconds),
    Def::new("MAKEDATE", 2, 2, ty::date, makedate),
    Def::new("MAKETIME", 3, 3, |args, cx| seconds_type(&args[2..], cx), maketime),
    Def::new("SEC_TO_TIME", 1, 1, seconds_type, sec_to_time),
    Def::new("TIME_TO_SEC", 1, 1, ty::bigint_or_null, time_to_sec),
    Def::new("PERIOD_ADD", 2, 2, ty::int, period_add),
    Def::new("PERIOD_DIFF", 2, 2, ty::int, period_diff),
    Def::session("CONVERT_TZ", 3, 3, first_datetime, convert_tz),
];

/// Digits of fraction that a constant argument asks for.
fn wanted_decimals(args: &[Expr]) -> SqlResult<u8> {
    match args.first().map(Expr::as_const) {
        None => Ok(0),
        Some(Some(Value::Int(n @ 0..=6))) => Ok(*n as u8),
        Some(Some(Value::Int(n))) => Err(SqlError::too_big_precision(n, "now", 6)),
        Some(_) => Err(SqlError::wrong_arguments("now")),
    }
}

fn now_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::datetime(wanted_decimals(args)?))
}

fn curdate_type(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::date())
}

fn curtime_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::time(wanted_decimals(args)?))
}

/// Digits of fraction that an argument may have.
fn decimals_of(e: &Expr) -> u8 {
    match e.ty.family() {
        Family::Integer | Family::Date => 0,
        Family::DateTime | Family::Time => e.ty.column.decimals,
        Family::Decimal | Family::Real => e.ty.column.decimals.min(6),
        Family::String => match e.as_const() {
            Some(Value::Bytes(text)) => {
                let point = text.iter().rposition(|b| *b == b'.');
                point.map_or(0, |at| (text.len() - at - 1).min(6) as u8)
            }
            _ => 6,
        },
        _ => 6,
    }
}

fn time_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::time(args.iter().map(decimals_of).max().unwrap_or(0)).nullable(true))
}

fn first_datetime(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::datetime(decimals_of(&args[0])).nullable(true))
}

fn timestamp_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::datetime(args.iter().map(decimals_of).max().unwrap_or(0)).nullable(true))
}

fn unix_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    let decimals = args.first().map_or(0, decimals_of);
    let nullable = args.iter().any(|a| a.ty.nullable);
    let ty = if decimals == 0 {
        ExprType::bigint()
    } else {
        ExprType::decimal(12 + u32::from(decimals), decimals)
    };
    Ok(ty.nullable(nullable || !args.is_empty()))
}

fn sysdate(_: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let local = cx.zone().local_us(omnibus_commit::now_us() as i64);
    Ok(Value::DateTime(unix_us(local).truncate(ty.column.decimals)))
}

fn unix_timestamp(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(arg) = args.first() else {
        return Ok(Value::Int(cx.session.statement.now_us.div_euclid(1_000_000)));
    };
    let value = arg.eval(cx)?;
    let Some(at) = arg.to_datetime(&value, cx) else {
        return Ok(match (ty.family(), matches!(value, Value::Null) || cx.session.settings.mariadb) {
            (_, true) => Value::Null,
            (Family::Integer, false) => Value::Int(0),
            (_, false) => Value::Decimal(Decimal::from_i128(0, ty.column.decimals)),
        });
    };
    let unix = match at.instant(cx.zone()) {
        Some(instant) if instant.unix() >= UNIX_END => 0,
        Some(instant) => instant.unix().max(0),
        None => 0,
    };
    if ty.family() == Family::Integer {
        return Ok(Value::Int(unix));
    }
    let micros = if unix == 0 { 0 } else { i128::from(unix) * 1_000_000 + i128::from(at.micros()) };
    Ok(Value::Decimal(Decimal::from_i128(micros, 6).rescale(ty.column.decimals)))
}

fn at_utc_type(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::datetime(0).nullable(true))
}

/// A TIMESTAMP as the clocks of UTC show it. MySQL leaves the fraction out, whatever the type has room for, and takes the
/// zero date for the beginning of 1970.
fn at_utc(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(at) = args[0].eval_datetime(cx)? else { return Ok(Value::Null) };
    let unix = at.instant(cx.zone()).map_or(0, |instant| instant.unix());
    Ok(DateTime::from_unix(unix, 0).map_or(Value::Null, Value::DateTime))
}

fn timestamp(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(arg) = args.get(1) else { return crate::expr::cast::cast(&args[0], ty, cx) };
    let Some(at) = args[0].eval_datetime(cx)? else { return Ok(Value::Null) };
    let Some(time) = arg.eval_time(cx)? else { return Ok(Value::Null) };
    Ok(at.add_time(time).map_or(Value::Null, Value::DateTime))
}

fn datediff(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(a) = of_date(&args[0], Date::to_days, cx)? else { return Ok(Value::Null) };
    let Some(b) = of_date(&args[1], Date::to_days, cx)? else { return Ok(Value::Null) };
    Ok(Value::Int(a - b))
}

/// A value as a time or as date and time, whichever it is; text by its form.
enum Moment {
    Time(Time),
    DateTime(DateTime),
}

fn moment(e: &Expr, cx: &mut Context<'_>) -> ExecResult<Option<Moment>> {
    let value = e.eval(cx)?;
    Ok(match &value {
        Value::Null => None,
        Value::Time(t) => Some(Moment::Time(*t)),
        Value::Date(_) | Value::DateTime(_) => e.to_datetime(&value, cx).map(Moment::DateTime),
        // To MariaDB short text is a time whatever it looks like: '2024-01-02' is 20 minutes and 24 seconds.
        Value::Bytes(text) => {
            let dated = parse_time(text, 6).is_ok_and(|parsed| parsed.has_date)
                || !cx.session.settings.mariadb && text.len() > 5 && !text.contains(&b':');
            match parse_datetime(text, 6, DateMode::RELAXED) {
                Ok(parsed) if dated && parsed.offset.is_some() => {
                    e.to_datetime(&value, cx).map(Moment::DateTime)
                }
                Ok(parsed) if dated => Some(Moment::DateTime(parsed.value)),
                _ => Expr::constant(value, e.ty.clone()).eval_time(cx)?.map(Moment::Time),
            }
        }
        // A year's text is one of a time.
        Value::Year(_) => Expr::constant(Value::Bytes(e.to_str(&value)), ExprType::varchar(4, BINARY))
            .eval_time(cx)?
            .map(Moment::Time),
        // So many digits are of a date, or in MariaDB of a date and a time.
        value if value.to_f64().value >= if cx.session.settings.mariadb { 1e10 } else { 8_385_960.0 } => {
            match value.to_datetime(6, DateMode::RELAXED, Date::ZERO).value {
                Some(at) => Some(Moment::DateTime(at)),
                None => e.to_time(value, cx).map(Moment::Time),
            }
        }
        value => e.to_time(value, cx).map(Moment::Time),
    })
}

fn timediff(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let dated = |e: &Expr| matches!(e.ty.family(), Family::Date | Family::DateTime);
    let (a, b) = if args.iter().any(dated) {
        if args.iter().any(|e| e.ty.family() == Family::Time) {
            return Ok(Value::Null);
        }
        let (a, b) = (args[0].eval_datetime(cx)?, args[1].eval_datetime(cx)?);
        (a.map(Moment::DateTime), b.map(Moment::DateTime))
    } else {
        (moment(&args[0], cx)?, moment(&args[1], cx)?)
    };
    let micros = match (a, b) {
        (Some(Moment::Time(a)), Some(Moment::Time(b))) => a.to_micros() - b.to_micros(),
        (Some(Moment::DateTime(a)), Some(Moment::DateTime(b))) => match a.diff_micros(b) {
            Some(micros) => micros,
            None => return Ok(Value::Null),
        },
        _ => return Ok(Value::Null),
    };
    Ok(clipped(micros, cx))
}

/// A time, with a warning if it had to be clipped.
fn clipped(micros: i64, cx: &mut Context<'_>) -> Value {
    let time = Time::from_micros_clipped(micros);
    if time.to_micros() != micros {
        let seconds = micros / 1_000_000;
        let (sign, magnitude) = (if seconds < 0 { "-" } else { "" }, seconds.unsigned_abs());
        let text = format!("{sign}{}:{:02}:{:02}", magnitude / 3600, magnitude / 60 % 60, magnitude % 60);
        cx.warn(SqlError::truncated_wrong_value("time", text));
    }
    Value::Time(time)
}

fn unit_of(e: &Expr) -> IntervalUnit {
    match &e.kind {
        Kind::Unit(unit) => *unit,
        _ => IntervalUnit::Microsecond,
    }
}

fn timestampdiff(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let (Some(a), Some(b)) = (args[1].eval_datetime(cx)?, args[2].eval_datetime(cx)?) else {
        return Ok(Value::Null);
    };
    Ok(a.timestamp_diff(b, unit_of(&args[0])).map_or(Value::Null, Value::Int))
}

fn timestampadd_type(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let mut ty = crate::expr::interval::date_arith_type(
        &args[2],
        &args[1],
        unit_of(&args[0]),
        cx.session.settings.mariadb,
    );
    if ty.family() == Family::String {
        ty.column.collation = cx.collation;
    }
    Ok(ty)
}

fn timestampadd(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let pair = [args[2].clone(), args[1].clone()];
    crate::expr::interval::date_arith(&pair, unit_of(&args[0]), false, ty, cx)
}

fn addtime_type(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let decimals = args.iter().map(decimals_of).max().unwrap_or(0);
    Ok(match args[0].ty.family() {
        Family::DateTime | Family::Date => ExprType::datetime(decimals),
        Family::Time => ExprType::time(decimals),
        _ => ExprType::varchar(29, cx.collation),
    }
    .nullable(true))
}

fn addtime(args: &[Expr], ty: &ExprType, sign: i64, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(start) = moment(&args[0], cx)? else { return Ok(Value::Null) };
    // To MariaDB text or a number with a date in it is nothing to add; a DATETIME column's time is.
    let typed = !cx.session.settings.mariadb
        || args[1].ty.is_temporal()
        || args[1].ty.column.kind == ColumnKind::Year;
    let time = match if typed { args[1].eval_time(cx)?.map(Moment::Time) } else { moment(&args[1], cx)? } {
        Some(Moment::Time(time)) => time,
        _ => return Ok(Value::Null),
    };
    let interval = Interval::of_micros(sign * time.to_micros());
    let value = match start {
        Moment::Time(t) => Some(clipped(t.to_micros().saturating_add(interval.micros), cx)),
        Moment::DateTime(at) => at.add(interval).map(Value::DateTime),
    };
    let Some(value) = value else { return Ok(Value::Null) };
    if ty.family() != Family::String {
        return Ok(value);
    }
    let whole = match &value {
        Value::Time(t) => t.micros() == 0,
        Value::DateTime(d) => d.micros() == 0,
        _ => true,
    };
    let decimals = match args[0].ty.family() {
        Family::String if whole => 0,
        Family::String => 6,
        _ => args.iter().map(decimals_of).max().unwrap_or(0),
    };
    Ok(super::text(crate::expr::convert::print(&value, decimals)))
}

fn last_day(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(of_date(&args[0], Date::last_day, cx)?.map_or(Value::Null, Value::Date))
}

fn from_days(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let days = i64::try_from(int_arg!(args, 0, cx)).unwrap_or(0);
    if cx.session.settings.mariadb {
        // Below day 366 and past the year 9999 it has no date to give.
        let date = if days > 365 { Date::from_days(days) } else { None };
        return Ok(Value::Date(date.unwrap_or(Date::ZERO)));
    }
    let date = Date::from_days(days);
    if date.is_none() {
        let call = format!("from_days({})", crate::expr::print::expr(&args[0], cx));
        cx.warn(SqlError::new(6527, b"22003", format!("DATE value is out of range in '{call}'")));
    }
    Ok(date.map_or(Value::Null, Value::Date))
}

fn to_seconds(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(at) = args[0].eval_datetime(cx)? else { return Ok(Value::Null) };
    let seconds = at.date().to_days().map(|days| days * 86_400 + at.time().to_seconds());
    Ok(seconds.map_or(Value::Null, Value::Int))
}

fn makedate(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let year = int_arg!(args, 0, cx);
    let day = int_arg!(args, 1, cx);
    let year = match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    };
    let first = u32::try_from(year).ok().and_then(|y| Date::from_ymd(y, 1, 1)).and_then(Date::to_days);
    let (Some(first), Ok(day)) = (first, i64::try_from(day)) else { return Ok(Value::Null) };
    if day <= 0 {
        return Ok(Value::Null);
    }
    Ok(first.checked_add(day - 1).and_then(Date::from_days).map_or(Value::Null, Value::Date))
}

fn maketime(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let hour = int_arg!(args, 0, cx);
    let minute = int_arg!(args, 1, cx);
    let seconds = value_arg!(args, 2, cx);
    let seconds = args[2].to_decimal(&seconds, cx);
    let cut = cx.session.settings.date_mode().truncate;
    let seconds = if cut { seconds.truncate(6) } else { seconds }.to_f64();
    if !(0..60).contains(&minute) || !(0.0..60.0).contains(&seconds) {
        return Ok(Value::Null);
    }
    let micros = (seconds * 1e6).round() as i64;
    let hours = i64::try_from(hour.clamp(-1000, 1000)).unwrap_or(0);
    let magnitude = (hours.abs() * 3600 + minute as i64 * 60) * 1_000_000 + micros;
    Ok(clipped(if hours < 0 { -magnitude } else { magnitude }, cx))
}

/// A time of seconds: text has all digits of a fraction.
fn seconds_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    let decimals = if args[0].ty.family() == Family::String { 6 } else { decimals_of(&args[0]) };
    Ok(ExprType::time(decimals).nullable(true))
}

fn sec_to_time(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = value_arg!(args, 0, cx);
    // Nanoseconds are read, and rounded or cut.
    let seconds = args[0].to_decimal(&value, cx).truncate(9);
    let past = if seconds.is_negative() { i64::MIN } else { i64::MAX };
    let micros = seconds.mul(&Decimal::from_i128(1_000_000, 0)).map_or(past, |micros| {
        let cut = cx.session.settings.date_mode().truncate;
        let whole = if cut { micros.truncate(0) } else { micros.round(0) };
        whole.to_i64().unwrap_or(past)
    });
    Ok(clipped(micros, cx))
}

fn time_to_sec(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(time) = args[0].eval_time(cx)? else { return Ok(Value::Null) };
    Ok(Value::Int(time.to_micros() / 1_000_000))
}

/// A year of two digits is one of 1970 to 2069.
fn full_year(year: i128) -> i128 {
    match year {
        0..=69 => year + 2000,
        70..=99 => year + 1900,
        _ => year,
    }
}

/// Months since year 0 of YYMM or YYYYMM.
fn period(n: i128, name: &str) -> ExecResult<i128> {
    let (year, month) = (n / 100, n % 100);
    if n <= 0 || !(1..=12).contains(&month) {
        return Err(SqlError::wrong_arguments(name).into());
    }
    Ok(full_year(year) * 12 + month - 1)
}

fn period_add(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let start = int_arg!(args, 0, cx);
    let months = int_arg!(args, 1, cx);
    let total = period(start, "period_add")? + months;
    let result = if total == 0 { 0 } else { full_year(total / 12) * 100 + total % 12 + 1 };
    match i64::try_from(result) {
        Ok(result) if total >= 0 => Ok(Value::Int(result)),
        _ => Err(super::numeric::beyond("BIGINT", "period_add", args, cx).into()),
    }
}

fn period_diff(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let a = int_arg!(args, 0, cx);
    let b = int_arg!(args, 1, cx);
    let months = period(a, "period_diff")? - period(b, "period_diff")?;
    match i64::try_from(months) {
        Ok(months) => Ok(Value::Int(months)),
        Err(_) => Err(super::numeric::beyond("BIGINT", "period_diff", args, cx).into()),
    }
}

/// Seconds since 1970 that functions know end here: 3001-01-19.
pub(super) const UNIX_END: i64 = 32_536_771_200;

fn convert_tz(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let from = str_arg!(args, 1, cx);
    let to = str_arg!(args, 2, cx);
    let zone = |name: &[u8]| Zone::by_name(std::str::from_utf8(name).ok()?);
    let (Some(from), Some(to)) = (zone(&from), zone(&to)) else { return Ok(Value::Null) };
    let Some(at) = args[0].eval_datetime(cx)?.map(DateTime::fields) else { return Ok(Value::Null) };
    if at.date().month() == 0 || at.date().day() == 0 {
        let mut text = Vec::new();
        at.write_text(0, &mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        cx.warn(SqlError::new(1292, b"22007", format!("Incorrect datetime value: '{text}'")));
        return Ok(Value::Null);
    }
    let Some(unix) = at.instant(from).map(Instant::unix) else { return Ok(Value::DateTime(at)) };
    // Nothing else is converted.
    if !(1..UNIX_END).contains(&unix) {
        return Ok(Value::DateTime(at));
    }
    let local = unix + i64::from(to.offset_at(unix));
    Ok(DateTime::from_unix(local, at.micros()).map_or(Value::Null, Value::DateTime))
}
