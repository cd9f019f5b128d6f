//! Targets of changes that are views: the table behind one, the rights to change it, and what WITH CHECK OPTION asks of a row.
//!
//! A view is expanded as in FROM, so that its columns are expressions over its tables' slots and its conditions go with those of the
//! statement. One that reads a single table is changed as that table is; one that joins goes the way of several tables (`multi`).

use super::plan::{Planner, TargetTable};
use super::{Run, multi};
use crate::api::{Columns, Priv, Rights};
use crate::bind::scope::{MergedView, ScopeTable, Source};
use crate::bind::{self, Binder, BlockScope};
use crate::catalog::rowid::column_or_rowid;
use crate::catalog::{Catalog, Table, TableDef, View, same_name};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::context::{Context, Row, Slot};
use crate::expr::{Expr, Kind};
use crate::logical::nest::{Item, ItemSource, Nest};
use omnibus_parser::ast::{ColumnRef, ObjectName};
use omnibus_value::Value;
use std::sync::Arc;

/// How a statement names the columns of the table that it changes.
pub(crate) struct Names {
    pub table: Arc<Table>,
    pub(super) alias: String,
    /// The view that it goes through, and the table's slot.
    view: Option<(Arc<MergedView>, u16)>,
    granted: Granted,
}

/// The columns, by the names that the statement has for them, that it may write.
pub(crate) struct Granted {
    /// By INSERT.
    pub insert: Columns,
    /// By assignments.
    pub update: Columns,
}

impl Granted {
    /// All.
    pub(crate) const ALL: Granted = Granted { insert: Columns::All, update: Columns::All };

    /// The columns on which each of `needs` is granted.
    fn of(needs: &[Priv], mut columns: impl FnMut(Priv) -> SqlResult<Columns>) -> SqlResult<Granted> {
        let mut granted = Granted::ALL;
        for need in needs {
            let columns = columns(*need)?;
            match need {
                Priv::Insert => granted.insert = columns,
                Priv::Update => granted.update = columns,
                _ => {}
            }
        }
        Ok(granted)
    }
}

impl Names {
    /// Of a table by itself.
    pub(crate) fn of(table: &Arc<Table>, alias: &str) -> Names {
        Names { table: table.clone(), alias: alias.to_owned(), view: None, granted: Granted::ALL }
    }

    /// The column that an assignment's left side means, if the account may write it.
    ///
    /// # Errors
    /// 1143, and those of `column`.
    pub(crate) fn assigned(&self, name: &ColumnRef) -> SqlResult<usize> {
        let column = self.column(name)?;
        self.granted.update.check(&name.name)?;
        Ok(column)
    }

    /// The column that an assignment's left side means.
    ///
    /// # Errors
    /// 1054; 1348 for what is no column of the table.
    pub(crate) fn column(&self, name: &ColumnRef) -> SqlResult<usize> {
        let unknown = || {
            let full = match &name.qualifier {
                Some(qualifier) => format!("{}.{}", qualifier.table, name.name),
                None => name.name.to_string(),
            };
            SqlError::bad_field(full, "field list")
        };
        if name.table().is_some_and(|table| table.as_str() != self.alias) {
            return Err(unknown());
        }
        match &self.view {
            None => column_or_rowid(&self.table, &name.name).ok_or_else(unknown),
            Some((merged, slot)) => {
                let found = merged.columns.iter().position(|column| same_name(&column.name, &name.name));
                let at = found.ok_or_else(unknown)?;
                base_column(merged, at, *slot).ok_or_else(|| SqlError::nonupdateable_column(&name.name))
            }
        }
    }
}

/// The column that is written through a view's column: the column that this is, also with another collation.
pub(in crate::dml) fn written_column(e: &Expr) -> Option<(u16, u16)> {
    match &e.kind {
        Kind::Column { slot, column, .. } => Some((*slot, *column)),
        Kind::Retype(inner) if inner.ty.column.kind == e.ty.column.kind => written_column(inner),
        _ => None,
    }
}

/// The column of a table that a view's column is.
pub(super) fn base_column(merged: &MergedView, at: usize, table: u16) -> Option<usize> {
    written_column(&merged.exprs[at])
        .filter(|(slot, _)| *slot == table)
        .map(|(_, column)| usize::from(column))
}

/// The table that a statement changes, with the names that its expressions may use.
pub(crate) struct Opened<'a> {
    pub binder: Binder<'a>,
    pub slot: u16,
    pub names: Names,
    /// The conditions of the views that it goes through.
    pub conditions: Vec<Expr>,
}

