//! MySQL's rule that a statement does not change a table that its subqueries read: MariaDB has not got it, and neither have statements that others
//! logged. What a derived table or a common table expression reads is no matter, nor what INSERT .. SELECT selects.

use super::{MultiPlan, Planner, WriteKind};
use crate::bind::uses::SubqueryRead;
use crate::catalog::Table;
use crate::error::{SqlError, SqlResult};
use omnibus_parser::ast::{InsertSource, ObjectName, Statement, TableRef};

/// The table that a statement changes, as errors call it.
struct Changed<'a> {
    table: &'a Table,
    alias: &'a str,
    /// The view that the statement goes through.
    through: Option<u64>,
    verb: &'static str,
    /// Only reads under the same name count.
    by_name: bool,
}

/// Fails if a subquery reads a table that the statement changes.
///
/// # Errors
/// 1093, 1443.
pub(super) fn check(
    planner: &Planner<'_>,
    statement: &Statement,
    kind: &WriteKind,
    reads: &[SubqueryRead],
) -> SqlResult<()> {
    if reads.is_empty() || planner.session.settings.mariadb || planner.session.settings.replicated {
        return Ok(());
    }
    match (kind, statement) {
        (WriteKind::Insert(plan), Statement::Insert(tree))
            if !matches!(tree.source, InsertSource::Query(_)) =>
        {
            let one = Changed::of(&plan.target.table, tree.table.name.as_str(), "INSERT");
            Changed { by_name: true, ..one }.check(planner, &tree.table, reads)
        }
        (WriteKind::Update(plan), Statement::Update(tree)) => match named(&tree.tables) {
            Some((name, alias)) => {
                Changed::of(&plan.target.table, alias, "UPDATE").check(planner, name, reads)
            }
            None => Ok(()),
        },
        (WriteKind::Delete(plan), Statement::Delete(tree)) => match named(&tree.from) {
            Some((name, alias)) => {
                Changed::of(&plan.target.table, alias, "DELETE").check(planner, name, reads)
            }
            None => Ok(()),
        },
        (WriteKind::Multi(plan), Statement::Update(tree)) => {
            several(planner, plan, tree.tables.first(), "UPDATE", reads)
        }
        (WriteKind::Multi(plan), Statement::Delete(tree)) => {
            several(planner, plan, tree.from.first(), "DELETE", reads)
        }
        _ => Ok(()),
    }
}

/// Of a statement with several tables errors name the first one.
fn several(
    planner: &Planner<'_>,
    plan: &MultiPlan,
    first: Option<&TableRef>,
    verb: &'static str,
    reads: &[SubqueryRead],
) -> SqlResult<()> {
    let first = first.and_then(first_named);
    let through = first.and_then(|(name, _)| planner.view(name)).map(|view| view.def.id);
    let alias = first.map_or("", |(_, alias)| alias);
    let changed = |table| Changed { table, alias, through, verb, by_name: false };
    plan.targets().try_for_each(|table| changed(table).find(reads))
}

fn first_named(table: &TableRef) -> Option<(&ObjectName, &str)> {
    match table {
        TableRef::Table(factor) => Some((&factor.name, factor.alias.as_deref().unwrap_or(&factor.name.name))),
        TableRef::Join(join) => first_named(&join.left),
        TableRef::Group(members) => members.first().and_then(first_named),
        TableRef::Derived(_) | TableRef::JsonTable(_) => None,
    }
}

/// The one table of a statement, and its name there.
fn named(tables: &[TableRef]) -> Option<(&ObjectName, &str)> {
    let [TableRef::Table(factor)] = tables else { return None };
    Some((&factor.name, factor.alias.as_ref().unwrap_or(&factor.name.name).as_str()))
}

impl<'a> Changed<'a> {
    fn of(table: &'a Table, alias: &'a str, verb: &'static str) -> Changed<'a> {
        Changed { table, alias, through: None, verb, by_name: false }
    }

    fn check(mut self, planner: &Planner<'_>, name: &ObjectName, reads: &[SubqueryRead]) -> SqlResult<()> {
        self.through = planner.view(name).map(|view| view.def.id);
        self.find(reads)
    }

    fn find(self, reads: &[SubqueryRead]) -> SqlResult<()> {
        // Temporary tables may stand several times in a statement.
        if self.table.temporary {
            return Ok(());
        }
        let name = if self.through.is_some() { &*self.table.def.name } else { self.alias };
        let counts =
            |read: &&SubqueryRead| read.table == self.table.def.id && (!self.by_name || *read.alias == *name);
        let Some(read) = reads.iter().find(counts) else { return Ok(()) };
        let shown: &str = match (self.through, &read.through) {
            (None, None) => return Err(SqlError::update_table_used(self.alias)),
            (Some(own), Some((view, _))) if own == *view => {
                return Err(SqlError::update_table_used(self.alias));
            }
            (_, Some((_, shown))) => shown,
            (Some(_), None) => self.alias,
        };
        Err(SqlError::view_prevent_update(shown, self.verb, self.alias))
    }
}
