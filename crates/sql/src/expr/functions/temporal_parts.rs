//! Parts of dates and times: YEAR, MONTH, DAYOFWEEK, WEEK, TO_DAYS, DAYNAME and the like.

use super::{Def, int_arg, text, ty};
use crate::error::{ExecResult, SqlResult};
use crate::expr::convert::of_date;
use crate::expr::{BindContext, Context, Expr, ExprType, charset, interval};
use omnibus_value::locale::Locale;
use omnibus_value::temporal::{Date, IntervalUnit, days_in_year};
use omnibus_value::{ColumnKind, Value};

pub(super) const DEFS: &[Def] = &[
    Def::new("YEAR", 1, 1, year_type, year),
    Def::new("QUARTER", 1, 1, ty::small_int, |a, _, cx| {
        interval::date_part(IntervalUnit::Quarter, &a[0], cx)
    }),
    Def::new("MONTH", 1, 1, ty::small_int, |a, _, cx| interval::date_part(IntervalUnit::Month, &a[0], cx)),
    Def::new("DAY", 1, 1, ty::small_int, |a, _, cx| interval::date_part(IntervalUnit::Day, &a[0], cx)),
    Def::new("DAYOFMONTH", 1, 1, ty::small_int, |a, _, cx| interval::date_part(IntervalUnit::Day, &a[0], cx)),
    Def::new("HOUR", 1, 1, ty::small_int, |a, _, cx| of_time(IntervalUnit::Hour, &a[0], cx)),
    Def::new("MINUTE", 1, 1, ty::small_int, |a, _, cx| of_time(IntervalUnit::Minute, &a[0], cx)),
    Def::new("SECOND", 1, 1, ty::small_int, |a, _, cx| of_time(IntervalUnit::Second, &a[0], cx)),
    Def::new("MICROSECOND", 1, 1, ty::small_int, |a, _, cx| of_time(IntervalUnit::Microsecond, &a[0], cx)),
    Def::new("DAYOFWEEK", 1, 1, ty::small_int, |a, _, cx| {
        number(a, cx, |d| d.weekday().map(|w| i64::from((w + 1) % 7) + 1))
    }),
    Def::new("WEEKDAY", 1, 1, ty::small_int, |a, _, cx| number(a, cx, |d| d.weekday().map(i64::from))),
    Def::new("DAYOFYEAR", 1, 1, ty::small_int, |a, _, cx| number(a, cx, |d| d.day_of_year().map(i64::from))),
    Def::new("TO_DAYS", 1, 1, ty::int_or_null, |a, _, cx| number(a, cx, Date::to_days)),
    Def::session("DAYNAME", 1, 1, day_type, |a, ty, cx| name(a, ty, cx, |l, d| l.day(d.weekday()?))),
    Def::session("MONTHNAME", 1, 1, month_type, |a, ty, cx| name(a, ty, cx, |l, d| l.month(d.month()))),
    Def::session("WEEK", 1, 2, ty::small_int, week),
    Def::new("WEEKOFYEAR", 1, 1, ty::small_int, |a, _, cx| number(a, cx, |d| week_of(d, 3))),
    Def::new("YEARWEEK", 1, 2, ty::int_or_null, yearweek),
];

/// MySQL 9 has a YEAR, whatever its range is; MariaDB a number.
fn year_type(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    if cx.session.settings.mariadb {
        return ty::small_int(args, cx);
    }
    Ok(ExprType::year().nullable(true))
}

/// A number in either dialect: unlike a YEAR column's it shows no zeros in front.
fn year(args: &[Expr], ty: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(match interval::date_part(IntervalUnit::Year, &args[0], cx)? {
        Value::Int(n) if ty.column.kind == ColumnKind::Year => Value::UInt(n as u64),
        value => value,
    })
}

/// A part of a time without its sign, which EXTRACT keeps.
fn of_time(unit: IntervalUnit, e: &Expr, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(match interval::extract(unit, e, cx)? {
        Value::Int(n) => Value::Int(n.abs()),
        other => other,
    })
}

