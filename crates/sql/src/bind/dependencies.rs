//! Functional dependencies: which columns have one value wherever others have one, in the rows of a query block.
//!
//! They follow from unique keys, from equalities of columns with each other and with constants, from the conditions of outer joins, and
//! from what is known inside of derived tables. The rules are MySQL's, which knows fewer than hold: equalities of whole
//! expressions say nothing, and a single row says something of a column only beside another one of the same table. Binding only.

use super::binder::Binder;
use super::block::BlockScope;
use super::query::Clauses;
use super::scope::{Scope, ScopeTable, Source};
use crate::api::flag;
use crate::catalog::Table;
use crate::expr::functions::VOLATILE;
use crate::expr::node::{CompareOp, IsKind};
use crate::expr::subquery::SubqueryKind;
use crate::expr::{Expr, Kind, SlotSet};
use crate::logical::nest::{Item, Nest};
use omnibus_parser::ast::Select;
use omnibus_parser::print;
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A column by slot and place.
pub(super) type Column = (u16, u16);

/// A column that equals another one or a constant.
#[derive(Debug)]
struct Equality {
    column: Column,
    other: Option<Column>,
}

/// An outer join: what its condition reads of the side that has all its rows determines what it equates on the other side.
#[derive(Debug)]
struct OuterJoin {
    reads: Vec<Column>,
    equalities: Vec<Equality>,
    /// The join is itself on the side of another one that may have no row.
    inside: bool,
}

/// The dependencies among the columns of a query block's tables.
#[derive(Debug, Default)]
pub(super) struct Dependencies {
    tables: Vec<ScopeTable>,
    /// The columns that views compute whose tables stand in their places.
    computed: Vec<(Column, Expr)>,
    equalities: Vec<Equality>,
    outer_joins: Vec<OuterJoin>,
    /// Columns of which a condition takes no NULL, in all rows that there are.
    never_null: HashSet<Column>,
    /// Those of which the condition of an outer join takes no NULL: where they are NULL the join has no row.
    joined_by: HashSet<Column>,
}

/// Whether each column of a derived table is in the set.
type ColumnSet = Box<[bool]>;

/// The dependencies among the columns of a derived table.
#[derive(Debug)]
pub struct DerivedFacts {
    inside: Dependencies,
    /// The keys that it is grouped by; nothing if it is not, or has one row.
    group: Option<Vec<Expr>>,
    one_row: bool,
    /// The table could stand in its place, so that its constants are constants.
    plain: bool,
    outputs: Vec<Expr>,
    /// The columns that some known ones were found to determine: tables around ask the same again and again, and each asks the tables inside.
    found: Mutex<HashMap<ColumnSet, ColumnSet>>,
}

/// The most sets of known columns that a derived table answers; of others it says nothing, so that no nesting takes long to bind.
const MOST_ASKED: usize = 64;

impl Dependencies {
    /// Those of a block with these tables, which are joined like this.
    pub fn of(scope: &Scope, nest: &Nest) -> Dependencies {
        let mut found = Dependencies { tables: scope.tables.clone(), ..Dependencies::default() };
        found.computed = computed_columns(scope).map(|(column, e)| (column, e.clone())).collect();
        let own: SlotSet = found.tables.iter().map(|table| table.slot).collect();
        found.tables.retain(ScopeTable::has_rows);
        let column = |e: &Expr| column_among(&found.computed, e);
        for condition in &nest.conditions {
            found.never_null.extend(never_null(condition));
            equalities(condition, &own, &column, &mut found.equalities);
        }
        let rejected = found.never_null.iter().map(|(slot, _)| *slot).collect();
        found.add_outer_joins(nest, &own, &rejected, false);
        found
    }

