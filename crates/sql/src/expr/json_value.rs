//! MySQL's JSON_VALUE: the one part of a document at a path, as a value of an SQL type.
//!
//! A value that is none of the type, and a path that finds several parts, is an error, for ON ERROR; a path that finds nothing is for ON
//! EMPTY. MariaDB's function of that name is among the functions of JSON.

use super::context::Context;
use super::functions::json::document;
use super::into_column::into_column;
use super::node::Expr;
use super::types::{Family, family};
use crate::api::sql_mode;
use crate::catalog::Column;
use crate::error::{ExecResult, Interrupt, SqlError, SqlResult};
use crate::expr::json;
use crate::state::SessionState;
use omnibus_value::json::{Json, Path};
use omnibus_value::{ColumnKind, ColumnType, Value};

/// The stand-in for a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Instead {
    /// NULL.
    Null,
    /// An error.
    Error,
    /// A value of the result's type.
    Default(Value),
}

/// A call, bound.
#[derive(Clone, Debug)]
pub struct JsonValue {
    /// The document.
    pub doc: Expr,
    /// Where in it.
    pub path: Path,
    /// The path as it was written.
    pub path_text: Box<str>,
    /// ON EMPTY.
    pub on_empty: Instead,
    /// ON ERROR.
    pub on_error: Instead,
    /// RETURNING, as a column that may be NULL.
    pub column: Column,
}

impl JsonValue {
    /// Whether two calls give the same of equal documents.
    pub(crate) fn is_like(&self, other: &JsonValue) -> bool {
        self.path == other.path
            && self.on_empty == other.on_empty
            && self.on_error == other.on_error
            && self.column.ty == other.column.ty
    }

    /// Evaluates it.
    ///
    /// # Errors
    /// Those of the document's own evaluation, 3146 for one of another type, and what ERROR asks for.
    pub(crate) fn eval(&self, cx: &mut Context<'_>) -> ExecResult<Value> {
        let doc = match document(std::slice::from_ref(&self.doc), 0, "json_value", cx) {
            Ok(Some(doc)) => doc,
            Ok(None) => return Ok(Value::Null),
            Err(Interrupt::Error(error)) if error.code == 3141 && error.message.contains(" json_value:") => {
                if self.on_error != Instead::Error {
                    cx.session.diagnostics.warn(error.clone());
                }
                return self.instead(&self.on_error, error);
            }
            Err(other) => return Err(other),
        };
        let found = cx.paced(|pace| self.path.find(&doc, pace))?;
        let part = match found[..] {
            [] => {
                let message = "No value was found by 'json_value' on the specified path.";
                return self.instead(&self.on_empty, SqlError::new(3966, b"22035", message));
            }
            [part] => part,
            _ => {
                let message = "More than one value was found by 'json_value' on the specified path.";
                return self.instead(&self.on_error, SqlError::new(3967, b"22034", message));
            }
        };
        match converted(part, &self.column, cx.session) {
            Some(value) => Ok(value),
            None => {
                let error = SqlError::data_out_of_range(type_name(&self.column.ty, "STRING"), "json_value");
                self.instead(&self.on_error, error)
            }
        }
    }

    fn instead(&self, instead: &Instead, error: SqlError) -> ExecResult<Value> {
        match instead {
            Instead::Null => Ok(Value::Null),
            Instead::Error => Err(error.into()),
            Instead::Default(value) => Ok(value.clone()),
        }
    }
}

/// A part of a document as a value of the column's type; `None` if it is none.
fn converted(part: &Json, column: &Column, session: &mut SessionState) -> Option<Value> {
    if matches!(part, Json::Null) {
        return Some(Value::Null);
    }
    if column.ty.kind == ColumnKind::Json {
        return Some(json::to_value(part));
    }
    // Times are texts in documents, and a date alone is no moment.
    match (column.ty.kind, part) {
        (ColumnKind::Time, Json::Bool(_) | Json::Int(_) | Json::UInt(_) | Json::Double(_)) => return None,
        (ColumnKind::DateTime, Json::String(text)) if !has_both(text) => return None,
        _ => {}
    }
    let is_text = family(column.ty.kind) == Family::String;
    let mut printed = Vec::new();
    let (value, ty) = match part {
        Json::Array(_) | Json::Object(_) if !is_text => return None,
        Json::Bool(is) if !is_text => (Value::Int((*is).into()), ColumnType::of(ColumnKind::BigInt)),
        Json::Int(n) => (Value::Int(*n), ColumnType::of(ColumnKind::BigInt)),
        Json::UInt(n) => (Value::UInt(*n), ColumnType::of(ColumnKind::BigInt).unsigned()),
        // All such integers are documents' integers, and this one was another.
        Json::Double(n) if column.ty.kind == ColumnKind::BigInt && *n <= i64::MIN as f64 => return None,
        Json::Double(n) if !is_text => (Value::Double(*n), ColumnType::of(ColumnKind::Double)),
        other => {
            other.unquote(&mut printed);
            (Value::Bytes(printed.into()), ColumnType::string(ColumnKind::LongText, 0, json::COLLATION))
        }
    };
    // What is no column's shows as a number, and is read as one.
    match stored(value, &ty, column, session).ok()? {
        Value::Year(year) => Some(Value::UInt(u64::from(year))),
        value => Some(value),
    }
}

