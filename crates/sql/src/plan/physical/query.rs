//! A compiled query: everything that needs no value of a parameter and no row is decided.
//!
//! Plain data, `Send + Sync`, reused by every execution until the catalog changes. Made by
//! `query` of what `bind` has bound, run by `exec`.

use super::path::{Access, TableAccess};
use crate::api::ResultColumn;
use crate::catalog::{Table, View};
use crate::error::SqlError;
use crate::expr::functions::aggregate::AggregateSpec;
use crate::expr::is_volatile;
use crate::expr::subquery::Subplan;
use crate::expr::{Expr, ExprType, SlotSet};
use crate::logical::{Limit, SetOperation, SortKey, VirtualTable, Windows};
use crate::storage::{LockMode, WaitPolicy};
use omnibus_parser::ast::Target;
use std::fmt;
use std::sync::Arc;

/// A query and what it yields.
#[derive(Debug)]
pub struct QueryPlan {
    /// Its operation.
    pub body: Body,
    /// Result columns.
    pub columns: Arc<[ResultColumn]>,
    /// Their types as expressions.
    pub types: Vec<ExprType>,
    /// Slots of the whole statement (on the outermost plan).
    pub slots: usize,
    /// Subqueries and kept tables of the whole statement.
    pub subqueries: usize,
    /// Stored tables that the whole statement reads.
    pub tables: Vec<Arc<Table>>,
    /// Views that the whole statement reads.
    pub views: Vec<Arc<View>>,
    /// Warnings of the whole statement's names.
    pub warnings: Vec<SqlError>,
    /// Whether two runs with the same outer rows may differ.
    pub volatile: bool,
    /// Whether a result type depends on a parameter's type: bind again with the values.
    pub untyped_params: bool,
    /// The catalog it was made for.
    pub catalog_version: u64,
    /// SELECT ... INTO @a, @b.
    pub into: Vec<Target>,
    /// SELECT ... INTO OUTFILE or DUMPFILE.
    pub(crate) outfile: Option<Box<crate::text_file::Outfile>>,
    /// SQL_CALC_FOUND_ROWS: the outermost LIMIT, applied while the rows behind it are counted.
    pub late_limit: Option<Limit>,
    /// How rows are locked.
    pub locks: LockMode,
    /// Rows expected.
    pub rows: f64,
    /// The memory of the columns that `*` stood for, in the whole statement.
    pub stars: Option<crate::memory::Account>,
}

impl QueryPlan {
    /// Whether a stored table of its FROM is read without a key.
    #[must_use]
    pub fn reads_all_of_a_table(&self) -> bool {
        fn reads_all(nodes: &[Node]) -> bool {
            nodes.iter().any(|node| match node {
                Node::Scan(scan) => match &scan.source {
                    NodeSource::Table { path, .. } => matches!(path.access, Access::Full { .. }),
                    _ => false,
                },
                Node::Outer(outer) => reads_all(&outer.nodes),
            })
        }
        matches!(&self.body, Body::Block(block) if reads_all(&block.nodes))
    }

    /// How many combinations of rows its tables make, as EXPLAIN counts them: what `max_join_size` bounds.
    #[must_use]
    pub fn examines(&self) -> f64 {
        fn product(nodes: &[Node]) -> f64 {
            let of = |node: &Node| match node {
                Node::Outer(outer) => product(&outer.nodes),
                Node::Scan(scan) => match &scan.source {
                    NodeSource::Table { table, path, .. } => path.expected(table),
                    NodeSource::Derived { plan, .. } => plan.rows().max(1.0),
                    _ => 1.0,
                },
            };
            nodes.iter().map(of).product()
        }
        match &self.body {
            Body::Block(block) => product(&block.nodes),
            Body::Compound(compound) => {
                let rest = compound.rest.iter().map(|(_, plan)| plan.examines());
                rest.fold(compound.left.examines(), f64::max)
            }
            Body::Values(_) | Body::Recursive(_) => 1.0,
        }
    }
}

/// The forms of query.
#[derive(Debug)]
pub enum Body {
    /// One SELECT.
    Block(Box<Block>),
    /// UNION, INTERSECT, EXCEPT, or a query in parentheses with clauses of its own.
    Compound(Box<Compound>),
    /// VALUES ROW(..), ..
    Values(Vec<Vec<Expr>>),
    /// WITH RECURSIVE: seed, then steps until nothing new comes.
    Recursive(Box<Recursive>),
}

/// One SELECT block.
#[derive(Debug)]
pub struct Block {
    /// Conditions that read no table of this block.
    pub constants: Vec<Expr>,
    /// Tables in the order they are read.
    pub nodes: Vec<Node>,
    /// Select list, and columns that an INSERT reads beside it.
    pub outputs: Vec<Expr>,
    /// Length of the select list.
    pub width: usize,
    /// GROUP BY or aggregates.
    pub grouping: Option<Grouping>,
    /// HAVING.
    pub having: Option<Expr>,
    /// Window functions.
    pub windows: Option<Windows>,
    /// DISTINCT.
    pub distinct: bool,
    /// ORDER BY, empty if the rows come in order already.
    pub order: Vec<SortKey>,
    /// The slots of its tables, if outputs are computed of sorted rows: their values depend on the order in which they are computed.
    pub late_outputs: Option<Vec<u16>>,
    /// LIMIT.
    pub limit: Limit,
}