    /// `rejected`: the slots whose rows of NULLs WHERE does not take, so that a join with them is no outer one.
    fn add_outer_joins(&mut self, nest: &Nest, own: &SlotSet, rejected: &SlotSet, inside: bool) {
        for item in &nest.items {
            let Item::Outer { nest, slots, .. } = item else { continue };
            let weak: SlotSet = slots.iter().copied().collect();
            let is_inner = weak.meets(rejected);
            self.add_outer_joins(nest, own, rejected, inside || !is_inner);
            let mut found = Vec::new();
            let mut reads = HashSet::new();
            let mut is_certain = true;
            for condition in &nest.conditions {
                // The other side has its rows whatever the condition says.
                let certain =
                    never_null(condition).into_iter().filter(|(slot, _)| is_inner || weak.contains(*slot));
                self.never_null.extend(certain);
                self.joined_by.extend(never_null(condition));
                equalities(condition, own, &column_of, &mut found);
                condition.walk(&mut |e| match &e.kind {
                    Kind::Column { slot, column, .. } if own.contains(*slot) && !weak.contains(*slot) => {
                        reads.insert((*slot, *column));
                    }
                    Kind::Call(def, _) => is_certain &= def.traits & VOLATILE == 0,
                    Kind::Subquery(_) | Kind::Stored(_) | Kind::UserVariable(_) => is_certain = false,
                    _ => {}
                });
            }
            if is_inner {
                self.equalities.append(&mut found);
                continue;
            }
            let (mut within, mut across) = (Vec::new(), Vec::new());
            for equality in found {
                match equality.other {
                    Some(other) if weak.contains(equality.column.0) && weak.contains(other.0) => {
                        within.push(equality);
                    }
                    _ if weak.contains(equality.column.0) => across.push(equality),
                    _ => {}
                }
            }
            // Both are NULL where there is no row.
            self.equalities.append(&mut within);
            if is_certain {
                self.outer_joins.push(OuterJoin {
                    reads: reads.into_iter().collect(),
                    equalities: across,
                    inside,
                });
            }
        }
    }

    fn is_never_null(&self, table: &ScopeTable, column: u16) -> bool {
        let nullable = match &table.source {
            Source::Table(stored) => stored.columns()[usize::from(column)].nullable,
            Source::Columns(columns) => return columns[usize::from(column)].flags & flag::NOT_NULL != 0,
            Source::View(_) => return false,
        };
        !nullable || self.never_null.contains(&(table.slot, column))
    }

    /// All columns that have one value wherever those that are `known` have.
    pub fn close(&self, mut known: HashSet<Column>) -> HashSet<Column> {
        loop {
            let before = known.len();
            for table in &self.tables {
                match &table.source {
                    Source::Table(stored) => self.close_stored(table, stored, &mut known),
                    Source::Columns(_) => self.close_derived(table, &mut known),
                    Source::View(_) => {}
                }
            }
            for (column, e) in &self.computed {
                if self.determines(e, &known) {
                    known.insert(*column);
                }
            }
            self.equalities.iter().for_each(|equality| equality.apply(&mut known));
            for join in &self.outer_joins {
                let reads_known = join.reads.iter().all(|column| known.contains(column));
                // Where the join around it has no row, its constants are NULL.
                let is_seen = !join.inside || join.reads.iter().any(|column| self.never_null_of(*column));
                if reads_known && is_seen {
                    join.equalities.iter().for_each(|equality| equality.apply(&mut known));
                }
            }
            if known.len() == before {
                return known;
            }
        }
    }

    fn never_null_of(&self, (slot, column): Column) -> bool {
        if self.joined_by.contains(&(slot, column)) {
            return true;
        }
        let table = self.tables.iter().find(|table| table.slot == slot);
        table.is_some_and(|table| self.is_never_null(table, column))
    }

    fn close_stored(&self, table: &ScopeTable, stored: &Table, known: &mut HashSet<Column>) {
        let unique = stored.indexes().iter().any(|index| {
            let of_key = |column: usize| {
                known.contains(&(table.slot, column as u16)) && self.is_never_null(table, column as u16)
            };
            index.unique() && !index.parts.is_empty() && index.parts.iter().all(|part| of_key(part.column))
        });
        if unique {
            known.extend((0..stored.columns().len()).map(|at| (table.slot, at as u16)));
            return;
        }
        if table.nullable {
            return;
        }
        for (at, column) in stored.columns().iter().enumerate() {
            let Some(generated) = &column.generated else { continue };
            let mut reads = print::column_names(&generated.expr.tree).into_iter();
            let is_known = |name: &str| {
                stored.column_index(name).is_some_and(|at| known.contains(&(table.slot, at as u16)))
            };
            if reads.all(|name| is_known(&name)) {
                known.insert((table.slot, at as u16));
            }
        }
    }

    fn close_derived(&self, table: &ScopeTable, known: &mut HashSet<Column>) {
        let Some(facts) = &table.facts else { return };
        let width = table.width().min(facts.outputs.len());
        let given: Vec<bool> = (0..width).map(|at| known.contains(&(table.slot, at as u16))).collect();
        let constant = |at: &usize| facts.plain && facts.outputs[*at].is_fixed();
        let constants = (0..width).filter(constant).map(|at| (table.slot, at as u16));
        known.extend(constants);
        if table.nullable && !(0..width).any(|at| given[at] && self.is_never_null(table, at as u16)) {
            return;
        }
        let all = facts.determined(&given);
        known.extend((0..width).filter(|at| all[*at]).map(|at| (table.slot, at as u16)));
    }

