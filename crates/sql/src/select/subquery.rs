//! Subqueries inside expressions: scalar, EXISTS, IN, ANY and ALL.
//!
//! One that reads nothing from outside runs once and its result is kept in the statement's
//! `SubqueryState`; a correlated one runs for each row of the query around it.

use super::plan::QueryPlan;
use super::run::Flow;
use crate::error::{ExecResult, SqlError};
use crate::expr::node::{CompareOp, Expr};
use crate::expr::{Exec, SlotSet, compare, eval, hash_key};
use omnibus_value::Value;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

/// What is asked of the subquery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubqueryKind {
    /// A value of its one row.
    Scalar {
        /// Which.
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
    /// Which cache.
    pub id: usize,
    /// The query.
    pub plan: Arc<QueryPlan>,
    /// What is asked.
    pub kind: SubqueryKind,
    /// What stands left of IN and of comparisons.
    pub operands: Vec<Expr>,
    /// Slots of the queries around that it reads.
    pub outer_slots: SlotSet,
    /// What it reads of them.
    pub outer_columns: Vec<Expr>,
}

/// What a subquery has found, if it need not run again.
#[derive(Clone, Debug, Default)]
pub enum SubqueryState {
    /// Has not run.
    #[default]
    Unknown,
    /// Its value.
    Scalar(Value),
    /// Whether it has rows.
    Exists(bool),
    /// Rows of a derived, computed or recursive table.
    Table(Rc<Vec<Rc<[Value]>>>),
    /// Rows of an inner table, by join key.
    Kept(Rc<super::run::KeptRows>),
    /// Its rows by hash key, and whether one of them has a NULL; the values for comparisons.
    Rows(Rc<Members>),
}

/// The rows of a subquery behind IN, ANY or ALL.
#[derive(Debug, Default)]
pub struct Members {
    /// Rows without NULL.
    keys: HashSet<Box<[u8]>>,
    /// Whether a row has a NULL.
    has_null: bool,
    /// Rows of one column without NULL.
    values: Vec<Value>,
    /// Rows of several columns: those without NULL, and those with.
    rows: [Vec<Box<[Value]>>; 2],
}

/// Whether a row equals another; `None` if a NULL leaves that open.
fn equal_rows(wanted: &[Value], row: &[Value], collations: &[u16]) -> Option<bool> {
    let mut equal = Some(true);
    for ((a, b), collation) in wanted.iter().zip(row).zip(collations) {
        match compare::values(a, b, *collation) {
            Some(Ordering::Equal) => {}
            Some(_) => return Some(false),
            None => equal = None,
        }
    }
    equal
}

impl Subquery {
    fn is_constant(&self) -> bool {
        self.outer_slots.is_empty() && !self.plan.volatile
    }

