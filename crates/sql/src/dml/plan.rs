//! From trees to plans: what INSERT, UPDATE and DELETE have in common.

use super::{Names, RowExpressions};
use crate::api::{AccessCheck, ColumnGrants, Columns, Priv, Rights};
use crate::bind::scope::Scope;
use crate::bind::uses::{self, UsesCell};
use crate::bind::{Binder, Clause, missing};
use crate::catalog::rowid::column_or_rowid;
use crate::catalog::sequence;
use crate::catalog::{Catalog, Table};
use crate::error::{SqlError, SqlResult};
use crate::expr::node::Expr;
use crate::logical::VirtualTables;
use crate::plan::cost::Known;
use crate::state::SessionState;
use crate::storage::LockMode;
use omnibus_parser::ast::{self, Ident, ObjectName};
use omnibus_value::Value;
use std::sync::Arc;

/// Fails if the target is a common table expression, which hides the table of its name.
pub(crate) fn refuse_common_table(
    with: Option<&ast::With>,
    target: &ObjectName,
    alias: Option<&str>,
    verb: &str,
) -> SqlResult<()> {
    let common = with.iter().flat_map(|with| &with.tables).any(|common| *common.name == *target.name);
    match common && target.schema.is_none() {
        true => Err(SqlError::non_updatable_table(alias.unwrap_or(&target.name), verb)),
        false => Ok(()),
    }
}

/// The table that a statement changes, and the frame it is evaluated in.
#[derive(Debug)]
pub(crate) struct TargetTable {
    pub table: Arc<Table>,
    /// Its slot.
    pub slot: u16,
    /// Slots in all.
    pub slots: usize,
    /// Subqueries in all.
    pub subqueries: usize,
}

/// Makes plans.
pub(crate) struct Planner<'a> {
    pub session: &'a SessionState,
    pub catalog: &'a Catalog,
    pub access: &'a dyn AccessCheck,
    pub virtuals: &'a dyn VirtualTables,
    pub params: Option<&'a [Value]>,
    /// The uses that the binder meets and the binary log must know.
    pub uses: &'a UsesCell,
    /// How rows that are only read are locked: shared where the log will have the text, so that whoever runs it in the
    /// order of the commits reads the same.
    pub read_lock: LockMode,
}

impl<'a> Planner<'a> {
    /// The table that a name means, if the account may do `privilege` with it, and with which columns.
    pub(crate) fn table(&self, name: &ObjectName, privilege: Priv) -> SqlResult<(Arc<Table>, Columns)> {
        let db = match (&name.schema, &self.session.database) {
            (Some(schema), _) => schema.as_str(),
            (None, Some(current)) => current,
            (None, None) => return Err(SqlError::no_db()),
        };
        // Whoever made a temporary table may do anything with it.
        if let Some(table) = self.catalog.find_table(db, &name.name)
            && table.temporary
        {
            self.uses.borrow_mut().bits |= uses::TEMPORARY;
            return Ok((table.clone(), Columns::All));
        }
        let columns = self.access.columns(db, &name.name, privilege)?;
        if ["information_schema", "performance_schema"].iter().any(|system| db.eq_ignore_ascii_case(system)) {
            return Err(SqlError::dbaccess_denied(
                &self.session.login.user,
                &self.session.login.host_name,
                db,
            ));
        }
        let found = self.catalog.table(db, &name.name);
        let table = found.map_err(|error| missing(self.session, &name.name, error))?;
        if table.def.is_sequence() && !matches!(privilege, Priv::Select) {
            return Err(sequence::no_option(table));
        }
        Ok((table.clone(), columns))
    }

    /// The table that rows go into, `replace` if others may have to make place for them, and the columns that may get values.
    pub(crate) fn insert_target(&self, name: &ObjectName, replace: bool) -> SqlResult<(Arc<Table>, Columns)> {
        let target = self.table(name, Priv::Insert)?;
        if replace {
            self.table(name, Priv::Delete)?;
        }
        Ok(target)
    }

    /// The columns of a statement's target that it may read: one that reads some tells something about them, so it needs SELECT
    /// as well. Error 1143 comes with the first that is read and may not be.
    pub(crate) fn readable(&self, db: &str, name: &str) -> Columns {
        let table = self.catalog.find_table(db, name);
        if table.is_some_and(|table| table.temporary) {
            return Columns::All;
        }
        self.access.columns(db, name, Priv::Select).unwrap_or_else(|_| {
            let account = (Arc::from(&*self.session.login.user), Arc::from(&*self.session.login.host_name));
            Columns::Some(ColumnGrants::new(Vec::new(), Priv::Select, account, name))
        })
    }

