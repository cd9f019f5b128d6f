//! Schemas, tables, columns and indexes: what exists now.
//!
//! A [`Catalog`] never changes. DDL makes a new one and [`CatalogCell`] swaps it in when the DDL's
//! commit is ordered, so a statement that took its `Arc` sees one catalog from start to end and
//! pays no lock per name. Persisted as rows of space 1 (see `persist`), written through the DDL
//! transaction's own write set.

pub mod charset;
pub mod codec;
mod column;
mod definers;
mod engine;
mod event;
mod expression;
mod foreign_key;
pub mod histogram;
pub(crate) mod histogram_data;
mod index;
pub(crate) mod memory;
pub mod persist;
mod program;
pub(crate) mod rowid;
mod schema;
pub mod sequence;
mod show_create;
pub mod statistics;
mod sys_routines;
mod table;
mod usage;
mod view;

pub use column::{Column, ColumnDefault};
pub(crate) use column::{HIDDEN, NOT_FIXED};
pub use engine::{DEFAULT_ENGINE, is_default_engine, is_foreign_engine, is_own_engine};
pub use event::{EventDef, EventTimes, local_text};
pub use expression::{Check, Generated, StoredExpr};
pub use foreign_key::{Child, ForeignKey, ReferenceAction};
pub use histogram::Histogram;
pub use index::{Index, IndexKind, IndexPart};
pub use omnibus_value::literal::{in_definition as quote_string, name as quote_ident};
pub use program::{ProgramDef, ProgramKey, program_key};
pub(crate) use program::{of_routine, of_trigger};
pub use schema::{Catalog, CatalogCell, Schema};
pub use show_create::{
    Reader, comment_text, create_text, defaults_text, engine_text, foreign_key_text, implied,
    show_create_table, show_table, type_text,
};
pub use statistics::{IndexStatistics, RowSample, Statistics};
pub use table::{Table, TableDef, TableState, first_again, first_double, same_name};
pub use usage::{Usage, Uses};
pub use view::{Definer, View, ViewDef};
pub(crate) use view::{parse_view, unreadable};
