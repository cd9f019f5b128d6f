//! Names of the select list in ORDER BY, GROUP BY and HAVING: which of them a name by itself stands for.

use super::binder::Binder;
use crate::error::{SqlError, SqlResult};
use crate::expr::{Expr, Kind};
use omnibus_parser::ast::{self, SelectItem};
use std::collections::HashSet;
use std::sync::Arc;

/// The expression behind a name that ORDER BY has by itself: an alias goes before a column. Inside an expression it is the
/// other way round.
pub(super) fn lone_alias(binder: &Binder<'_>, e: &ast::Expr) -> SqlResult<Option<Expr>> {
    match (e, binder.blocks.last()) {
        (ast::Expr::Column(column), Some(block)) if column.table().is_none() => {
            let found = block.alias(&column.name, &binder.asked())?;
            if let (Some(e), true) = (&found, binder.notes.meaning.is_some()) {
                binder.mean_column(block, column, e);
            }
            Ok(found)
        }
        _ => Ok(None),
    }
}

/// The expression of a name of the select list that GROUP BY has by itself. A column of FROM goes before it, with a warning if it is
/// another one; a name that several tables have is that of the select list.
pub(super) fn grouped_name(binder: &mut Binder<'_>, e: &ast::Expr) -> SqlResult<Option<Expr>> {
    let (ast::Expr::Column(column), Some(block)) = (e, binder.blocks.last()) else { return Ok(None) };
    if column.table().is_some() {
        return Ok(None);
    }
    let clause = block.clause.name();
    let Some(selected) = block.scope.find_alias(&column.name, clause)? else { return Ok(None) };
    let stored: Vec<Expr> = block.scope.all(&column.name).collect();
    let [stored] = &stored[..] else {
        return lone_alias(binder, e).map_err(|error| not_grouped(error, &column.name));
    };
    if !stored.same(selected) {
        binder.warn(SqlError::non_uniq(&column.name, clause));
    }
    Ok(None)
}

/// An error about an aggregate's name as that of GROUP BY is about what is grouped by.
pub(super) fn not_grouped(error: SqlError, name: &str) -> SqlError {
    match error.code {
        1247 if error.message.ends_with("(reference to group function)") => SqlError::wrong_group_field(name),
        _ => error,
    }
}

/// An expression of GROUP BY or ORDER BY. A name in it that several tables have is right if the select list has the same expression
/// of one of them: `SELECT t.a + 0 .. ORDER BY a + 0`.
pub(super) fn selected_expr(binder: &mut Binder<'_>, e: &ast::Expr, outputs: &[Expr]) -> SqlResult<Expr> {
    let depth = binder.blocks.len();
    let ambiguous = match binder.expr(e) {
        Err(error)
            if error.code == NON_UNIQ
                && !matches!(e, ast::Expr::Column(_))
                && binder.blocks.len() == depth =>
        {
            error
        }
        bound => return bound,
    };
    for output in outputs {
        let mut columns = Vec::new();
        output.walk(&mut |e| {
            if let Kind::Column { slot, column, .. } = e.kind {
                columns.push((slot, column));
            }
        });
        choose(binder, columns);
        let bound = binder.expr(e);
        choose(binder, Vec::new());
        if bound.is_ok_and(|bound| bound.same(output)) {
            return Ok(output.clone());
        }
    }
    Err(ambiguous)
}

fn choose(binder: &mut Binder<'_>, columns: Vec<(u16, u16)>) {
    if let Some(block) = binder.blocks.last_mut() {
        block.scope.chosen = columns;
    }
}

/// Error 1052.
const NON_UNIQ: u16 = 1052;

/// Aliases that GROUP BY, HAVING and ORDER BY may use: those written, and names of columns.
pub(super) fn aliases(items: &[SelectItem], names: &[Arc<str>], outputs: &[Expr]) -> Vec<(Arc<str>, Expr)> {
    let written: HashSet<&str> = items
        .iter()
        .filter_map(|item| match item {
            SelectItem::Expr { alias: Some(alias), .. } => Some(&**alias),
            _ => None,
        })
        .collect();
    let paired = names.iter().zip(outputs);
    paired
        .filter(|(name, e)| written.contains(&***name) || matches!(e.kind, Kind::Column { .. }))
        .map(|(name, e)| (name.clone(), e.clone()))
        .collect()
}
