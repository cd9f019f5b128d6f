//! From syntax tree to compiled expression: names, and the state of binding.
//!
//! Literals and variables are in `leaf`, operators in `operators` and `compare`, calls in `calls`, queries in `query`. Runs when a
//! statement is prepared or when its cached plan is out of date; never per row.

use super::exists::Sought;
use super::scope::{Scope, ScopeTable};
use super::uses::{self, Uses, UsesCell};
use super::windows::BlockWindows;
use crate::api::{AllowAll, Columns, ResultColumn, Rights};
use crate::catalog::{Catalog, Definer, Table, View};
use crate::error::{Interrupt, SqlError, SqlResult};
use crate::expr::context::Context;
use crate::expr::functions::aggregate::AggregateSpec;
use crate::expr::node::{Expr, Kind};
use crate::expr::slot_set::SlotSet;
use crate::expr::types::{BindContext, ExprType};
use crate::logical::hints::HintPlace;
use crate::logical::{NoVirtualTables, VirtualTables};
use crate::memory::Account;
use crate::state::SessionState;
use crate::storage::{LockMode, NoStorage};
use omnibus_parser::{Meaning, ast};
use omnibus_value::Value;
use omnibus_value::stack::Depth;
use std::cell::RefCell;
use std::sync::Arc;

/// Whose words are bound: the session's, or those of a view.
#[derive(Clone)]
pub(crate) struct Author<'a> {
    /// What they may read: asked wherever a query names a stored table, before it is looked up.
    pub access: Rights<'a>,
    /// The collation of the character set that literals were written in.
    pub client: u16,
    /// The collation that literals have.
    pub connection: u16,
    /// The definer of a view with whose rights they are bound: CURRENT_USER() is it.
    pub account: Option<Definer>,
}

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
    /// GROUP BY.
    Group,
    /// HAVING.
    Having,
    /// ORDER BY.
    Order,
    /// GENERATED ALWAYS AS.
    Generated,
    /// DEFAULT (..).
    DefaultValue,
    /// CHECK.
    Check,
}

impl Clause {
    /// As errors 1052 and 1054 call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Clause::FieldList => "field list",
            Clause::Where => "where clause",
            Clause::On => "on clause",
            Clause::Group => "group statement",
            Clause::Having => "having clause",
            Clause::Order => "order clause",
            Clause::Generated => "generated column function",
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
    /// What is being bound.
    pub clause: Clause,
    /// What HAVING may name beside aliases: what is grouped by and what is selected.
    pub having: Vec<Expr>,
    /// How many of those are grouped by; they come first.
    pub grouped: usize,
    /// Names of the select list that are not bound yet.
    pub forthcoming: Vec<Arc<str>>,
    /// What it reads of outer blocks.
    pub outer: OuterReads,
    /// Its window functions.
    pub(crate) windows: BlockWindows,
}

/// What a query block or a subquery reads of the blocks around it.
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

