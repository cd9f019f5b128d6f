//! Plans as texts for people: a line for each operator that shows, which EXPLAIN prints in its forms.
//!
//! It stands among expressions because all that these know of a plan inside of them is that it can say this of itself
//! ([`super::subquery::Subplan`]).

use super::print::Names;
use super::profile::{Measure, Profile};
use super::subquery::{Subplan, Subquery};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ptr::from_ref;
use std::sync::Arc;

/// The line of an operator, and those of the operators that it takes its rows from.
#[derive(Debug, Default)]
pub struct Line {
    /// Its kind, and what it is told.
    pub does: Does,
    /// Cost, and rows that are expected of it.
    pub expected: Option<(f64, f64)>,
    /// The run that was measured.
    pub actual: Actual,
    /// Operators below.
    pub below: Vec<Line>,
    /// Subqueries that its expressions ask.
    pub inner: Vec<Inner>,
}

/// A measured run of an operator.
#[derive(Clone, Copy, Debug, Default)]
pub enum Actual {
    /// Nothing ran, or nobody measured it.
    #[default]
    Unknown,
    /// It was never begun.
    Never,
    /// It ran.
    Did(Measure),
}

/// A subquery.
#[derive(Debug)]
pub struct Inner {
    /// A condition asks it, or a key; otherwise an output, or an aggregate.
    pub in_condition: bool,
    /// It reads rows of the queries around it.
    pub dependent: bool,
    /// Its plan, which is a [`Does::Select`].
    pub query: Line,
}

