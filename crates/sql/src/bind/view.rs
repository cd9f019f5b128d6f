//! A view in FROM. Where each of its rows is a row of its tables, these stand in its place, so that the planner sees them and their
//! indexes; otherwise it is a derived table.
//!
//! Its query sees nothing of the statement around it: no tables, no common table expressions, not the session's character sets, and,
//! unless it says SQL SECURITY INVOKER, not its rights.

use super::binder::{Author, Binder, CommonTable};
use super::block::BlockScope;
use super::compound::rename;
use super::dependencies::DerivedFacts;
use super::from::{From, computed, derived_columns, derived_table, push_scope};
use super::query::{Clauses, clauses};
use super::scope::{MergedView, ScopeTable, Source};
use crate::api::{Columns, ResultColumn, Rights};
use crate::catalog::{Catalog, Table, View, charset};
use crate::error::{SqlError, SqlResult};
use crate::expr::is_volatile;
use crate::expr::{Expr, Kind};
use crate::logical::VirtualTables;
use crate::logical::nest::{Item, ItemSource, Nest};
use crate::state::SessionState;
use crate::storage::{LockMode, WaitPolicy};
use omnibus_parser::ast::{CheckOption, Security};
use omnibus_value::ColumnType;
use std::sync::Arc;

/// Bytes of a view that is bound, beside what follows from its text: its tables and their plan.
const BOUND: usize = 8 << 10;

/// The statement around a view, while that is bound.
struct Around<'a> {
    blocks: Vec<BlockScope>,
    common: Vec<CommonTable>,
    author: Author<'a>,
    lock: LockMode,
    catalog: &'a Catalog,
}

/// A view whose tables stand in its place.
struct Merged {
    nest: Nest,
    tables: Vec<ScopeTable>,
    columns: Vec<ResultColumn>,
    exprs: Vec<Expr>,
    order: Vec<(Expr, bool)>,
    witness: u16,
    check: Vec<Expr>,
}

/// Binds a view that rows are to be changed through, as a member of the innermost block.
///
/// # Errors
/// As in FROM.
pub(crate) fn expand(
    binder: &mut Binder<'_>,
    view: &Arc<View>,
    alias: &str,
    nest: &mut Nest,
) -> SqlResult<()> {
    From::new(&[]).view(binder, view, alias, nest)
}

impl From<'_> {
    /// Binds a view that the account may read.
    pub(super) fn view(
        &mut self,
        binder: &mut Binder<'_>,
        view: &Arc<View>,
        alias: &str,
        nest: &mut Nest,
    ) -> SqlResult<()> {
        let (lock, wait) = self.lock_of(binder, alias);
        // The client has paid for the words of its own statement.
        binder.count(view.memory as usize + BOUND)?;
        binder.collected.views.push(view.clone());
        binder.note(|noted| noted.views.push(view.clone()));
        let around = enter(binder, view, lock)?;
        let outermost = binder.around.through.is_none();
        if outermost {
            binder.around.through = Some((view.def.id, alias.into()));
        }
        let bound = bind(binder, view, (lock, wait));
        if outermost {
            binder.around.through = None;
        }
        leave(binder, around);
        match bound.map_err(|error| invalid(error, view))? {
            Bound::Merged(merged) => stand_in(binder, view, alias, *merged, nest),
            Bound::Stored(source, columns, facts) => {
                let mut scope = computed(binder.new_slot(), alias, derived_columns(columns));
                scope.facts = facts;
                scope.schema = view.def.db.clone();
                self.add(binder, scope, source, Vec::new(), nest)
            }
        }
    }
}

enum Bound {
    Merged(Box<Merged>),
    Stored(ItemSource, Vec<ResultColumn>, Option<Arc<DerivedFacts>>),
}

