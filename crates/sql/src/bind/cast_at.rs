//! `CAST(x AT TIME ZONE zone AS DATETIME)`: of a TIMESTAMP, and at UTC alone, as in MySQL.

use super::binder::Binder;
use super::calls;
use crate::error::{SqlError, SqlResult};
use crate::expr::{Expr, ExprType, Kind, functions};
use omnibus_parser::ast::{self, CastType};
use omnibus_value::ColumnKind;

/// Binds the cast of an operand that is bound to a target that names a zone.
///
/// # Errors
/// 1298: another zone. 1426. 3998: what has no moment.
pub(super) fn bind(binder: &mut Binder<'_>, operand: &ast::Expr, e: Expr, to: &CastType) -> SqlResult<Expr> {
    let CastType::DateTimeAt { zone, interval, decimals } = to else { return Ok(e) };
    if *decimals > 6 {
        return Err(SqlError::too_big_precision(i64::from(*decimals), "CAST", 6));
    }
    let literal = matches!(operand, ast::Expr::Literal(ast::Literal::Timestamp(_)));
    if e.ty.column.kind != ColumnKind::Timestamp && !literal && !e.ty.is_null() {
        return Err(SqlError::new(3998, b"HY000", "Cannot cast value to TIMESTAMP WITH TIME ZONE."));
    }
    if &**zone != "+00:00" && (*interval || !zone.eq_ignore_ascii_case("UTC")) {
        return Err(SqlError::new(1298, b"HY000", format!("Unknown or incorrect time zone: '{zone}'")));
    }
    let e = calls::call_function(binder, functions::CAST_AT_UTC, vec![e])?;
    let ty = ExprType::datetime(*decimals).nullable(true);
    Ok(binder.fold(Expr { kind: Kind::Cast(Box::new(e)), ty }))
}