impl BlockScope {
    /// What a name means in this block, in the clause that is bound now; `innermost`: it is written here, and not in a
    /// subquery of that clause.
    fn find(
        &self,
        schema: Option<&str>,
        table: Option<&str>,
        name: &str,
        innermost: bool,
    ) -> SqlResult<Option<Expr>> {
        let clause = self.clause;
        let column = || self.scope.find(schema, table, name, clause.name());
        let having = innermost && clause == Clause::Having && !self.in_aggregate;
        if having {
            // The standard's grouped column, then an alias; other columns of FROM are out of sight, so that a name that
            // several tables have may be that of one which is selected.
            let visible = match column() {
                Ok(found) => found.filter(|e| self.is_seen(e)),
                Err(_) => self.scope.all(name).find(|e| self.is_seen(e)),
            };
            let grouped = visible.as_ref().is_some_and(|e| self.is_grouped(e));
            let alias = if grouped || table.is_some() { None } else { self.alias(name)? };
            return Ok(alias.or(visible));
        }
        if let Some(found) = column()? {
            return Ok(Some(found));
        }
        let by_alias = match clause {
            Clause::Group | Clause::Order | Clause::Having => true,
            Clause::FieldList => !innermost,
            Clause::Where | Clause::On | Clause::Generated | Clause::DefaultValue | Clause::Check => false,
        };
        if by_alias && table.is_none() { self.alias(name) } else { Ok(None) }
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
    pub(crate) fn alias(&self, name: &str) -> SqlResult<Option<Expr>> {
        let refused = |why: &str| {
            let message = format!("Reference '{name}' not supported ({why})");
            Err(SqlError::new(1247, b"42S22", message))
        };
        let Some(found) = self.scope.find_alias(name, self.clause.name())? else {
            let later = self.forthcoming.iter().any(|later| super::scope::same(later, name));
            return if later { refused("forward reference in item list") } else { Ok(None) };
        };
        let aggregate = self.aggregate_slot.is_some_and(|slot| found.slots().contains(slot));
        let computed = self.in_aggregate || matches!(self.clause, Clause::FieldList | Clause::Group);
        if aggregate && computed {
            return refused("reference to group function");
        }
        Ok(Some(found.clone()))
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

/// A common table expression in sight.
#[derive(Clone)]
pub(crate) struct CommonTable {
    pub name: Arc<str>,
    pub definition: CommonDefinition,
}

/// What a common table expression is.
#[derive(Clone)]
pub(crate) enum CommonDefinition {
    /// A query that nothing has named yet.
    Query { query: Arc<ast::Query>, columns: Arc<[ast::Ident]>, outer: usize, recursive: bool },
    /// One that has been bound: all that name it share its plan, and its rows when it runs.
    Bound(Arc<BoundCommon>),
    /// The table that a recursive one refers to itself by.
    Recursion(Recursion),
}

/// A recursive table while its parts are bound.
#[derive(Clone)]
pub(crate) struct Recursion {
    /// Nothing before its first part has been bound.
    pub columns: Option<Arc<[ResultColumn]>>,
    /// Its query is no UNION.
    pub alone: bool,
    /// Where the rows of the last step are.
    pub store: usize,
    /// How often the part that is bound has named it so far.
    pub uses: usize,
    /// The blocks around its query.
    pub depth: usize,
    /// `Binder::nullable_sides` where its query stands.
    pub sides: usize,
}

/// A bound common table expression.
pub(crate) struct BoundCommon {
    pub plan: Arc<crate::plan::QueryPlan>,
    pub columns: Arc<[ResultColumn]>,
    /// What it reads of blocks around its WITH, which are the first `depth` ones.
    pub outer: OuterReads,
    pub depth: usize,
    /// Where its rows are kept.
    pub store: usize,
    /// The stack that binding it took.
    pub stack_bytes: usize,
}

/// Binds one statement.
pub struct Binder<'a> {
    /// The session.
    pub session: &'a SessionState,
    /// What exists.
    pub catalog: &'a Catalog,
    /// Values of the parameters, if known already: their types type the result.
    pub params: Option<&'a [Value]>,
    /// information_schema and the like.
    pub virtuals: &'a dyn VirtualTables,
    /// Whose words are bound.
    pub(crate) author: Author<'a>,
    /// Views that are being expanded, outermost first.
    pub(crate) expanding: Vec<Arc<View>>,
    /// Views used, each once per use.
    pub(crate) views: Vec<Arc<View>>,
    /// Where it is noted what names mean, for a definition of a view.
    pub(crate) meaning: Option<&'a RefCell<Meaning>>,
    /// Query blocks, innermost last.
    pub blocks: Vec<BlockScope>,
    /// The EXISTS that is bound.
    pub(super) exists: Option<Sought>,
    /// Stored tables used, each once per use.
    pub tables: Vec<Arc<Table>>,
    /// What each slot stands for.
    pub slots: Vec<Option<ScopeTable>>,
    /// Subqueries so far.
    pub subqueries: usize,
    /// Recursive working tables so far.
    pub recursions: usize,
    /// Whether there are parameters whose types matter.
    pub untyped_params: bool,
    /// Locks that plain reads take (SERIALIZABLE), and reads inside a writing statement.
    pub default_lock: LockMode,
    /// Where it is noted what the binary log must know; nowhere for statements that change nothing.
    pub uses: Option<&'a UsesCell>,
    /// The names of the SELECT that was bound last.
    pub(crate) last_scope: Scope,
    pub(crate) common: Vec<CommonTable>,
    /// Outer joins around what is bound, on whose side of unmatched rows it stands.
    pub(super) nullable_sides: usize,
    pub(crate) depth: Depth,
    /// Where the hints of the block that is bound next stand.
    pub(crate) hint_place: HintPlace,
    /// Warnings of the names in it, which each run gives.
    pub(crate) warnings: Vec<SqlError>,
    scratch: Option<Box<SessionState>>,
    /// What the columns take that `*` stands for.
    pub(super) stars: Account,
}

impl<'a> Binder<'a> {
    /// A binder for one statement.
    #[must_use]
    pub fn new(session: &'a SessionState, catalog: &'a Catalog) -> Binder<'a> {
        Binder {
            session,
            catalog,
            params: None,
            virtuals: &NoVirtualTables,
            author: Author {
                access: Rights::Session(&AllowAll),
                client: session.settings.collation_client,
                connection: session.settings.collation_connection,
                account: None,
            },
            expanding: Vec::new(),
            views: Vec::new(),
            meaning: None,
            blocks: Vec::new(),
            exists: None,
            tables: Vec::new(),
            slots: Vec::new(),
            subqueries: 0,
            recursions: 0,
            untyped_params: false,
            default_lock: LockMode::None,
            uses: None,
            last_scope: Scope::default(),
            common: Vec::new(),
            nullable_sides: 0,
            depth: Depth::default(),
            hint_place: HintPlace::Inner,
            warnings: Vec::new(),
            scratch: None,
            stars: Account::new(&session.memory),
        }
    }

    /// For result types.
    #[must_use]
    pub fn context(&self) -> BindContext<'a> {
        BindContext { session: self.session, collation: self.author.connection }
    }