/// Whether a text has a date and a time.
fn has_both(text: &str) -> bool {
    text.trim().bytes().filter(|byte| !byte.is_ascii_digit()).count() > 2 || text.trim().len() >= 14
}

/// A value that a literal gives for DEFAULT.
///
/// # Errors
/// 1690 or 1292 for what is no value of the type, 3141 for what is no document.
pub(crate) fn default_value(
    value: Value,
    ty: &ColumnType,
    column: &Column,
    session: &mut SessionState,
) -> SqlResult<Value> {
    if column.ty.kind == ColumnKind::Json {
        let text = value.to_bytes(ty);
        let parsed = Json::parse(&text);
        let parsed = parsed.map_err(|error| super::functions::json::failure(&error, 1, "json_value"))?;
        return Ok(json::to_value(&parsed));
    }
    let text = String::from_utf8_lossy(&value.to_bytes(ty)).into_owned();
    if column.ty.kind == ColumnKind::BigInt && digits_behind_point(text.as_bytes()) > 0 {
        return Err(no_value(&column.ty, &text));
    }
    let outcome = stored(value.clone(), ty, column, session);
    // What is rounded is another value than what was written.
    let exact = outcome.as_ref().is_ok_and(|stored| {
        !matches!(column.ty.kind, ColumnKind::Decimal | ColumnKind::Time | ColumnKind::DateTime)
            || digits_behind_point(&stored.to_bytes(&column.ty)) >= digits_behind_point(text.as_bytes())
    });
    match outcome {
        Ok(stored) if exact => Ok(stored),
        Err(error)
            if matches!(error.code, 1366 | 1292 | 1265) && family(column.ty.kind) != Family::String =>
        {
            Err(no_value(&column.ty, &text))
        }
        _ => {
            let name = type_name(&column.ty, "CHAR");
            let name = if name == "YEAR" { name.to_owned() } else { format!("{name} DEFAULT") };
            Err(SqlError::data_out_of_range(name, "json_value"))
        }
    }
}

/// The digits of a fraction, without zeros at its end.
fn digits_behind_point(text: &[u8]) -> usize {
    let fraction = text.iter().position(|byte| *byte == b'.').map_or(&[][..], |point| &text[point + 1..]);
    fraction.iter().rposition(|byte| *byte != b'0').map_or(0, |last| last + 1)
}

fn no_value(ty: &ColumnType, text: &str) -> SqlError {
    let kind = match ty.kind {
        ColumnKind::Date | ColumnKind::DateTime => {
            let message = format!("Incorrect datetime value: '{text}'");
            return SqlError::new(1292, b"22007", message);
        }
        ColumnKind::Time => "time",
        ColumnKind::Float | ColumnKind::Double => "DOUBLE",
        ColumnKind::Decimal => "DECIMAL",
        ColumnKind::Year => "YEAR",
        _ if ty.unsigned => "INTEGER UNSIGNED",
        _ => "INTEGER SIGNED",
    };
    SqlError::truncated_wrong_value(kind, text)
}

fn type_name(ty: &ColumnType, of_text: &'static str) -> &'static str {
    match ty.kind {
        ColumnKind::Date => "DATE",
        ColumnKind::DateTime => "DATETIME",
        ColumnKind::Time => "TIME",
        ColumnKind::Float => "FLOAT",
        ColumnKind::Double => "DOUBLE",
        ColumnKind::Decimal => "DECIMAL",
        ColumnKind::Year => "YEAR",
        ColumnKind::BigInt if ty.unsigned => "UNSIGNED",
        ColumnKind::BigInt => "SIGNED",
        _ => of_text,
    }
}

/// As a column stores it whatever `sql_mode` says, and without a trace in the diagnostics.
fn stored(value: Value, ty: &ColumnType, column: &Column, session: &mut SessionState) -> SqlResult<Value> {
    let out_of_range = || SqlError::warn_data_out_of_range(&column.name, 1);
    if let (Value::Bytes(text), ColumnKind::BigInt | ColumnKind::Year) = (&value, column.ty.kind) {
        let text = std::str::from_utf8(text).unwrap_or_default().trim();
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(SqlError::truncated_wrong_value("INTEGER", text));
        }
    }
    if column.ty.kind == ColumnKind::Year {
        let year: Option<i64> = String::from_utf8_lossy(&value.to_bytes(ty)).trim().parse().ok();
        if !year.is_some_and(|year| (1901..=2155).contains(&year)) {
            return Err(out_of_range());
        }
    }
    let (mode, noted) = (session.settings.sql_mode, session.diagnostics.conditions().len());
    session.settings.sql_mode |=
        sql_mode::STRICT_ALL_TABLES | sql_mode::NO_ZERO_DATE | sql_mode::NO_ZERO_IN_DATE;
    session.settings.sql_mode &= !sql_mode::ALLOW_INVALID_DATES;
    let stored = into_column(value, ty, column, 1, false, session);
    session.settings.sql_mode = mode;
    session.diagnostics.truncate(noted);
    stored
}
