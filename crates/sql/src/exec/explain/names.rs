//! What EXPLAIN calls the columns and subqueries of a plan, and the numbers of its SELECTs.

use crate::catalog::Column;
use crate::expr::functions::aggregate::AggregateSpec;
use crate::expr::print::{self, Names};
use crate::expr::subquery::{Subplan, Subquery};
use crate::plan::QueryPlan;
use crate::plan::physical::{Block, Node, NodeSource};
use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

/// The plan of a query inside of another one.
pub(super) fn query_of(plan: &Arc<dyn Subplan>) -> Option<Arc<QueryPlan>> {
    let plan: Arc<dyn Any + Send + Sync> = plan.clone();
    plan.downcast().ok()
}

/// A subquery that was named.
pub(super) struct Inner {
    /// The number of its SELECT.
    pub id: u64,
    pub plan: Arc<QueryPlan>,
    /// It reads rows of the queries around it.
    pub dependent: bool,
}

/// Of one plan.
#[derive(Default)]
pub(super) struct Known {
    slots: RefCell<HashMap<(u16, u16), String>>,
    last: RefCell<u64>,
    /// Named, and not shown yet.
    inner: RefCell<Vec<Inner>>,
}

impl Known {
    /// The number of the next SELECT.
    pub(super) fn next_id(&self) -> u64 {
        *self.last.borrow_mut() += 1;
        *self.last.borrow()
    }

    fn put(&self, slot: u16, columns: impl Iterator<Item = String>) {
        let mut slots = self.slots.borrow_mut();
        slots.extend(columns.enumerate().map(|(at, name)| ((slot, at as u16), name)));
    }

    /// The columns of a block's tables and groups.
    pub(super) fn learn(&self, block: &Block) {
        self.learn_nodes(&block.nodes);
        if let Some(grouping) = &block.grouping
            && let Some(slot) = grouping.slot
        {
            let texts: Vec<String> = grouping.aggregates.iter().map(|a| self.aggregate(a)).collect();
            self.put(slot, texts.into_iter());
        }
    }

    fn learn_nodes(&self, nodes: &[Node]) {
        for node in nodes {
            let scan = match node {
                Node::Scan(scan) => scan,
                Node::Outer(outer) => {
                    self.learn_nodes(&outer.nodes);
                    continue;
                }
            };
            let of = |name: &str| format!("{}.{name}", scan.alias);
            match &scan.source {
                NodeSource::Table { table, .. } => {
                    let shown = |column: &Column| match column.is_hidden() {
                        true => column.shown().to_owned(),
                        false => of(&column.name),
                    };
                    self.put(scan.slot, table.columns().iter().map(shown));
                }
                NodeSource::Derived { plan, .. } => {
                    self.put(scan.slot, plan.columns().iter().map(|column| of(&column.name)));
                }
                NodeSource::Virtual { table, .. } => {
                    self.put(scan.slot, table.columns().iter().map(|column| of(&column.name)));
                }
                NodeSource::Recursion { .. } => {}
            }
        }
    }

    /// `count(t.a)`.
    pub(super) fn aggregate(&self, spec: &AggregateSpec) -> String {
        let name = spec.kind.name().to_ascii_lowercase();
        let distinct = if spec.distinct { "distinct " } else { "" };
        let args = if spec.args.is_empty() { "0".into() } else { print::list(&spec.args, ",", self) };
        format!("{name}({distinct}{args})")
    }

    /// What was named since it was last asked.
    pub(super) fn take_inner(&self) -> Vec<Inner> {
        std::mem::take(&mut *self.inner.borrow_mut())
    }
}

impl Names for Known {
    fn column(&self, slot: u16, column: u16) -> String {
        self.slots.borrow().get(&(slot, column)).cloned().unwrap_or_else(|| format!("`{}`", column + 1))
    }

    fn local(&self, _: u32) -> String {
        "?".into()
    }

    fn subquery(&self, subquery: &Subquery) -> String {
        let Some(plan) = query_of(&subquery.plan) else { return "(...)".into() };
        let dependent = !subquery.outer_slots.is_empty();
        let known = self.inner.borrow().iter().find(|inner| Arc::ptr_eq(&inner.plan, &plan)).map(|i| i.id);
        let id = known.unwrap_or_else(|| {
            let id = self.next_id();
            self.inner.borrow_mut().push(Inner { id, plan, dependent });
            id
        });
        format!("(select #{id})")
    }
}
