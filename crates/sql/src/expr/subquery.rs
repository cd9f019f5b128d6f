//! Subqueries inside expressions: scalar, EXISTS, IN, ANY and ALL.
//!
//! One that reads nothing from outside runs once and its result is kept in the statement's
//! `SubqueryState`; a correlated one runs for each row of the query around it.

use super::context::Row;
use super::node::{CompareOp, Expr, Kind};
use super::outline::{Line, Numbers, Outliner};
use super::{Context, SlotSet, eval, hash_key, in_place};
use crate::api::ResultColumn;
use crate::error::{ExecResult, SqlError};
use crate::memory::{Account, memory_of};
use crate::rows::collected::Rows;
use crate::rows::distinct::KEY_COST;
use crate::rows::kept::KeptRows;
use crate::rows::results::Results;
use crate::rows::{Flow, codec};
use foldhash::fast::RandomState;
use omnibus_value::Value;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// Takes result rows.
pub type Consumer<'c> = dyn FnMut(&mut Context<'_>, &[Value]) -> ExecResult<Flow> + 'c;

/// Plans that a walk over plans has met, by their places in memory.
#[derive(Debug, Default)]
pub struct Visited(HashSet<usize>);

impl Visited {
    /// Notes a plan; whether it is new.
    pub fn add(&mut self, plan: &dyn Subplan) -> bool {
        self.0.insert(std::ptr::from_ref(plan).addr())
    }
}

/// The plan of a query inside of another one: of a subquery in an expression, or of a derived table. Expressions are below plans, so
/// this is all that they know of one, and all that the planner knows of it when it plans the query around.
pub trait Subplan: std::fmt::Debug + Send + Sync {
    /// Gives its rows, for the rows now in the frame.
    ///
    /// # Errors
    /// Whatever the query meets, and what `out` says.
    fn run(&self, cx: &mut Context<'_>, out: &mut Consumer<'_>) -> ExecResult<Flow>;
    /// Whether two runs with the same outer rows may differ.
    fn is_volatile(&self) -> bool;
    /// How many rows are expected.
    fn rows(&self) -> f64;
    /// The cost of running it, in the unit of `plan::cost`, without that of plans that were met.
    fn cost(&self, visited: &mut Visited) -> f64;
    /// Its result columns.
    fn columns(&self) -> &[ResultColumn];
    /// Whether each value of a column comes once.
    fn is_unique(&self, column: usize) -> bool;
    /// Whether it is one row that no table is read for.
    fn reads_no_table(&self) -> bool;
    /// Gives numbers to itself (this one, or the next) and to the queries inside of it, for EXPLAIN.
    fn number(&self, id: Option<u64>, numbers: &mut Numbers);
    /// Its operators, for EXPLAIN. It has a number.
    fn outline(&self, out: &mut Outliner<'_>) -> Line;
}

/// The question that a subquery answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubqueryKind {
    /// A value of its one row.
    Scalar {
        /// The position of its column.
        column: usize,
    },
    /// Whether it has a row.
    Exists,
    /// Whether the operands are among its rows.
    In {
        /// NOT IN.
        negated: bool,
    },
    /// A comparison with ANY or ALL of its rows.
    Quantified {
        /// The comparison.
        op: CompareOp,
        /// ALL.
        all: bool,
    },
}

/// A subquery in an expression.
#[derive(Clone, Debug)]
pub struct Subquery {
    /// The number of the cache.
    pub id: usize,
    /// The query.
    pub plan: Arc<dyn Subplan>,
    /// The question.
    pub kind: SubqueryKind,
    /// The operands left of IN and of comparisons, as they are compared with the members.
    pub operands: Vec<Expr>,
    /// The columns that the operands are compared with.
    pub members: Vec<Member>,
    /// Where a row is while its columns are converted.
    pub slot: u16,
    /// Slots of the queries around that it reads.
    pub outer_slots: SlotSet,
    /// The columns that it reads of them.
    pub outer_columns: Vec<Expr>,
    /// The columns that decide its result, each once; none if the result is not to be kept.
    pub given: Vec<Expr>,
    /// EXISTS as IN over rows that do not depend on what is outside.
    pub set: Option<Box<RowSet>>,
}

