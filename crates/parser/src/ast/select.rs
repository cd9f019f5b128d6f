//! Queries: SELECT, VALUES, TABLE, set operations, FROM clauses.

use bytes::Bytes;
use std::sync::Arc;

use super::{AssignTarget, DataType, Expr, Ident, ObjectName, WindowSpec};

/// A whole query expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    pub with: Option<Box<With>>,
    pub body: QueryBody,
    pub order_by: Vec<OrderItem>,
    pub limit: Option<Limit>,
    pub locking: Vec<Locking>,
    pub into: Option<Box<Into>>,
}

impl Query {
    /// Whether the names of the outermost select list may be others: nothing refers to those it has.
    pub fn takes_names(&self) -> bool {
        let mut body = &self.body;
        loop {
            match body {
                QueryBody::Select(select) => {
                    return select
                        .items
                        .iter()
                        .all(|item| !matches!(item, SelectItem::Expr { alias: Some(_), .. }));
                }
                QueryBody::SetOperation { left, .. } => body = left,
                _ => return false,
            }
        }
    }
}

/// The body of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum QueryBody {
    Select(Box<Select>),
    /// `VALUES ROW(..), ..`
    Values(Vec<Vec<Expr>>),
    /// `TABLE t`
    Table(ObjectName),
    /// A query in parentheses with clauses of its own.
    Nested(Box<Query>),
    SetOperation {
        op: SetOp,
        all: bool,
        left: Box<QueryBody>,
        right: Box<QueryBody>,
    },
}

impl QueryBody {
    /// The SELECT that stands first.
    pub fn first_select(&self) -> Option<&Select> {
        match self {
            QueryBody::Select(select) => Some(select),
            QueryBody::SetOperation { left, .. } => left.first_select(),
            QueryBody::Nested(query) => query.body.first_select(),
            QueryBody::Values(_) | QueryBody::Table(_) => None,
        }
    }

    /// The same, to change it.
    pub fn first_select_mut(&mut self) -> Option<&mut Select> {
        match self {
            QueryBody::Select(select) => Some(select),
            QueryBody::SetOperation { left, .. } => left.first_select_mut(),
            QueryBody::Nested(query) => query.body.first_select_mut(),
            QueryBody::Values(_) | QueryBody::Table(_) => None,
        }
    }
}

/// UNION, INTERSECT (binds tighter), EXCEPT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetOp {
    Union,
    Intersect,
    Except,
}

/// WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct With {
    pub recursive: bool,
    pub tables: Vec<CommonTable>,
}

/// One common table expression.
#[derive(Clone, Debug, PartialEq)]
pub struct CommonTable {
    pub name: Ident,
    pub columns: Vec<Ident>,
    /// Shared, so that binding it needs no copy.
    pub query: Arc<Query>,
}

/// Modifiers after SELECT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelectOptions {
    pub distinct: bool,
    pub high_priority: bool,
    pub straight_join: bool,
    pub small_result: bool,
    pub big_result: bool,
    pub buffer_result: bool,
    pub no_cache: bool,
    pub calc_found_rows: bool,
}

/// An optimizer hint, `/*+ .. */` behind SELECT, INSERT, REPLACE, UPDATE or DELETE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hint {
    /// Milliseconds.
    MaxExecutionTime(u32),
    /// As STRAIGHT_JOIN.
    JoinFixedOrder,
    /// The order of some tables.
    JoinOrder { place: JoinPlace, tables: Vec<Ident> },
    /// A system variable that has another value while the statement runs.
    SetVar { name: Ident, value: HintValue },
    /// The message about text that is no hint, and ends them.
    Wrong(String),
    /// As FORCE or IGNORE INDEX; no index: all of the table's.
    Index { table: Ident, indexes: Vec<Ident>, kind: IndexHintKind },
}

impl Hint {
    /// Whether it says how tables are read.
    pub fn is_of_tables(&self) -> bool {
        matches!(self, Hint::JoinFixedOrder | Hint::JoinOrder { .. } | Hint::Index { .. })
    }
}

/// The value of SET_VAR.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HintValue {
    /// An integer; K, M and G are multiplied out.
    Int(u64),
    /// Another number.
    Real(String),
    /// A string or a word.
    Text(String),
}

/// Where JOIN_ORDER, JOIN_PREFIX and JOIN_SUFFIX have their tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinPlace {
    /// One after the other.
    Order,
    /// Before all others.
    First,
    /// Behind all others.
    Last,
}

/// One SELECT block.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub options: SelectOptions,
    pub hints: Vec<Hint>,
    pub items: Vec<SelectItem>,
    /// Comma-separated members; empty without FROM (and for FROM DUAL).
    pub from: Vec<TableRef>,
    pub filter: Option<Expr>,
    pub group_by: Vec<OrderItem>,
    pub with_rollup: bool,
    pub having: Option<Expr>,
    pub windows: Vec<(Ident, WindowSpec)>,
}

