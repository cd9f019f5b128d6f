//! Binding of what stands for a value by itself: literals, parameters, variables.

use super::binder::Binder;
use super::calls;
use super::scope::Source;
use crate::api::client_text::{self, of_client};
use crate::api::{Priv, VariableScope};
use crate::catalog::ColumnDefault;
use crate::error::{SqlError, SqlResult};
use crate::expr::charset;
use crate::expr::into_column::implicit_default;
use crate::expr::node::{Expr, Kind};
use crate::expr::stored::local_type;
use crate::expr::types::{BINARY, Coercibility, ExprType, Family, string_column};
use crate::state::may_use_row;
use omnibus_parser::ast;
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::{parse_datetime, parse_time};
use omnibus_value::{ColumnKind, Value};
use std::borrow::Cow;

pub(super) fn param(binder: &mut Binder<'_>, number: usize) -> Expr {
    binder.collected.untyped_params = true;
    let ty = match binder.params.and_then(|params| params.get(number)) {
        Some(value) => value_type(value, binder.collation()),
        None => ExprType::varchar(16_383, binder.collation()).nullable(true),
    };
    Expr { kind: Kind::Param(number), ty }
}

/// A variable of the running program.
pub(super) fn local(binder: &Binder<'_>, number: u32) -> SqlResult<Expr> {
    let Some(column) = binder.session.programs.locals.ty(number) else {
        return Err(SqlError::internal("a variable outside of its program"));
    };
    Ok(Expr { kind: Kind::Local(number), ty: local_type(column) })
}

/// `NEW.name` or `OLD.name` in a trigger.
pub(super) fn trigger_column(binder: &Binder<'_>, row: &str, name: &str) -> Option<SqlResult<Expr>> {
    let trigger = binder.session.programs.trigger.as_ref()?;
    let new = row.eq_ignore_ascii_case("NEW");
    if !new && !row.eq_ignore_ascii_case("OLD") {
        return None;
    }
    match trigger.local(new, name) {
        Some(number) => {
            Some(may_use_row(binder.session, name, Priv::Select).and_then(|()| local(binder, number)))
        }
        None => Some(Err(SqlError::bad_field(name, if new { "NEW" } else { "OLD" }))),
    }
}

pub(super) fn user_variable(binder: &mut Binder<'_>, name: &str) -> Expr {
    let name = name.to_lowercase();
    binder.note(|noted| noted.variable(&name));
    let ty = match binder.session.values.get(&name) {
        Some((value, column)) => {
            let mut ty = value_type(value, binder.collation());
            if let Value::Bytes(text) = value {
                let length = charset::char_count(text, column.collation) as u32;
                ty.column = string_column(length, column.collation);
            }
            ty.nullable(true).coercible(Coercibility::Implicit)
        }
        None => ExprType::varchar(16_383, BINARY).nullable(true).coercible(Coercibility::Implicit),
    };
    Expr { kind: Kind::UserVariable(name.into()), ty }
}

pub(super) fn system_variable(
    binder: &mut Binder<'_>,
    scope: Option<ast::VarScope>,
    name: &str,
) -> SqlResult<Expr> {
    let scope = match scope {
        None => VariableScope::Either,
        Some(ast::VarScope::Session) => VariableScope::Session,
        Some(_) => VariableScope::Global,
    };
    let name = name.to_ascii_lowercase();
    binder.note(|noted| noted.system_variable(&name, scope == VariableScope::Global));
    let (value, column) = crate::expr::sysvar::read(binder.session, scope, &name)?;
    let mut ty = value_type(&value, binder.collation()).nullable(true);
    ty.column = column;
    if ty.family() == Family::String && !ty.is_null() {
        ty.coercibility = Coercibility::SystemConstant;
    }
    Ok(Expr { kind: Kind::SystemVariable(Box::new((scope, name.into()))), ty })
}

