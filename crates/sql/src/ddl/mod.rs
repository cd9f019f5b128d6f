//! Definitions: from statements to catalog changes, each one transaction of its own.

mod alter;
mod alter_edit;
mod build;
mod copy;
mod database;
mod defaults;
mod exec;
mod expressions;
mod foreign_keys;
mod keys;
mod show_create;
mod stored;
mod table;
mod temporary;
mod types;

pub(crate) use exec::Ddl;
pub use show_create::{foreign_key_text, quote_ident, quote_string, show_create_table, type_text};
pub(crate) use stored::{parse_create, parse_definition};
