//! Definitions: from statements to catalog changes, each one transaction of its own.

mod affected_rows;
pub(crate) mod alter;
mod alter_edit;
mod background;
mod build;
mod copy;
pub(crate) mod database;
mod defaults;
mod exec;
mod expressions;
mod foreign_keys;
mod functional;
mod keys;
mod loaded;
mod not_built;
mod online;
mod primary_key;
mod refused;
pub(crate) mod sequence;
mod stored;
pub(crate) mod table;
pub(crate) mod temporary;
mod triggers;
pub(crate) mod view;

pub(crate) use build::{check_name, stated_collation};
pub(crate) use exec::{Change, Ddl, log_ddl};
pub use stored::load_catalog;
pub(crate) use stored::{parse_create, parse_definition};
pub(crate) use triggers::{trigger_text, triggers_of};
pub(crate) use view::{check_view_text, kept_definer, named_definer};