pub(super) fn literal(binder: &Binder<'_>, literal: &ast::Literal) -> SqlResult<Expr> {
    use ast::Literal as L;
    let bad = |kind: &str, text: &[u8]| {
        let text = String::from_utf8_lossy(text).into_owned();
        SqlError::new(1525, b"HY000", format!("Incorrect {kind} value: '{text}'"))
    };
    // MySQL reads all of a literal or none of it.
    let strict = !binder.session.settings.mariadb;
    Ok(match literal {
        L::Null => Expr::null(),
        L::True => Expr::constant(Value::Int(1), ExprType::int(1)),
        L::False => Expr::constant(Value::Int(0), ExprType::int(1)),
        L::Int(n) => integer_literal(*n),
        L::Decimal(text) => {
            let parsed = Decimal::parse(text);
            let scale = parsed.value.shown_scale();
            // A zero before all other digits is a digit of the type.
            let zero = u32::from(text.first() == Some(&b'0'));
            let digits = u32::from(parsed.value.precision()).max(u32::from(scale));
            let ty = ExprType::decimal((digits + zero).min(65), scale);
            Expr::constant(Value::Decimal(parsed.value), ty)
        }
        L::Float(n) => Expr::constant(Value::Double(*n), ExprType::double()),
        L::Str(text) => {
            let text = client_text::literal(text, binder.author.client, binder.author.connection);
            string(text, binder.collation())
        }
        L::National(text) => string(as_written(binder, text), 33),
        L::Hex(bytes) | L::Bit(bytes) => binary_literal(bytes.clone()),
        L::Date(text) => {
            let parsed =
                parse_datetime(text, 6, crate::expr::convert::relaxed_dates(&binder.session.settings))
                    .map_err(|_| bad("DATE", text))?;
            if strict && (parsed.truncated || parsed.has_time) {
                return Err(bad("DATE", text));
            }
            Expr::constant(Value::Date(parsed.value.date()), ExprType::date())
        }
        L::Time(text) => {
            let parsed = parse_time(text, 6).map_err(|_| bad("TIME", text))?;
            if strict && parsed.truncated {
                return Err(bad("TIME", text));
            }
            Expr::constant(Value::Time(parsed.value), ExprType::time(parsed.fraction_digits.min(6)))
        }
        L::Timestamp(text) => {
            let parsed =
                parse_datetime(text, 6, crate::expr::convert::relaxed_dates(&binder.session.settings))
                    .map_err(|_| bad("DATETIME", text))?;
            if strict && (!parsed.has_time || parsed.truncated) {
                return Err(bad("DATETIME", text));
            }
            // With a displacement it is that moment in the session's zone.
            let value = match parsed.offset {
                None => parsed.value,
                Some(_) if !parsed.value.date().is_full() => return Err(bad("DATETIME", text)),
                Some(seconds) => crate::expr::convert::shift(parsed.value, -seconds)
                    .utc_to_local(binder.session.settings.zone)
                    .unwrap_or(parsed.value),
            };
            Expr::constant(Value::DateTime(value), ExprType::datetime(parsed.fraction_digits.min(6)))
        }
    })
}

/// DEFAULT(column).
pub(super) fn default_of(binder: &mut Binder<'_>, column: &ast::ColumnRef) -> SqlResult<Expr> {
    let e = binder.column(column)?;
    let Kind::Column { slot, column: at, .. } = &e.kind else {
        return Err(SqlError::no_default_for_field(&*column.name));
    };
    let table = match binder.collected.slots.get(usize::from(*slot)) {
        Some(Some(table)) => table.clone(),
        _ => return Err(SqlError::no_default_for_field(&*column.name)),
    };
    let Source::Table(stored) = &table.source else {
        return Err(SqlError::no_default_for_field(&*column.name));
    };
    let stored = &stored.columns()[usize::from(*at)];
    match &stored.default {
        ColumnDefault::None if stored.auto_increment && !binder.session.settings.mariadb => {
            Ok(Expr::constant(implicit_default(&stored.ty), e.ty))
        }
        ColumnDefault::Value(value) => Ok(Expr::constant(value.clone(), e.ty.nullable(true))),
        ColumnDefault::CurrentTimestamp => calls::call_function(binder, "NOW", Vec::new()),
        ColumnDefault::Expression(_) => Err(SqlError::new(
            3773,
            b"HY000",
            "DEFAULT function cannot be used with default value expressions",
        )),
        _ => Err(SqlError::no_default_for_field(&*column.name)),
    }
}

