//! From syntax tree to compiled expression: names, and the state of binding.
//!
//! Each kind of expression is a module of functions over a [`Binder`]: literals and variables in `leaf`, operators in `operators` and `compare`,
//! calls in `calls`, `cast` and `aggregate`, queries in `query`. Runs when a
//! statement is prepared or when its cached plan is out of date; never per row.

use super::block::{Asked, BlockScope, Clause};
use super::calls;
use super::compare;
use super::exists::Sought;
use super::from::BoundCommon;
use super::json_value;
use super::leaf;
use super::operators;
use super::scope::{Scope, ScopeTable, same};
use super::subquery;
use super::uses::{self, Uses, UsesCell};
use super::windows;
use super::{aggregate, cast};
use crate::api::{AllowAll, Columns, ResultColumn, Rights};
use crate::catalog::{Catalog, Definer, Table, View};
use crate::error::{Interrupt, SqlError, SqlResult};
use crate::expr::context::Context;
use crate::expr::functions;
use crate::expr::node::{Expr, Kind};
use crate::expr::types::{BindContext, Coercibility, ExprType, Family};
use crate::logical::hints::HintPlace;
use crate::logical::{NoVirtualTables, VirtualTables};
use crate::memory::{Account, MemoryLimits};
use crate::state::SessionState;
use crate::storage::{LockMode, NoStorage};
use omnibus_parser::{Meaning, ast};
use omnibus_value::Value;
use omnibus_value::stack::Depth;
use std::cell::RefCell;
use std::sync::Arc;

/// The author of the words that are bound: the session, or a view.
#[derive(Clone)]
pub(crate) struct Author<'a> {
    /// The rights to read: asked wherever a query names a stored table, before it is looked up.
    pub access: Rights<'a>,
    /// The collation of the character set that literals were written in.
    pub client: u16,
    /// The collation that literals have.
    pub connection: u16,
    /// The definer of a view with whose rights they are bound: CURRENT_USER() is it.
    pub account: Option<Definer>,
    /// The database that stored functions without one are in.
    pub database: Option<Arc<str>>,
}

/// Slots of a statement: a slot is a `u16`.
const MOST_SLOTS: usize = 60_000;
/// Columns of the tables in sight whose names are compared in the time of a step.
const NAMES: u32 = 16;
/// Bytes of a node of an expression, and of its copies in the plan, as measured.
const NODE: usize = 640;
/// Bytes of stack for a level of an expression, about as many as binding its text takes.
const LEVEL: usize = 1 << 10;

/// A common table expression in sight.
#[derive(Clone)]
pub(crate) struct CommonTable {
    pub name: Arc<str>,
    pub definition: CommonDefinition,
}

/// The definition of a common table expression.
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
    /// `Around::barred_sides` where its query stands.
    pub sides: usize,
}

/// The objects that names may mean.
pub(crate) struct Objects<'a> {
    /// Stored tables, views and programs.
    pub catalog: &'a Catalog,
    /// information_schema and the like.
    pub virtuals: &'a dyn VirtualTables,
}

/// Where it is noted, if anybody asks, what the statement turns out to mean.
#[derive(Default)]
pub(crate) struct Notes<'a> {
    /// The full names of what it names, for a definition of a view.
    pub meaning: Option<&'a RefCell<Meaning>>,
    /// The uses that the binary log must know; statements that change nothing have none.
    pub uses: Option<&'a UsesCell>,
}

/// The surroundings of the expression or query that is being bound.
#[derive(Default)]
pub(crate) struct Around {
    /// Views that are being expanded, outermost first.
    pub expanding: Vec<Arc<View>>,
    /// The EXISTS that is bound.
    pub(super) exists: Option<Sought>,
    /// Common table expressions in sight, innermost last.
    pub common: Vec<CommonTable>,
    /// Joins on whose side it stands that a recursive table may not be on: of unmatched rows, or read after others by command.
    pub(super) barred_sides: usize,
    /// The block that is bound next is one of several, and its order without a limit says nothing.
    pub(super) unordered: bool,
    /// The place of the hints of the block that is bound next.
    pub hint_place: HintPlace,
    /// Subqueries of expressions that it stands in, and derived tables.
    pub(super) subqueries: usize,
    pub(super) derived: usize,
    /// The outermost view whose query it is in, and the name that the statement has for that.
    pub(super) through: Option<(u64, Box<str>)>,
}