/// GROUP BY and aggregates.
#[derive(Debug)]
pub struct Grouping {
    /// The expressions that make a group; empty: all rows are one.
    pub keys: Vec<Expr>,
    /// The aggregates of each.
    pub aggregates: Vec<AggregateSpec>,
    /// Where the results go; meaningless without aggregates.
    pub slot: Option<u16>,
    /// The slots whose rows stand for the group.
    pub row_slots: Vec<u16>,
    /// WITH ROLLUP: the slot that has the keys of a group, NULL for those it is not by, and behind them 1 for each of those.
    pub rollup: Option<u16>,
    /// Rows of a group come one after another.
    pub stream: bool,
    /// Rows come so that the first value that is not NULL is the MIN or MAX wanted.
    pub first_only: bool,
}

impl Grouping {
    /// Whether what makes a group, or is computed of it, may be another value each time.
    pub(crate) fn is_volatile(&self) -> bool {
        let mut of_aggregates =
            self.aggregates.iter().flat_map(|a| a.args.iter().chain(a.order.iter().map(|(e, _)| e)));
        self.keys.iter().any(is_volatile) || of_aggregates.any(is_volatile)
    }
}

/// A step of the nested loops.
#[derive(Debug)]
pub enum Node {
    /// One table.
    Scan(Box<ScanNode>),
    /// The inner side of an outer join.
    Outer(Box<OuterNode>),
}

/// Has loops read rows where an index would do: more of their columns is wanted than the plan was made for.
pub fn read_whole_rows(nodes: &mut [Node]) {
    for node in nodes {
        match node {
            Node::Outer(outer) => read_whole_rows(&mut outer.nodes),
            Node::Scan(scan) => {
                if let NodeSource::Table { path, .. } = &mut scan.source {
                    path.covered = false;
                }
            }
        }
    }
}

/// One table instance being read.
#[derive(Debug)]
pub struct ScanNode {
    /// Its slot.
    pub slot: u16,
    /// Its name in EXPLAIN.
    pub alias: Arc<str>,
    /// The source of rows.
    pub source: NodeSource,
    /// Rows kept in memory after the first reading.
    pub keep: Option<Keep>,
}

/// The rows that a scan reads.
pub enum NodeSource {
    /// A stored table.
    Table {
        /// The table.
        table: Arc<Table>,
        /// The way to its rows.
        path: TableAccess,
        /// Locks.
        lock: LockMode,
        /// When they are taken.
        wait: WaitPolicy,
    },
    /// A derived table.
    Derived {
        /// Its query.
        plan: Arc<dyn Subplan>,
        /// Conditions on its rows.
        filter: Vec<Expr>,
        /// Where its rows are kept.
        id: usize,
        /// Outer slots that it reads: not kept then.
        outer_slots: SlotSet,
    },
    /// A computed table.
    Virtual {
        /// The table.
        table: Arc<dyn VirtualTable>,
        /// Conditions on its rows.
        filter: Vec<Expr>,
        /// Where its rows are kept.
        id: usize,
    },
    /// A recursive common table expression's own rows of the last step.
    Recursion {
        /// Where they are.
        id: usize,
        /// Conditions on its rows.
        filter: Vec<Expr>,
    },
}

impl fmt::Debug for NodeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeSource::Table { table, path, .. } => write!(f, "{} {path:?}", table.def.name),
            NodeSource::Derived { plan, .. } => write!(f, "derived {plan:?}"),
            NodeSource::Virtual { .. } => f.write_str("virtual"),
            NodeSource::Recursion { .. } => f.write_str("recursion"),
        }
    }
}

/// An inner table without a usable index: read once, hashed by its join columns, then looked up.
#[derive(Debug)]
pub struct Keep {
    /// Where the rows are kept.
    pub id: usize,
    /// Columns of this table.
    pub own: Vec<Expr>,
    /// The expressions of tables read before that they equal.
    pub probe: Vec<Expr>,
    /// Collations of the equalities.
    pub collations: Vec<u16>,
    /// Conditions that read other tables too; checked on lookup.
    pub filter: Vec<Expr>,
}

/// The inner side of an outer join.
#[derive(Debug)]
pub struct OuterNode {
    /// The nodes that are read; conditions of ON are inside.
    pub nodes: Vec<Node>,
    /// Conditions of ON that read only tables outside.
    pub on: Vec<Expr>,
    /// Slots to fill with NULLs when nothing matched.
    pub slots: Vec<u16>,
    /// Conditions of WHERE on the result.
    pub filter: Vec<Expr>,
}

/// A set operation.
#[derive(Debug)]
pub struct Compound {
    /// First operand.
    pub left: QueryPlan,
    /// Further operands.
    pub rest: Vec<(SetOperation, QueryPlan)>,
    /// The result's row, for ORDER BY.
    pub slot: u16,
    /// Types that rows are brought to; empty if they are alike already.
    pub types: Vec<ExprType>,
    /// ORDER BY.
    pub order: Vec<SortKey>,
    /// LIMIT.
    pub limit: Limit,
}

/// A recursive common table expression.
#[derive(Debug)]
pub struct Recursive {
    /// The parts that do not refer to it.
    pub seeds: Vec<QueryPlan>,
    /// The parts that do.
    pub steps: Vec<QueryPlan>,
    /// UNION DISTINCT.
    pub distinct: bool,
    /// Where the rows of the last step are.
    pub id: usize,
    /// Column types.
    pub types: Vec<ExprType>,
    /// Names of the columns.
    pub names: Vec<Arc<str>>,
}