/// One select-list member.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectItem {
    /// `*`
    Wildcard,
    /// `[schema.]table.*`
    TableWildcard(ObjectName),
    Expr {
        expr: Expr,
        alias: Option<Ident>,
        /// The expression's source text: the column's name when there is no alias. Empty for a
        /// plain column reference, whose name is its last part.
        text: Bytes,
    },
}

/// ORDER BY and GROUP BY member.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderItem {
    pub expr: Expr,
    pub descending: bool,
}

/// LIMIT; members are literals, `?`, or variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub count: Expr,
    pub offset: Option<Expr>,
}

/// FOR UPDATE / FOR SHARE / LOCK IN SHARE MODE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Locking {
    pub strength: LockStrength,
    /// OF t, ...; empty is all.
    pub tables: Vec<ObjectName>,
    pub wait: LockWait,
}

/// Row lock kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockStrength {
    Update,
    Share,
}

/// The behaviour at a locked row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LockWait {
    #[default]
    Wait,
    NoWait,
    SkipLocked,
    /// MariaDB `WAIT n`, seconds.
    Seconds(u64),
}

/// SELECT .. INTO.
#[derive(Clone, Debug, PartialEq)]
pub enum Into {
    /// User variables, and variables of a stored program.
    Variables(Vec<AssignTarget>),
    Outfile {
        file: Bytes,
        charset: Option<Ident>,
        format: FileFormat,
    },
    Dumpfile(Bytes),
}

/// FIELDS and LINES of OUTFILE and LOAD DATA; `None` is MySQL's default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileFormat {
    pub fields_terminated: Option<Bytes>,
    pub fields_enclosed: Option<Bytes>,
    pub fields_optionally: bool,
    pub fields_escaped: Option<Bytes>,
    pub lines_starting: Option<Bytes>,
    pub lines_terminated: Option<Bytes>,
}

/// A member of FROM.
#[derive(Clone, Debug, PartialEq)]
pub enum TableRef {
    Table(Box<TableFactor>),
    Derived(Box<Derived>),
    JsonTable(Box<JsonTable>),
    Join(Box<Join>),
    /// `(a, b)`: cross join of its members.
    Group(Vec<TableRef>),
}

/// A named table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableFactor {
    pub name: ObjectName,
    pub alias: Option<Ident>,
    pub partitions: Vec<Ident>,
    pub hints: Vec<IndexHint>,
}

/// A subquery in FROM.
#[derive(Clone, Debug, PartialEq)]
pub struct Derived {
    pub lateral: bool,
    pub query: Query,
    pub alias: Option<Ident>,
    pub columns: Vec<Ident>,
}

/// JSON_TABLE(doc, path COLUMNS (..)) AS alias.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonTable {
    pub doc: Expr,
    pub path: Bytes,
    pub columns: Vec<JsonColumn>,
    pub alias: Option<Ident>,
}

/// A column of JSON_TABLE, or several below a path.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonColumn {
    /// FOR ORDINALITY.
    Ordinality(Ident),
    Place(JsonPlace),
    Nested {
        path: Bytes,
        columns: Vec<JsonColumn>,
    },
}

/// `name type [EXISTS] PATH ..`.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPlace {
    pub name: Ident,
    pub ty: DataType,
    /// The type as written.
    pub ty_text: Bytes,
    pub path: Bytes,
    pub exists: bool,
    pub on_empty: JsonInstead,
    pub on_error: JsonInstead,
}

/// NULL, ERROR or DEFAULT, ON EMPTY and ON ERROR.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum JsonInstead {
    #[default]
    Null,
    Error,
    Default(Bytes),
}

/// Two table references joined.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    pub kind: JoinKind,
    pub natural: bool,
    pub left: TableRef,
    pub right: TableRef,
    pub condition: JoinCondition,
}

/// How they are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    /// JOIN, INNER JOIN, CROSS JOIN
    Inner,
    Left,
    Right,
    Straight,
}

/// ON, USING or neither.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinCondition {
    None,
    On(Expr),
    Using(Vec<Ident>),
}

/// USE/FORCE/IGNORE INDEX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexHint {
    pub kind: IndexHintKind,
    pub scope: IndexHintScope,
    pub indexes: Vec<Ident>,
}

/// The kinds of index hints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexHintKind {
    Use,
    Force,
    Ignore,
    /// NO_RANGE_OPTIMIZATION: only for one value of its columns.
    NoRange,
}

/// FOR JOIN, ORDER BY, GROUP BY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexHintScope {
    #[default]
    All,
    Join,
    OrderBy,
    GroupBy,
}
