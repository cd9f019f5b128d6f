//! Names of the select list in ORDER BY, GROUP BY and HAVING: which of them a name by itself stands for.

use super::binder::Binder;
use crate::error::{SqlError, SqlResult};
use crate::expr::{Expr, Kind};
use omnibus_parser::ast::{self, SelectItem};
use std::sync::Arc;

/// The expression behind a name that ORDER BY has by itself: an alias goes before a column. Inside an expression it is the
/// other way round.
pub(super) fn lone_alias(binder: &Binder<'_>, e: &ast::Expr) -> SqlResult<Option<Expr>> {
    match (e, binder.blocks.last()) {
        (ast::Expr::Column(column), Some(block)) if column.table().is_none() => {
            let found = block.alias(&column.name)?;
            if let (Some(e), true) = (&found, binder.meaning.is_some()) {
                binder.mean_column(block, column, e);
            }
            Ok(found)
        }
        _ => Ok(None),
    }
}

/// What a name of the select list stands for that GROUP BY has by itself. A column of FROM goes before it, with a warning if it is
/// another one; a name that several tables have is that of the select list.
pub(super) fn grouped_name(binder: &mut Binder<'_>, e: &ast::Expr) -> SqlResult<Option<Expr>> {
    let (ast::Expr::Column(column), Some(block)) = (e, binder.blocks.last()) else { return Ok(None) };
    if column.table().is_some() {
        return Ok(None);
    }
    let clause = block.clause.name();
    let Some(selected) = block.scope.find_alias(&column.name, clause)? else { return Ok(None) };
    let stored: Vec<Expr> = block.scope.all(&column.name).collect();
    let [stored] = &stored[..] else { return lone_alias(binder, e) };
    if !stored.same(selected) {
        binder.warn(SqlError::non_uniq(&column.name, clause));
    }
    Ok(None)
}

/// Aliases that GROUP BY, HAVING and ORDER BY may use: those written, and names of columns.
pub(super) fn aliases(items: &[SelectItem], names: &[Arc<str>], outputs: &[Expr]) -> Vec<(Arc<str>, Expr)> {
    let written: Vec<&str> = items
        .iter()
        .filter_map(|item| match item {
            SelectItem::Expr { alias: Some(alias), .. } => Some(&**alias),
            _ => None,
        })
        .collect();
    let paired = names.iter().zip(outputs);
    paired
        .filter(|(name, e)| written.iter().any(|w| *w == &***name) || matches!(e.kind, Kind::Column { .. }))
        .map(|(name, e)| (name.clone(), e.clone()))
        .collect()
}
