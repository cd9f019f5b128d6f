//! Expressions. Small on purpose: an `Expr` is 40 bytes and a literal allocates nothing, because a
//! multi-row INSERT is mostly literals.

use bytes::Bytes;

use super::{Ident, OrderItem, Query};

/// A literal as written.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    Null,
    True,
    False,
    /// An integer that fits 64 unsigned bits; larger ones are `Decimal`. The minus sign is a
    /// unary operator around it, except that `-9223372036854775808` stays exact that way too.
    Int(u64),
    /// The text of an exact number: `1.50`, `.5`, or an integer past 64 bits.
    Decimal(Bytes),
    /// A number with an exponent.
    Float(f64),
    /// A string in the connection character set, escapes and adjacent strings resolved.
    Str(Bytes),
    /// `N'..'`: a string in utf8mb3.
    National(Bytes),
    /// `x'41'` and `0x41`: binary string, or a number in numeric context.
    Hex(Bytes),
    /// `b'101'` and `0b101`: bytes, big endian, no leading padding beyond whole bytes.
    Bit(Bytes),
    /// `DATE '..'`, and ODBC `{d '..'}`.
    Date(Bytes),
    /// `TIME '..'`.
    Time(Bytes),
    /// `TIMESTAMP '..'`.
    Timestamp(Bytes),
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnaryOp {
    Minus,
    Plus,
    /// `~`
    BitNot,
    /// `NOT` and `!`; they differ in precedence only.
    Not,
    /// `BINARY x`
    Binary,
}

/// Infix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    Or,
    Xor,
    And,
    Eq,
    /// `<=>`
    NullSafeEq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    BitOr,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Add,
    Sub,
    Mul,
    Div,
    /// `DIV`
    IntDiv,
    /// `%` and `MOD`
    Mod,
    BitXor,
    /// `||` under PIPES_AS_CONCAT
    Concat,
    /// `->`
    JsonExtract,
    /// `->>`
    JsonUnquote,
    /// `SOUNDS LIKE`
    SoundsLike,
}

/// `IS [NOT] TRUE | FALSE | UNKNOWN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truth {
    True,
    False,
    Unknown,
}

/// `= ANY (..)`, `> ALL (..)`; SOME is ANY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    Any,
    All,
}

/// Scope of a system variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarScope {
    Global,
    Session,
    Persist,
    PersistOnly,
}

/// Interval and EXTRACT units.
pub use omnibus_value::temporal::IntervalUnit;

/// The table part of a column reference.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Qualifier {
    pub schema: Option<Ident>,
    pub table: Ident,
}

/// `[[schema.]table.]column`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ColumnRef {
    pub qualifier: Option<Box<Qualifier>>,
    pub name: Ident,
}

impl ColumnRef {
    /// The table as written, if it was.
    pub fn table(&self) -> Option<&Ident> {
        self.qualifier.as_ref().map(|q| &q.table)
    }
    /// The schema as written, if it was.
    pub fn schema(&self) -> Option<&Ident> {
        self.qualifier.as_ref().and_then(|q| q.schema.as_ref())
    }
}

/// Target type of CAST and CONVERT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CastType {
    Signed,
    Unsigned,
    /// Length in bytes.
    Binary(Option<u32>),
    Char {
        length: Option<u32>,
        charset: Option<Ident>,
        /// The character set's collation that compares bytes.
        binary: bool,
    },
    /// NCHAR: utf8mb3.
    NChar(Option<u32>),
    Date,
    Time(u8),
    DateTime(u8),
    /// `AT TIME ZONE '..'` stood behind the operand, maybe with INTERVAL.
    DateTimeAt {
        zone: Box<str>,
        interval: bool,
        decimals: u8,
    },
    Decimal {
        precision: u8,
        scale: u8,
    },
    Float(Option<u8>),
    Double,
    Year,
    Json,
    /// `type ARRAY`: a multi-valued key part.
    Array(Box<CastType>),
    /// MariaDB's.
    Uuid,
    Inet4,
    Inet6,
}