/// The meaning of a name that is to be changed.
pub(crate) enum Meant<'a> {
    /// One table, by itself or behind views.
    Table(Box<Opened<'a>>),
    /// A view that reads several.
    Join(Box<JoinView<'a>>),
}

/// A view that reads several tables, as the one member of a block.
pub(crate) struct JoinView<'a> {
    pub binder: Binder<'a>,
    pub merged: Arc<MergedView>,
    granted: Granted,
}

impl<'a> Planner<'a> {
    /// The view that a name means.
    pub(crate) fn view(&self, name: &ObjectName) -> Option<&'a Arc<View>> {
        let db = name.schema.as_deref().or(self.session.database.as_deref())?;
        self.catalog.find_view(db, &name.name)
    }

    /// Opens the meaning of a name, if the account may do all of `needs` with it; `verb` is for errors.
    pub(crate) fn open(
        &self,
        name: &ObjectName,
        alias: Option<&str>,
        needs: &[Priv],
        verb: &str,
    ) -> SqlResult<Meant<'a>> {
        let alias = alias.unwrap_or(&name.name);
        let Some(view) = self.view(name) else {
            let (table, _) = self.table(name, needs[0])?;
            let granted = Granted::of(needs, |need| Ok(self.table(name, need)?.1))?;
            let (mut binder, slot) = self.binder(&table, Some(alias));
            bind::use_locked(&mut binder, &table, alias, true)?;
            let names = Names { granted, ..Names::of(&table, alias) };
            return Ok(Meant::Table(Box::new(Opened { binder, slot, names, conditions: Vec::new() })));
        };
        let granted = Granted::of(needs, |need| self.access.columns(&view.def.db, &name.name, need))?;
        let mut binder = self.plain_binder();
        binder.blocks.push(BlockScope::default());
        let mut nest = Nest::default();
        bind::expand(&mut binder, view, alias, &mut nest)?;
        binder.restrict_last(self.readable(&view.def.db, &view.def.name));
        let scope = binder.blocks.last().and_then(|block| block.scope.tables.last());
        let Some(Source::View(merged)) = scope.map(|scope| &scope.source) else {
            return Err(not_changed(alias, verb));
        };
        let merged = merged.clone();
        let [Item::Table(item)] = &nest.items[..] else {
            return Ok(Meant::Join(Box::new(JoinView { binder, merged, granted })));
        };
        let ItemSource::Table(table) = &item.source else { return Err(not_changed(alias, verb)) };
        for need in needs {
            self.may_change(&merged.view, table, *need)?;
        }
        let view = Some((merged, item.slot));
        let names = Names { table: table.clone(), alias: alias.to_owned(), view, granted };
        let (slot, conditions) = (item.slot, std::mem::take(&mut nest.conditions));
        Ok(Meant::Table(Box::new(Opened { binder, slot, names, conditions })))
    }

    /// Whether those whose rights a view has may do something with a table behind it.
    ///
    /// # Errors
    /// 1356.
    pub(super) fn may_change(&self, view: &View, table: &Table, need: Priv) -> SqlResult<()> {
        let around = Rights::Session(self.access);
        check_behind(&around, view, &table.def, need, self.catalog)
            .map_err(|error| bind::invalid(error, view))
    }
}

fn check_behind(
    around: &Rights<'_>,
    view: &View,
    target: &TableDef,
    need: Priv,
    catalog: &Catalog,
) -> SqlResult<()> {
    let inside = bind::rights(view, around)?;
    for (db, name) in members(view) {
        if *db == *target.db && *name == *target.name {
            inside.check(db, Some(name), need)?;
        } else if let Some(inner) = catalog.find_view(db, name)
            && reaches(inner, target, catalog)
        {
            inside.check(db, Some(name), need)?;
            check_behind(&inside, inner, target, need, catalog)?;
        }
    }
    Ok(())
}

/// The tables and views in the FROM of a view that stand in its place.
fn members(view: &View) -> impl Iterator<Item = (&str, &str)> {
    let from = view.select().map_or(&[][..], |select| &select.from);
    let named = multi::factors(from).into_iter();
    named.filter_map(|factor| Some((factor.name.schema.as_deref()?, factor.name.name.as_str())))
}

/// Whether a table is behind a view. Views that were expanded are in no circle.
fn reaches(view: &View, target: &TableDef, catalog: &Catalog) -> bool {
    members(view).any(|(db, name)| {
        (*db == *target.db && *name == *target.name)
            || catalog.find_view(db, name).is_some_and(|inner| reaches(inner, target, catalog))
    })
}

/// The error about a view that is no table's rows.
pub(super) fn not_changed(alias: &str, verb: &str) -> SqlError {
    match verb {
        "INSERT" => SqlError::non_insertable_table(alias, verb),
        _ => SqlError::non_updatable_table(alias, verb),
    }
}

/// Other tables' rows that WITH CHECK OPTION reads beside the one that is written: slots, with how many columns each.
pub(crate) type Beside = Vec<(u16, usize)>;