    /// Evaluates the subquery for the rows now in the frame.
    ///
    /// # Errors
    /// 1242 for a scalar with two rows; whatever the query meets.
    pub fn eval(&self, cx: &mut Exec<'_>) -> ExecResult<Value> {
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

    fn scalar(&self, column: usize, cx: &mut Exec<'_>) -> ExecResult<Value> {
        if let SubqueryState::Scalar(value) = &cx.subqueries[self.id] {
            return Ok(value.clone());
        }
        let mut result: Option<Value> = None;
        super::run::run(&self.plan, cx, &mut |_, row| {
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

    fn exists(&self, cx: &mut Exec<'_>) -> ExecResult<Value> {
        if let SubqueryState::Exists(found) = &cx.subqueries[self.id] {
            return Ok(Value::Int(i64::from(*found)));
        }
        let mut found = false;
        super::run::run(&self.plan, cx, &mut |_, _| {
            found = true;
            Ok(Flow::Stop)
        })?;
        if self.is_constant() {
            cx.subqueries[self.id] = SubqueryState::Exists(found);
        }
        Ok(Value::Int(i64::from(found)))
    }

    /// The collation under which operand `at` is compared.
    fn collation(&self, at: usize) -> u16 {
        let (a, b) = (&self.operands[at].ty, &self.plan.types[at]);
        crate::expr::types::merge_all([a, b], crate::expr::types::BINARY, "IN")
            .map_or(crate::expr::types::BINARY, |(collation, _)| collation)
    }

    /// Whether both sides hash alike when equal: the same family of types on both.
    fn hashable(&self) -> bool {
        use crate::expr::types::Family as F;
        self.operands.iter().zip(&self.plan.types).all(|(a, b)| {
            let (a, b) = (a.ty.family(), b.family());
            let exact = |f: F| matches!(f, F::Integer | F::Decimal);
            let day = |f: F| matches!(f, F::Date | F::DateTime);
            a == b || (exact(a) && exact(b)) || (day(a) && day(b))
        })
    }

    fn contains(&self, cx: &mut Exec<'_>) -> ExecResult<Option<bool>> {
        let mut wanted = Vec::with_capacity(self.operands.len());
        for operand in &self.operands {
            wanted.push(operand.eval(cx)?);
        }
        if self.is_constant() && self.hashable() {
            return self.contains_hashed(&wanted, cx);
        }
        let collations: Vec<u16> = (0..wanted.len()).map(|at| self.collation(at)).collect();
        let (mut found, mut unknown) = (false, false);
        super::run::run(&self.plan, cx, &mut |_, row| {
            match equal_rows(&wanted, row, &collations) {
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

    fn contains_hashed(&self, wanted: &[Value], cx: &mut Exec<'_>) -> ExecResult<Option<bool>> {
        let members = self.members(cx)?;
        if members.keys.is_empty() && !members.has_null {
            return Ok(Some(false));
        }
        let open = wanted.iter().any(|value| matches!(value, Value::Null));
        if !open {
            let mut key = Vec::new();
            for (at, value) in wanted.iter().enumerate() {
                hash_key::write(value, self.collation(at), &mut key);
            }
            if members.keys.contains(&key[..]) {
                return Ok(Some(true));
            }
        }
        if wanted.len() == 1 {
            return Ok(if open || members.has_null { None } else { Some(false) });
        }
        // A NULL leaves open only rows whose other columns are equal.
        let collations: Vec<u16> = (0..wanted.len()).map(|at| self.collation(at)).collect();
        let [whole, with_null] = &members.rows;
        let mut candidates = with_null.iter().chain(whole.iter().filter(|_| open));
        let unknown = candidates.any(|row| equal_rows(wanted, row, &collations).is_none());
        Ok(if unknown { None } else { Some(false) })
    }

    fn members(&self, cx: &mut Exec<'_>) -> ExecResult<Rc<Members>> {
        if let SubqueryState::Rows(members) = &cx.subqueries[self.id] {
            return Ok(members.clone());
        }
        let collations: Vec<u16> = (0..self.operands.len()).map(|at| self.collation(at)).collect();
        let hashable = self.hashable();
        let mut members = Members::default();
        super::run::run(&self.plan, cx, &mut |_, row| {
            let has_null = row.iter().any(|value| matches!(value, Value::Null));
            if row.len() > 1 {
                members.rows[usize::from(has_null)].push(row.iter().cloned().map(eval::own).collect());
            }
            if has_null {
                members.has_null = true;
                return Ok(Flow::Continue);
            }
            if hashable {
                let mut key = Vec::new();
                for (value, collation) in row.iter().zip(&collations) {
                    hash_key::write(value, *collation, &mut key);
                }
                members.keys.insert(key.into());
            }
            if let [only] = row {
                members.values.push(eval::own(only.clone()));
            }
            Ok(Flow::Continue)
        })?;
        let members = Rc::new(members);
        if self.is_constant() {
            cx.subqueries[self.id] = SubqueryState::Rows(members.clone());
        }
        Ok(members)
    }

    fn quantified(&self, op: CompareOp, all: bool, cx: &mut Exec<'_>) -> ExecResult<Value> {
        let Some(operand) = self.operands.first() else { return Ok(Value::Null) };
        let wanted = operand.eval(cx)?;
        let members = self.members(cx)?;
        let collation = self.collation(0);
        let mut unknown = members.has_null;
        for value in &members.values {
            match compare::values(&wanted, value, collation).map(|order| op.accepts(order)) {
                Some(holds) if holds != all => return Ok(Value::Int(i64::from(!all))),
                Some(_) => {}
                None => unknown = true,
            }
        }
        Ok(if unknown { Value::Null } else { Value::Int(i64::from(all)) })
    }
}
