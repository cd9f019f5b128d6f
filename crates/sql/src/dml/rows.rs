//! Rows of a statement: which ones and in what order, casts on their way into a table, whether two values are the same.

use super::Run;
use super::access::{Finder, evaluate};
use super::chosen::ChosenRows;
use super::plan::TargetTable;
use crate::catalog::Column;
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::context::Row;
use crate::expr::node::Expr;
use crate::rows::codec;
use crate::sort::{ExternalSort, KeyForm, Part};
use crate::state::SessionState;
use omnibus_value::Value;
use omnibus_value::decimal::Decimal;

/// An expression's value as a column stores it.
pub(crate) fn cast_into(
    value: Value,
    expr: &Expr,
    column: &Column,
    row: u64,
    ignore: bool,
    state: &mut SessionState,
) -> SqlResult<Value> {
    let ty = &expr.ty;
    if let Value::Bytes(bytes) = &value
        && ty.is_binary_literal()
        && super::cast::is_number(column.ty.kind)
    {
        // More than eight bytes are more than any column takes, zeros too.
        if bytes.len() > 8 && !state.settings.mariadb {
            let (beyond, source) = (Decimal::from_i128(1 << 64, 0), crate::expr::ExprType::decimal(20, 0));
            return super::cast::into_column(
                Value::Decimal(beyond),
                &source.column,
                column,
                row,
                ignore,
                state,
            );
        }
        let number = crate::expr::convert::bytes_as_number(bytes);
        let source = crate::expr::ExprType::ubigint().column;
        return super::cast::into_column(Value::UInt(number), &source, column, row, ignore, state);
    }
    super::cast::into_column(value, &ty.column, column, row, ignore, state)
}

/// An error of a document that is none, whose column has its table's name in front in MySQL.
pub(crate) fn of_table(mut error: SqlError, table: &str, state: &SessionState) -> SqlError {
    if error.code == 3140
        && !state.settings.mariadb
        && let Some(at) = error.message.rfind("for column '")
    {
        error.message.insert_str(at + "for column '".len(), &format!("{table}."));
    }
    error
}

/// The number that LIMIT allows.
fn limit_value(limit: Option<&Expr>, run: &mut Run<'_>) -> ExecResult<u64> {
    let Some(limit) = limit else { return Ok(u64::MAX) };
    match evaluate(limit, run, false)? {
        Value::Int(value) if value >= 0 => Ok(value as u64),
        Value::UInt(value) => Ok(value),
        _ => Err(SqlError::wrong_arguments("LIMIT").into()),
    }
}

/// The rows of an UPDATE or DELETE: those that match, as many as LIMIT allows, in the order that ORDER BY says. All are
/// found before the first is changed, so that none is found again.
pub(crate) fn chosen_rows(
    target: &TargetTable,
    run: &mut Run<'_>,
    finder: &Finder,
    limit: Option<&Expr>,
) -> ExecResult<ChosenRows> {
    let order = finder.order.as_slice();
    let limit = limit_value(limit, run)?;
    let early = if order.is_empty() { limit } else { u64::MAX };
    let found = target.matching(run, finder, early)?;
    match order {
        [] => Ok(found),
        order => sorted_rows(target, run, finder, order, limit, found),
    }
}

/// Rows in the order that ORDER BY says.
fn sorted_rows(
    target: &TargetTable,
    run: &mut Run<'_>,
    finder: &Finder,
    order: &[(Expr, bool)],
    limit: u64,
    mut rows: ChosenRows,
) -> ExecResult<ChosenRows> {
    let part = |(expr, descending): &(Expr, bool)| Part::new(&expr.ty, expr.ty.column.collation, *descending);
    let count = rows.count().min(limit);
    let mut exec = finder.exec(target, run);
    let mut sort = ExternalSort::new(KeyForm::new(order.iter().map(part).collect()), &exec);
    let (mut key, mut record) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        exec.tick()?;
        exec.frame[usize::from(target.slot)].row = Row::Image(row.row.clone());
        let keys = order.iter().map(|(expr, _)| expr.eval(&mut exec)).collect::<ExecResult<Vec<Value>>>()?;
        key.clear();
        sort.form().write(keys.iter(), &mut key);
        record.clear();
        codec::write_values(&[Value::Bytes(row.key), Value::Bytes(row.row)], &mut record);
        sort.add(&key, &record, &mut exec)?;
    }
    Ok(ChosenRows::sorted(sort.finish(&mut exec)?, count))
}

/// Whether two stored values are the same bytes; zeros have no sign.
pub(crate) fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::UInt(a), Value::UInt(b)) => a == b,
        (Value::Bytes(a), Value::Bytes(b)) | (Value::Json(a), Value::Json(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Double(a), Value::Double(b)) => a == b,
        (Value::Bit(a), Value::Bit(b)) | (Value::Set(a), Value::Set(b)) => a == b,
        (Value::Enum(a), Value::Enum(b)) | (Value::Year(a), Value::Year(b)) => a == b,
        (Value::Date(a), Value::Date(b)) => a.packed() == b.packed(),
        (Value::DateTime(a), Value::DateTime(b)) => a.packed() == b.packed(),
        (Value::Time(a), Value::Time(b)) => a.packed() == b.packed(),
        (Value::Decimal(a), Value::Decimal(b)) => a == b,
        (Value::Fixed(a), Value::Fixed(b)) => a == b,
        _ => false,
    }
}
