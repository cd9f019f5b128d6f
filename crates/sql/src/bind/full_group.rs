//! ONLY_FULL_GROUP_BY: what the select list may contain beside aggregates and grouped expressions.
//!
//! A column passes if what is grouped determines it (`dependencies`). Of the select list an expression passes as a whole, or by its
//! columns: as MySQL has it, `GROUP BY a + b` says nothing of `a + b + 1`.

use super::block::BlockScope;
use super::dependencies::{Column, Dependencies, column_of, computed_columns};
use super::scope::{ScopeTable, Source};
use crate::error::{SqlError, SqlResult};
use crate::expr::functions::VOLATILE;
use crate::expr::functions::aggregate::AggregateSpec;
use crate::expr::{Expr, Kind};
use crate::logical::nest::Nest;
use crate::logical::window::Windows;
use omnibus_parser::ast::OrderItem;
use omnibus_parser::print;
use std::cell::OnceCell;
use std::collections::HashSet;

/// The keys of a block, beside its tables.
pub(super) struct Group<'a> {
    scope: &'a BlockScope,
    keys: &'a [Expr],
    /// The joins of the tables, where columns of one side determine columns of the other.
    nest: Option<&'a Nest>,
    /// The columns that the keys determine, once that is asked.
    determined: OnceCell<HashSet<Column>>,
}

