//! Binds FROM: tables get slots, ON and USING become conditions, outer joins become nests.
//!
//! Inner joins of any shape are flattened into one [`Nest`].

use super::binder::{Binder, CommonDefinition};
use super::block::{BlockScope, OuterReads};
use super::compound::rename;
use super::dependencies::{DerivedFacts, marker};
use super::join_condition::{Operands, join_condition, reads_beside};
use super::query::{bind_query, planned};
use super::recursive::{recursive, reference};
use super::scope::{ScopeTable, Source};
use super::uses;
use crate::api::{Columns, Priv, ResultColumn};
use crate::catalog::{Table, first_double};
use crate::error::{SqlError, SqlResult};
use crate::expr::SlotSet;
use crate::logical::hints::check_hints;
use crate::logical::nest::{Item, ItemSource, Nest, TableItem};
use crate::logical::numbers::NumberTable;
use crate::logical::virtual_table::VirtualTable;
use crate::plan::{QueryPlan, Reader};
use crate::state::{Inside, SessionState};
use crate::storage::{LockMode, WaitPolicy};
use crate::store::{not_locked, only_read_locked};
use omnibus_parser::ast::{self, IndexHint, JoinKind, LockStrength, LockWait, TableRef};
use std::sync::Arc;

/// The most tables that MySQL allows in one FROM.
const MOST_TABLES: usize = 61;

/// The columns that `*` gives of a table reference, in order: slot and column.
pub(super) type Star = Vec<(u16, usize)>;

/// FROM of one block.
pub(super) struct From<'q> {
    locking: &'q [ast::Locking],
    /// The lock of tables that no clause of its own names: in a view, the one that the query around it says.
    inherited: Option<(LockMode, WaitPolicy)>,
    /// STRAIGHT_JOIN of the whole block.
    straight: bool,
}