/// Hides the statement from a view.
fn enter<'a>(binder: &mut Binder<'a>, view: &Arc<View>, lock: LockMode) -> SqlResult<Around<'a>> {
    let def = &view.def;
    if binder.around.expanding.iter().any(|outer| outer.def.id == def.id) {
        return Err(SqlError::view_recursive(&def.db, &def.name));
    }
    binder.descend()?;
    let access = rights(view, &binder.author.access)?;
    let account = match def.security {
        Security::Definer => Some(def.definer.clone()),
        Security::Invoker => binder.author.account.clone(),
    };
    let client = charset::server_default();
    let database = Some(def.db.clone());
    let author = Author { access, account, client, connection: def.connection, database };
    binder.around.expanding.push(view.clone());
    let own = binder.objects.catalog.under.as_deref().unwrap_or(binder.objects.catalog);
    Ok(Around {
        catalog: std::mem::replace(&mut binder.objects.catalog, own),
        blocks: std::mem::take(&mut binder.blocks),
        common: std::mem::take(&mut binder.around.common),
        author: std::mem::replace(&mut binder.author, author),
        lock: std::mem::replace(&mut binder.default_lock, lock),
    })
}

fn leave<'a>(binder: &mut Binder<'a>, around: Around<'a>) {
    binder.around.expanding.pop();
    binder.blocks = around.blocks;
    binder.around.common = around.common;
    binder.author = around.author;
    binder.default_lock = around.lock;
    binder.objects.catalog = around.catalog;
}

/// The rights that are asked inside of a view that `around` may use.
///
/// # Errors
/// 1449: its definer is gone.
pub(crate) fn rights<'a>(view: &View, around: &Rights<'a>) -> SqlResult<Rights<'a>> {
    match view.def.security {
        Security::Definer => Ok(Rights::Definer(around.of_definer(&view.def.definer)?)),
        Security::Invoker => Ok(around.clone()),
    }
}

/// The error that is told outside of a view, which hides what is wrong inside of it.
pub(crate) fn invalid(error: SqlError, view: &View) -> SqlError {
    match error.code {
        1044 | 1049 | 1054 | 1109 | 1142 | 1143 | 1146 | 1305 | 1356 | 1370 => {
            SqlError::view_invalid(view.qualified())
        }
        _ => error,
    }
}

fn bind(binder: &mut Binder<'_>, view: &Arc<View>, lock: (LockMode, WaitPolicy)) -> SqlResult<Bound> {
    let mut reads = 0;
    binder.note(|noted| reads = noted.subquery_reads.len());
    if let Some(merged) = merge(binder, view, lock)? {
        return Ok(Bound::Merged(Box::new(merged)));
    }
    binder.note(|noted| noted.subquery_reads.truncate(reads));
    let (plan, outer, facts) = derived_table(binder, &view.def.query)?;
    let mut columns = plan.columns.to_vec();
    rename(&mut columns, &view.def.columns)?;
    let source = ItemSource::Derived { plan: Arc::new(plan), outer: outer.slots, store: None };
    Ok(Bound::Stored(source, columns, facts))
}

/// Binds a view's FROM, WHERE and select list in a scope of their own; `None` if it must be a derived table.
fn merge(
    binder: &mut Binder<'_>,
    view: &Arc<View>,
    lock: (LockMode, WaitPolicy),
) -> SqlResult<Option<Merged>> {
    let Some(select) = view.select() else { return Ok(None) };
    binder.blocks.push(BlockScope::default());
    let from = From::of_view(&view.def.query.locking, lock);
    let bound = clauses(binder, select, &view.def.query, from);
    let block = binder.blocks.pop().unwrap_or_default();
    let Clauses { nest, outputs, names, order, .. } = bound?;
    let witness = nest.items.iter().find_map(|item| match item {
        Item::Table(table) => Some(table.slot),
        Item::Outer { .. } => None,
    });
    // A value that is another one each time must be computed once.
    let Some(witness) = witness.filter(|_| !outputs.iter().any(is_volatile)) else { return Ok(None) };
    let mut columns: Vec<ResultColumn> =
        outputs.iter().zip(names).map(|(e, name)| binder.result_column(e, name)).collect();
    rename(&mut columns, &view.def.columns)?;
    let check = match view.def.check {
        None => nest.views.checks.clone(),
        Some(CheckOption::Cascaded) => nest.conditions.clone(),
        Some(CheckOption::Local) => {
            let theirs = |at: &usize| nest.views.conditions.iter().any(|range| range.contains(at));
            let own = (0..nest.conditions.len()).filter(|at| !theirs(at)).map(|at| &nest.conditions[at]);
            own.chain(&nest.views.checks).cloned().collect()
        }
    };
    let tables = block.scope.tables;
    Ok(Some(Merged { nest, tables, columns, exprs: outputs, order, witness, check }))
}

