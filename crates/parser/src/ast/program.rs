//! Stored programs: routines, triggers and events, the statements that only their bodies have, and what is said of conditions.
//!
//! Names of variables, cursors, conditions and labels are resolved by the parser, as MySQL's does: in the tree they are
//! numbers. A variable hides a column of its name.

use bytes::Bytes;
use std::sync::Arc;

use super::{DataType, Expr, Ident, ObjectName, Query, Security, Span, Spanned, Statement, UserName};

/// The kinds of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ProgramKind {
    Procedure,
    Function,
    Trigger,
    Event,
}

impl ProgramKind {
    /// As errors name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Procedure => "PROCEDURE",
            Self::Function => "FUNCTION",
            Self::Trigger => "TRIGGER",
            Self::Event => "EVENT",
        }
    }
}

/// The access to data that a routine declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataAccess {
    #[default]
    ContainsSql,
    NoSql,
    ReadsSqlData,
    ModifiesSqlData,
}

impl DataAccess {
    /// The clause.
    pub fn text(self) -> &'static str {
        match self {
            Self::ContainsSql => "CONTAINS SQL",
            Self::NoSql => "NO SQL",
            Self::ReadsSqlData => "READS SQL DATA",
            Self::ModifiesSqlData => "MODIFIES SQL DATA",
        }
    }
}

/// A routine's characteristics, those that were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Characteristics {
    pub comment: Option<Bytes>,
    pub deterministic: Option<bool>,
    pub access: Option<DataAccess>,
    pub security: Option<Security>,
}

/// The direction of a parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParamMode {
    #[default]
    In,
    Out,
    InOut,
}

impl ParamMode {
    /// The keyword.
    pub fn name(self) -> &'static str {
        match self {
            Self::In => "IN",
            Self::Out => "OUT",
            Self::InOut => "INOUT",
        }
    }
}

/// A parameter: variable number `at` of the program, where `at` is its place in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutineParam {
    pub mode: ParamMode,
    pub name: Ident,
    pub ty: DataType,
}

/// CREATE PROCEDURE and CREATE FUNCTION.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRoutine {
    pub kind: ProgramKind,
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub definer: Option<UserName>,
    pub name: ObjectName,
    pub params: Vec<RoutineParam>,
    /// The list's text, without its parentheses.
    pub params_text: Bytes,
    pub returns: Option<DataType>,
    /// The text of the type.
    pub returns_text: Bytes,
    pub characteristics: Characteristics,
    pub program: Program,
}

/// BEFORE or AFTER.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TriggerTime {
    Before,
    After,
}

impl TriggerTime {
    /// The keyword.
    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "BEFORE",
            Self::After => "AFTER",
        }
    }
}

/// The event that fires a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TriggerEvent {
    Insert,
    Update,
    Delete,
}

impl TriggerEvent {
    /// The keyword.
    pub fn name(self) -> &'static str {
        match self {
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// CREATE TRIGGER.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTrigger {
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub definer: Option<UserName>,
    pub name: ObjectName,
    pub time: TriggerTime,
    pub event: TriggerEvent,
    pub table: ObjectName,
    /// FOLLOWS (true) or PRECEDES (false) another trigger.
    pub order: Option<(bool, Ident)>,
    pub program: Program,
}

/// DROP PROCEDURE, DROP FUNCTION, DROP TRIGGER, DROP EVENT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropProgram {
    pub kind: ProgramKind,
    pub if_exists: bool,
    pub name: ObjectName,
}

/// ALTER PROCEDURE and ALTER FUNCTION.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterRoutine {
    pub kind: ProgramKind,
    pub name: ObjectName,
    pub characteristics: Characteristics,
}

/// A program's body and what it declares.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The body's text.
    pub text: Bytes,
    pub body: Box<ProgramNode>,
    /// All variables by number; parameters come first.
    pub variables: Vec<Ident>,
    /// All cursors by number.
    pub cursors: Vec<Cursor>,
    /// A statement in it may have a result set for the client.
    pub returns_rows: bool,
    /// There is a RETURN in it.
    pub returns: bool,
    /// Columns of NEW and OLD that a trigger reads.
    pub row_columns: Vec<super::ColumnRef>,
}

/// A cursor's query, and its name for errors.
#[derive(Clone, Debug, PartialEq)]
pub struct Cursor {
    pub name: Ident,
    pub query: Arc<InnerStatement>,
}

/// A statement of a body.
#[derive(Clone, Debug, PartialEq)]
pub struct InnerStatement {
    pub statement: Arc<Spanned<Statement>>,
    /// Where variables are named in it, in order.
    pub locals: Vec<(Span, u32)>,
}

/// DECLARE of variables: numbers `first` to `first + count`.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    pub first: u32,
    pub count: u32,
    pub ty: DataType,
    pub default: Option<Expr>,
}