    /// The collation of literals.
    #[must_use]
    pub fn collation(&self) -> u16 {
        self.author.connection
    }

    /// Notes what names mean, where that is wanted.
    pub(crate) fn mean(&self, note: impl FnOnce(&mut Meaning)) {
        if let Some(meaning) = self.meaning {
            note(&mut meaning.borrow_mut());
        }
    }

    /// Notes which column of a block's tables a name means, if it is one of these.
    pub(crate) fn mean_column(&self, block: &BlockScope, name: &ast::ColumnRef, found: &Expr) {
        let (schema, table) = (name.schema().map(|s| &**s), name.table().map(|t| &**t));
        let Ok(Some((table, at))) = block.scope.place(schema, table, &name.name, "") else { return };
        // The result of a set operation has no name.
        if !table.alias.is_empty() && table.expr(at).same(found) {
            self.mean(|meaning| meaning.set_column(name, table.full_name(at)));
        }
    }

    /// A column under its full name.
    pub(crate) fn full_name(&self, slot: u16, column: usize) -> Option<ast::ColumnRef> {
        self.slots.get(usize::from(slot))?.as_ref().map(|table| table.full_name(column))
    }

    /// Fails before a recursion is too deep for the stack.
    pub(crate) fn descend(&mut self) -> SqlResult<()> {
        if self.depth.descend() { Ok(()) } else { Err(SqlError::stack_overrun()) }
    }

    /// Notes what the binary log must know.
    pub(crate) fn note(&self, note: impl FnOnce(&mut Uses)) {
        if let Some(uses) = self.uses {
            note(&mut uses.borrow_mut());
        }
    }

    /// Warns of what is bound, whenever the statement runs.
    pub(crate) fn warn(&mut self, warning: SqlError) {
        self.note(|uses| uses.warnings.push(warning.clone()));
        self.warnings.push(warning);
    }

    /// A new slot.
    pub fn new_slot(&mut self) -> u16 {
        self.slots.push(None);
        (self.slots.len() - 1) as u16
    }

    /// A stored table in a slot of its own.
    pub fn add_table(&mut self, table: &Arc<Table>, alias: Option<&str>) -> ScopeTable {
        let slot = self.new_slot();
        let scope = ScopeTable::stored(slot, table.clone(), alias);
        self.tables.push(table.clone());
        self.note(|noted| noted.tables.push(table.def.id));
        self.slots[usize::from(slot)] = Some(scope.clone());
        scope
    }