/// The objects that the whole statement uses, collected as it is bound.
#[derive(Default)]
pub(crate) struct Collected {
    /// Stored tables, each once per use.
    pub tables: Vec<Arc<Table>>,
    /// Views, each once per use.
    pub views: Vec<Arc<View>>,
    /// The meaning of each slot.
    pub slots: Vec<Option<ScopeTable>>,
    /// Subqueries so far.
    pub subqueries: usize,
    /// Whether there are parameters whose types matter.
    pub untyped_params: bool,
    /// Warnings of the names in it, which each run gives.
    pub warnings: Vec<SqlError>,
    /// Names of tables that LOCK TABLES has locked, which are used up.
    pub(super) locked: Vec<(Arc<str>, Box<str>)>,
}

/// The bounds of what binding may take.
pub(super) struct Limits {
    /// The stack.
    pub depth: Depth,
    /// The memory of the columns that `*` stands for, of the expressions that names stand for, and of views.
    pub copies: Account,
}

/// The state of binding one statement.
pub struct Binder<'a> {
    /// The session.
    pub session: &'a SessionState,
    pub(crate) objects: Objects<'a>,
    /// Values of the parameters, if known already: their types type the result.
    pub params: Option<&'a [Value]>,
    /// The session, or the author of a view whose text is bound.
    pub(crate) author: Author<'a>,
    pub(crate) notes: Notes<'a>,
    /// Locks that plain reads take (SERIALIZABLE), and reads inside a writing statement.
    pub default_lock: LockMode,
    /// Query blocks, innermost last.
    pub blocks: Vec<BlockScope>,
    pub(crate) around: Around,
    pub(crate) collected: Collected,
    /// The names of the SELECT that was bound last.
    pub(crate) last_scope: Scope,
    pub(super) limits: Limits,
    /// A session of its own for values of constants, whose warnings nobody sees.
    scratch: Option<Box<SessionState>>,
}

impl<'a> Binder<'a> {
    /// Whether two names of common table expressions are the same: MySQL compares them as those of tables.
    pub(super) fn is_same_table(&self, left: &str, right: &str) -> bool {
        left == right || self.session.settings.mariadb && same(left, right)
    }