/// Puts a view's tables into the block around it.
fn stand_in(
    binder: &mut Binder<'_>,
    view: &Arc<View>,
    alias: &str,
    mut merged: Merged,
    nest: &mut Nest,
) -> SqlResult<()> {
    let name: Arc<str> = Arc::from(alias);
    for mut table in merged.tables {
        let shown = merged.exprs.iter().zip(&merged.columns).filter_map(|(e, column)| match &e.kind {
            Kind::Column { slot, column: at, .. } if *slot == table.slot => Some((*at, column.name.clone())),
            _ => None,
        });
        table.inner = Some(shown.collect());
        table.alias = name.clone();
        binder.collected.slots[usize::from(table.slot)] = Some(table.clone());
        let Some(block) = binder.blocks.last_mut() else { return Err(SqlError::no_tables_used()) };
        block.scope.tables.push(table);
    }
    for column in &mut merged.columns {
        if !column.org_table.is_empty() {
            column.table = name.clone();
        }
    }
    nest.views.checks.extend(merged.check.iter().cloned());
    let scope = ScopeTable {
        slot: binder.new_slot(),
        schema: view.def.db.clone(),
        alias: name,
        source: Source::View(Arc::new(MergedView {
            view: view.clone(),
            columns: merged.columns,
            exprs: merged.exprs,
            witness: merged.witness,
            check: merged.check,
        })),
        nullable: false,
        hidden: Vec::new(),
        inner: None,
        readable: Columns::All,
        names: None,
        facts: None,
    };
    push_scope(binder, scope)?;
    nest.items.append(&mut merged.nest.items);
    let first = nest.conditions.len();
    nest.conditions.append(&mut merged.nest.conditions);
    nest.views.conditions.push(first..nest.conditions.len());
    nest.views.order = merged.order;
    Ok(())
}

/// A column of a view.
pub(crate) struct OutlineColumn {
    pub name: Arc<str>,
    pub ty: ColumnType,
    pub nullable: bool,
    /// The column of a stored table that it is.
    pub base: Option<(Arc<Table>, usize)>,
}

/// The outline of a view: as much of it as shows from outside.
pub(crate) struct Outline {
    /// Its columns.
    pub columns: Vec<OutlineColumn>,
    /// Whether rows of a table can be changed through it.
    pub updatable: bool,
    /// Stored tables that it reads, through other views too.
    pub tables: Vec<Arc<Table>>,
    /// Views that it reads, and itself.
    pub views: Vec<Arc<View>>,
}

/// Binds a view by itself, whoever asks.
///
/// # Errors
/// 1356: it is invalid; 1449, 1462.
pub(crate) fn outline(
    view: &Arc<View>,
    session: &SessionState,
    catalog: &Catalog,
    virtuals: &dyn VirtualTables,
) -> SqlResult<Outline> {
    let mut binder = Binder::new(session, catalog);
    binder.objects.virtuals = virtuals;
    binder.blocks.push(BlockScope::default());
    let mut nest = Nest::default();
    From::new(&[]).view(&mut binder, view, &view.def.name, &mut nest)?;
    let mut scopes = binder.blocks.pop().unwrap_or_default().scope.tables;
    let scope = scopes.pop().ok_or_else(SqlError::unknown_error)?;
    let base = |e: &Expr| match &e.kind {
        Kind::Column { slot, column, .. } => {
            match &binder.collected.slots.get(usize::from(*slot))?.as_ref()?.source {
                Source::Table(table) => Some((table.clone(), usize::from(*column))),
                _ => None,
            }
        }
        _ => None,
    };
    let column = |at| {
        let e = scope.expr(at);
        let (base, ty) = (base(&e), e.ty.column);
        OutlineColumn { name: scope.column_name(at).clone(), ty, nullable: e.ty.nullable, base }
    };
    let columns: Vec<OutlineColumn> = (0..scope.width()).map(column).collect();
    let updatable = scopes.iter().any(|table| matches!(table.source, Source::Table(_)));
    Ok(Outline { columns, updatable, tables: binder.collected.tables, views: binder.collected.views })
}
