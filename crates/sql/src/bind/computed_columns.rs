//! An indexed generated column is not computed again: where a condition, an order or a group is its expression, the column
//! stands for it, and its index can be used.

use super::scope::Source;
use super::{Binder, Clause, Scope};
use crate::catalog::{Catalog, Column, Table};
use crate::error::SqlResult;
use crate::expr::types::{ExprType, Family, family};
use crate::expr::{Expr, Kind};
use crate::logical::nest::Nest;
use crate::state::SessionState;
use omnibus_value::ColumnKind;
use std::sync::Arc;

/// Expressions of a table's indexed generated columns, over its slot in a query.
pub(crate) struct ComputedColumns(Vec<(Expr, Expr)>);

impl ComputedColumns {
    /// Of a table in a slot; `None` if it has none.
    ///
    /// # Errors
    /// An expression does not bind, which nobody has met when the table was made.
    pub(crate) fn of(
        table: &Arc<Table>,
        slot: u16,
        nullable: bool,
        session: &SessionState,
        catalog: &Catalog,
    ) -> SqlResult<Option<ComputedColumns>> {
        let indexed = |at: usize| {
            table
                .indexes()
                .iter()
                .any(|index| !index.invisible && index.parts.iter().any(|part| part.column == at))
        };
        let wanted = table.columns().iter().enumerate();
        let wanted: Vec<(usize, &Column)> =
            wanted.filter(|(at, column)| column.generated.is_some() && indexed(*at)).collect();
        if wanted.is_empty() {
            return Ok(None);
        }
        let mut binder = Binder::new(session, catalog);
        let mut scope = binder.add_table(table, None);
        scope.nullable = nullable;
        let (own, columns) = (scope.slot, scope.clone());
        binder.open(Scope::of(scope), Clause::Generated);
        let mut found = Vec::new();
        for (at, column) in wanted {
            let Some(generated) = &column.generated else { continue };
            let mut expr = binder.expr(&generated.expr.tree)?;
            let mut read = columns.expr(at);
            if !holds(column, &expr.ty) {
                continue;
            }
            move_to(&mut expr, own, slot);
            move_to(&mut read, own, slot);
            found.push((expr, read));
        }
        Ok((!found.is_empty()).then_some(ComputedColumns(found)))
    }

    /// Puts the columns in the place of their expressions.
    pub(crate) fn use_in(&self, e: &mut Expr) {
        match self.0.iter().find(|(expr, _)| expr.same(e)) {
            Some((_, column)) => *e = column.clone(),
            None => e.children_mut(&mut |child| self.use_in(child)),
        }
    }
}

/// Whether a column has every value of a type as it is.
fn holds(column: &Column, ty: &ExprType) -> bool {
    let (own, of) = (&column.ty, &ty.column);
    let kind = match family(own.kind) {
        Family::String => {
            family(of.kind) == Family::String && own.collation == of.collation && own.length >= of.length
        }
        // A column of years is not called unsigned, what computes one is.
        _ if own.kind == ColumnKind::Year => of.kind == own.kind,
        _ => own.kind == of.kind && own.unsigned == of.unsigned && own.decimals == of.decimals,
    };
    // A quotient has more digits than it shows.
    kind && !matches!(own.kind, ColumnKind::Decimal | ColumnKind::Timestamp)
}

fn move_to(e: &mut Expr, from: u16, to: u16) {
    if let Kind::Column { slot, .. } = &mut e.kind
        && *slot == from
    {
        *slot = to;
    }
    e.children_mut(&mut |child| move_to(child, from, to));
}

/// Conditions, and an order, by what an indexed generated column has are by that column.
pub(super) fn use_computed_columns(
    binder: &Binder<'_>,
    nest: &mut Nest,
    order: &mut [(Expr, bool)],
) -> SqlResult<()> {
    let Some(block) = binder.blocks.last() else { return Ok(()) };
    for table in &block.scope.tables {
        let Source::Table(stored) = &table.source else { continue };
        let (session, catalog) = (binder.session, binder.objects.catalog);
        let computed = ComputedColumns::of(stored, table.slot, table.nullable, session, catalog)?;
        if let Some(computed) = computed {
            nest.conditions.iter_mut().for_each(|e| computed.use_in(e));
            order.iter_mut().for_each(|(e, _)| computed.use_in(e));
        }
    }
    Ok(())
}