/// A call by name. Special syntaxes with plain arguments (SUBSTRING FROM, POSITION IN, CURRENT_DATE
/// without parentheses, `x MOD y` excepted) arrive here too, with their arguments in call order:
/// `substring(s, from, for)`, `locate(needle, haystack)`.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCall {
    pub schema: Option<Ident>,
    /// Lower case, synonyms resolved: CURRENT_TIMESTAMP, LOCALTIME, LOCALTIMESTAMP are `now`;
    /// CURRENT_DATE `curdate`; CURRENT_TIME `curtime`; SUBSTR, MID `substring`; POSITION `locate`;
    /// SCHEMA `database`; SESSION_USER, SYSTEM_USER `user`.
    pub name: Ident,
    pub written: Written,
    pub args: Vec<Expr>,
}

/// The way that a call's name was written. Calls are equal whatever theirs is.
#[derive(Clone, Debug, Default)]
pub struct Written {
    /// The name, where it is not [`FunctionCall::name`].
    pub name: Option<Ident>,
    /// In quotes, or behind a database.
    pub quoted: bool,
}

impl PartialEq for Written {
    fn eq(&self, _: &Written) -> bool {
        true
    }
}

impl FunctionCall {
    /// A call of a built-in function.
    pub fn built_in(name: &str, args: Vec<Expr>) -> FunctionCall {
        FunctionCall { schema: None, name: name.into(), written: Written::default(), args }
    }

    /// Its name as messages have it.
    pub fn written_name(&self) -> &str {
        self.written.name.as_ref().unwrap_or(&self.name)
    }
}

/// Aggregates. `COUNT(*)` has `star`.
#[derive(Clone, Debug, PartialEq)]
pub struct Aggregate {
    pub kind: AggregateKind,
    pub distinct: bool,
    /// `COUNT(*)`: no arguments.
    pub star: bool,
    pub args: Vec<Expr>,
    /// GROUP_CONCAT only.
    pub order_by: Vec<OrderItem>,
    /// GROUP_CONCAT only; `None` is `,`.
    pub separator: Option<Bytes>,
    /// MariaDB: LIMIT inside GROUP_CONCAT.
    pub limit: Option<super::Limit>,
    pub over: Option<Over>,
}

/// The aggregate functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AggregateKind {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    BitAnd,
    BitOr,
    BitXor,
    /// STD, STDDEV, STDDEV_POP
    StdDevPop,
    StdDevSamp,
    /// VARIANCE, VAR_POP
    VarPop,
    VarSamp,
    GroupConcat,
    JsonArrayAgg,
    JsonObjectAgg,
}

/// OVER w, or OVER (...).
#[derive(Clone, Debug, PartialEq)]
pub enum Over {
    Name(Ident),
    Spec(WindowSpec),
}

/// A window.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct WindowSpec {
    pub base: Option<Ident>,
    pub partition_by: Vec<Expr>,
    pub order_by: Vec<OrderItem>,
    pub frame: Option<WindowFrame>,
}

/// ROWS or RANGE and its bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowFrame {
    /// ROWS; otherwise RANGE.
    pub rows: bool,
    pub start: FrameBound,
    pub end: Option<FrameBound>,
}

/// One bound.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameBound {
    CurrentRow,
    UnboundedPreceding,
    UnboundedFollowing,
    Preceding(Expr),
    Following(Expr),
}

/// ROW_NUMBER, RANK, LAG and their kind: functions that exist only with OVER.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowCall {
    /// Lower case.
    pub name: Ident,
    pub args: Vec<Expr>,
    /// IGNORE NULLS (the default is RESPECT NULLS).
    pub ignore_nulls: bool,
    pub over: Over,
}

/// `expr [NOT] LIKE pattern [ESCAPE x]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Like {
    pub expr: Expr,
    pub pattern: Expr,
    pub escape: Option<Expr>,
    pub negated: bool,
}

/// CASE with or without an operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    pub operand: Option<Expr>,
    /// (WHEN, THEN)
    pub whens: Vec<(Expr, Expr)>,
    pub otherwise: Option<Expr>,
}

/// `TRIM([LEADING|TRAILING|BOTH] [what] FROM s)`.
#[derive(Clone, Debug, PartialEq)]
pub struct Trim {
    pub side: TrimSide,
    pub what: Option<Expr>,
    pub from: Expr,
}

/// Where TRIM trims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrimSide {
    Both,
    Leading,
    Trailing,
}