    /// The sources of estimates when a path is chosen.
    pub(crate) fn known(&self) -> Known<'static> {
        Known { zone: self.session.settings.zone, sampled: None }
    }

    /// The expressions of the table's definition for rows that are written.
    pub(crate) fn row_expressions(&self, table: &Arc<Table>) -> SqlResult<Option<RowExpressions>> {
        RowExpressions::of_statement(table, self.session, self.catalog, self.uses)
    }

    /// A binder without names yet.
    pub(crate) fn plain_binder(&self) -> Binder<'a> {
        let mut binder = Binder::new(self.session, self.catalog);
        binder.objects.virtuals = self.virtuals;
        binder.author.access = Rights::Session(self.access);
        binder.params = self.params;
        binder.notes.uses = Some(self.uses);
        binder.default_lock = self.read_lock;
        binder
    }

    /// A binder whose names are the target's columns.
    pub(crate) fn binder(&self, table: &Arc<Table>, alias: Option<&str>) -> (Binder<'a>, u16) {
        let mut binder = self.plain_binder();
        let readable = self.readable(&table.def.db, &table.def.name);
        let scope = binder.add_table_of(table, alias, readable);
        let slot = scope.slot;
        binder.open(Scope::of(scope), Clause::FieldList);
        (binder, slot)
    }
}

impl TargetTable {
    /// After everything is bound.
    pub(crate) fn new(table: Arc<Table>, slot: u16, binder: &Binder<'_>) -> TargetTable {
        TargetTable {
            table,
            slot,
            slots: binder.collected.slots.len(),
            subqueries: binder.collected.subqueries,
        }
    }
}

/// A value to store: DEFAULT, or an expression.
#[derive(Debug)]
pub(crate) struct Assignment {
    pub column: usize,
    pub value: Option<Expr>,
}

/// Binds `column = value` lists.
pub(crate) fn bind_assignments(
    binder: &mut Binder<'_>,
    names: &Names,
    list: &[ast::Assignment],
) -> SqlResult<Vec<Assignment>> {
    let mut out = Vec::with_capacity(list.len());
    for assignment in list {
        let column = names.assigned(&assignment.column)?;
        let value = match &assignment.value {
            ast::Expr::Default => None,
            _ if names.table.columns()[column].generated.is_some() => {
                return Err(generated_given(&names.table, column));
            }
            expr => Some(binder.expr(expr)?),
        };
        out.push(Assignment { column, value });
    }
    Ok(out)
}

/// A statement gives a generated column a value.
pub(crate) fn generated_given(table: &Table, column: usize) -> SqlError {
    let (column, table) = (&table.columns()[column].name, &table.def.name);
    let message =
        format!("The value specified for generated column '{column}' in table '{table}' is not allowed.");
    SqlError::new(3105, b"HY000", message)
}

/// The columns that an INSERT names, or all visible ones, if the account may write them.
pub(crate) fn insert_columns(
    table: &Table,
    names: &[Ident],
    all: bool,
    granted: &Columns,
) -> SqlResult<Vec<usize>> {
    if all {
        let visible = table.columns().iter().enumerate().filter(|(_, column)| !column.invisible);
        granted.check_all(visible.clone().map(|(_, column)| &*column.name))?;
        return Ok(visible.map(|(at, _)| at).collect());
    }
    names.iter().try_for_each(|name| granted.check(name))?;
    let mut columns = Vec::with_capacity(names.len());
    for name in names {
        let column = column_or_rowid(table, name).ok_or_else(|| SqlError::bad_field(name, "field list"))?;
        if columns.contains(&column) {
            return Err(SqlError::field_specified_twice(name));
        }
        columns.push(column);
    }
    Ok(columns)
}

/// The value of a LIMIT at execution.
pub(crate) fn bind_limit(binder: &mut Binder<'_>, limit: Option<&ast::Limit>) -> SqlResult<Option<Expr>> {
    match limit {
        None => Ok(None),
        Some(limit) if limit.offset.is_some() => {
            Err(SqlError::parse_error("LIMIT with an offset is not allowed here"))
        }
        Some(limit) => binder.expr(&limit.count).map(Some),
    }
}

/// ORDER BY of UPDATE and DELETE.
pub(crate) fn bind_order(binder: &mut Binder<'_>, order: &[ast::OrderItem]) -> SqlResult<Vec<(Expr, bool)>> {
    binder.set_clause(Clause::Order);
    order.iter().map(|item| Ok((binder.expr(&item.expr)?, item.descending))).collect()
}
