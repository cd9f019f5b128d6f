//! Binds FROM: tables get slots, ON and USING become conditions, outer joins become nests.
//!
//! Inner joins of any shape are flattened into one list of items and conditions (a `Nest`), which
//! `join_order` may read in any order. The inner side of an outer join is a nest of its own.

use super::bind::bind_query;
use super::bind_compound::{recursive, rename};
use super::plan::QueryPlan;
use super::storage::{LockMode, WaitPolicy};
use super::virtual_table::VirtualTable;
use crate::api::{Priv, ResultColumn};
use crate::catalog::Table;
use crate::error::{SqlError, SqlResult};
use crate::expr::bind::{Binder, Clause, CommonDefinition};
use crate::expr::node::CompareOp;
use crate::expr::scope::{ScopeTable, Source, same};
use crate::expr::{Expr, Kind, slot_bit, uses};
use omnibus_parser::ast::{self, IndexHint, JoinCondition, JoinKind, LockStrength, LockWait, TableRef};
use std::sync::Arc;

/// Tables that are inner-joined, and the conditions on them.
#[derive(Debug, Default)]
pub struct Nest {
    /// Members, in the order written.
    pub items: Vec<Item>,
    /// Conjuncts.
    pub conditions: Vec<Expr>,
}

/// A member of a nest.
#[derive(Debug)]
pub enum Item {
    /// One table.
    Table(Box<TableItem>),
    /// The inner side of an outer join.
    Outer {
        /// What is inside.
        nest: Nest,
        /// Its slots.
        slots: Vec<u16>,
        /// Slots that must be read before.
        required: u64,
    },
}

/// A table to be read.
#[derive(Debug)]
pub struct TableItem {
    /// Its slot.
    pub slot: u16,
    /// Its name in EXPLAIN.
    pub alias: Arc<str>,
    /// What it is.
    pub source: ItemSource,
    /// USE, FORCE and IGNORE INDEX.
    pub hints: Vec<IndexHint>,
    /// Locks to take.
    pub lock: LockMode,
    /// When they are taken.
    pub wait: WaitPolicy,
}

/// What a table item reads.
pub enum ItemSource {
    /// A stored table.
    Table(Arc<Table>),
    /// A derived table, and the outer slots that it reads.
    Derived(Arc<QueryPlan>, u64),
    /// A computed table.
    Virtual(Arc<dyn VirtualTable>),
    /// A recursive reference.
    Recursion(usize),
}

impl std::fmt::Debug for ItemSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("table")
    }
}

impl Nest {
    /// The strongest lock that a table of it takes.
    #[must_use]
    pub fn locks(&self) -> LockMode {
        let mut strongest = LockMode::None;
        for item in &self.items {
            let this = match item {
                Item::Table(table) => table.lock,
                Item::Outer { nest, .. } => nest.locks(),
            };
            if this == LockMode::Exclusive || strongest == LockMode::None {
                strongest = this;
            }
        }
        strongest
    }
}

/// FROM of one block.
pub(super) struct From<'q> {
    locking: &'q [ast::Locking],
    /// Columns of USING and NATURAL, in the order `*` gives them first: slot and column.
    common: Vec<(u16, usize)>,
}

