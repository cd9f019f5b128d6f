//! DEFAULT clauses: constants are cast to the column's type once, here.

use super::build::BuildContext;
use super::expressions;
use crate::api::sql_mode;
use crate::bind::scope::same;
use crate::catalog::{Column, ColumnDefault, TableDef, charset, sequence};
use crate::error::{Level, SqlError, SqlResult};
use bytes::Bytes;
use omnibus_parser::ast::{DefaultValue, Expr, Literal, Qualifier, UnaryOp};
use omnibus_parser::print;
use omnibus_value::decimal::Decimal;
use omnibus_value::temporal::{DateMode, DateTime, parse_datetime};
use omnibus_value::{ColumnKind, FixedKind, Value};

/// The default that a clause gives a column. A TIMESTAMP is a time of the statement's zone; it is stored as UTC.
pub(crate) fn build(
    column: &Column,
    default: &DefaultValue,
    table: &str,
    context: &mut BuildContext<'_>,
) -> SqlResult<ColumnDefault> {
    let bad = || SqlError::invalid_default(&column.name);
    let qualified;
    let default = match default {
        DefaultValue::Expression(expr) if sequence::named_in(expr).is_some() => {
            qualified = DefaultValue::Expression(in_database(expr, context.db));
            &qualified
        }
        default => default,
    };
    if !context.mariadb && is_bare_time(default) {
        return Err(bad());
    }
    let expr = match default {
        DefaultValue::Dropped => return Ok(ColumnDefault::None),
        DefaultValue::Value(expr) => expr,
        DefaultValue::Expression(expr) if constant(expr).is_some() && !column.is_blob() => expr,
        DefaultValue::Expression(expr) => {
            let owner = || format!("Default value expression of column '{}'", column.name);
            let expr = expressions::stored(expr, table, context.writer, (3769, &owner))?;
            return Ok(ColumnDefault::Expression(expr));
        }
    };
    if let Expr::Function(call) = expr {
        let temporal = matches!(column.ty.kind, ColumnKind::DateTime | ColumnKind::Timestamp);
        let digits = match call.args.as_slice() {
            [] => 0,
            [Expr::Literal(Literal::Int(digits))] => *digits,
            _ => return Err(bad()),
        };
        if !call.name.is("now") || !temporal || digits != u64::from(column.ty.decimals) {
            return Err(bad());
        }
        return Ok(ColumnDefault::CurrentTimestamp);
    }
    let value = constant(expr).ok_or_else(bad)?;
    if matches!(value, Value::Null) {
        return Ok(ColumnDefault::Value(Value::Null));
    }
    if column.is_blob() && !context.mariadb {
        return of_blob(column, &value, context);
    }
    if column.is_blob() {
        return Ok(ColumnDefault::Expression(expressions::stored(
            expr,
            table,
            context.writer,
            (1101, &String::new),
        )?));
    }
    let value = match column.ty.kind {
        ColumnKind::Enum | ColumnKind::Set => label(value, column).ok_or_else(bad)?,
        _ => value,
    };
    stored(of_bits(value, expr, column).ok_or_else(bad)?, column, context)
}

/// A literal's value for a column, where bits are not what they are elsewhere.
fn of_bits(value: Value, expr: &Expr, column: &Column) -> Option<Value> {
    let Value::Bytes(bytes) = &value else { return Some(value) };
    Some(match column.ty.kind {
        _ if !is_bits(expr) => value,
        // Bits of a BIT column are a number, however they were written.
        ColumnKind::Bit => Value::UInt(bytes_number(bytes)),
        kind if let Some(kind) = FixedKind::of(kind) => Value::Fixed(kind.from_bytes(bytes)?),
        // Bytes are characters of the column's set; where one may have several, they are looked at when they are stored.
        ColumnKind::Char | ColumnKind::VarChar if charset::max_len(column.ty.collation) == 1 => {
            Value::Bytes(charset::to_utf8(bytes, column.ty.collation).into())
        }
        _ => value,
    })
}

/// Whether a generated column reads DEFAULT(column) of one whose default changes.
pub(super) fn reads_new_default(old: &TableDef, new: &TableDef, column: &Column) -> bool {
    let Some(generated) = &column.generated else { return false };
    let changes = |name: &str| match (default_of(old, name), default_of(new, name)) {
        (Some(a), Some(b)) => !same_default(a, b),
        _ => true,
    };
    generated.expr.text.to_ascii_lowercase().contains("default(")
        && print::column_names(&generated.expr.tree).iter().any(|name| changes(name))
}

fn default_of<'d>(def: &'d TableDef, name: &str) -> Option<&'d ColumnDefault> {
    def.columns.iter().find(|column| same(&column.name, name)).map(|column| &column.default)
}