/// The action of a handler behind its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandlerKind {
    Continue,
    Exit,
}

/// A condition as DECLARE CONDITION, SIGNAL and handlers name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Code(u16),
    State([u8; 5]),
    /// SQLSTATE 01xxx.
    Warning,
    /// SQLSTATE 02xxx.
    NotFound,
    /// Everything else.
    Exception,
}

/// DECLARE .. HANDLER.
#[derive(Clone, Debug, PartialEq)]
pub struct Handler {
    pub kind: HandlerKind,
    pub conditions: Vec<Condition>,
    pub body: ProgramNode,
}

/// BEGIN .. END.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    pub label: Option<u32>,
    pub variables: Vec<Declared>,
    pub cursors: Vec<u32>,
    pub handlers: Vec<Handler>,
    pub body: Vec<ProgramNode>,
}

/// A loop's kind and condition.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopKind {
    Loop,
    While(Expr),
    /// UNTIL this.
    Repeat(Expr),
    /// MariaDB's FOR over numbers.
    For {
        variable: u32,
        /// The variable's value for the next round, also behind ITERATE.
        next: Expr,
        condition: Expr,
    },
}

/// Statements under a condition.
pub type Branch = (Expr, Vec<ProgramNode>);

/// Where a value goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssignTarget {
    /// `@name`.
    User(Ident),
    /// A variable of the program.
    Local(u32),
}

/// A part of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum ProgramNode {
    Block(Box<Block>),
    Statement(Arc<InnerStatement>),
    If {
        branches: Vec<Branch>,
        otherwise: Vec<ProgramNode>,
    },
    /// Without ELSE nothing chosen is an error (1339).
    Case {
        operand: Option<Expr>,
        whens: Vec<Branch>,
        otherwise: Option<Vec<ProgramNode>>,
    },
    Loop {
        label: u32,
        kind: LoopKind,
        body: Vec<ProgramNode>,
    },
    Leave(u32),
    Iterate(u32),
    Return(Expr),
    Open(u32),
    Fetch {
        cursor: u32,
        into: Vec<AssignTarget>,
    },
    Close(u32),
}

/// SIGNAL and RESIGNAL.
#[derive(Clone, Debug, PartialEq)]
pub struct Signal {
    pub resignal: bool,
    /// Always there in SIGNAL.
    pub state: Option<[u8; 5]>,
    pub items: Vec<(ConditionItem, Expr)>,
}

/// Items of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionItem {
    ClassOrigin,
    SubclassOrigin,
    ConstraintCatalog,
    ConstraintSchema,
    ConstraintName,
    CatalogName,
    SchemaName,
    TableName,
    ColumnName,
    CursorName,
    MessageText,
    MysqlErrno,
    /// GET DIAGNOSTICS only.
    ReturnedSqlstate,
    /// MariaDB.
    RowNumber,
}

impl ConditionItem {
    /// All, by their words.
    pub const ALL: [(&'static str, ConditionItem); 14] = [
        ("CLASS_ORIGIN", Self::ClassOrigin),
        ("SUBCLASS_ORIGIN", Self::SubclassOrigin),
        ("CONSTRAINT_CATALOG", Self::ConstraintCatalog),
        ("CONSTRAINT_SCHEMA", Self::ConstraintSchema),
        ("CONSTRAINT_NAME", Self::ConstraintName),
        ("CATALOG_NAME", Self::CatalogName),
        ("SCHEMA_NAME", Self::SchemaName),
        ("TABLE_NAME", Self::TableName),
        ("COLUMN_NAME", Self::ColumnName),
        ("CURSOR_NAME", Self::CursorName),
        ("MESSAGE_TEXT", Self::MessageText),
        ("MYSQL_ERRNO", Self::MysqlErrno),
        ("RETURNED_SQLSTATE", Self::ReturnedSqlstate),
        ("ROW_NUMBER", Self::RowNumber),
    ];

    /// Its word.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, item)| *item == self).map_or("", |(name, _)| name)
    }
}

/// GET [CURRENT | STACKED] DIAGNOSTICS.
#[derive(Clone, Debug, PartialEq)]
pub struct GetDiagnostics {
    pub stacked: bool,
    pub what: DiagnosticsPart,
}

/// The part of the area that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum DiagnosticsPart {
    /// NUMBER and ROW_COUNT.
    Statement(Vec<(AssignTarget, StatementItem)>),
    Condition(Expr, Vec<(AssignTarget, ConditionItem)>),
}

/// An item of the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementItem {
    Number,
    RowCount,
}

impl InnerStatement {
    /// The query that it is.
    pub fn query(&self) -> Option<&Query> {
        match &self.statement.node {
            Statement::Select(query) => Some(query),
            _ => None,
        }
    }
}