impl<'q> From<'q> {
    pub(super) fn new(locking: &'q [ast::Locking]) -> From<'q> {
        From { locking, inherited: None, straight: false }
    }

    /// With the options of its block.
    pub(super) fn of_block(locking: &'q [ast::Locking], options: &ast::SelectOptions) -> From<'q> {
        From { locking, inherited: None, straight: options.straight_join }
    }

    /// Of a view that stands in another FROM.
    pub(super) fn of_view(locking: &'q [ast::Locking], inherited: (LockMode, WaitPolicy)) -> From<'q> {
        From { locking, inherited: Some(inherited), straight: false }
    }

    /// Binds all of FROM: what is to be joined, and what `*` gives.
    pub(super) fn bind(&mut self, binder: &mut Binder<'_>, from: &[TableRef]) -> SqlResult<(Nest, Star)> {
        let mut nest = Nest::default();
        let star = self.list(binder, from, &mut nest)?;
        let tables = binder.blocks.last().map_or(&[][..], |block| &block.scope.tables);
        if tables.iter().filter(|table| table.has_rows()).count() > MOST_TABLES {
            return Err(too_many_tables());
        }
        self.check_locking(binder)?;
        Ok((nest, star))
    }

    fn list(&mut self, binder: &mut Binder<'_>, tables: &[TableRef], nest: &mut Nest) -> SqlResult<Star> {
        let mut star = Star::new();
        for (at, table) in tables.iter().enumerate() {
            let mut columns = match at > 0 && self.straight {
                true => self.later_side(binder, table, nest)?,
                false => self.table_ref(binder, table, nest)?,
            };
            star.append(&mut columns);
        }
        Ok(star)
    }

    fn table_ref(&mut self, binder: &mut Binder<'_>, table: &TableRef, nest: &mut Nest) -> SqlResult<Star> {
        binder.descend()?;
        let start = scope_len(binder);
        match table {
            TableRef::Table(factor) => self.factor(binder, factor, nest)?,
            TableRef::Derived(derived) => self.derived(binder, derived, nest)?,
            TableRef::JsonTable(table) => self.json_table(binder, table, nest)?,
            TableRef::Group(members) => return self.list(binder, members, nest),
            TableRef::Join(join) => return self.join(binder, join, nest),
        }
        let tables = binder.blocks.last().map_or(&[][..], |block| &block.scope.tables[start..]);
        let visible = |t: &&ScopeTable| !t.is_inner();
        let columns = |t: &ScopeTable| {
            let shown: Vec<_> = (0..t.width()).filter(|at| !t.is_invisible(*at)).collect();
            shown.into_iter().map(|at| (t.slot, at)).collect::<Star>()
        };
        Ok(tables.iter().filter(visible).flat_map(columns).collect())
    }

    /// FOR UPDATE OF names tables of this FROM, each once.
    fn check_locking(&self, binder: &Binder<'_>) -> SqlResult<()> {
        let tables = binder.blocks.last().map_or(&[][..], |block| &block.scope.tables);
        let mut named: Vec<&str> = Vec::new();
        for name in self.locking.iter().flat_map(|locking| &locking.tables) {
            let here = |t: &ScopeTable| {
                let schema = name.schema.as_ref().is_none_or(|schema| **schema == *t.schema);
                schema && *t.alias == *name.name
            };
            if !tables.iter().any(|table| !table.is_inner() && here(table)) {
                let message = format!("Unresolved table name `{}` in locking clause.", name.name);
                return Err(SqlError::new(3568, b"HY000", message));
            }
            if named.contains(&&*name.name) {
                let message = format!("Table `{}` appears in multiple locking clauses.", name.name);
                return Err(SqlError::new(3569, b"HY000", message));
            }
            named.push(&name.name);
        }
        Ok(())
    }

    pub(super) fn lock_of(&self, binder: &Binder<'_>, alias: &str) -> (LockMode, WaitPolicy) {
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
        self.inherited.unwrap_or((binder.default_lock, WaitPolicy::Wait))
    }

    /// FOR UPDATE keeps others from writing, so it asks for more than reading does.
    fn may_lock(&self, binder: &Binder<'_>, db: &str, table: &str, alias: &str) -> SqlResult<()> {
        let writers = [Priv::Update, Priv::Delete, Priv::LockTables];
        if self.locking.is_empty()
            || self.lock_of(binder, alias).0 != LockMode::Exclusive
            || writers.into_iter().any(|writer| binder.author.access.check(db, Some(table), writer).is_ok())
        {
            return Ok(());
        }
        let state = binder.session;
        let what = "SELECT with locking clause";
        Err(SqlError::tableaccess_denied(what, &state.login.user, &state.login.host_name, table))
    }

    fn factor(
        &mut self,
        binder: &mut Binder<'_>,
        factor: &ast::TableFactor,
        nest: &mut Nest,
    ) -> SqlResult<()> {
        if !factor.partitions.is_empty() {
            return Err(SqlError::partition_clause());
        }
        let name: &str = &factor.name.name;
        let alias = factor.alias.as_deref().map_or(name, |a| a);
        if factor.name.schema.is_none()
            && let Some(at) = binder.around.common.iter().rposition(|c| binder.is_same_table(&c.name, name))
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
        if let Some(table) = binder.objects.virtuals.find(schema, name) {
            may_read_computed(binder, schema, name)?;
            binder.note(|noted| noted.bits |= uses::SYSTEM_TABLE);
            let columns = table.columns();
            let mut scope = computed(binder.new_slot(), alias, columns);
            scope.schema = Arc::from(schema.to_ascii_lowercase());
            binder.mean(|meaning| meaning.set_table(factor, schema.into()));
            return self.add(binder, scope, ItemSource::Virtual(table), Vec::new(), nest);
        }
        if let Some(view) = binder.objects.virtuals.view(schema, name) {
            binder.mean(|meaning| meaning.set_table(factor, schema.into()));
            return self.view(binder, &view, alias, nest);
        }
        if schema.eq_ignore_ascii_case("information_schema") {
            return Err(SqlError::unknown_table(name, "information_schema"));
        }
        if schema.eq_ignore_ascii_case("performance_schema") {
            return Err(SqlError::no_such_table(schema, name));
        }
        let mut readable = Columns::All;
        if !binder.objects.catalog.find_table(schema, name).is_some_and(|table| table.temporary) {
            readable = binder.author.access.columns(schema, name, Priv::Select)?;
            self.may_lock(binder, schema, name, alias)?;
        } else {
            binder.note(|noted| noted.bits |= uses::TEMPORARY);
            if binder.notes.meaning.is_some() {
                return Err(SqlError::view_select_tmptable(name));
            }
        }
        binder.mean(|meaning| meaning.set_table(factor, schema.into()));
        if let Some(view) = binder.objects.catalog.find_view(schema, name).cloned() {
            if let Some(index) = factor.hints.iter().flat_map(|hint| &hint.indexes).next() {
                return Err(SqlError::key_does_not_exist(index, alias));
            }
            self.view(binder, &view, alias, nest)?;
            binder.restrict_last(readable);
            return Ok(());
        }
        if let Some(table) = number_table(binder, schema, name) {
            binder.note(|noted| noted.bits |= uses::SYSTEM_TABLE);
            let mut scope = computed(binder.new_slot(), alias, table.columns());
            scope.schema = Arc::from(schema);
            return self.add(binder, scope, ItemSource::Virtual(Arc::new(table)), Vec::new(), nest);
        }
        let table = stored_table(binder, schema, name, alias)?;
        check_hints(&table, alias, &factor.hints)?;
        read(binder, &table, alias)?;
        let scope = binder.add_table_of(&table, Some(alias), readable);
        self.add(binder, scope, ItemSource::Table(table), factor.hints.clone(), nest)
    }

    pub(super) fn add(
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
        push_scope(binder, scope)?;
        let after = match &source {
            ItemSource::Derived { outer, .. } => outer.clone(),
            ItemSource::Virtual(table) => table.outer().cloned().unwrap_or_default(),
            _ => SlotSet::default(),
        };
        nest.items.push(Item::Table(Box::new(TableItem { slot, alias, source, hints, lock, wait, after })));
        Ok(())
    }

    fn common_table(
        &mut self,
        binder: &mut Binder<'_>,
        at: usize,
        alias: &str,
        nest: &mut Nest,
    ) -> SqlResult<()> {
        if let CommonDefinition::Recursion(_) = &binder.around.common[at].definition {
            let (columns, store) = reference(binder, at)?;
            let scope = computed(binder.new_slot(), alias, columns);
            return self.add(binder, scope, ItemSource::Recursion(store), Vec::new(), nest);
        }
        let bound = bound_common(binder, at)?;
        for inner in &mut binder.blocks[bound.depth..] {
            bound.outer.columns.iter().for_each(|e| inner.outer.add(e));
        }
        let mut scope = computed(binder.new_slot(), alias, bound.columns.clone());
        scope.facts = bound.facts.clone();
        let (plan, outer, store) = (bound.plan.clone(), bound.outer.slots.clone(), Some(bound.store));
        self.add(binder, scope, ItemSource::Derived { plan, outer, store }, Vec::new(), nest)
    }

    fn derived(&mut self, binder: &mut Binder<'_>, derived: &ast::Derived, nest: &mut Nest) -> SqlResult<()> {
        let Some(alias) = &derived.alias else { return Err(SqlError::derived_must_have_alias()) };
        // Only LATERAL sees the tables before it in the same FROM.
        let hidden = match binder.blocks.last_mut() {
            Some(block) if !derived.lateral => Some(std::mem::take(&mut block.scope)),
            _ => None,
        };
        let bound = derived_table(binder, &derived.query);
        if let (Some(scope), Some(block)) = (hidden, binder.blocks.last_mut()) {
            block.scope = scope;
        }
        let (plan, outer, facts) = bound?;
        let mut columns = plan.columns.to_vec();
        rename(&mut columns, &derived.columns)?;
        refuse_doubles(&columns)?;
        let mut scope = computed(binder.new_slot(), alias, derived_columns(columns));
        scope.facts = facts;
        let source = ItemSource::Derived { plan: Arc::new(plan), outer: outer.slots, store: None };
        self.add(binder, scope, source, Vec::new(), nest)
    }

    fn join(&mut self, binder: &mut Binder<'_>, join: &ast::Join, nest: &mut Nest) -> SqlResult<Star> {
        let start = scope_len(binder);
        let mut inner = Nest::default();
        let first_right;
        let Sides { left, middle, right } =
            if join.kind == JoinKind::Right && (reads_beside(&join.left) || reads_beside(&join.right)) {
                first_right = nest.items.len();
                self.turned_sides(binder, join, &mut inner, nest)?
            } else {
                let left = match join.kind {
                    JoinKind::Right => self.barred_side(binder, &join.left, &mut inner)?,
                    _ => self.table_ref(binder, &join.left, nest)?,
                };
                let middle = scope_len(binder);
                first_right = nest.items.len();
                let right = match join.kind {
                    JoinKind::Left => self.barred_side(binder, &join.right, &mut inner)?,
                    JoinKind::Straight => self.later_side(binder, &join.right, nest)?,
                    JoinKind::Inner if self.straight => self.later_side(binder, &join.right, nest)?,
                    _ => self.table_ref(binder, &join.right, nest)?,
                };
                Sides { left, middle, right }
            };
        let mut conditions = Vec::new();
        let operands = Operands { start, middle, left, right };
        let star = join_condition(binder, join, operands, &mut conditions)?;
        let end = scope_len(binder);
        let (inside, outside) = match join.kind {
            JoinKind::Left => (middle..end, start..middle),
            JoinKind::Right => (start..middle, middle..end),
            kind => {
                nest.conditions.append(&mut conditions);
                if kind == JoinKind::Straight {
                    let before = slots_of(binder, start..middle);
                    nest.items[first_right..].iter_mut().for_each(|item| item.read_after(&before));
                }
                return Ok(star);
            }
        };
        let required = slots_of(binder, outside);
        let Some(block) = binder.blocks.last_mut() else { return Ok(star) };
        let mut slots = Vec::new();
        for table in &mut block.scope.tables[inside] {
            table.nullable = true;
            slots.push(table.slot);
        }
        inner.conditions.append(&mut conditions);
        for slot in &slots {
            if let Some(Some(table)) = binder.collected.slots.get_mut(usize::from(*slot)) {
                table.nullable = true;
            }
        }
        nest.items.push(Item::Outer { nest: inner, slots, required });
        Ok(star)
    }
}

impl From<'_> {
    /// A side of a join that is read behind the other: in MariaDB's dialect a recursive table may be there.
    fn later_side(&mut self, binder: &mut Binder<'_>, table: &TableRef, nest: &mut Nest) -> SqlResult<Star> {
        match binder.session.settings.mariadb {
            true => self.table_ref(binder, table, nest),
            false => self.barred_side(binder, table, nest),
        }
    }

    /// The sides of a RIGHT JOIN as those of the LEFT JOIN that it is: the left one sees the right one, and not the other way round.
    fn turned_sides(
        &mut self,
        binder: &mut Binder<'_>,
        join: &ast::Join,
        inner: &mut Nest,
        nest: &mut Nest,
    ) -> SqlResult<Sides> {
        let start = scope_len(binder);
        let right = self.table_ref(binder, &join.right, nest)?;
        let width = scope_len(binder) - start;
        let left = self.barred_side(binder, &join.left, inner)?;
        if let Some(block) = binder.blocks.last_mut() {
            block.scope.tables[start..].rotate_left(width);
        }
        Ok(Sides { left, middle: scope_len(binder) - width, right })
    }

    fn barred_side(&mut self, binder: &mut Binder<'_>, table: &TableRef, nest: &mut Nest) -> SqlResult<Star> {
        binder.around.barred_sides += 1;
        let star = self.table_ref(binder, table, nest);
        binder.around.barred_sides -= 1;
        star
    }
}

/// The columns of a join's two operands, and where in the scope the tables of the right one begin.
struct Sides {
    left: Star,
    middle: usize,
    right: Star,
}

/// Notes that a stored table is read, and whether a subquery does so by itself.
///
/// # Errors
/// 1100 under LOCK TABLES.
fn read(binder: &mut Binder<'_>, table: &Table, alias: &str) -> SqlResult<()> {
    binder.note(|noted| noted.bits |= uses::READS);
    if binder.around.subqueries > 0 && binder.around.derived == 0 {
        let through = binder.around.through.clone();
        let read = uses::SubqueryRead { table: table.def.id, alias: alias.into(), through };
        binder.note(|noted| noted.subquery_reads.push(read));
    }
    use_locked(binder, table, alias, false)
}

/// Under LOCK TABLES a statement uses tables by the names that they were locked by, each once. Views, functions and triggers use them as they like.
///
/// # Errors
/// 1099, 1100.
pub(crate) fn use_locked(binder: &mut Binder<'_>, table: &Table, alias: &str, write: bool) -> SqlResult<()> {
    let Some(locked) = &binder.session.held.locked else { return Ok(()) };
    let inside = binder.session.programs.inside == Inside::Statement;
    if inside || table.temporary || !binder.around.expanding.is_empty() {
        return Ok(());
    }
    let db = &table.def.db;
    let used = binder.collected.locked.iter().any(|(schema, name)| schema == db && **name == *alias);
    match locked.find(db, alias) {
        Some(false) if write => return Err(only_read_locked(alias)),
        Some(_) if !used => {}
        _ => return Err(not_locked(alias)),
    }
    binder.collected.locked.push((db.clone(), alias.into()));
    Ok(())
}

/// A stored table by its name.
fn stored_table(binder: &Binder<'_>, schema: &str, name: &str, alias: &str) -> SqlResult<Arc<Table>> {
    let found = binder.objects.catalog.table(schema, name).cloned();
    match binder.around.expanding.is_empty() {
        true => found.map_err(|error| missing(binder.session, alias, error)),
        false => found,
    }
}

/// 1116.
pub(super) fn too_many_tables() -> SqlError {
    let message = format!("Too many tables; MySQL can only use {MOST_TABLES} tables in a join");
    SqlError::new(1116, b"HY000", message)
}

/// The error of a table that is not there: under LOCK TABLES it was not locked.
pub(crate) fn missing(session: &SessionState, alias: &str, error: SqlError) -> SqlError {
    let locked = session.held.locked.is_some() && session.programs.inside != Inside::Statement;
    if locked && error.code == 1146 { not_locked(alias) } else { error }
}

/// The slots of some tables of the innermost block.
fn slots_of(binder: &Binder<'_>, tables: std::ops::Range<usize>) -> SlotSet {
    binder.blocks.last().map_or_else(SlotSet::default, |block| {
        block.scope.tables[tables].iter().filter(|table| table.has_rows()).map(|table| table.slot).collect()
    })
}

/// A bound common table expression.
pub(crate) struct BoundCommon {
    pub plan: Arc<QueryPlan>,
    pub columns: Arc<[ResultColumn]>,
    /// The columns that it reads of blocks around its WITH, which are the first `depth` ones.
    pub outer: OuterReads,
    pub depth: usize,
    /// Where its rows are kept.
    pub store: usize,
    /// The stack that binding it took.
    pub stack_bytes: usize,
    /// The dependencies of its columns.
    pub facts: Option<Arc<DerivedFacts>>,
}

/// A common table expression, bound when it is first named. It sees what was in sight where it was written: earlier tables
/// of its WITH, and the blocks around that.
fn bound_common(binder: &mut Binder<'_>, at: usize) -> SqlResult<Arc<BoundCommon>> {
    let table = binder.around.common[at].clone();
    let (query, names, outer, is_recursive) = match table.definition {
        CommonDefinition::Bound(bound) => {
            let room = binder.limits.depth.reuse(bound.stack_bytes);
            return if room { Ok(bound) } else { Err(SqlError::stack_overrun()) };
        }
        CommonDefinition::Query { query, columns, outer, recursive } => (query, columns, outer, recursive),
        CommonDefinition::Recursion(_) => return Err(SqlError::unknown_error()),
    };
    binder.descend()?;
    let measured = binder.limits.depth.measure();
    let depth = outer.min(binder.blocks.len());
    let later = binder.around.common.split_off(at);
    let inner = binder.blocks.split_off(depth);
    // A marker block gathers what is read from outside.
    binder.blocks.push(if is_recursive { BlockScope::default() } else { marker(binder) });
    binder.around.derived += 1;
    let bound = if is_recursive {
        recursive(binder, &table.name, &names, &query)
    } else {
        bind_query(binder, &query)
    };
    let plan = bound.and_then(|query| planned(binder, query, Reader::Query));
    binder.around.derived -= 1;
    let BlockScope { outer, facts, .. } = binder.blocks.pop().unwrap_or_default();
    let facts = facts.known();
    binder.blocks.extend(inner);
    binder.around.common.extend(later);
    let stack_bytes = binder.limits.depth.taken(measured);
    let plan = plan?;
    let mut columns = plan.columns.to_vec();
    rename(&mut columns, &names)?;
    refuse_doubles(&columns)?;
    let columns = derived_columns(columns);
    let store = binder.collected.subqueries;
    binder.collected.subqueries += 1;
    let bound =
        Arc::new(BoundCommon { plan: Arc::new(plan), columns, outer, depth, store, stack_bytes, facts });
    binder.around.common[at].definition = CommonDefinition::Bound(bound.clone());
    Ok(bound)
}

/// Binds a derived table; also says what its columns determine.
pub(super) fn derived_table(
    binder: &mut Binder<'_>,
    query: &ast::Query,
) -> SqlResult<(QueryPlan, OuterReads, Option<Arc<DerivedFacts>>)> {
    binder.blocks.push(marker(binder));
    binder.around.derived += 1;
    let plan = bind_query(binder, query).and_then(|query| planned(binder, query, Reader::Query));
    binder.around.derived -= 1;
    let block = binder.blocks.pop().unwrap_or_default();
    Ok((plan?, block.outer, block.facts.known()))
}

/// The columns of a derived table: they keep their types and lose what is special about a stored
/// column.
pub(super) fn derived_columns(columns: Vec<ResultColumn>) -> Arc<[ResultColumn]> {
    use crate::api::flag;
    columns
        .into_iter()
        .map(|mut column| {
            column.flags &= !(flag::PRI_KEY | flag::UNIQUE_KEY | flag::MULTIPLE_KEY | flag::AUTO_INCREMENT);
            column
        })
        .collect()
}

/// Fails if two columns of a derived table have one name.
fn refuse_doubles(columns: &[ResultColumn]) -> SqlResult<()> {
    match first_double(columns.iter().map(|column| &*column.name)) {
        Some(at) => Err(SqlError::dup_fieldname(&columns[at].name)),
        None => Ok(()),
    }
}

/// Makes a table known to its block.
pub(super) fn push_scope(binder: &mut Binder<'_>, scope: ScopeTable) -> SqlResult<()> {
    binder.collected.slots[usize::from(scope.slot)] = Some(scope.clone());
    let Some(block) = binder.blocks.last_mut() else { return Err(SqlError::no_tables_used()) };
    binder.session.budget.spend_plan(block.scope.tables.len() as u32)?;
    let same = |t: &ScopeTable| !t.is_inner() && t.alias == scope.alias && t.schema == scope.schema;
    if block.scope.tables.iter().any(same) {
        return Err(SqlError::nonuniq_table(&scope.alias));
    }
    block.scope.tables.push(scope);
    Ok(())
}

/// A computed table that stands for a stored one asks for what that would, and some of `information_schema` are not everybody's.
fn may_read_computed(binder: &Binder<'_>, schema: &str, name: &str) -> SqlResult<()> {
    let stored = binder.objects.catalog.find_table(schema, name).is_some();
    if stored || schema.eq_ignore_ascii_case("information_schema") {
        binder.author.access.check(schema, Some(name), Priv::Select)?;
    }
    Ok(())
}

pub(super) fn computed(slot: u16, alias: &str, columns: Arc<[ResultColumn]>) -> ScopeTable {
    ScopeTable {
        slot,
        schema: Arc::from(""),
        alias: Arc::from(alias),
        source: Source::Columns(columns),
        nullable: false,
        hidden: Vec::new(),
        inner: None,
        readable: Columns::All,
        names: None,
        facts: None,
    }
}

pub(super) fn scope_len(binder: &Binder<'_>) -> usize {
    binder.blocks.last().map_or(0, |block| block.scope.tables.len())
}

/// The table of numbers that a name means where no stored one is called so.
fn number_table(binder: &Binder<'_>, schema: &str, name: &str) -> Option<NumberTable> {
    let meant = binder.session.settings.mariadb && binder.objects.catalog.find_table(schema, name).is_none();
    if meant { NumberTable::named(schema, name) } else { None }
}