/// The kinds of operators. Expressions are texts.
#[derive(Debug, Default)]
pub enum Does {
    /// A row that no table is read for.
    #[default]
    Nothing,
    /// A query with a number; one operator is below, or none if it has been described elsewhere.
    Select(Select),
    /// A set operation of the queries below; of one alone, parentheses.
    Union(Union),
    /// WITH RECURSIVE: the first so many below are seeds, the others steps.
    Recursive(usize),
    /// LIMIT, and OFFSET.
    Limit(String, Option<String>),
    /// ORDER BY.
    Sort {
        /// Keys.
        keys: Vec<Key>,
        /// How many of the first rows are wanted.
        most: Option<String>,
    },
    /// DISTINCT.
    Distinct,
    /// Window functions of one window: what the rows are sorted by for them.
    Window(Vec<Key>),
    /// HAVING.
    Having(String),
    /// GROUP BY and aggregates.
    Group(GroupLine),
    /// Conditions that no table is read for.
    If(Vec<String>),
    /// Conditions on rows.
    Filter(Vec<String>),
    /// For each row of the first below the rows of the second.
    Join,
    /// The same, where rows that find none stay; conditions on those of the first.
    LeftJoin(Vec<String>),
    /// A table that is kept by its join columns.
    HashJoin(HashJoin),
    /// A stored table.
    Table(Box<Table>),
    /// The rows of the query below, under a name.
    Derived(String),
    /// A computed table of this name.
    Computed(String),
    /// Rows of the last step of the recursion of this name.
    Recursion(String),
    /// Changes of tables, each with what it does and the table's name.
    Change(Vec<(&'static str, String)>),
}

/// A query.
#[derive(Debug)]
pub struct Select {
    /// Its number in the statement.
    pub id: u64,
    /// Whether two runs may differ.
    pub volatile: bool,
    /// Rows that are expected.
    pub rows: f64,
}

/// A set operation.
#[derive(Debug)]
pub struct Union {
    /// The last operation; none of a query alone.
    pub name: Option<&'static str>,
    /// Whether some rows are left out.
    pub deduplicates: bool,
}

/// Something that rows are sorted by.
#[derive(Debug)]
pub struct Key {
    /// The expression.
    pub text: String,
    /// DESC.
    pub descending: bool,
}

/// GROUP BY and aggregates.
#[derive(Debug)]
pub struct GroupLine {
    /// Aggregates, each once.
    pub aggregates: Vec<String>,
    /// There are groups, not all rows in one.
    pub by: bool,
    /// Rows come group by group.
    pub stream: bool,
    /// The first row has all that is wanted.
    pub first: bool,
}

/// A hash join.
#[derive(Debug)]
pub struct HashJoin {
    /// Equalities.
    pub on: Vec<String>,
    /// Further conditions, asked of what is found.
    pub filter: Vec<String>,
    /// The run of the kept table alone.
    pub own: Actual,
}

/// A stored table that is read.
#[derive(Debug)]
pub struct Table {
    /// Its name in the statement.
    pub alias: String,
    /// The path in words.
    pub path: String,
    /// The path in MySQL's word for its kind.
    pub access: &'static str,
    /// Indexes that could be used.
    pub possible: Vec<String>,
    /// The used index, if there is one.
    pub index: Option<Index>,
    /// Indexes that are united.
    pub united: Vec<String>,
    /// Rows of a reading, how many of a hundred of them meet the conditions, and what it costs.
    pub estimate: Estimate,
    /// An index alone has all that is wanted.
    pub covered: bool,
    /// Read from the end.
    pub reverse: bool,
    /// There are conditions, which the path itself meets.
    pub implied: bool,
    /// Columns that are read.
    pub columns: Vec<String>,
    /// Bytes of a row at most.
    pub row_bytes: f64,
}

/// Numbers of a path.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// Rows of a reading.
    pub rows: f64,
    /// How many of a hundred of them meet the conditions.
    pub filtered: f64,
    /// Cost of a reading.
    pub cost: f64,
}

/// The indexes that a table is read by: one, or those of a union.
#[derive(Debug, Default)]
pub struct Index {
    /// Their names.
    pub names: Vec<String>,
    /// Bytes that are used of each.
    pub lengths: Vec<String>,
    /// Columns that are used.
    pub parts: Vec<String>,
    /// The values that a key is equal to.
    pub refs: Vec<String>,
}

/// The numbers of a statement's queries: in the order of the text, as far as a plan has it, the same in all forms.
#[derive(Debug, Default)]
pub struct Numbers {
    by_place: HashMap<usize, u64>,
    last: u64,
}

impl Numbers {
    /// A number that no query has yet.
    pub fn next_id(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Gives a plan this number.
    pub fn give<T: ?Sized>(&mut self, plan: &T, id: u64) {
        self.by_place.insert(from_ref(plan).addr(), id);
    }

    /// Whether a plan has a number.
    #[must_use]
    pub fn knows<T: ?Sized>(&self, plan: &T) -> bool {
        self.by_place.contains_key(&from_ref(plan).addr())
    }

    /// The number of a plan.
    #[must_use]
    pub fn of<T: ?Sized>(&self, plan: &T) -> u64 {
        self.by_place.get(&from_ref(plan).addr()).copied().unwrap_or(0)
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.last
    }
}

/// The state of a walk through a plan.
#[derive(Default)]
pub struct Outliner<'p> {
    /// Numbers of all queries.
    pub numbers: Numbers,
    profile: Option<&'p Profile>,
    columns: HashMap<(u16, u16), String>,
    /// Databases of slots.
    schemas: HashMap<u16, Arc<str>>,
    /// Subqueries that texts have named, and no operator has taken yet.
    named: RefCell<Vec<(Arc<dyn Subplan>, bool)>>,
    /// Numbers of those that were named, and of the queries of FROM that have been described.
    met: RefCell<HashSet<u64>>,
}

impl<'p> Outliner<'p> {
    /// For a plan, and a run of it.
    #[must_use]
    pub fn new(profile: Option<&'p Profile>) -> Outliner<'p> {
        Outliner { profile, ..Outliner::default() }
    }

    /// Names the columns of a slot.
    pub fn learn(&mut self, slot: u16, columns: impl Iterator<Item = String>) {
        self.columns.extend(columns.enumerate().map(|(at, name)| ((slot, at as u16), name)));
    }

    /// Says of which database the table of a slot is.
    pub fn learn_schema(&mut self, slot: u16, schema: Arc<str>) {
        self.schemas.insert(slot, schema);
    }

    /// A column as `database.table.column`.
    #[must_use]
    pub fn full_name(&self, slot: u16, column: u16) -> String {
        let name = self.column(slot, column).replace('`', "");
        match self.schemas.get(&slot) {
            Some(schema) => format!("{schema}.{name}"),
            None => name,
        }
    }

    /// The run of a part of the plan.
    #[must_use]
    pub fn did<T>(&self, part: &T) -> Actual {
        match self.profile {
            None => Actual::Unknown,
            Some(profile) => profile.of(part).map_or(Actual::Never, |measure| Actual::Did(*measure)),
        }
    }

    /// The operators of a query of FROM, or its number alone if they stand elsewhere: common table expressions that name each other twice
    /// have 2^n paths to the last.
    pub fn described_once(&mut self, plan: &dyn Subplan) -> Line {
        let id = self.numbers.of(plan);
        if self.met.get_mut().insert(id) {
            return plan.outline(self);
        }
        let does = Does::Select(Select { id, volatile: plan.is_volatile(), rows: plan.rows() });
        Line { does, ..Line::default() }
    }

    /// Gives an operator the subqueries that were named since the last time.
    #[must_use]
    pub fn with_inner(&mut self, mut operator: Line, in_condition: bool) -> Line {
        let named = std::mem::take(self.named.get_mut());
        for (plan, dependent) in named {
            let query = plan.outline(self);
            operator.inner.push(Inner { in_condition, dependent, query });
        }
        operator
    }
}

impl Names for Outliner<'_> {
    fn column(&self, slot: u16, column: u16) -> String {
        self.columns.get(&(slot, column)).cloned().unwrap_or_else(|| format!("`{}`", column + 1))
    }

    fn local(&self, _: u32) -> String {
        "?".into()
    }

    fn subquery(&self, subquery: &Subquery) -> String {
        let id = self.numbers.of(&*subquery.plan);
        if self.met.borrow_mut().insert(id) {
            let dependent = !subquery.outer_slots.is_empty();
            self.named.borrow_mut().push((subquery.plan.clone(), dependent));
        }
        format!("(select #{id})")
    }
}
