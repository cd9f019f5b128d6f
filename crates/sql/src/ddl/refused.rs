//! Refuses what new definitions may not have though stored ones may: earlier versions took it, and MariaDB does.

use crate::catalog::{Check, TableDef, same_name};
use crate::error::{SqlError, SqlResult};
use omnibus_parser::ast::{BinaryOp, Expr, Literal, UnaryOp};
use omnibus_value::ColumnKind;

/// Functions whose result is a truth value in MySQL.
const TRUTHS: &[&str] = &[
    "is_ipv4",
    "is_ipv4_compat",
    "is_ipv4_mapped",
    "is_ipv6",
    "is_uuid",
    "isnull",
    "json_contains",
    "json_contains_path",
    "json_overlaps",
    "json_schema_valid",
    "json_valid",
    "regexp_like",
    "strcmp",
];

/// Checks what a definition has that `old` has not.
///
/// # Errors
/// 1063: numbers for a FLOAT or DOUBLE column; 3812: a check that is no condition.
pub(super) fn refuse(new: &TableDef, old: Option<&TableDef>) -> SqlResult<()> {
    for column in new.columns.iter().filter(|column| column.auto_increment) {
        let stays = |old: &TableDef| {
            old.columns.iter().any(|known| known.auto_increment && known.ty.kind == column.ty.kind)
        };
        let is_real = matches!(column.ty.kind, ColumnKind::Float | ColumnKind::Double);
        if is_real && !old.is_some_and(stays) {
            return Err(SqlError::wrong_field_spec(&column.name));
        }
    }
    let stays = |check: &Check, old: &TableDef| {
        old.checks
            .iter()
            .any(|known| same_name(&known.name, &check.name) && known.expr.text == check.expr.text)
    };
    let added = |check: &&Check| !old.is_some_and(|old| stays(check, old));
    match new.checks.iter().filter(added).find(|check| !is_condition(&check.expr.tree)) {
        Some(check) => {
            let message = format!(
                "An expression of non-boolean type specified to a check constraint '{}'.",
                check.name
            );
            Err(SqlError::new(3812, b"HY000", message))
        }
        None => Ok(()),
    }
}

fn is_condition(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(literal) => matches!(literal, Literal::True | Literal::False),
        Expr::Unary { op, .. } => matches!(op, UnaryOp::Not),
        Expr::Binary { op, .. } => matches!(
            op,
            BinaryOp::Or
                | BinaryOp::Xor
                | BinaryOp::And
                | BinaryOp::Eq
                | BinaryOp::NullSafeEq
                | BinaryOp::Ne
                | BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Gt
                | BinaryOp::Ge
        ),
        Expr::Between { .. }
        | Expr::In { .. }
        | Expr::InSubquery { .. }
        | Expr::Exists(_)
        | Expr::Quantified { .. }
        | Expr::Like(_)
        | Expr::Regexp { .. }
        | Expr::IsNull { .. }
        | Expr::IsTruth { .. }
        | Expr::MemberOf { .. } => true,
        Expr::Function(call) => TRUTHS.iter().any(|name| call.name.is(name)),
        _ => false,
    }
}