    /// As `add_table`, where not all columns may be read.
    pub fn add_table_of(&mut self, table: &Arc<Table>, alias: Option<&str>, readable: Columns) -> ScopeTable {
        let scope = ScopeTable { readable, ..self.add_table(table, alias) };
        self.slots[usize::from(scope.slot)] = Some(scope.clone());
        scope
    }

    /// Says which columns of the table that came last may be read.
    pub(crate) fn restrict_last(&mut self, readable: Columns) {
        if let Some(table) = self.blocks.last_mut().and_then(|block| block.scope.tables.last_mut()) {
            table.readable = readable;
        }
    }

    /// Opens a block with these names, for UPDATE, DELETE and INSERT; expressions bound next see
    /// them.
    pub fn open(&mut self, scope: Scope, clause: Clause) {
        self.blocks.push(BlockScope { scope, clause, ..BlockScope::default() });
    }

    /// Says which clause is bound next.
    pub fn set_clause(&mut self, clause: Clause) {
        if let Some(block) = self.blocks.last_mut() {
            block.clause = clause;
        }
    }

    /// Binds an expression of one column.
    ///
    /// # Errors
    /// Unknown names, wrong arguments, illegal mixes of collations.
    pub fn expr(&mut self, expr: &ast::Expr) -> SqlResult<Expr> {
        let bound = self.expr_or_row(expr)?;
        if let Kind::Row(_) = bound.kind {
            return Err(SqlError::operand_columns(1));
        }
        Ok(bound)
    }

    /// Binds an expression that may be a row value.
    pub(crate) fn expr_or_row(&mut self, expr: &ast::Expr) -> SqlResult<Expr> {
        self.descend()?;
        self.session.budget.tick_plan()?;
        self.dispatch(expr)
    }

    fn dispatch(&mut self, expr: &ast::Expr) -> SqlResult<Expr> {
        use ast::Expr as E;
        match expr {
            E::Literal(literal) => self.literal(literal),
            E::Introduced(pair) => self.introduced(&pair.0, &pair.1),
            E::Param(number) => Ok(self.param(*number as usize)),
            E::Local(number) => self.local(*number),
            E::Column(column) => self.column(column),
            E::UserVar(name) => Ok(self.user_variable(name)),
            E::SysVar { scope, name } => self.system_variable(*scope, name),
            E::AssignUserVar(pair) => {
                let value = self.expr(&pair.1)?;
                self.note(|noted| noted.bits |= uses::ASSIGNS);
                let ty = value.ty.clone();
                Ok(Expr { kind: Kind::Assign(Box::new((pair.0.to_lowercase().into(), value))), ty })
            }
            E::Unary { op, expr } => self.unary(*op, expr),
            E::Binary { op, left, right } => self.binary(*op, left, right),
            E::Row(members) => {
                let members = members.iter().map(|m| self.expr_or_row(m)).collect::<SqlResult<Vec<_>>>()?;
                Ok(Expr { kind: Kind::Row(members.into()), ty: ExprType::null() })
            }
            E::Between { expr, low, high, negated } => self.between(expr, low, high, *negated),
            E::In { expr, list, negated } => self.is_in(expr, list, *negated),
            E::InSubquery { expr, query, negated } => self.in_subquery(expr, query, *negated),
            E::Exists(query) => self.exists(query),
            E::Subquery(query) => self.scalar_subquery(query),
            E::Quantified { op, quantifier, left, query } => self.quantified(*op, *quantifier, left, query),
            E::Like(like) => self.like(like),
            E::Regexp { expr, pattern, negated } => self.regexp(expr, pattern, *negated),
            E::IsNull { expr, negated } => self.is(expr, crate::expr::node::IsKind::Null, *negated),
            E::IsTruth { expr, truth, negated } => self.is_truth(expr, *truth, *negated),
            E::MemberOf { expr, array } => {
                let (member, array) = (self.expr(expr)?, self.expr(array)?);
                self.call_function("MEMBER_OF", vec![member, array])
            }
            E::Function(call) => self.function(call),
            E::Aggregate(aggregate) => self.aggregate(aggregate),
            E::Window(call) => self.window(call),
            E::Case(case) => self.case(case),
            E::Cast { expr, ty } => self.cast(expr, ty),
            E::ConvertUsing { expr, charset } => self.convert_using(expr, charset),
            E::Collate { expr, collation } => self.collate(expr, collation),
            E::Extract { unit, expr } => {
                let e = self.expr(expr)?;
                Ok(self.extract(*unit, e))
            }
            E::DateArith { expr, value, unit, subtract } => self.date_arith(expr, value, *unit, *subtract),
            E::JsonValue(call) => self.json_value(call),
            E::Unit(unit) => Ok(Expr { kind: Kind::Unit(*unit), ty: ExprType::null() }),
            E::Trim(trim) => self.trim(trim),
            E::Match(_) => Err(SqlError::not_supported_yet("MATCH ... AGAINST")),
            E::Values(column) => self.values_of(column),
            E::Default => Err(SqlError::wrong_arguments("DEFAULT")),
            E::DefaultOf(column) => self.default_of(column),
        }
    }