fn number(args: &[Expr], cx: &mut Context<'_>, part: fn(Date) -> Option<i64>) -> ExecResult<Value> {
    Ok(of_date(&args[0], part, cx)?.map_or(Value::Null, Value::Int))
}

fn day_type(_: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let (longest, _) = cx.session.settings.lc_time_names.longest();
    Ok(ExprType::varchar(longest, cx.collation).nullable(true))
}

fn month_type(_: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    let (_, longest) = cx.session.settings.lc_time_names.longest();
    Ok(ExprType::varchar(longest, cx.collation).nullable(true))
}

/// A name in the session's language and the result's character set.
fn name(
    args: &[Expr],
    ty: &ExprType,
    cx: &mut Context<'_>,
    part: fn(&Locale, Date) -> Option<&'static str>,
) -> ExecResult<Value> {
    let locale = cx.session.settings.lc_time_names;
    let name = of_date(&args[0], |date| part(locale, date), cx)?;
    Ok(name.map_or(Value::Null, |name| text(charset::from_utf8(name, ty.column.collation))))
}

/// Week number and its year under MySQL's mode bits: 1 = weeks begin on Monday, 2 = the year's
/// days before week 1 belong to the last week of the year before, 4 = week 1 is the first that
/// begins in the year (else the first with at least four days in it).
#[must_use]
pub fn week_and_year(date: Date, mode: u32) -> Option<(i64, i64)> {
    let monday_first = mode & 1 != 0;
    let mut by_year = mode & 2 != 0;
    let first_weekday = (mode & 4 != 0) == monday_first;
    let mut year = date.year();
    let day = date.to_days()?;
    let first = Date::from_ymd(year, 1, 1)?;
    let first_day = first.to_days()?;
    let weekday_of = |d: Date| -> Option<i64> {
        let monday_based = i64::from(d.weekday()?);
        Some(if monday_first { monday_based } else { (monday_based + 1) % 7 })
    };
    let mut weekday = weekday_of(first)?;
    let starts_late = |weekday: i64| (first_weekday && weekday != 0) || (!first_weekday && weekday >= 4);
    let mut start = first_day;
    if date.month() == 1 && i64::from(date.day()) <= 7 - weekday {
        if !by_year && starts_late(weekday) {
            return Some((0, i64::from(year)));
        }
        if starts_late(weekday) {
            by_year = true;
            year = year.checked_sub(1)?;
            let length = i64::from(days_in_year(year));
            start -= length;
            weekday = (weekday + 53 * 7 - length) % 7;
        }
    }
    let days = if starts_late(weekday) { day - (start + (7 - weekday)) } else { day - (start - weekday) };
    if by_year && days >= 52 * 7 {
        weekday = (weekday + i64::from(days_in_year(year))) % 7;
        if (!first_weekday && weekday < 4) || (first_weekday && weekday == 0) {
            return Some((1, i64::from(year) + 1));
        }
    }
    Some((days / 7 + 1, i64::from(year)))
}

/// WEEK(date, mode).
#[must_use]
pub fn week_of(date: Date, mode: u32) -> Option<i64> {
    week_and_year(date, week_mode(mode)).map(|(week, _)| week)
}

/// MySQL flips the meaning of bit 4 for weeks that begin on Sunday.
fn week_mode(mode: u32) -> u32 {
    mode & 7
}

fn week(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let mode = match args.len() {
        1 => u32::from(cx.session.settings.default_week_format),
        _ => int_arg!(args, 1, cx) as u32 & 7,
    };
    Ok(of_date(&args[0], |d| week_of(d, mode), cx)?.map_or(Value::Null, Value::Int))
}

fn yearweek(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let mode = if args.len() > 1 { int_arg!(args, 1, cx) as u32 & 7 } else { 0 };
    let found = of_date(&args[0], |d| week_and_year(d, week_mode(mode | 2)), cx)?;
    Ok(found.map_or(Value::Null, |(week, year)| Value::Int(year * 100 + week)))
}