/// `EXISTS (.. WHERE inner = outer AND ..)` as `outer IN (SELECT inner .. WHERE ..)`: dear to make, and cheap to ask. A NULL outside
/// equals nothing.
#[derive(Clone, Debug)]
pub struct RowSet {
    /// The list.
    pub list: Subquery,
    /// How often EXISTS runs by itself before the set is made: until both have cost about the same.
    pub after: u64,
    /// The cost of making it, in the unit of `plan::cost`.
    pub cost: f64,
}

/// A column of a subquery behind IN, ANY or ALL.
#[derive(Clone, Debug)]
pub struct Member {
    /// The column, as it is compared.
    pub compared: Expr,
    /// The collation of comparing.
    pub collation: u16,
}

/// The result of a subquery, if it need not run again.
#[derive(Debug, Default)]
pub enum SubqueryState {
    /// Has not run.
    #[default]
    Unknown,
    /// Its value.
    Scalar(Value),
    /// Whether it has rows.
    Exists(bool),
    /// Rows of a derived, computed or recursive table.
    Table(Rc<Rows>),
    /// Rows of an inner table, by join key.
    Kept(Rc<KeptRows>),
    /// Its rows by hash key, and whether one of them has a NULL; the values for comparisons.
    Rows(Rc<Members>),
    /// Its results by what it reads from outside.
    Results(Box<Results>),
    /// Its values from outside are hardly ever the same.
    Changing,
    /// How often a subquery has run that is to become a set.
    Asked(u64),
    /// No subquery: what several aggregates read of a row, and of which (`Context::grouped_rows`).
    Once(u64, Value),
}

/// The rows of a subquery behind IN, ANY or ALL.
#[derive(Debug, Default)]
pub struct Members {
    /// Rows without NULL.
    keys: HashSet<Box<[u8]>, RandomState>,
    /// Whether a row has a NULL.
    has_null: bool,
    /// Rows of one column without NULL.
    values: Vec<Value>,
    /// Rows of several columns: those without NULL, and those with.
    rows: [Vec<Box<[Value]>>; 2],
    /// The different rows without NULL, if somebody looks them up and they are not too many.
    listed: Listed,
    /// Their memory: they are asked for again and again, and stay there.
    account: Option<Account>,
}

impl RowSet {
    /// Whether it is worth making by now; counts one more time that it is asked.
    fn is_due(&self, cx: &mut Context<'_>) -> bool {
        match &mut cx.subqueries[self.list.id] {
            SubqueryState::Asked(times) => {
                *times += 1;
                *times > self.after
            }
            state => {
                *state = SubqueryState::Asked(1);
                self.after == 0
            }
        }
    }
}

/// The different rows of a subquery.
#[derive(Debug, Default)]
enum Listed {
    /// Nobody wants them.
    #[default]
    Unasked,
    /// All of them.
    All(Vec<Box<[Value]>>),
    /// They are more than this.
    TooMany(usize),
}

impl Members {
    /// The different rows without NULL, if they were wanted and are not too many.
    #[must_use]
    pub fn list(&self) -> &[Box<[Value]>] {
        if let Listed::All(rows) = &self.listed { rows } else { &[] }
    }

    /// Whether there is an answer to whether there are more than `most` different rows: then that answer.
    fn exceeds(&self, most: usize) -> Option<bool> {
        match &self.listed {
            Listed::Unasked => None,
            Listed::All(rows) => Some(rows.len() > most),
            Listed::TooMany(limit) => (most <= *limit).then_some(true),
        }
    }