impl<'a> Group<'a> {
    /// Of a block. Sums of several groups have no value in common but the keys.
    pub(super) fn of(scope: &'a BlockScope, keys: &'a [Expr], nest: &'a Nest, rolled_up: bool) -> Group<'a> {
        let nest = if rolled_up { None } else { Some(nest) };
        Group { scope, keys, nest, determined: OnceCell::new() }
    }

    /// Checks the select list and the order.
    ///
    /// # Errors
    /// 1055, or 1140 without GROUP BY.
    pub(super) fn check(&self, outputs: &[Expr], order: &[(Expr, bool)]) -> SqlResult<()> {
        for (number, output) in outputs.iter().enumerate() {
            if let Some(column) = self.offender(output, self.has_view()) {
                return Err(self.refused(number, output, column));
            }
        }
        if self.keys.is_empty() {
            // There is one row to order.
            return Ok(());
        }
        for (number, (e, _)) in order.iter().enumerate() {
            if outputs.iter().any(|output| output.same(e)) {
                continue;
            }
            if let Some(column) = self.offender(e, true) {
                let name = column_name(self.scope, column, e);
                return Err(SqlError::wrong_field_with_group(number + 1, "ORDER BY clause", name));
            }
        }
        Ok(())
    }

    /// Checks what window functions read.
    ///
    /// # Errors
    /// As `check`.
    pub(super) fn check_windows(&self, outputs: &[Expr], windows: &Windows) -> SqlResult<()> {
        for window in &windows.windows {
            let order = window.order.iter().map(|(e, _)| e);
            let mut read = window.partition.iter().chain(order).chain(&window.inputs);
            let Some((e, column)) = read.find_map(|e| Some((e, self.offender(e, true)?))) else { continue };
            let number = outputs.iter().position(|output| output.slots().contains(windows.slot));
            return Err(self.refused(number.unwrap_or(0), e, column));
        }
        Ok(())
    }

    fn refused(&self, output: usize, e: &Expr, column: Column) -> SqlError {
        let name = column_name(self.scope, column, e);
        match self.keys.is_empty() {
            true => SqlError::mix_of_group_func_and_fields(output + 1, name),
            false => SqlError::wrong_field_with_group(output + 1, "SELECT list", name),
        }
    }

    /// The first column inside that is not determined by the group; `parts`: of an expression a grouped part passes, too.
    fn offender(&self, e: &Expr, parts: bool) -> Option<Column> {
        offender(self.scope, self.keys, e, parts, &|column| self.determines(column))
    }

    fn determines(&self, column: Column) -> bool {
        let of_keys = || {
            let merged = self.scope.scope.merged.iter().map(|(_, e)| e);
            let merged: Vec<&Expr> = merged.filter(|e| self.keys.iter().any(|key| key.same(e))).collect();
            let viewed = |key: &Expr| view_column(self.scope, key).map(|(column, _)| column);
            let key_columns = self.keys.iter().filter_map(|key| column_of(key).or_else(|| viewed(key)));
            let mut columns: HashSet<Column> = key_columns.collect();
            for e in merged {
                e.walk(&mut |e| columns.extend(column_of(e)));
            }
            match self.nest {
                Some(nest) => Dependencies::of(&self.scope.scope, nest).close(columns),
                None => columns,
            }
        };
        self.determined.get_or_init(of_keys).contains(&column) || self.is_of_no_row(column)
    }

    /// A table without rows: anything determines them. Dump programs group it under any `sql_mode`.
    fn is_of_no_row(&self, (slot, _): Column) -> bool {
        let table = self.scope.scope.tables.iter().find(|table| table.slot == slot);
        table.is_some_and(|table| {
            table.schema.eq_ignore_ascii_case("information_schema")
                && table.alias.eq_ignore_ascii_case("FILES")
        })
    }

    /// A view's columns are grouped by, whatever they are inside.
    fn has_view(&self) -> bool {
        self.scope.scope.tables.iter().any(|table| !table.has_rows())
    }
}

/// Checks what a SELECT DISTINCT is ordered by: columns and aggregates that it selects.
///
/// # Errors
/// 3065, or 3066 for an aggregate.
pub(super) fn check_distinct(
    scope: &BlockScope,
    outputs: &[Expr],
    order: &[(Expr, bool)],
    written: &[OrderItem],
) -> SqlResult<()> {
    let selected = OnceCell::new();
    let is_selected = |e: &Expr| {
        let firsts = || outputs.iter().map(|output| first_aggregates(scope, output)).collect::<Vec<_>>();
        let whole = first_aggregates(scope, e);
        selected.get_or_init(firsts).iter().any(|output| output.same(&whole))
    };
    for (number, (e, _)) in order.iter().enumerate() {
        let whole = outputs.iter().any(|output| output.same(e));
        let pieces = pieces(scope, outputs, written.get(number));
        let beside = if whole { None } else { offender(scope, &pieces, e, true, &|_| false) };
        let Some(column) = beside else {
            if scope.aggregate_slot.is_some_and(|slot| reads_unselected(outputs, e, slot)) && !is_selected(e)
            {
                let message = format!(
                    "Expression #{} of ORDER BY clause is not in SELECT list, contains aggregate function; this is incompatible with DISTINCT",
                    number + 1
                );
                return Err(SqlError::new(3066, b"HY000", message));
            }
            continue;
        };
        let name = column_name(scope, column, e);
        return Err(SqlError::new(
            3065,
            b"HY000",
            format!(
                "Expression #{} of ORDER BY clause is not in SELECT list, references column '{name}' which is not in SELECT list; this is incompatible with DISTINCT",
                number + 1
            ),
        ));
    }
    Ok(())
}

/// The outputs that may be a part of an expression to sort by: columns, those of views too, and those that it names by an alias.
fn pieces(scope: &BlockScope, outputs: &[Expr], written: Option<&OrderItem>) -> Vec<Expr> {
    let names = written.map(|item| print::column_names(&item.expr)).unwrap_or_default();
    let of_view = |e: &Expr| {
        scope.scope.tables.iter().any(|table| match &table.source {
            Source::View(merged) => merged.exprs.iter().any(|own| own.same(e)),
            _ => false,
        })
    };
    let by_alias = |e: &Expr| {
        let mut aliases = scope.scope.aliases.iter();
        aliases.any(|(alias, own)| own.same(e) && names.iter().any(|name| super::scope::same(name, alias)))
    };
    let piece = |e: &&Expr| matches!(e.kind, Kind::Column { .. }) || of_view(e) || by_alias(e);
    outputs.iter().filter(piece).cloned().collect()
}

/// An expression with the first of each aggregate in the places of those that are the same: one that is called twice is computed twice.
fn first_aggregates(scope: &BlockScope, e: &Expr) -> Expr {
    fn first(aggregates: &[AggregateSpec], slot: u16, e: &mut Expr) {
        if let Kind::Column { slot: own, column, .. } = &mut e.kind
            && *own == slot
            && let Some(called) = aggregates.get(usize::from(*column))
            && let Some(at) = aggregates.iter().position(|other| other.same(called))
        {
            *column = at as u16;
        }
        e.children_mut(&mut |child| first(aggregates, slot, child));
    }
    let mut e = e.clone();
    if let Some(slot) = scope.aggregate_slot {
        first(&scope.aggregates, slot, &mut e);
    }
    e
}

/// Whether an expression reads the aggregates' slot in a part that is not selected, by what it says or by its alias.
fn reads_unselected(outputs: &[Expr], e: &Expr, slot: u16) -> bool {
    let any_value = matches!(&e.kind, Kind::Call(def, _) if def.name == "ANY_VALUE");
    if any_value || outputs.iter().any(|output| output.same(e)) {
        return false;
    }
    let mut reads = matches!(e.kind, Kind::Column { slot: own, .. } if own == slot);
    e.children(&mut |child: &Expr| reads |= reads_unselected(outputs, child, slot));
    reads
}

/// A column as messages name it: that of a view, if one has it.
fn column_name(scope: &BlockScope, (slot, column): Column, of: &Expr) -> String {
    let contains = |e: &Expr| {
        let mut found = false;
        e.walk(&mut |e| found |= column_of(e) == Some((slot, column)));
        found
    };
    let within = |part: &Expr| {
        let mut found = false;
        of.walk(&mut |e| found |= e.same(part));
        found
    };
    let viewed = scope.scope.tables.iter().find_map(|table| match &table.source {
        Source::View(merged) => {
            let at = merged.exprs.iter().position(|e| contains(e) && within(e))?;
            Some((table, at))
        }
        _ => None,
    });
    let stored = || scope.scope.tables.iter().find(|table| table.slot == slot);
    let Some((table, at)) = viewed.or_else(|| Some((stored()?, usize::from(column)))) else {
        return String::new();
    };
    full_name(table, at)
}

fn full_name(table: &ScopeTable, at: usize) -> String {
    let name = format!("{}.{}", table.alias, table.column_name(at));
    if table.schema.is_empty() { name } else { format!("{}.{name}", table.schema) }
}

/// The column of a view that an expression is, if the view computes it, and whether it is the same whenever that is computed.
fn view_column(scope: &BlockScope, e: &Expr) -> Option<(Column, bool)> {
    if matches!(e.kind, Kind::Column { .. }) {
        return None;
    }
    let (column, own) = computed_columns(&scope.scope).find(|(_, own)| own.same(e))?;
    let mut is_certain = true;
    own.walk(&mut |e| {
        if let Kind::Call(def, _) = &e.kind {
            is_certain &= def.traits & VOLATILE == 0;
        }
    });
    Some((column, is_certain))
}

/// The first column inside of an expression that is neither grouped by nor determined.
fn offender(
    scope: &BlockScope,
    keys: &[Expr],
    e: &Expr,
    parts: bool,
    determined: &dyn Fn(Column) -> bool,
) -> Option<Column> {
    if keys.iter().any(|key| key.same(e)) {
        return None;
    }
    inner_offender(scope, keys, e, parts, determined)
}

fn inner_offender(
    scope: &BlockScope,
    keys: &[Expr],
    e: &Expr,
    parts: bool,
    determined: &dyn Fn(Column) -> bool,
) -> Option<Column> {
    if let Kind::Call(def, _) = &e.kind
        && def.name == "ANY_VALUE"
    {
        return None;
    }
    if let Some((column, is_certain)) = view_column(scope, e) {
        if determined(column) {
            return None;
        }
        // What it is computed from does not say what it is.
        if !is_certain {
            let mut inside = None;
            e.walk(&mut |e| inside = inside.or_else(|| column_of(e)));
            return inside;
        }
    }
    if let Kind::Column { slot, column, .. } = e.kind {
        scope.scope.tables.iter().find(|table| table.slot == slot)?;
        return (!keys.iter().any(|key| key.same(e)) && !determined((slot, column)))
            .then_some((slot, column));
    }
    if let Kind::Present(slot) = e.kind {
        // A view's expression in an outer join: whether there is a row is known from a column that has a value in each.
        let table = scope.scope.tables.iter().find(|table| table.slot == slot)?;
        let in_each = |at: u16| match &table.source {
            Source::Table(stored) => !stored.columns()[usize::from(at)].nullable,
            _ => false,
        };
        let is_known = (0..table.width() as u16).any(|at| in_each(at) && determined((slot, at)));
        return (!is_known).then_some((slot, 0));
    }
    let mut found = None;
    let of_keys = matches!(&e.kind, Kind::Call(def, _) if def.name == "GROUPING");
    let search = if parts || of_keys { offender } else { inner_offender };
    e.children(&mut |child: &Expr| {
        if found.is_none() {
            found = search(scope, keys, child, parts, determined);
        }
    });
    if let Kind::Subquery(subquery) = &e.kind {
        for outer in &subquery.outer_columns {
            found = found.or_else(|| offender(scope, keys, outer, parts, determined));
        }
    }
    found
}
