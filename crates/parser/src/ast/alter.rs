//! The actions of ALTER TABLE.

use bytes::Bytes;

use super::{
    Check, ColumnDef, DefaultValue, ForeignKey, Ident, IndexDef, ObjectName, OrderItem, TableOption,
};

/// Where a column goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ColumnPosition {
    #[default]
    Default,
    First,
    After(Ident),
}

/// One action.
#[derive(Clone, Debug, PartialEq)]
pub enum AlterAction {
    AddColumn {
        column: Box<ColumnDef>,
        position: ColumnPosition,
        if_not_exists: bool,
    },
    DropColumn {
        name: Ident,
        if_exists: bool,
    },
    ModifyColumn {
        column: Box<ColumnDef>,
        position: ColumnPosition,
        if_exists: bool,
    },
    ChangeColumn {
        old: Ident,
        column: Box<ColumnDef>,
        position: ColumnPosition,
        if_exists: bool,
    },
    RenameColumn {
        old: Ident,
        new: Ident,
    },
    SetDefault {
        column: Ident,
        default: DefaultValue,
    },
    DropDefault {
        column: Ident,
    },
    SetColumnVisibility {
        column: Ident,
        invisible: bool,
    },
    AddIndex(Box<IndexDef>),
    DropIndex {
        name: Ident,
        if_exists: bool,
    },
    DropPrimaryKey,
    RenameIndex {
        old: Ident,
        new: Ident,
    },
    SetIndexVisibility {
        name: Ident,
        invisible: bool,
    },
    AddForeignKey(Box<ForeignKey>),
    DropForeignKey {
        name: Ident,
        if_exists: bool,
    },
    AddCheck(Box<Check>),
    DropCheck {
        name: Ident,
    },
    /// DROP CONSTRAINT: whichever kind has the name.
    DropConstraint {
        name: Ident,
        if_exists: bool,
    },
    AlterCheck {
        name: Ident,
        enforced: bool,
    },
    /// As `AlterCheck`, of a constraint of any kind.
    AlterConstraint {
        name: Ident,
        enforced: bool,
    },
    Rename(ObjectName),
    Option(TableOption),
    ConvertCharset {
        charset: Option<Ident>,
        collation: Option<Ident>,
    },
    OrderBy(Vec<OrderItem>),
    DisableKeys,
    EnableKeys,
    /// FORCE: rebuild.
    Force,
    DiscardTablespace,
    ImportTablespace,
    /// Any partition clause, as text.
    Partition(Bytes),
}
