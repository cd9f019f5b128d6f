//! Conditions of joins: ON, USING and NATURAL, and what `*` gives of a join.

use super::binder::Binder;
use super::block::Clause;
use super::compare;
use super::from::{Star, scope_len};
use super::scope::ScopeTable;
use crate::error::{SqlError, SqlResult};
use crate::expr::Expr;
use crate::expr::node::CompareOp;
use omnibus_parser::ast::{self, JoinCondition, JoinKind, TableRef};
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The two sides of a join: where their tables are in the scope, and what `*` gives of each.
pub(super) struct Operands {
    pub start: usize,
    pub middle: usize,
    pub left: Star,
    pub right: Star,
}

/// Binds ON, USING or NATURAL; what `*` gives of the join: the columns in common, the first side's others, the second's. A
/// RIGHT join that has columns in common begins with its right side.
pub(super) fn join_condition(
    binder: &mut Binder<'_>,
    join: &ast::Join,
    operands: Operands,
    conditions: &mut Vec<Expr>,
) -> SqlResult<Star> {
    let Operands { start, middle, mut left, mut right } = operands;
    let swapped = join.kind == JoinKind::Right;
    let names: Vec<String> = match &join.condition {
        JoinCondition::On(condition) => {
            // ON sees only the tables of this join and outer blocks.
            binder.set_clause(Clause::On);
            let before = hide_before(binder, start);
            let bound = binder.expr(condition);
            restore_before(binder, before);
            crate::logical::conjuncts::conjuncts(bound?, conditions);
            left.append(&mut right);
            return Ok(left);
        }
        JoinCondition::Using(names) => names.iter().map(|n| n.to_string()).collect(),
        JoinCondition::None if join.natural && swapped => natural_columns(binder, &right, &left),
        JoinCondition::None if join.natural => natural_columns(binder, &left, &right),
        JoinCondition::None => {
            left.append(&mut right);
            return Ok(left);
        }
    };
    let mut pairs = Vec::new();
    let mut common = Star::new();
    let mut hidden_columns = Star::new();
    let sides = (
        Visible::of(binder, start..middle, &names)?,
        Visible::of(binder, middle..scope_len(binder), &names)?,
    );
    for name in names {
        let (left, right) = (sides.0.find(binder, &name)?, sides.1.find(binder, &name)?);
        let (kept, hidden) = if swapped { (right, left) } else { (left, right) };
        let Some(block) = binder.blocks.last_mut() else { continue };
        let (kept_table, hidden_table) = (&block.scope.tables[kept.0], &block.scope.tables[hidden.0]);
        kept_table.may_read(kept.1)?;
        hidden_table.may_read(hidden.1)?;
        let (a, b) = (kept_table.expr(kept.1), hidden_table.expr(hidden.1));
        pairs.push((kept_table.full_name(kept.1), hidden_table.full_name(hidden.1)));
        common.push((kept_table.slot, kept.1));
        hidden_columns.push((hidden_table.slot, hidden.1));
        block.scope.tables[hidden.0].hidden.push(hidden.1);
        conditions.push(compare::compare(binder, CompareOp::Eq, a, b)?);
    }
    binder.mean(|meaning| meaning.set_join(join, pairs));
    let (first, second) = if swapped { (right, left) } else { (left, right) };
    let (mut star, others): (Star, Star) = first.into_iter().partition(|column| common.contains(column));
    // A column in common that `*` does not give by itself, being invisible, is given by the join.
    star.extend(common.iter().filter(|column| !star.contains(column)).copied().collect::<Star>());
    star.extend(others);
    star.extend(second.into_iter().filter(|column| !hidden_columns.contains(column)));
    Ok(star)
}

fn hide_before(binder: &mut Binder<'_>, start: usize) -> Vec<ScopeTable> {
    match binder.blocks.last_mut() {
        Some(block) => block.scope.tables.drain(..start).collect(),
        None => Vec::new(),
    }
}

fn restore_before(binder: &mut Binder<'_>, before: Vec<ScopeTable>) {
    if let Some(block) = binder.blocks.last_mut() {
        block.scope.tables.splice(..0, before);
    }
}

/// Names of columns that both sides of a NATURAL join have, in the order of the first.
fn natural_columns(binder: &Binder<'_>, first: &Star, second: &Star) -> Vec<String> {
    let name = |(slot, column): &(u16, usize)| match binder.collected.slots.get(usize::from(*slot)) {
        Some(Some(table)) => table.column_name(*column).to_string(),
        _ => String::new(),
    };
    let second: HashSet<String> = second.iter().map(|column| name(column).to_lowercase()).collect();
    first.iter().map(name).filter(|name| second.contains(&name.to_lowercase())).collect()
}

/// Where some tables have the columns of some names: by name in lower case, table position and column. A NATURAL join asks for thousands.
struct Visible(HashMap<String, Vec<(usize, usize)>>);

impl Visible {
    fn of(binder: &Binder<'_>, range: Range<usize>, names: &[String]) -> SqlResult<Visible> {
        let mut found: HashMap<String, Vec<(usize, usize)>> =
            names.iter().map(|name| (name.to_lowercase(), Vec::new())).collect();
        let tables = binder.blocks.last().map_or(&[][..], |block| &block.scope.tables[range.clone()]);
        for (at, table) in range.zip(tables).filter(|(_, table)| !table.is_inner()) {
            binder.spend_on_names(table.width())?;
            let hidden: HashSet<usize> = table.hidden.iter().copied().collect();
            for column in (0..table.width()).filter(|column| table.is_named(*column)) {
                let Some(places) = found.get_mut(&*lower(table.column_name(column))) else { continue };
                // The first of a name is the one.
                if places.last().is_none_or(|(last, _)| *last != at) {
                    places.push((at, column));
                }
            }
            found.values_mut().for_each(|places| {
                places.pop_if(|(last, column)| *last == at && hidden.contains(column));
            });
        }
        Ok(Visible(found))
    }

    /// The one of a name. Those that this join has hidden meanwhile are not.
    fn find(&self, binder: &Binder<'_>, name: &str) -> SqlResult<(usize, usize)> {
        let Some(block) = binder.blocks.last() else { return Err(SqlError::bad_field(name, "from clause")) };
        let places = self.0.get(&*lower(name)).map_or(&[][..], Vec::as_slice);
        let mut found = places.iter().filter(|(at, column)| !block.scope.tables[*at].hidden.contains(column));
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => Err(SqlError::non_uniq(name, "from clause")),
            (Some(place), None) => Ok(*place),
            _ => Err(SqlError::bad_field(name, "from clause")),
        }
    }
}

/// Most names of columns are in lower case as they are.
fn lower(name: &str) -> Cow<'_, str> {
    let is_lower = name.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_lower { Cow::Borrowed(name) } else { Cow::Owned(name.to_lowercase()) }
}

/// Whether a table of it may read others of the same FROM.
pub(super) fn reads_beside(table: &TableRef) -> bool {
    match table {
        TableRef::Table(_) => false,
        TableRef::Derived(derived) => derived.lateral,
        TableRef::JsonTable(_) => true,
        TableRef::Group(members) => members.iter().any(reads_beside),
        TableRef::Join(join) => reads_beside(&join.left) || reads_beside(&join.right),
    }
}
