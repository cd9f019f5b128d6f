//! Refuses what new definitions may not have though stored ones may: earlier versions took it, and MariaDB does.

use crate::catalog::{Check, TableDef, same_name};
use crate::error::{SqlError, SqlResult};
use omnibus_value::ColumnKind;

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
    match new.checks.iter().filter(added).find(|check| !check.expr.tree.is_truth()) {
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