/// WITH CHECK OPTION of the views that a statement goes through.
pub(crate) struct ViewCheck {
    view: String,
    conditions: Vec<Expr>,
    slot: u16,
    slots: usize,
    subqueries: usize,
    pub beside: Beside,
}

impl ViewCheck {
    /// `None`: nothing is to be checked. After everything else is bound.
    pub(crate) fn new(merged: &MergedView, slot: u16, binder: &Binder<'_>) -> Option<ViewCheck> {
        let mut read = crate::expr::SlotSet::default();
        merged.check.iter().for_each(|condition| read.extend(&condition.slots()));
        let others = binder
            .collected
            .slots
            .iter()
            .flatten()
            .filter(|table| table.slot != slot && table.has_rows() && read.contains(table.slot));
        let beside = others.map(|table| (table.slot, table.width())).collect();
        (!merged.check.is_empty()).then(|| ViewCheck {
            view: merged.view.qualified(),
            conditions: merged.check.clone(),
            slot,
            slots: binder.collected.slots.len(),
            subqueries: binder.collected.subqueries,
            beside,
        })
    }

    /// Of what a statement changes by one table.
    pub(crate) fn of(names: &Names, target: &TargetTable, binder: &Binder<'_>) -> Option<ViewCheck> {
        let (merged, _) = names.view.as_ref()?;
        ViewCheck::new(merged, target.slot, binder)
    }

