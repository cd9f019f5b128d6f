//! Definitions: databases, tables, columns, indexes.

use bytes::Bytes;

use super::{AlterAction, Expr, Ident, ObjectName, Query};

/// CREATE and ALTER DATABASE.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseOptions {
    pub charset: Option<Ident>,
    pub collation: Option<Ident>,
    pub encryption: Option<Bytes>,
    pub read_only: Option<bool>,
    /// MariaDB.
    pub comment: Option<Bytes>,
}

/// CREATE DATABASE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateDatabase {
    /// MariaDB.
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub name: Ident,
    pub options: DatabaseOptions,
}

/// ALTER DATABASE; no name is the current one.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterDatabase {
    pub name: Option<Ident>,
    pub options: DatabaseOptions,
}

/// Column types as written; what they mean is `omnibus_value::ColumnKind`'s business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeName {
    TinyInt,
    SmallInt,
    MediumInt,
    Int,
    BigInt,
    Decimal,
    Float,
    Double,
    Bit,
    /// BOOL, BOOLEAN: TINYINT(1).
    Bool,
    /// BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE.
    Serial,
    Year,
    Date,
    Time,
    DateTime,
    Timestamp,
    Char,
    VarChar,
    Binary,
    VarBinary,
    TinyText,
    Text,
    MediumText,
    LongText,
    TinyBlob,
    Blob,
    MediumBlob,
    LongBlob,
    Enum,
    Set,
    Json,
    Geometry,
    Point,
    LineString,
    Polygon,
    MultiPoint,
    MultiLineString,
    MultiPolygon,
    GeometryCollection,
    /// MariaDB types, recognised so that they can be refused by name.
    Uuid,
    Inet4,
    Inet6,
    Vector,
}

/// A column type with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataType {
    pub name: TypeName,
    /// The first number in parentheses: width, precision, length or fractional digits.
    pub length: Option<u32>,
    /// The second.
    pub scale: Option<u32>,
    pub unsigned: bool,
    pub zerofill: bool,
    /// ENUM and SET members, raw bytes in the connection character set.
    pub labels: Vec<Bytes>,
    /// CHARACTER SET; NCHAR and NATIONAL give utf8mb3, BYTE gives binary, ASCII latin1, UNICODE ucs2.
    pub charset: Option<Ident>,
    /// COLLATE as part of the type (before or after other attributes).
    pub collation: Option<Ident>,
    /// BINARY attribute: the `_bin` collation of the character set.
    pub binary: bool,
    /// The collation is that of what the column was made of by CREATE TABLE .. SELECT, and nobody has written it.
    pub implied: bool,
}

impl DataType {
    /// The type of a name alone, without parameters and attributes.
    #[must_use]
    pub fn of(name: TypeName) -> DataType {
        DataType {
            name,
            length: None,
            scale: None,
            unsigned: false,
            zerofill: false,
            labels: Vec::new(),
            charset: None,
            collation: None,
            binary: false,
            implied: false,
        }
    }
}

/// The value of `DEFAULT`.
#[derive(Clone, Debug, PartialEq)]
pub enum DefaultValue {
    /// A literal, a signed number, or `now(n)`.
    Value(Expr),
    /// `DEFAULT (expr)`.
    Expression(Expr),
    /// No value, not even NULL: DROP DEFAULT.
    Dropped,
}

/// A generated column.
#[derive(Clone, Debug, PartialEq)]
pub struct Generated {
    pub expr: Expr,
    /// STORED (or MariaDB PERSISTENT).
    pub stored: bool,
}

/// A column definition.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDef {
    pub name: Ident,
    pub ty: DataType,
    /// `None`: neither NULL nor NOT NULL written.
    pub nullable: Option<bool>,
    pub default: Option<DefaultValue>,
    /// ON UPDATE CURRENT_TIMESTAMP(n).
    pub on_update: Option<u8>,
    pub auto_increment: bool,
    pub primary_key: bool,
    pub unique: bool,
    pub comment: Option<Bytes>,
    pub generated: Option<Generated>,
    /// INVISIBLE: Some(true); VISIBLE: Some(false).
    pub invisible: Option<bool>,
    pub checks: Vec<Check>,
    /// Inline REFERENCES: parsed and ignored, as MySQL 8 does.
    pub references: Option<Box<References>>,
    pub srid: Option<u32>,
}

/// CHECK (expr).
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    pub name: Option<Ident>,
    pub expr: Expr,
    /// Where it stands in the statement: unnamed ones are numbered in this order.
    pub at: u32,
    pub enforced: bool,
}

/// A key part: a column with an optional prefix length, or an expression.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyPart {
    pub target: KeyTarget,
    pub descending: bool,
}