/// MATCH (cols) AGAINST (x mode).
#[derive(Clone, Debug, PartialEq)]
pub struct MatchAgainst {
    pub columns: Vec<Expr>,
    pub against: Expr,
    pub boolean: bool,
    pub query_expansion: bool,
}

/// Any expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    Literal(Literal),
    /// `_charset'..'`, `_charset x'..'`: the literal is Str, Hex or Bit.
    Introduced(Box<(Ident, Literal)>),
    /// `?`, numbered from 0 within its statement.
    Param(u32),
    /// A variable of a stored program, by its number.
    Local(u32),
    Column(ColumnRef),
    /// `@name`, without the `@`.
    UserVar(Ident),
    /// `@@[scope.]name`; `name` may be `component.name`.
    SysVar {
        scope: Option<VarScope>,
        name: Ident,
    },
    /// `@name := value`
    AssignUserVar(Box<(Ident, Expr)>),
    Unary {
        op: UnaryOp,
        expr: Box<Expr>,
    },
    Binary {
        op: BinaryOp,
        left: Box<Expr>,
        right: Box<Expr>,
    },
    /// `(a, b)` and `ROW(a, b)`, at least two members.
    Row(Vec<Expr>),
    Between {
        expr: Box<Expr>,
        low: Box<Expr>,
        high: Box<Expr>,
        negated: bool,
    },
    In {
        expr: Box<Expr>,
        list: Vec<Expr>,
        negated: bool,
    },
    InSubquery {
        expr: Box<Expr>,
        query: Box<Query>,
        negated: bool,
    },
    Exists(Box<Query>),
    Subquery(Box<Query>),
    Quantified {
        op: BinaryOp,
        quantifier: Quantifier,
        left: Box<Expr>,
        query: Box<Query>,
    },
    Like(Box<Like>),
    Regexp {
        expr: Box<Expr>,
        pattern: Box<Expr>,
        negated: bool,
    },
    IsNull {
        expr: Box<Expr>,
        negated: bool,
    },
    IsTruth {
        expr: Box<Expr>,
        truth: Truth,
        negated: bool,
    },
    /// `expr MEMBER OF (array)`
    MemberOf {
        expr: Box<Expr>,
        array: Box<Expr>,
    },
    Function(Box<FunctionCall>),
    Aggregate(Box<Aggregate>),
    Window(Box<WindowCall>),
    Case(Box<Case>),
    Cast {
        expr: Box<Expr>,
        ty: Box<CastType>,
    },
    /// `CONVERT(expr USING charset)`; `CHAR(1,2 USING cs)` is this around the call.
    ConvertUsing {
        expr: Box<Expr>,
        charset: Ident,
    },
    Collate {
        expr: Box<Expr>,
        collation: Ident,
    },
    /// `EXTRACT(unit FROM expr)`
    Extract {
        unit: IntervalUnit,
        expr: Box<Expr>,
    },
    /// `expr + INTERVAL value unit`, `DATE_ADD`, `DATE_SUB`, `ADDDATE`, `SUBDATE`.
    DateArith {
        expr: Box<Expr>,
        value: Box<Expr>,
        unit: IntervalUnit,
        subtract: bool,
    },
    JsonValue(Box<JsonValue>),
    /// A unit as an argument: `TIMESTAMPADD(unit, ..)`, `TIMESTAMPDIFF(unit, ..)`.
    Unit(IntervalUnit),
    Trim(Box<Trim>),
    Match(Box<MatchAgainst>),
    /// `VALUES(col)` in ON DUPLICATE KEY UPDATE (MariaDB also `VALUE(col)`).
    Values(ColumnRef),
    /// `DEFAULT`, as a whole assigned value.
    Default,
    /// `DEFAULT(col)`
    DefaultOf(ColumnRef),
}

/// MySQL's `JSON_VALUE(doc, 'path' [RETURNING type] [.. ON EMPTY] [.. ON ERROR])`. MariaDB's is a function.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonValue {
    pub doc: Expr,
    pub path: Bytes,
    /// `None`: CHAR(512).
    pub ty: Option<CastType>,
    pub on_empty: JsonValueInstead,
    pub on_error: JsonValueInstead,
}

/// The value of JSON_VALUE for what is not there, or is no value of its type.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum JsonValueInstead {
    #[default]
    Null,
    Error,
    /// A literal.
    Default(Expr),
}
