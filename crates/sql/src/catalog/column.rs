//! A column: its name, type, default and attributes.

use super::{Generated, StoredExpr};
use omnibus_value::{ColumnKind, ColumnType, Value};
use std::sync::Arc;

/// How the names of hidden columns begin.
pub(crate) const HIDDEN: &str = "!hidden!";

/// The decimals of a FLOAT or DOUBLE without (M,D).
pub(crate) const NOT_FIXED: u8 = 31;

/// The value of a column that INSERT does not name.
#[derive(Clone, Debug, Default)]
pub enum ColumnDefault {
    /// No DEFAULT clause on a NOT NULL column, or DROP DEFAULT: error 1364 when strict.
    #[default]
    None,
    /// A constant, already cast to the column's type. NULL for nullable columns without a clause.
    Value(Value),
    /// CURRENT_TIMESTAMP with the column's own precision.
    CurrentTimestamp,
    /// `DEFAULT (expression)`.
    Expression(StoredExpr),
}

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name as created; compared without case.
    pub name: Arc<str>,
    /// Its type.
    pub ty: ColumnType,
    /// Whether NULL is allowed.
    pub nullable: bool,
    /// The default.
    pub default: ColumnDefault,
    /// The expression that its values are computed from, if nobody may set them.
    pub generated: Option<Generated>,
    /// ON UPDATE CURRENT_TIMESTAMP.
    pub on_update_now: bool,
    /// AUTO_INCREMENT.
    pub auto_increment: bool,
    /// INVISIBLE: not part of `*`.
    pub invisible: bool,
    /// COMMENT.
    pub comment: Arc<str>,
    /// Whether CHARACTER SET or COLLATE was written for it, for SHOW CREATE TABLE.
    pub explicit_collation: bool,
}

impl Column {
    /// One that belongs to no table: a variable's, or of a table that is made as it is read.
    #[must_use]
    pub fn free(name: &str, ty: ColumnType) -> Column {
        Column {
            name: Arc::from(name),
            ty,
            nullable: true,
            default: ColumnDefault::None,
            generated: None,
            on_update_now: false,
            auto_increment: false,
            invisible: false,
            comment: Arc::from(""),
            explicit_collation: false,
        }
    }

    /// Whether it may get a value that an expression of the definition gives.
    #[must_use]
    pub fn is_computed(&self) -> bool {
        self.generated.is_some() || matches!(self.default, ColumnDefault::Expression(_))
    }

    /// Whether it is there for an index over an expression alone: nobody sees it, or may name it. Such columns are the last.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.invisible && self.generated.is_some() && self.name.starts_with(HIDDEN)
    }

    /// Its name, or of a hidden one the expression that it is there for.
    #[must_use]
    pub fn shown(&self) -> &str {
        match &self.generated {
            Some(generated) if self.is_hidden() => &generated.expr.text,
            _ => &self.name,
        }
    }

    /// Whether values are byte or character strings of any kind.
    #[must_use]
    pub fn is_string(&self) -> bool {
        use ColumnKind as K;
        let kind = self.ty.kind;
        kind.is_lob() || matches!(kind, K::Char | K::VarChar | K::Binary | K::VarBinary)
    }

    /// Whether it is BLOB or TEXT of any length, JSON or GEOMETRY: stored with a length of more
    /// than two bytes, usable as a key only with a prefix length.
    #[must_use]
    pub fn is_blob(&self) -> bool {
        self.ty.kind.is_lob() || matches!(self.ty.kind, ColumnKind::Json | ColumnKind::Geometry)
    }
}