/// The column or expression of a key part.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyTarget {
    Column { name: Ident, prefix: Option<u32> },
    Expression(Expr),
}

/// PRIMARY, UNIQUE, INDEX, FULLTEXT, SPATIAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexKind {
    Primary,
    Unique,
    Index,
    FullText,
    Spatial,
}

/// BTREE or HASH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexAlgorithm {
    BTree,
    Hash,
    RTree,
}

/// An index definition, in CREATE TABLE, ALTER TABLE and CREATE INDEX.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexDef {
    pub kind: IndexKind,
    /// MariaDB IF NOT EXISTS.
    pub if_not_exists: bool,
    /// CONSTRAINT name, for PRIMARY and UNIQUE.
    pub constraint: Option<Ident>,
    pub name: Option<Ident>,
    pub parts: Vec<KeyPart>,
    pub algorithm: Option<IndexAlgorithm>,
    pub comment: Option<Bytes>,
    pub invisible: bool,
    pub key_block_size: Option<u64>,
    pub parser: Option<Ident>,
    /// There for a foreign key that has no other, as our own definitions say.
    pub of_foreign_key: bool,
}

/// The action of a foreign key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceAction {
    Restrict,
    Cascade,
    SetNull,
    NoAction,
    SetDefault,
}

/// REFERENCES t (cols) ...
#[derive(Clone, Debug, PartialEq)]
pub struct References {
    pub table: ObjectName,
    pub columns: Vec<Ident>,
    pub on_delete: Option<ReferenceAction>,
    pub on_update: Option<ReferenceAction>,
}

/// A foreign key.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignKey {
    pub constraint: Option<Ident>,
    /// The index name, if written.
    pub name: Option<Ident>,
    pub columns: Vec<Ident>,
    pub references: References,
}

/// A table option, in the order written (the last of a kind wins).
#[derive(Clone, Debug, PartialEq)]
pub enum TableOption {
    Engine(Ident),
    Charset(Ident),
    Collate(Ident),
    Comment(Bytes),
    AutoIncrement(u64),
    RowFormat(Ident),
    KeyBlockSize(u64),
    /// The option that makes a table a sequence: never written so.
    Sequence,
    /// Any other `NAME = value`, kept as text; accepted without effect.
    Other {
        name: Ident,
        value: Bytes,
    },
}

/// CREATE SEQUENCE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateSequence {
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub name: ObjectName,
    pub options: SequenceOptions,
    pub table: Vec<TableOption>,
}

/// ALTER SEQUENCE.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterSequence {
    pub if_exists: bool,
    pub name: ObjectName,
    pub options: SequenceOptions,
}

/// The options of a sequence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SequenceOptions {
    pub start: Option<i64>,
    /// `Some(None)`: NO MINVALUE.
    pub minimum: Option<Option<i64>>,
    pub maximum: Option<Option<i64>>,
    pub increment: Option<i64>,
    /// 0 is NOCACHE.
    pub cache: Option<u64>,
    pub cycle: Option<bool>,
    /// ALTER only; `Some(None)`: from where it started.
    pub restart: Option<Option<i64>>,
}

/// CREATE TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateTable {
    /// MariaDB.
    pub or_replace: bool,
    pub temporary: bool,
    pub if_not_exists: bool,
    pub name: ObjectName,
    /// CREATE TABLE .. LIKE; everything below is then empty.
    pub like: Option<ObjectName>,
    pub columns: Vec<ColumnDef>,
    pub indexes: Vec<IndexDef>,
    pub foreign_keys: Vec<ForeignKey>,
    pub checks: Vec<Check>,
    pub options: Vec<TableOption>,
    /// PARTITION BY and what follows it, as text.
    pub partition: Option<Bytes>,
    /// CREATE TABLE .. SELECT.
    pub query: Option<Box<Query>>,
    pub on_duplicate: super::OnDuplicate,
}

/// CREATE INDEX.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateIndex {
    pub or_replace: bool,
    pub table: ObjectName,
    /// `name` is always present.
    pub index: IndexDef,
    pub online: OnlineOptions,
}

/// ALGORITHM= and LOCK=: what a definition may cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnlineOptions {
    pub algorithm: Option<Ident>,
    pub lock: Option<Ident>,
}

/// DROP INDEX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropIndex {
    pub if_exists: bool,
    pub name: Ident,
    pub table: ObjectName,
    pub online: OnlineOptions,
}

/// DROP TABLE and DROP VIEW.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropTable {
    pub temporary: bool,
    pub if_exists: bool,
    pub tables: Vec<ObjectName>,
}

/// ALTER TABLE.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    pub if_exists: bool,
    pub ignore: bool,
    pub table: ObjectName,
    pub actions: Vec<AlterAction>,
    pub online: OnlineOptions,
}