fn same_default(a: &ColumnDefault, b: &ColumnDefault) -> bool {
    match (a, b) {
        (ColumnDefault::Value(a), ColumnDefault::Value(b)) => a == b,
        (ColumnDefault::Expression(a), ColumnDefault::Expression(b)) => a.text == b.text,
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}

/// Whether a default is a literal of a time, which MySQL has in parentheses only.
fn is_bare_time(default: &DefaultValue) -> bool {
    let DefaultValue::Value(Expr::Literal(literal)) = default else { return false };
    matches!(literal, Literal::Date(_) | Literal::Time(_) | Literal::Timestamp(_))
}

/// A constant as the column has it.
fn stored(value: Value, column: &Column, context: &mut BuildContext<'_>) -> SqlResult<ColumnDefault> {
    if column.ty.kind == ColumnKind::Timestamp
        && !context.mariadb
        && !is_strict(context)
        && is_no_moment(&value, context.sql_mode & sql_mode::NO_ZERO_DATE != 0)
    {
        context.diagnostics.warn(SqlError::warn_data_out_of_range(&column.name, 1));
        return Ok(ColumnDefault::Value(Value::DateTime(DateTime::ZERO)));
    }
    let cast = crate::dml::cast::store(value, column, context.dates, context.zone).map_err(|error| {
        why(error, context);
        SqlError::invalid_default(&column.name)
    })?;
    Ok(ColumnDefault::Value(cast))
}

/// A BLOB has none, and an empty one is left out where `sql_mode` is not strict.
fn of_blob(column: &Column, value: &Value, context: &mut BuildContext<'_>) -> SqlResult<ColumnDefault> {
    let error = SqlError::blob_cant_have_default(&column.name);
    let nothing = matches!(value, Value::Bytes(text) if text.is_empty());
    if is_strict(context) || !nothing || column.ty.kind == ColumnKind::Json {
        return Err(error);
    }
    context.diagnostics.push(Level::Warning, error);
    Ok(ColumnDefault::None)
}

/// Whether bad data is an error of the definition rather than a warning.
pub(super) fn is_strict(context: &BuildContext<'_>) -> bool {
    context.sql_mode & (sql_mode::STRICT_TRANS_TABLES | sql_mode::STRICT_ALL_TABLES) != 0
}

/// Whether a date has a month or a day that is zero, so that it is no moment of a TIMESTAMP. One that is all zero may be the default unless
/// NO_ZERO_DATE is set.
fn is_no_moment(value: &Value, no_zero_date: bool) -> bool {
    let Value::Bytes(text) = value else { return false };
    let date = parse_datetime(text, 6, DateMode::RELAXED).map(|parsed| parsed.value.date());
    date.is_ok_and(|date| !date.is_full() && (no_zero_date || date != DateTime::ZERO.date()))
}

/// Tells what is wrong with a default, as MySQL does beside that it is invalid.
fn why(error: SqlError, context: &mut BuildContext<'_>) {
    if !context.mariadb {
        context.diagnostics.push(Level::Error, error);
    }
}

/// The same with the database of its sequence, which is that of the table if it does not say.
fn in_database(expr: &Expr, db: &str) -> Expr {
    let mut expr = expr.clone();
    if let Expr::Function(call) = &mut expr
        && let [Expr::Column(name)] = &mut call.args[..]
        && name.qualifier.is_none()
    {
        name.qualifier = Some(Box::new(Qualifier { schema: None, table: db.into() }));
    }
    expr
}

/// A label, which has no spaces at its end.
fn label(value: Value, column: &Column) -> Option<Value> {
    if is_number_of_label(&value, column) {
        return None;
    }
    Some(match value {
        Value::Bytes(text) => Value::Bytes(text.slice(..text.trim_ascii_end().len())),
        value => value,
    })
}

/// A default is a label; its number, which would be stored as well, is none.
fn is_number_of_label(value: &Value, column: &Column) -> bool {
    match value {
        Value::Bytes(text) => {
            let digits = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
            digits && !column.ty.labels.contains(text)
        }
        _ => true,
    }
}

fn is_bits(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(Literal::Bit(_) | Literal::Hex(_)))
}

fn bytes_number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The value of a literal, signed or not; `None` for anything else.
pub(crate) fn constant(expr: &Expr) -> Option<Value> {
    match expr {
        Expr::Literal(literal) => literal_value(literal),
        Expr::Unary { op: UnaryOp::Plus, expr } => constant(expr),
        Expr::Unary { op: UnaryOp::Minus, expr } => match constant(expr)? {
            Value::Int(value) => Some(Value::Int(value.checked_neg()?)),
            Value::UInt(value) if value == 1 << 63 => Some(Value::Int(i64::MIN)),
            Value::Double(value) => Some(Value::Double(-value)),
            Value::Decimal(_) => match &**expr {
                Expr::Literal(Literal::Decimal(text)) => {
                    let text = [b"-", &text[..]].concat();
                    Some(Value::Decimal(Decimal::parse(&text).value))
                }
                _ => None,
            },
            _ => None,
        },
        _ => None,
    }
}

fn literal_value(literal: &Literal) -> Option<Value> {
    Some(match literal {
        Literal::Null => Value::Null,
        Literal::True => Value::Int(1),
        Literal::False => Value::Int(0),
        Literal::Int(value) => i64::try_from(*value).map_or(Value::UInt(*value), Value::Int),
        Literal::Decimal(text) => Value::Decimal(Decimal::parse(text).value),
        Literal::Float(value) => Value::Double(*value),
        Literal::Str(text) | Literal::National(text) | Literal::Hex(text) | Literal::Bit(text) => {
            Value::Bytes(text.clone())
        }
        Literal::Date(text) | Literal::Time(text) | Literal::Timestamp(text) => {
            Value::Bytes(Bytes::clone(text))
        }
    })
}