    /// Lists one more row.
    fn list_row(&mut self, row: &[Value], account: &mut Account, cx: &Context<'_>) -> ExecResult<()> {
        let Listed::All(rows) = &mut self.listed else { return Ok(()) };
        account.grow(memory_of(row), &cx.session.settings)?;
        rows.push(row.iter().cloned().map(eval::own).collect());
        Ok(())
    }
}

impl Subquery {
    /// Whether it is IN over rows that are the same whatever is read outside, and whose equality is that of hash keys.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.kind == SubqueryKind::In { negated: false } && self.is_constant() && self.hashable()
    }

    /// Its different rows without NULL, as they are compared; `None` if they are more than `most`. It must be a list.
    ///
    /// # Errors
    /// Whatever the query meets.
    pub fn list(&self, most: usize, cx: &mut Context<'_>) -> ExecResult<Option<Rc<Members>>> {
        let members = self.members(Some(most), cx)?;
        Ok(if members.exceeds(most) == Some(false) { Some(members) } else { None })
    }

    fn is_constant(&self) -> bool {
        self.outer_slots.is_empty() && !self.plan.is_volatile()
    }

    /// The columns by whose values its result can be kept: none if something else decides it, too.
    #[must_use]
    pub fn deciding(plan: &dyn Subplan, kind: &SubqueryKind, slots: &SlotSet, read: &[Expr]) -> Vec<Expr> {
        let mut given: Vec<Expr> = Vec::new();
        let mut known = SlotSet::default();
        for column in read {
            let Kind::Column { slot, .. } = &column.kind else { return Vec::new() };
            known.insert(*slot);
            if !given.iter().any(|other| other.same(column)) {
                given.push(column.clone());
            }
        }
        let one_value = matches!(kind, SubqueryKind::Scalar { .. } | SubqueryKind::Exists);
        if one_value && !plan.is_volatile() && slots.within(&known) { given } else { Vec::new() }
    }

    /// Evaluates the subquery for the rows now in the frame.
    ///
    /// # Errors
    /// 1242 for a scalar with two rows; whatever the query meets.
    pub fn eval(&self, cx: &mut Context<'_>) -> ExecResult<Value> {
        if let Some(set) = &self.set
            && matches!(cx.subqueries[set.list.id], SubqueryState::Rows(_))
        {
            return Ok(Value::Int(i64::from(set.list.contains(cx)? == Some(true))));
        }
        if self.given.is_empty() || !cx.query.keeps_results {
            return self.compute(cx);
        }
        let results = match std::mem::replace(&mut cx.subqueries[self.id], SubqueryState::Changing) {
            SubqueryState::Unknown => Some(Box::new(Results::new(cx))),
            SubqueryState::Results(results) => Some(results),
            _ => None,
        };
        let Some(mut results) = results else { return self.compute(cx) };
        let mut values = Vec::with_capacity(self.given.len());
        for column in &self.given {
            values.push(column.eval(cx)?);
        }
        let mut key = Vec::new();
        codec::write_values(&values, &mut key);
        if let Some(value) = results.get(&key) {
            cx.subqueries[self.id] = SubqueryState::Results(results);
            return Ok(value);
        }
        let value = self.compute(cx)?;
        if results.keep(&key, &value, cx) {
            cx.subqueries[self.id] = SubqueryState::Results(results);
        }
        Ok(value)
    }

    fn compute(&self, cx: &mut Context<'_>) -> ExecResult<Value> {
        match &self.kind {
            SubqueryKind::Scalar { column } => self.scalar(*column, cx),
            SubqueryKind::Exists => self.exists(cx),
            SubqueryKind::In { negated } => {
                let found = self.contains(cx)?;
                Ok(found.map_or(Value::Null, |f| Value::Int(i64::from(f != *negated))))
            }
            SubqueryKind::Quantified { op, all } => self.quantified(*op, *all, cx),
        }
    }

    fn scalar(&self, column: usize, cx: &mut Context<'_>) -> ExecResult<Value> {
        if let SubqueryState::Scalar(value) = &cx.subqueries[self.id] {
            return Ok(value.clone());
        }
        let mut result: Option<Value> = None;
        self.plan.run(cx, &mut |_, row| {
            if result.is_some() {
                return Err(SqlError::subquery_no_1_row().into());
            }
            result = Some(eval::own(row[column].clone()));
            Ok(Flow::Continue)
        })?;
        let value = result.unwrap_or(Value::Null);
        if self.is_constant() {
            cx.subqueries[self.id] = SubqueryState::Scalar(value.clone());
        }
        Ok(value)
    }

    fn exists(&self, cx: &mut Context<'_>) -> ExecResult<Value> {
        if let SubqueryState::Exists(found) = &cx.subqueries[self.id] {
            return Ok(Value::Int(i64::from(*found)));
        }
        if let Some(set) = &self.set
            && set.is_due(cx)
        {
            return Ok(Value::Int(i64::from(set.list.contains(cx)? == Some(true))));
        }
        let mut found = false;
        self.plan.run(cx, &mut |_, _| {
            found = true;
            Ok(Flow::Stop)
        })?;
        if self.is_constant() {
            cx.subqueries[self.id] = SubqueryState::Exists(found);
        }
        Ok(Value::Int(i64::from(found)))
    }

    /// Whether a row equals the operands; `None` if a NULL leaves that open.
    fn equals(&self, wanted: &[Value], row: &[Value], cx: &mut Context<'_>) -> Option<bool> {
        let mut equal = Some(true);
        for (((operand, a), member), b) in self.operands.iter().zip(wanted).zip(&self.members).zip(row) {
            match eval::order(operand, a, &member.compared, b, member.collation, cx) {
                Some(Ordering::Equal) => {}
                Some(_) => return Some(false),
                None => equal = None,
            }
        }
        equal
    }

    /// A row as it is compared with the operands.
    fn compared<'r>(&self, row: &'r [Value], cx: &mut Context<'_>) -> ExecResult<Cow<'r, [Value]>> {
        if self.members.iter().all(|member| matches!(member.compared.kind, Kind::Column { .. })) {
            return Ok(Cow::Borrowed(row));
        }
        cx.frame[usize::from(self.slot)].row = Row::Values(row.iter().cloned().map(eval::own).collect());
        let values: ExecResult<Vec<Value>> =
            self.members.iter().map(|member| member.compared.eval(cx)).collect();
        Ok(Cow::Owned(values?))
    }

    /// Whether both sides hash alike when equal: the same family of types on both.
    fn hashable(&self) -> bool {
        use super::types::Family as F;
        self.operands.iter().zip(&self.members).all(|(a, b)| {
            let (a, b) = (a.ty.family(), b.compared.ty.family());
            let exact = |f: F| matches!(f, F::Integer | F::Decimal);
            let day = |f: F| matches!(f, F::Date | F::DateTime);
            a == b || (exact(a) && exact(b)) || (day(a) && day(b))
        })
    }

    fn contains(&self, cx: &mut Context<'_>) -> ExecResult<Option<bool>> {
        if self.is_constant() && self.hashable() {
            let mut key = std::mem::take(&mut cx.key);
            key.clear();
            let found = self.contains_hashed(&mut key, cx);
            cx.key = key;
            return found;
        }
        let wanted = self.wanted(cx)?;
        let (mut found, mut unknown) = (false, false);
        self.plan.run(cx, &mut |cx, row| {
            let row = self.compared(row, cx)?;
            match self.equals(&wanted, &row, cx) {
                Some(true) => {
                    found = true;
                    return Ok(Flow::Stop);
                }
                Some(false) => {}
                None => unknown = true,
            }
            Ok(Flow::Continue)
        })?;
        Ok(match (found, unknown) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        })
    }

    /// The operands' values.
    fn wanted(&self, cx: &mut Context<'_>) -> ExecResult<Vec<Value>> {
        self.operands.iter().map(|operand| operand.eval(cx)).collect()
    }

    fn contains_hashed(&self, key: &mut Vec<u8>, cx: &mut Context<'_>) -> ExecResult<Option<bool>> {
        let mut open = false;
        for (operand, member) in self.operands.iter().zip(&self.members) {
            open |= in_place::write_key(operand, member.collation, cx, key)?;
        }
        let members = self.members(None, cx)?;
        if members.keys.is_empty() && !members.has_null {
            return Ok(Some(false));
        }
        if !open && members.keys.contains(&key[..]) {
            return Ok(Some(true));
        }
        if self.operands.len() == 1 {
            return Ok(if open || members.has_null { None } else { Some(false) });
        }
        let [whole, with_null] = &members.rows;
        if with_null.is_empty() && !open {
            return Ok(Some(false));
        }
        let wanted = &self.wanted(cx)?;
        // A NULL leaves open only rows whose other columns are equal.
        for row in with_null.iter().chain(whole.iter().filter(|_| open)) {
            cx.tick()?;
            if self.equals(wanted, row, cx).is_none() {
                return Ok(None);
            }
        }
        Ok(Some(false))
    }

    /// Its rows; with a list of them if they are no more than `most`.
    fn members(&self, most: Option<usize>, cx: &mut Context<'_>) -> ExecResult<Rc<Members>> {
        if let SubqueryState::Rows(members) = &cx.subqueries[self.id]
            && most.is_none_or(|most| members.exceeds(most).is_some())
        {
            return Ok(members.clone());
        }
        let hashable = self.hashable();
        let compared = matches!(self.kind, SubqueryKind::Quantified { .. });
        let listed = if most.is_some() { Listed::All(Vec::new()) } else { Listed::Unasked };
        let mut members = Members { listed, ..Members::default() };
        let mut account = Account::new(&cx.session.connection.memory);
        self.plan.run(cx, &mut |cx, row| {
            let row = &*self.compared(row, cx)?;
            let has_null = row.iter().any(|value| matches!(value, Value::Null));
            if row.len() > 1 {
                account.grow(memory_of(row), &cx.session.settings)?;
                members.rows[usize::from(has_null)].push(row.iter().cloned().map(eval::own).collect());
            }
            if has_null {
                members.has_null = true;
                return Ok(Flow::Continue);
            }
            if hashable {
                let mut key = Vec::new();
                for (value, member) in row.iter().zip(&self.members) {
                    hash_key::write(value, member.collation, &mut key);
                }
                if !members.keys.contains(&key[..]) {
                    account.grow(key.len() + KEY_COST, &cx.session.settings)?;
                    members.keys.insert(key.into());
                    match most {
                        Some(most) if members.keys.len() > most => members.listed = Listed::TooMany(most),
                        Some(_) => members.list_row(row, &mut account, cx)?,
                        None => {}
                    }
                }
            }
            if compared && let [only] = row {
                account.grow(memory_of(row), &cx.session.settings)?;
                members.values.push(eval::own(only.clone()));
            }
            Ok(Flow::Continue)
        })?;
        members.account = Some(account);
        let members = Rc::new(members);
        if self.is_constant() {
            cx.subqueries[self.id] = SubqueryState::Rows(members.clone());
        }
        Ok(members)
    }

    fn quantified(&self, op: CompareOp, all: bool, cx: &mut Context<'_>) -> ExecResult<Value> {
        let (Some(operand), Some(member)) = (self.operands.first(), self.members.first()) else {
            return Ok(Value::Null);
        };
        let wanted = operand.eval(cx)?;
        let members = self.members(None, cx)?;
        let mut unknown = members.has_null;
        for value in &members.values {
            cx.tick()?;
            match eval::order(operand, &wanted, &member.compared, value, member.collation, cx)
                .map(|order| op.accepts(order))
            {
                Some(holds) if holds != all => return Ok(Value::Int(i64::from(!all))),
                Some(_) => {}
                None => unknown = true,
            }
        }
        Ok(if unknown { Value::Null } else { Value::Int(i64::from(all)) })
    }
}
