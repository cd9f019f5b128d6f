//! The names that a query block sees, and what binding notes of it.

use super::dependencies::BlockFacts;
use super::scope::Scope;
use super::windows::BlockWindows;
use crate::error::{SqlError, SqlResult};
use crate::expr::functions::aggregate::AggregateSpec;
use crate::expr::node::{Expr, Kind};
use crate::expr::slot_set::SlotSet;
use std::sync::Arc;

/// Where a name is written: what it may mean, and how an error calls the place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clause {
    /// The select list, SET and VALUES.
    #[default]
    FieldList,
    /// WHERE.
    Where,
    /// ON.
    On,
    /// The document of JSON_TABLE.
    TableFunction,
    /// GROUP BY.
    Group,
    /// HAVING.
    Having,
    /// ORDER BY.
    Order,
    /// GENERATED ALWAYS AS.
    Generated,
    /// An expression of an index.
    Functional,
    /// DEFAULT (..).
    DefaultValue,
    /// CHECK.
    Check,
}

impl Clause {
    /// Whether this is an expression of a definition, which may have been stored long ago and must bind for ever.
    #[must_use]
    pub fn is_stored(self) -> bool {
        matches!(self, Clause::Generated | Clause::Functional | Clause::DefaultValue | Clause::Check)
    }

    /// As errors 1052 and 1054 call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Clause::FieldList => "field list",
            Clause::Where => "where clause",
            Clause::On => "on clause",
            Clause::TableFunction => "a table function argument",
            Clause::Group => "group statement",
            Clause::Having => "having clause",
            Clause::Order => "order clause",
            Clause::Generated => "generated column function",
            Clause::Functional => "functional index",
            Clause::DefaultValue => "default value expression",
            Clause::Check => "check constraint expression",
        }
    }
}

/// A query block being bound.
#[derive(Debug, Default)]
pub struct BlockScope {
    /// Its names.
    pub scope: Scope,
    /// Aggregates met so far.
    pub aggregates: Vec<AggregateSpec>,
    /// The slot their results go to.
    pub aggregate_slot: Option<u16>,
    /// Whether aggregates are allowed here.
    pub aggregates_allowed: bool,
    /// Inside an aggregate's argument.
    pub in_aggregate: bool,
    /// The clause that is being bound.
    pub clause: Clause,
    /// The expressions that HAVING may name beside aliases: grouped and selected ones.
    pub having: Vec<Expr>,
    /// How many of those are grouped by; they come first.
    pub grouped: usize,
    /// Names of the select list that are not bound yet. The next one is the last here.
    pub forthcoming: Vec<Arc<str>>,
    /// The columns of outer blocks that it reads.
    pub outer: OuterReads,
    /// Its window functions.
    pub(crate) windows: BlockWindows,
    /// The dependencies of the derived table that stands in it.
    pub(super) facts: BlockFacts,
}

/// The columns of surrounding blocks that a query block or a subquery reads.
#[derive(Clone, Debug, Default)]
pub struct OuterReads {
    /// Slots.
    pub slots: SlotSet,
    /// Columns, and expressions that an alias stands for.
    pub columns: Vec<Expr>,
}

impl OuterReads {
    /// Notes an expression of an outer block.
    pub fn add(&mut self, e: &Expr) {
        self.slots.extend(&e.slots());
        self.columns.push(e.clone());
    }
}

/// Where a name stands that a block is asked for.
pub(super) struct Asked<'b> {
    /// The clause of a subquery; `None`: the clause of the block itself.
    pub within: Option<Clause>,
    /// All blocks, whose aggregates it may not be.
    pub blocks: &'b [BlockScope],
}

impl Asked<'_> {
    /// Whether an expression has an aggregate.
    pub fn is_aggregated(&self, e: &Expr) -> bool {
        let slots = e.slots();
        self.blocks.iter().filter_map(|block| block.aggregate_slot).any(|slot| slots.contains(slot))
    }
}

impl BlockScope {
    /// Finds the meaning of a name in this block, in the clause that is bound now.
    pub(super) fn find(
        &self,
        schema: Option<&str>,
        table: Option<&str>,
        name: &str,
        asked: &Asked<'_>,
    ) -> SqlResult<Option<Expr>> {
        let clause = self.clause;
        let innermost = asked.within.is_none();
        let column = || self.scope.find(schema, table, name, clause.name());
        let having = innermost && clause == Clause::Having && !self.in_aggregate;
        if having {
            // The standard's grouped column, then an alias; other columns of FROM are out of sight, so that a name that
            // several tables have may be that of one which is selected.
            let visible = match column() {
                Ok(found) => found.filter(|e| self.is_seen(e)),
                Err(error) => {
                    let mut seen = self.scope.all(name).filter(|e| self.is_seen(e));
                    let first = seen.next();
                    if let Some(first) = &first
                        && !seen.all(|other| same_column(first, &other))
                    {
                        return Err(error);
                    }
                    first
                }
            };
            let grouped = visible.as_ref().is_some_and(|e| self.is_grouped(e));
            let alias = if grouped || table.is_some() { None } else { self.alias(name, asked)? };
            return Ok(alias.or(visible));
        }
        if let Some(found) = column()? {
            return Ok(Some(found));
        }
        let by_alias = match clause {
            Clause::Group | Clause::Order | Clause::Having => true,
            Clause::FieldList => !innermost,
            Clause::Where
            | Clause::On
            | Clause::TableFunction
            | Clause::Generated
            | Clause::Functional
            | Clause::DefaultValue
            | Clause::Check => false,
        };
        if by_alias && table.is_none() { self.alias(name, asked) } else { Ok(None) }
    }

    /// Whether HAVING may name a column.
    fn is_seen(&self, e: &Expr) -> bool {
        self.having.iter().any(|seen| same_column(seen, e))
    }

    fn is_grouped(&self, e: &Expr) -> bool {
        self.having[..self.grouped.min(self.having.len())].iter().any(|seen| same_column(seen, e))
    }

    /// A select-list alias.
    ///
    /// # Errors
    /// 1247 for one that is not known yet, and for an aggregate where that cannot be used.
    pub(super) fn alias(&self, name: &str, asked: &Asked<'_>) -> SqlResult<Option<Expr>> {
        let refused = |why: &str| {
            let message = format!("Reference '{name}' not supported ({why})");
            Err(SqlError::new(1247, b"42S22", message))
        };
        let Some(found) = self.scope.find_alias(name, self.clause.name())? else {
            let later = self.forthcoming.iter().any(|later| super::scope::same(later, name));
            return if later { refused("forward reference in item list") } else { Ok(None) };
        };
        // Of a subquery only HAVING may name an aggregate of a block around it.
        let computed = match asked.within {
            None => self.in_aggregate || matches!(self.clause, Clause::FieldList | Clause::Group),
            Some(clause) => clause != Clause::Having || self.clause == Clause::Group,
        };
        if computed && asked.is_aggregated(found) {
            return refused("reference to group function");
        }
        let constant = || self.scope.constants.iter().find(|(alias, _)| super::scope::same(alias, name));
        match self.in_aggregate.then(constant).flatten() {
            Some((_, constant)) => Ok(Some(constant.clone())),
            None => Ok(Some(found.clone())),
        }
    }
}

/// Whether two expressions are the same column.
fn same_column(a: &Expr, b: &Expr) -> bool {
    match (&a.kind, &b.kind) {
        (Kind::Column { slot: x, column: y, .. }, Kind::Column { slot: v, column: w, .. }) => {
            (x, y) == (v, w)
        }
        _ => false,
    }
}