    /// A binder for one statement.
    #[must_use]
    pub fn new(session: &'a SessionState, catalog: &'a Catalog) -> Binder<'a> {
        Binder {
            session,
            objects: Objects { catalog, virtuals: &NoVirtualTables },
            params: None,
            author: Author {
                access: Rights::Session(&AllowAll),
                client: session.settings.collation_client,
                connection: session.settings.collation_connection,
                account: None,
                database: session.database.clone(),
            },
            notes: Notes::default(),
            default_lock: LockMode::None,
            blocks: Vec::new(),
            around: Around { hint_place: HintPlace::Inner, ..Around::default() },
            collected: Collected::default(),
            last_scope: Scope::default(),
            limits: Limits { depth: Depth::default(), copies: Account::new(&session.connection.memory) },
            scratch: None,
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
        if let Some(meaning) = self.notes.meaning {
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
        self.collected.slots.get(usize::from(slot))?.as_ref().map(|table| table.full_name(column))
    }

    /// Fails before a recursion is too deep for the stack.
    pub(crate) fn descend(&mut self) -> SqlResult<()> {
        if !self.limits.depth.descend() {
            return Err(SqlError::stack_overrun());
        }
        // A level of its recursion adds a few of them.
        if self.collected.slots.len() > MOST_SLOTS { Err(super::from::too_many_tables()) } else { Ok(()) }
    }

    /// Notes what the binary log must know.
    pub(crate) fn note(&self, note: impl FnOnce(&mut Uses)) {
        if let Some(uses) = self.notes.uses {
            note(&mut uses.borrow_mut());
        }
    }

    /// Warns of what is bound, whenever the statement runs.
    pub(crate) fn warn(&mut self, warning: SqlError) {
        self.note(|uses| uses.warnings.push(warning.clone()));
        self.collected.warnings.push(warning);
    }

    /// A new slot.
    pub fn new_slot(&mut self) -> u16 {
        self.collected.slots.push(None);
        (self.collected.slots.len() - 1) as u16
    }

    /// A stored table in a slot of its own.
    pub fn add_table(&mut self, table: &Arc<Table>, alias: Option<&str>) -> ScopeTable {
        let slot = self.new_slot();
        let scope = ScopeTable::stored(slot, table.clone(), alias);
        self.collected.tables.push(table.clone());
        self.note(|noted| noted.tables.push(table.def.id));
        self.collected.slots[usize::from(slot)] = Some(scope.clone());
        scope
    }

    /// As `add_table`, where not all columns may be read.
    pub fn add_table_of(&mut self, table: &Arc<Table>, alias: Option<&str>, readable: Columns) -> ScopeTable {
        let scope = ScopeTable { readable, ..self.add_table(table, alias) };
        self.collected.slots[usize::from(scope.slot)] = Some(scope.clone());
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
            E::Literal(literal) => leaf::literal(self, literal),
            E::Introduced(pair) => leaf::introduced(self, &pair.0, &pair.1),
            E::Param(number) => Ok(leaf::param(self, *number as usize)),
            E::Local(number) => leaf::local(self, *number),
            E::Column(column) => self.column(column),
            E::UserVar(name) => Ok(leaf::user_variable(self, name)),
            E::SysVar { scope, name } => leaf::system_variable(self, *scope, name),
            E::AssignUserVar(pair) => {
                let value = self.expr(&pair.1)?;
                self.note(|noted| noted.bits |= uses::ASSIGNS);
                let mut ty = value.ty.clone();
                if !self.session.settings.mariadb && ty.family() == Family::String && !ty.is_null() {
                    ty.coercibility = Coercibility::Implicit;
                }
                Ok(Expr { kind: Kind::Assign(Box::new((pair.0.to_lowercase().into(), value))), ty })
            }
            E::Unary { op, expr } => operators::unary(self, *op, expr),
            E::Binary { op, left, right } => operators::binary(self, *op, left, right),
            E::Row(members) => {
                let members = members.iter().map(|m| self.expr_or_row(m)).collect::<SqlResult<Vec<_>>>()?;
                Ok(Expr { kind: Kind::Row(members.into()), ty: ExprType::null() })
            }
            E::Between { expr, low, high, negated } => compare::between(self, expr, low, high, *negated),
            E::In { expr, list, negated } => compare::is_in(self, expr, list, *negated),
            E::InSubquery { expr, query, negated } => subquery::in_subquery(self, expr, query, *negated),
            E::Exists(query) => subquery::exists(self, query),
            E::Subquery(query) => subquery::scalar_subquery(self, query),
            E::Quantified { op, quantifier, left, query } => {
                subquery::quantified(self, *op, *quantifier, left, query)
            }
            E::Like(like) => operators::like(self, like),
            E::Regexp { expr, pattern, negated } => operators::regexp(self, expr, pattern, *negated),
            E::IsNull { expr, negated } => {
                operators::is(self, expr, crate::expr::node::IsKind::Null, *negated)
            }
            E::IsTruth { expr, truth, negated } => operators::is_truth(self, expr, *truth, *negated),
            E::MemberOf { expr, array } => {
                let (member, array) = (self.expr(expr)?, self.expr(array)?);
                calls::call_function(self, "MEMBER_OF", vec![member, array])
            }
            E::Function(call) => calls::function(self, call),
            E::Aggregate(aggregate) => aggregate::aggregate(self, aggregate),
            E::Window(call) => windows::window(self, call),
            E::Case(case) => calls::case(self, case),
            E::Cast { expr, ty } => cast::cast(self, expr, ty),
            E::ConvertUsing { expr, charset } => cast::convert_using(self, expr, charset),
            E::Collate { expr, collation } => cast::collate(self, expr, collation),
            E::Extract { unit, expr } => {
                let e = self.expr(expr)?;
                Ok(calls::extract(self, *unit, e))
            }
            E::DateArith { expr, value, unit, subtract } => {
                calls::date_arith(self, expr, value, *unit, *subtract)
            }
            E::JsonValue(call) => json_value::json_value(self, call),
            E::Unit(unit) => Ok(Expr { kind: Kind::Unit(*unit), ty: ExprType::null() }),
            E::Trim(trim) => calls::trim(self, trim),
            E::Match(_) => Err(SqlError::not_supported_yet("MATCH ... AGAINST")),
            E::Values(column) => calls::values_of(self, column),
            E::Default => Err(SqlError::wrong_arguments("DEFAULT")),
            E::DefaultOf(column) => leaf::default_of(self, column),
        }
    }