    /// Whether a row may be written; `values` are those of the tables beside it. False if IGNORE made a warning of it.
    ///
    /// # Errors
    /// 1369.
    pub(crate) fn accepts(
        &self,
        run: &mut Run<'_>,
        table: &Arc<Table>,
        row: &[Value],
        mut values: &[Value],
        ignore: bool,
    ) -> ExecResult<bool> {
        let mut exec = Context::new(run.state, run.trx, run.params);
        exec.reserve(self.slots, self.subqueries);
        exec.frame[usize::from(self.slot)] =
            Slot { table: Some(table.clone()), row: Row::Values(row.into()) };
        for (slot, width) in &self.beside {
            let (row, rest) = values.split_at((*width).min(values.len()));
            let row = if row.is_empty() { Row::Nulls } else { Row::Values(row.into()) };
            exec.frame[usize::from(*slot)].row = row;
            values = rest;
        }
        for condition in &self.conditions {
            if condition.eval_bool(&mut exec)? != Some(true) {
                let error = SqlError::view_check_failed(&self.view);
                if !ignore {
                    return Err(error.into());
                }
                run.state.diagnostics.warn(error);
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The targets of an INSERT's values: columns of one table, and the view that they are named by.
pub(crate) struct InsertInto<'a> {
    pub opened: Opened<'a>,
    pub columns: Vec<usize>,
    /// The view's name, for errors.
    pub view: Option<String>,
}

impl<'a> Planner<'a> {
    /// Opens the target of an INSERT, which writes the `named` columns, or all.
    pub(crate) fn open_insert(
        &self,
        name: &ObjectName,
        named: &[omnibus_parser::ast::Ident],
        all: bool,
        needs: &[Priv],
    ) -> SqlResult<InsertInto<'a>> {
        let opened = match self.open(name, None, needs, "INSERT")? {
            Meant::Table(opened) => *opened,
            Meant::Join(join) => self.one_of(*join, named, all, needs)?,
        };
        let Some((merged, slot)) = &opened.names.view else {
            let granted = &opened.names.granted.insert;
            let columns = super::plan::insert_columns(&opened.names.table, named, all, granted)?;
            return Ok(InsertInto { opened, columns, view: None });
        };
        let granted = &opened.names.granted.insert;
        match all {
            true => granted.check_all(merged.columns.iter().map(|column| &*column.name))?,
            false => named.iter().try_for_each(|name| granted.check(name))?,
        }
        let places: Vec<usize> = match all {
            true => (0..merged.columns.len()).collect(),
            false => named.iter().map(|name| place_of(merged, name)).collect::<SqlResult<_>>()?,
        };
        if !self.session.settings.mariadb && !self.session.settings.replicated {
            check_insertable(merged, &places, &name.name)?;
        }
        let mut columns = Vec::with_capacity(places.len());
        for place in places {
            let column = base_column(merged, place, *slot);
            let column = column.ok_or_else(|| SqlError::non_insertable_table(&name.name, "INSERT"))?;
            if columns.contains(&column) {
                return Err(SqlError::non_insertable_table(&name.name, "INSERT"));
            }
            columns.push(column);
        }
        let view = Some(merged.view.qualified());
        Ok(InsertInto { opened, columns, view })
    }

    /// The one table of a join that the named columns are of.
    fn one_of(
        &self,
        join: JoinView<'a>,
        named: &[omnibus_parser::ast::Ident],
        all: bool,
        needs: &[Priv],
    ) -> SqlResult<Opened<'a>> {
        let JoinView { binder, merged, granted } = join;
        let (view, name) = (merged.view.qualified(), merged.view.def.name.clone());
        if all {
            return Err(SqlError::view_no_insert_field_list(view));
        }
        let mut found: Option<u16> = None;
        if !self.session.settings.mariadb && !self.session.settings.replicated {
            if needs.contains(&Priv::Delete) {
                return Err(SqlError::view_delete_merge_view(view));
            }
            if members_of(&binder).any(|table| !matches!(table.source, Source::Table(_))) {
                return Err(SqlError::non_insertable_table(name, "INSERT"));
            }
            let places =
                named.iter().map(|column| place_of(&merged, column)).collect::<SqlResult<Vec<_>>>()?;
            check_insertable(&merged, &places, &name)?;
        }
        for column in named {
            let at = place_of(&merged, column)?;
            let Kind::Column { slot, .. } = &merged.exprs[at].kind else {
                return Err(SqlError::non_insertable_table(name, "INSERT"));
            };
            if found.is_some_and(|found| found != *slot) {
                return Err(SqlError::view_multiupdate(view));
            }
            found = Some(*slot);
        }
        let scope = found.and_then(|slot| binder.collected.slots.get(usize::from(slot))?.as_ref());
        let Some((slot, Source::Table(table))) = scope.map(|scope| (scope.slot, &scope.source)) else {
            return Err(SqlError::non_insertable_table(name, "INSERT"));
        };
        let table = table.clone();
        for need in needs {
            self.may_change(&merged.view, &table, *need)?;
        }
        let names = Names { table, alias: name.to_string(), view: Some((merged, slot)), granted };
        Ok(Opened { binder, slot, names, conditions: Vec::new() })
    }
}

/// The tables of a view that stand in its place.
fn members_of<'b>(binder: &'b Binder<'_>) -> impl Iterator<Item = &'b ScopeTable> {
    let tables = binder.blocks.last().map_or(&[][..], |block| &block.scope.tables);
    tables.iter().filter(|table| table.is_inner() && table.has_rows())
}

/// The error about rows of a view of several tables that are to be deleted.
pub(super) fn not_deleted(join: &JoinView<'_>, alias: &str) -> SqlError {
    match members_of(&join.binder).any(|table| matches!(table.source, Source::Table(_))) {
        true => SqlError::view_delete_merge_view(join.merged.view.qualified()),
        false => SqlError::non_updatable_table(alias, "DELETE"),
    }
}

/// As MySQL has it, rows go into a view only if all of its columns are columns of tables, each of another one; whether they get values or not.
fn check_insertable(merged: &MergedView, places: &[usize], name: &str) -> SqlResult<()> {
    let column = |at: usize| written_column(&merged.exprs[at]);
    if let Some(place) = places.iter().find(|place| column(**place).is_none()) {
        return Err(SqlError::nonupdateable_column(&merged.columns[*place].name));
    }
    let mut seen = Vec::with_capacity(merged.exprs.len());
    for at in 0..merged.exprs.len() {
        match column(at) {
            Some(column) if !seen.contains(&column) => seen.push(column),
            _ => return Err(SqlError::non_insertable_table(name, "INSERT")),
        }
    }
    Ok(())
}

fn place_of(merged: &MergedView, name: &str) -> SqlResult<usize> {
    let found = merged.columns.iter().position(|column| same_name(&column.name, name));
    found.ok_or_else(|| SqlError::bad_field(name, "field list"))
}

impl Names {
    /// The view's names for the row that an INSERT wants to write, which is in slot `values`.
    pub(crate) fn values_source(&self, values: u16) -> Source {
        let Some((merged, slot)) = &self.view else { return Source::Table(self.table.clone()) };
        let moved = |e: &Expr| match &e.kind {
            Kind::Column { slot: from, column, utc } if from == slot => {
                Expr { kind: Kind::Column { slot: values, column: *column, utc: *utc }, ty: e.ty.clone() }
            }
            _ => Expr::null(),
        };
        Source::View(Arc::new(MergedView {
            view: merged.view.clone(),
            columns: merged.columns.clone(),
            exprs: merged.exprs.iter().map(moved).collect(),
            witness: values,
            check: Vec::new(),
        }))
    }

    /// Whether the view that the statement goes through has a column of the table.
    pub(crate) fn shows(&self, column: usize) -> bool {
        self.view.as_ref().is_none_or(|(merged, slot)| {
            (0..merged.exprs.len()).any(|at| base_column(merged, at, *slot) == Some(column))
        })
    }
}