fn string(text: bytes::Bytes, collation: u16) -> Expr {
    let length = charset::char_count(&text, collation) as u32;
    let ty = ExprType::varchar(length, collation);
    Expr::constant(Value::Bytes(text), ty)
}

pub(super) fn introduced(binder: &mut Binder<'_>, name: &str, literal: &ast::Literal) -> SqlResult<Expr> {
    let collation = super::cast::charset_by_name(binder, name)?;
    let text = match literal {
        ast::Literal::Str(text) => as_written(binder, text),
        ast::Literal::Hex(text) | ast::Literal::Bit(text) => text.clone(),
        other => return self::literal(binder, other),
    };
    let good = charset::well_formed(&text, collation);
    if good < text.len() && charset::max_width(collation) > 1 {
        return Err(charset::invalid(&text[good..], collation));
    }
    Ok(string(text, collation))
}

/// The bytes of a literal that says itself what they are: those that the client sent.
fn as_written(binder: &Binder<'_>, text: &bytes::Bytes) -> bytes::Bytes {
    match of_client(text, binder.session.settings.collation_client) {
        Cow::Borrowed(_) => text.clone(),
        Cow::Owned(written) => written.into(),
    }
}

/// An integer literal: BIGINT if it fits, else BIGINT UNSIGNED.
fn integer_literal(n: u64) -> Expr {
    let width = n.checked_ilog10().unwrap_or(0) + 1;
    match i64::try_from(n) {
        Ok(n) => {
            let mut ty = ExprType::bigint();
            ty.column.length = width + 1;
            if width < 10 {
                ty.column.kind = ColumnKind::Int;
            }
            Expr::constant(Value::Int(n), ty)
        }
        Err(_) => {
            let mut ty = ExprType::ubigint();
            ty.column.length = width;
            Expr::constant(Value::UInt(n), ty)
        }
    }
}

/// `x'41'`: a binary string; its kind BINARY marks it as one that is a number where one is wanted.
fn binary_literal(bytes: bytes::Bytes) -> Expr {
    let mut ty = ExprType::varchar(bytes.len() as u32, BINARY);
    ty.column.kind = ColumnKind::Binary;
    Expr::constant(Value::Bytes(bytes), ty)
}

/// The type of a value that carries none, as a parameter or variable.
#[must_use]
pub fn value_type(value: &Value, collation: u16) -> ExprType {
    match value {
        Value::Null => ExprType::null(),
        Value::Int(_) => ExprType::bigint(),
        Value::UInt(_) | Value::Bit(_) | Value::Set(_) => ExprType::ubigint(),
        Value::Year(_) | Value::Enum(_) => ExprType::int(5),
        Value::Float(_) | Value::Double(_) => ExprType::double(),
        Value::Decimal(d) => ExprType::decimal(u32::from(d.precision()), d.shown_scale()),
        Value::Date(_) => ExprType::date(),
        Value::DateTime(d) => ExprType::datetime(if d.micros() == 0 { 0 } else { 6 }),
        Value::Time(t) => ExprType::time(if t.micros() == 0 { 0 } else { 6 }),
        Value::Fixed(v) => ExprType::fixed(v.kind()),
        Value::Json(_) => ExprType::json(),
        Value::Bytes(bytes) => {
            let length = charset::char_count(bytes, collation) as u32;
            ExprType {
                column: string_column(length, collation),
                nullable: true,
                coercibility: Coercibility::Literal,
            }
        }
    }
}