    /// Whether an expression has one value wherever the `known` columns have.
    fn determines(&self, e: &Expr, known: &HashSet<Column>) -> bool {
        let mut determined = true;
        let own = |slot: u16| self.tables.iter().any(|table| table.slot == slot);
        e.walk(&mut |e| {
            determined &= match &e.kind {
                Kind::Column { slot, column, .. } => own(*slot) && known.contains(&(*slot, *column)),
                Kind::Subquery(_) | Kind::Stored(_) => false,
                Kind::Call(def, _) => def.traits & VOLATILE == 0,
                _ => true,
            };
        });
        determined
    }
}

impl DerivedFacts {
    /// Those of a query block without WITH ROLLUP.
    pub fn new(scope: &Scope, nest: &Nest, grouping: Option<&[Expr]>, plain: bool, outputs: &[Expr]) -> Self {
        let inside = Dependencies::of(scope, nest);
        let one_row = inside.tables.is_empty() || grouping.is_some_and(<[Expr]>::is_empty);
        let group = grouping.filter(|keys| !keys.is_empty()).map(<[Expr]>::to_vec);
        let plain = plain && !one_row;
        let found = Mutex::default();
        DerivedFacts { inside, group, one_row, plain, outputs: outputs.to_vec(), found }
    }

    /// Returns for each column whether it has one value wherever those that are `known` have.
    fn determined(&self, known: &[bool]) -> ColumnSet {
        let found = self.found.lock();
        if let Some(found) = found.get(known) {
            return found.clone();
        }
        if found.len() >= MOST_ASKED {
            return known.into();
        }
        drop(found);
        let determined = self.find(known);
        self.found.lock().insert(known.into(), determined.clone());
        determined
    }

    fn find(&self, known: &[bool]) -> ColumnSet {
        if self.one_row {
            return vec![known.contains(&true); known.len()].into();
        }
        let given = || self.outputs.iter().zip(known).filter(|(_, known)| **known).map(|(e, _)| e);
        let inside = self.inside.close(given().filter_map(column_of).collect());
        let is_given = |e: &Expr| given().any(|known| known.same(e));
        let is_whole = match &self.group {
            Some(keys) => keys.iter().all(|key| is_given(key) || self.inside.determines(key, &inside)),
            None => self
                .inside
                .tables
                .iter()
                .all(|table| (0..table.width()).all(|at| inside.contains(&(table.slot, at as u16)))),
        };
        let outputs = self.outputs.iter().zip(known);
        outputs
            .map(|(e, known)| *known || is_whole || is_given(e) || self.inside.determines(e, &inside))
            .collect()
    }
}

/// The columns of which a condition takes no NULL.
fn never_null(condition: &Expr) -> Vec<Column> {
    let found = match &condition.kind {
        Kind::Is { expr, what: IsKind::Null, negated: true } => return column_of(expr).into_iter().collect(),
        Kind::Is { expr, what: IsKind::True | IsKind::False, negated: false } => decisive(expr),
        Kind::Not(inner) => match &inner.kind {
            Kind::Is { expr, what: IsKind::Null, negated: false } => {
                return column_of(expr).into_iter().collect();
            }
            _ => decisive(inner),
        },
        Kind::Subquery(subquery) if subquery.kind == (SubqueryKind::In { negated: false }) => {
            subquery.operands.iter().collect()
        }
        _ => decisive(condition),
    };
    found.into_iter().filter_map(column_of).collect()
}

/// The operands of which a NULL makes the whole NULL.
fn decisive(e: &Expr) -> Vec<&Expr> {
    match &e.kind {
        Kind::Compare(op, _, pair) if *op != CompareOp::NullSafeEq => pair.iter().collect(),
        Kind::In { args, .. } => args.first().into_iter().collect(),
        Kind::Between { args, .. } => vec![&args[0]],
        Kind::Like(like) => vec![&like.text],
        Kind::Column { .. } => vec![e],
        _ => Vec::new(),
    }
}

impl Equality {
    fn apply(&self, known: &mut HashSet<Column>) {
        match self.other {
            None => _ = known.insert(self.column),
            Some(other) if known.contains(&other) => _ = known.insert(self.column),
            Some(other) if known.contains(&self.column) => _ = known.insert(other),
            Some(_) => {}
        }
    }
}