    /// The question that a name of the innermost block asks.
    pub(super) fn asked(&self) -> Asked<'_> {
        Asked { within: None, blocks: &self.blocks }
    }

    /// Resolves a column reference through this block and those around it.
    pub(crate) fn column(&mut self, column: &ast::ColumnRef) -> SqlResult<Expr> {
        let (schema, table) = (column.schema().map(|s| &**s), column.table().map(|t| &**t));
        let name: &str = &column.name;
        if let (None, Some(row)) = (schema, table)
            && let Some(local) = leaf::trigger_column(self, row, name)
        {
            return local;
        }
        for at in (0..self.blocks.len()).rev() {
            let mut asked = self.asked();
            if at + 1 < self.blocks.len() {
                asked.within = self.blocks.last().map(|block| block.clause);
            }
            let looked_at = self.blocks[at].scope.tables.iter().map(ScopeTable::width).sum::<usize>();
            self.spend_on_names(looked_at)?;
            if let Some(expr) = self.blocks[at].find(schema, table, name, &asked)? {
                self.count_copy(&expr)?;
                if self.notes.meaning.is_some() {
                    self.mean_column(&self.blocks[at], column, &expr);
                }
                for inner in &mut self.blocks[at + 1..] {
                    inner.outer.add(&expr);
                }
                return Ok(expr);
            }
        }
        let clause = self.blocks.last().map_or(Clause::FieldList, |b| b.clause);
        let tables = || self.blocks.iter().any(|block| !block.scope.tables.is_empty());
        // Where a name was looked for in an outer block as well, it is the column that is unknown.
        if let Some(table) = table
            && !self.session.settings.mariadb
            && (self.blocks.len() <= 1 && !tables() || self.is_first_of_function())
        {
            return Err(SqlError::unknown_table(table, clause.name()));
        }
        let full = match (schema, table) {
            (Some(schema), Some(table)) => format!("{schema}.{table}.{name}"),
            (None, Some(table)) => format!("{table}.{name}"),
            _ => name.to_owned(),
        };
        Err(SqlError::bad_field(full, clause.name()))
    }

    /// Asks for what the expression takes that a name stands for: an alias, or a view's column, whose own names may stand for others. So
    /// a short text may make one that no memory holds, or no stack.
    fn count_copy(&mut self, e: &Expr) -> SqlResult<()> {
        let (nodes, levels) = extent(e);
        if nodes == 1 {
            return Ok(());
        }
        if !self.limits.depth.reuse(levels * LEVEL) {
            return Err(SqlError::stack_overrun());
        }
        self.session.budget.spend_plan(u32::try_from(nodes).unwrap_or(u32::MAX))?;
        self.count(nodes * NODE)
    }

    /// Counts the columns whose names are compared with one.
    pub(super) fn spend_on_names(&self, columns: usize) -> SqlResult<()> {
        self.session.budget.spend_plan(columns as u32 / NAMES)
    }

    /// Asks for memory of the plan that the client's text does not tell of.
    pub(super) fn count(&mut self, bytes: usize) -> SqlResult<()> {
        self.limits.copies.grow_exactly(bytes, MemoryLimits::of(&self.session.settings))
    }

    /// Whether a table function is bound that has no table before it.
    fn is_first_of_function(&self) -> bool {
        let block = self.blocks.last();
        block.is_some_and(|block| block.clause == Clause::TableFunction && block.scope.tables.is_empty())
    }

    /// The expression's result column under `name`.
    #[must_use]
    pub fn result_column(&self, expr: &Expr, name: Arc<str>) -> ResultColumn {
        if let Kind::Column { slot, column, .. } = &expr.kind
            && let Some(Some(table)) = self.collected.slots.get(usize::from(*slot))
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
        // What IF and CASE of decimals show is the branch's own, in a result column.
        let decimals = |e: &Expr| e.ty.column.decimals;
        if expr.ty.family() == Family::Decimal
            && functions::branches(&expr).into_iter().any(|branch| decimals(branch) != decimals(&expr))
            && !self.session.settings.mariadb
        {
            return expr;
        }
        let truth = expr.is_truth();
        let Some(value) = self.evaluate(&expr) else { return expr };
        // Where a BIGINT is wanted of it, the error says what was computed.
        if crate::expr::convert::is_huge(&expr, &value) && !self.session.settings.mariadb {
            return expr;
        }
        let mut folded = Expr { kind: Kind::Const(value), ty: expr.ty };
        // MySQL takes what IF, COALESCE and their kin choose for a number, whatever it was before.
        if folded.is_truth() && !truth && !self.session.settings.mariadb {
            folded.ty.column.length = 2;
        }
        folded
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

/// How many nodes an expression has, and on how many levels.
fn extent(e: &Expr) -> (usize, usize) {
    let (mut nodes, mut levels) = (1, 0);
    e.children(&mut |child| {
        let (below, height) = extent(child);
        nodes += below;
        levels = levels.max(height);
    });
    (nodes, levels + 1)
}