impl<'q> From<'q> {
    pub(super) fn new(locking: &'q [ast::Locking]) -> From<'q> {
        From { locking, common: Vec::new() }
    }

    pub(super) fn bind(&mut self, binder: &mut Binder<'_>, from: &[TableRef]) -> SqlResult<Nest> {
        let mut nest = Nest::default();
        for table in from {
            self.table_ref(binder, table, &mut nest)?;
        }
        Ok(nest)
    }

    fn table_ref(&mut self, binder: &mut Binder<'_>, table: &TableRef, nest: &mut Nest) -> SqlResult<()> {
        match table {
            TableRef::Table(factor) => self.factor(binder, factor, nest),
            TableRef::Derived(derived) => self.derived(binder, derived, nest),
            TableRef::Group(members) => members.iter().try_for_each(|m| self.table_ref(binder, m, nest)),
            TableRef::Join(join) => self.join(binder, join, nest),
        }
    }

    fn lock_of(&self, binder: &Binder<'_>, alias: &str) -> (LockMode, WaitPolicy) {
        for locking in self.locking {
            if !locking.tables.is_empty() && !locking.tables.iter().any(|t| *t.name == *alias) {
                continue;
            }
            let lock = match locking.strength {
                LockStrength::Update => LockMode::Exclusive,
                LockStrength::Share => LockMode::Share,
            };
            let wait = match locking.wait {
                LockWait::Wait => WaitPolicy::Wait,
                LockWait::NoWait | LockWait::Seconds(0) => WaitPolicy::NoWait,
                LockWait::SkipLocked => WaitPolicy::SkipLocked,
                LockWait::Seconds(_) => WaitPolicy::Wait,
            };
            return (lock, wait);
        }
        (binder.default_lock, WaitPolicy::Wait)
    }

    /// FOR UPDATE keeps others from writing, so it asks for more than reading does.
    fn may_lock(&self, binder: &Binder<'_>, db: &str, table: &str, alias: &str) -> SqlResult<()> {
        let writers = [Priv::Update, Priv::Delete, Priv::LockTables];
        if self.locking.is_empty()
            || self.lock_of(binder, alias).0 != LockMode::Exclusive
            || writers.into_iter().any(|writer| binder.access.check(db, Some(table), writer).is_ok())
        {
            return Ok(());
        }
        let state = binder.session;
        let what = "SELECT with locking clause";
        Err(SqlError::tableaccess_denied(what, &state.user, &state.host_name, table))
    }

    fn factor(
        &mut self,
        binder: &mut Binder<'_>,
        factor: &ast::TableFactor,
        nest: &mut Nest,
    ) -> SqlResult<()> {
        if !factor.partitions.is_empty() {
            return Err(SqlError::not_supported_yet("PARTITION"));
        }
        let name: &str = &factor.name.name;
        let alias = factor.alias.as_deref().map_or(name, |a| a);
        if factor.name.schema.is_none()
            && let Some(at) = binder.common.iter().rposition(|c| same(&c.name, name))
        {
            return self.common_table(binder, at, alias, nest);
        }
        let database = binder.session.database.clone();
        let schema: &str = match (&factor.name.schema, &database) {
            (Some(schema), _) => schema,
            (None, Some(database)) => database,
            (None, None) if name.eq_ignore_ascii_case("dual") => return Ok(()),
            (None, None) => return Err(SqlError::no_db()),
        };
        if let Some(table) = binder.virtuals.find(schema, name) {
            binder.note(|noted| noted.bits |= uses::SYSTEM_TABLE);
            let columns = table.columns();
            let mut scope = computed(binder.new_slot(), alias, columns);
            scope.schema = Arc::from(schema);
            return self.add(binder, scope, ItemSource::Virtual(table), Vec::new(), nest);
        }
        if schema.eq_ignore_ascii_case("information_schema") {
            return Err(SqlError::unknown_table(name, "information_schema"));
        }
        if !binder.catalog.find_table(schema, name).is_some_and(|table| table.temporary) {
            binder.access.check(schema, Some(name), Priv::Select)?;
            self.may_lock(binder, schema, name, alias)?;
        } else {
            binder.note(|noted| noted.bits |= uses::TEMPORARY);
        }
        let table = binder.catalog.table(schema, name)?.clone();
        for hint in &factor.hints {
            for index in &hint.indexes {
                if table.index_named(index).is_none() {
                    return Err(SqlError::key_does_not_exist(&**index, alias));
                }
            }
        }
        binder.note(|noted| noted.bits |= uses::READS);
        let scope = binder.add_table(&table, Some(alias));
        self.add(binder, scope, ItemSource::Table(table), factor.hints.clone(), nest)
    }

    fn add(
        &mut self,
        binder: &mut Binder<'_>,
        scope: ScopeTable,
        source: ItemSource,
        hints: Vec<IndexHint>,
        nest: &mut Nest,
    ) -> SqlResult<()> {
        let slot = scope.slot;
        let alias = scope.alias.clone();
        let stored = matches!(source, ItemSource::Table(_));
        let (lock, wait) =
            if stored { self.lock_of(binder, &alias) } else { (LockMode::None, WaitPolicy::Wait) };
        binder.slots[usize::from(slot)] = Some(scope.clone());
        let Some(block) = binder.blocks.last_mut() else { return Err(SqlError::no_tables_used()) };
        let twice = block.scope.tables.iter().any(|t| t.alias == alias && t.schema == scope.schema);
        if twice {
            return Err(SqlError::nonuniq_table(alias));
        }
        block.scope.tables.push(scope);
        nest.items.push(Item::Table(Box::new(TableItem { slot, alias, source, hints, lock, wait })));
        Ok(())
    }

    fn common_table(
        &mut self,
        binder: &mut Binder<'_>,
        at: usize,
        alias: &str,
        nest: &mut Nest,
    ) -> SqlResult<()> {
        let table = binder.common[at].clone();
        match table.definition {
            CommonDefinition::Recursion { columns, store } => {
                let scope = computed(binder.new_slot(), alias, columns);
                self.add(binder, scope, ItemSource::Recursion(store), Vec::new(), nest)
            }
            CommonDefinition::Query { query, columns, outer, recursive: is_recursive } => {
                // It sees what was in sight where it was written: earlier tables of its WITH, and
                // the blocks around that.
                let later = binder.common.split_off(at);
                let inner = binder.blocks.split_off(outer.min(binder.blocks.len()));
                let plan = if is_recursive {
                    recursive(binder, &table.name, &columns, &query)
                } else {
                    bind_query(binder, &query)
                };
                binder.blocks.extend(inner);
                binder.common.extend(later);
                let plan = plan?;
                let mut result = plan.columns.to_vec();
                rename(&mut result, &columns)?;
                let scope = computed(binder.new_slot(), alias, derived_columns(result));
                self.add(binder, scope, ItemSource::Derived(Arc::new(plan), 0), Vec::new(), nest)
            }
        }
    }

    fn derived(&mut self, binder: &mut Binder<'_>, derived: &ast::Derived, nest: &mut Nest) -> SqlResult<()> {
        let Some(alias) = &derived.alias else { return Err(SqlError::derived_must_have_alias()) };
        // Only LATERAL sees the tables before it in the same FROM.
        let hidden = match binder.blocks.last_mut() {
            Some(block) if !derived.lateral => Some(std::mem::take(&mut block.scope)),
            _ => None,
        };
        let bound = super::bind::subquery(binder, &derived.query);
        if let (Some(scope), Some(block)) = (hidden, binder.blocks.last_mut()) {
            block.scope = scope;
        }
        let (plan, outer) = bound?;
        let mut columns = plan.columns.to_vec();
        rename(&mut columns, &derived.columns)?;
        for (at, column) in columns.iter().enumerate() {
            if columns[..at].iter().any(|c| same(&c.name, &column.name)) {
                return Err(SqlError::dup_fieldname(&column.name));
            }
        }
        let scope = computed(binder.new_slot(), alias, derived_columns(columns));
        self.add(binder, scope, ItemSource::Derived(Arc::new(plan), outer), Vec::new(), nest)
    }

    fn join(&mut self, binder: &mut Binder<'_>, join: &ast::Join, nest: &mut Nest) -> SqlResult<()> {
        let start = scope_len(binder);
        let mut inner = Nest::default();
        match join.kind {
            JoinKind::Right => self.table_ref(binder, &join.left, &mut inner)?,
            _ => self.table_ref(binder, &join.left, nest)?,
        }
        let middle = scope_len(binder);
        match join.kind {
            JoinKind::Left => self.table_ref(binder, &join.right, &mut inner)?,
            _ => self.table_ref(binder, &join.right, nest)?,
        }
        let mut conditions = Vec::new();
        self.condition(binder, join, start, middle, &mut conditions)?;
        let end = scope_len(binder);
        let (inside, outside) = match join.kind {
            JoinKind::Left => (middle..end, start..middle),
            JoinKind::Right => (start..middle, middle..end),
            _ => {
                nest.conditions.append(&mut conditions);
                return Ok(());
            }
        };
        let Some(block) = binder.blocks.last_mut() else { return Ok(()) };
        let mut slots = Vec::new();
        for table in &mut block.scope.tables[inside] {
            table.nullable = true;
            slots.push(table.slot);
        }
        let required = block.scope.tables[outside].iter().fold(0, |bits, t| bits | slot_bit(t.slot));
        inner.conditions.append(&mut conditions);
        for slot in &slots {
            if let Some(Some(table)) = binder.slots.get_mut(usize::from(*slot)) {
                table.nullable = true;
            }
        }
        nest.items.push(Item::Outer { nest: inner, slots, required });
        Ok(())
    }

    fn condition(
        &mut self,
        binder: &mut Binder<'_>,
        join: &ast::Join,
        start: usize,
        middle: usize,
        conditions: &mut Vec<Expr>,
    ) -> SqlResult<()> {
        let names: Vec<String> = match &join.condition {
            JoinCondition::On(condition) => {
                // ON sees only the tables of this join and outer blocks.
                binder.set_clause(Clause::On);
                let before = hide_before(binder, start);
                let bound = binder.expr(condition);
                restore_before(binder, before);
                super::condition::conjuncts(bound?, conditions);
                return Ok(());
            }
            JoinCondition::Using(names) => names.iter().map(|n| n.to_string()).collect(),
            JoinCondition::None if join.natural => natural_columns(binder, start, middle),
            JoinCondition::None => return Ok(()),
        };
        for name in names {
            let left = visible_column(binder, start..middle, &name)?;
            let right = visible_column(binder, middle..scope_len(binder), &name)?;
            let (kept, hidden) = if join.kind == JoinKind::Right { (right, left) } else { (left, right) };
            let Some(block) = binder.blocks.last_mut() else { continue };
            let (kept_table, hidden_table) = (&block.scope.tables[kept.0], &block.scope.tables[hidden.0]);
            let (a, b) = (kept_table.expr(kept.1), hidden_table.expr(hidden.1));
            let first = (kept_table.slot, kept.1);
            block.scope.tables[hidden.0].hidden.push(hidden.1);
            if !self.common.contains(&first) {
                self.common.push(first);
            }
            conditions.push(binder.compare(CompareOp::Eq, a, b)?);
        }
        Ok(())
    }

    /// The columns of `*`: those of USING and NATURAL first, then each table's others.
    pub(super) fn wildcard(&self, tables: &[ScopeTable]) -> Vec<(Arc<str>, Expr)> {
        let mut out = Vec::new();
        for (slot, column) in &self.common {
            let Some(table) = tables.iter().find(|t| t.slot == *slot) else { continue };
            if !table.hidden.contains(column) {
                out.push((table.column_name(*column).clone(), table.expr(*column)));
            }
        }
        for table in tables {
            for at in 0..table.width() {
                let taken = self.common.contains(&(table.slot, at)) || table.hidden.contains(&at);
                if !taken && !table.is_invisible(at) {
                    out.push((table.column_name(at).clone(), table.expr(at)));
                }
            }
        }
        out
    }
}

/// The columns of a derived table: they keep their types and lose what is special about a stored
/// column.
fn derived_columns(columns: Vec<ResultColumn>) -> Arc<[ResultColumn]> {
    use crate::api::flag;
    columns
        .into_iter()
        .map(|mut column| {
            column.flags &= !(flag::PRI_KEY | flag::UNIQUE_KEY | flag::MULTIPLE_KEY | flag::AUTO_INCREMENT);
            column
        })
        .collect()
}

fn computed(slot: u16, alias: &str, columns: Arc<[ResultColumn]>) -> ScopeTable {
    ScopeTable {
        slot,
        schema: Arc::from(""),
        alias: Arc::from(alias),
        source: Source::Columns(columns),
        nullable: false,
        hidden: Vec::new(),
    }
}

fn scope_len(binder: &Binder<'_>) -> usize {
    binder.blocks.last().map_or(0, |block| block.scope.tables.len())
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

/// Names of columns that tables on both sides of a NATURAL join have.
fn natural_columns(binder: &Binder<'_>, start: usize, middle: usize) -> Vec<String> {
    let Some(block) = binder.blocks.last() else { return Vec::new() };
    let visible = |tables: &[ScopeTable]| -> Vec<String> {
        let columns = tables.iter().flat_map(|t| {
            (0..t.width())
                .filter(|at| !t.hidden.contains(at) && !t.is_invisible(*at))
                .map(|at| t.column_name(at).to_string())
        });
        columns.collect()
    };
    let right = visible(&block.scope.tables[middle..]);
    let left = visible(&block.scope.tables[start..middle]);
    left.into_iter().filter(|name| right.iter().any(|r| same(r, name))).collect()
}

/// The one visible column of a name among some tables: table position and column.
fn visible_column(
    binder: &Binder<'_>,
    range: std::ops::Range<usize>,
    name: &str,
) -> SqlResult<(usize, usize)> {
    let Some(block) = binder.blocks.last() else { return Err(SqlError::bad_field(name, "from clause")) };
    let mut found = None;
    for at in range {
        let table = &block.scope.tables[at];
        if let Some(column) = table.find(name).filter(|c| !table.hidden.contains(c)) {
            if found.is_some() {
                return Err(SqlError::non_uniq(name, "from clause"));
            }
            found = Some((at, column));
        }
    }
    found.ok_or_else(|| SqlError::bad_field(name, "from clause"))
}

/// Whether an expression is a column of a slot.
pub(super) fn column_of(e: &Expr, wanted: u16) -> Option<usize> {
    match &e.kind {
        Kind::Column { slot, column, .. } if *slot == wanted => Some(usize::from(*column)),
        _ => None,
    }
}