/// The equalities that a condition states of columns in `own` slots: those of other slots belong to the statement around, which has them
/// constant.
fn equalities(
    condition: &Expr,
    own: &SlotSet,
    column_of: &dyn Fn(&Expr) -> Option<Column>,
    found: &mut Vec<Equality>,
) {
    let mut add = |a: &Expr, b: &Expr| {
        let column = |e: &Expr| column_of(e).filter(|(slot, _)| own.contains(*slot));
        let is_constant =
            |e: &Expr| e.is_fixed() || column_of(e).is_some_and(|(slot, _)| !own.contains(slot));
        match (column(a), column(b)) {
            (Some(column), Some(other)) => {
                found.push(Equality { column, other: Some(other) });
                found.push(Equality { column: other, other: Some(column) });
            }
            (Some(column), None) if is_constant(b) => found.push(Equality { column, other: None }),
            (None, Some(column)) if is_constant(a) => found.push(Equality { column, other: None }),
            _ => {}
        }
    };
    match &condition.kind {
        Kind::Compare(CompareOp::Eq, _, pair) => add(&pair[0], &pair[1]),
        Kind::In { args, negated: false, .. } if args.len() == 2 => add(&args[0], &args[1]),
        Kind::Between { args, negated: false, .. } if args[1].same(&args[2]) => add(&args[0], &args[1]),
        Kind::And(parts) => parts.iter().for_each(|part| equalities(part, own, column_of, found)),
        Kind::Not(inner) => {
            if let Kind::Compare(CompareOp::Ne, _, pair) = &inner.kind {
                add(&pair[0], &pair[1]);
            }
        }
        _ => {}
    }
}

/// The columns that views compute whose tables stand in this scope.
pub(super) fn computed_columns(scope: &Scope) -> impl Iterator<Item = (Column, &Expr)> {
    let views = scope.tables.iter().filter_map(|table| match &table.source {
        Source::View(merged) => Some((table.slot, &merged.exprs)),
        _ => None,
    });
    let columns =
        views.flat_map(|(slot, exprs)| exprs.iter().enumerate().map(move |(at, e)| ((slot, at as u16), e)));
    columns.filter(|(_, e)| column_of(e).is_none())
}

/// The column that an expression is, of a table or one that a view computes.
fn column_among(computed: &[(Column, Expr)], e: &Expr) -> Option<Column> {
    let bare = match &e.kind {
        Kind::Comparable(_, inner) | Kind::Text(inner) | Kind::Transcode(inner) => &**inner,
        _ => e,
    };
    column_of(e).or_else(|| computed.iter().find(|(_, own)| own.same(bare)).map(|(column, _)| *column))
}

/// The column that an expression is, as it is compared with others.
pub(super) fn column_of(e: &Expr) -> Option<Column> {
    match &e.kind {
        Kind::Column { slot, column, .. } => Some((*slot, *column)),
        Kind::Comparable(_, inner) | Kind::Text(inner) | Kind::Transcode(inner) => column_of(inner),
        _ => None,
    }
}

/// Whether a derived table's dependencies are asked for, and what they are.
#[derive(Debug, Default)]
pub enum BlockFacts {
    /// Nobody asks.
    #[default]
    Unwanted,
    /// The block that is bound next tells.
    Wanted,
    /// Told.
    Known(Arc<DerivedFacts>),
}

impl BlockFacts {
    /// The facts that were told.
    pub fn known(self) -> Option<Arc<DerivedFacts>> {
        match self {
            BlockFacts::Known(facts) => Some(facts),
            BlockFacts::Unwanted | BlockFacts::Wanted => None,
        }
    }

    /// Tells what the columns of a derived table determine, where that is asked for.
    pub fn tell(binder: &mut Binder<'_>, select: &Select, clauses: &Clauses, block: &BlockScope) {
        let Some(around) = binder.blocks.last_mut() else { return };
        if !matches!(around.facts, BlockFacts::Wanted) {
            return;
        }
        around.facts = BlockFacts::Unwanted;
        if select.with_rollup {
            return;
        }
        let is_grouped = !clauses.group.is_empty() || !block.aggregates.is_empty();
        let is_plain = !is_grouped && !select.options.distinct && clauses.limit.count.is_none();
        let group = is_grouped.then_some(&clauses.group[..]);
        let facts = DerivedFacts::new(&block.scope, &clauses.nest, group, is_plain, &clauses.outputs);
        around.facts = BlockFacts::Known(Arc::new(facts));
    }
}

/// A block that gathers what a derived table reads from outside, and asks what its columns determine.
pub(super) fn marker(binder: &Binder<'_>) -> BlockScope {
    let only_full = binder.session.settings.sql_mode & crate::api::sql_mode::ONLY_FULL_GROUP_BY != 0;
    let facts = if only_full { BlockFacts::Wanted } else { BlockFacts::Unwanted };
    BlockScope { facts, ..BlockScope::default() }
}