    /// Resolves a column reference through this block and those around it.
    pub(crate) fn column(&mut self, column: &ast::ColumnRef) -> SqlResult<Expr> {
        let (schema, table) = (column.schema().map(|s| &**s), column.table().map(|t| &**t));
        let name: &str = &column.name;
        if let (None, Some(row)) = (schema, table)
            && let Some(local) = self.trigger_column(row, name)
        {
            return local;
        }
        for at in (0..self.blocks.len()).rev() {
            let innermost = at + 1 == self.blocks.len();
            if let Some(expr) = self.blocks[at].find(schema, table, name, innermost)? {
                if self.meaning.is_some() {
                    self.mean_column(&self.blocks[at], column, &expr);
                }
                for inner in &mut self.blocks[at + 1..] {
                    inner.outer.add(&expr);
                }
                return Ok(expr);
            }
        }
        let clause = self.blocks.last().map_or(Clause::FieldList, |b| b.clause);
        let full = match (schema, table) {
            (Some(schema), Some(table)) => format!("{schema}.{table}.{name}"),
            (None, Some(table)) => format!("{table}.{name}"),
            _ => name.to_owned(),
        };
        Err(SqlError::bad_field(full, clause.name()))
    }

    /// The expression's result column under `name`.
    #[must_use]
    pub fn result_column(&self, expr: &Expr, name: Arc<str>) -> ResultColumn {
        if let Kind::Column { slot, column, .. } = &expr.kind
            && let Some(Some(table)) = self.slots.get(usize::from(*slot))
        {
            return table.result_column(usize::from(*column), name, &expr.ty);
        }
        computed_column(name, &expr.ty)
    }

    /// Replaces an expression of constants by its value, unless computing it warns or fails: then
    /// it must do so when the statement runs.
    pub(crate) fn fold(&mut self, expr: Expr) -> Expr {
        if matches!(expr.kind, Kind::Const(_)) || !expr.is_foldable() {
            return expr;
        }
        match self.evaluate(&expr) {
            Some(value) => Expr { kind: Kind::Const(value), ty: expr.ty },
            None => expr,
        }
    }

    /// The value of an expression that needs no row; `None` if it warns or fails.
    pub(crate) fn evaluate(&mut self, expr: &Expr) -> Option<Value> {
        let session = self.session;
        let scratch = self.scratch.get_or_insert_with(|| Box::new(session.aside()));
        scratch.diagnostics.clear();
        let mut storage = NoStorage;
        let mut cx = Context::new(scratch, &mut storage, &[]);
        let value: Result<Value, Interrupt> = expr.eval(&mut cx);
        let clean = cx.session.diagnostics.count() == 0;
        value.ok().filter(|_| clean)
    }

    /// The value of a constant as another type, if that is possible without loss of meaning.
    pub(crate) fn constant_as(&mut self, expr: &Expr, ty: &ExprType) -> Option<Value> {
        let cast = Expr { kind: Kind::Cast(Box::new(expr.clone())), ty: ty.clone() };
        self.evaluate(&cast).filter(|value| !matches!(value, Value::Null))
    }
}

/// A result column that comes from no table.
pub(crate) fn computed_column(name: Arc<str>, ty: &ExprType) -> ResultColumn {
    let none: Arc<str> = Arc::from("");
    ResultColumn {
        schema: none.clone(),
        table: none.clone(),
        org_table: none.clone(),
        name,
        org_name: none,
        ty: ty.column.clone(),
        flags: super::scope::type_flags(ty),
    }
}
