//! Definitions: from statements to catalog changes, each one transaction of its own.

mod alter;
mod alter_edit;
mod background;
mod build;
mod copy;
mod counted;
mod database;
mod defaults;
mod exec;
mod expressions;
mod foreign_keys;
mod functional;
mod keys;
mod loaded;
mod not_built;
mod online;
mod refused;
mod sequence;
mod stored;
mod table;
mod temporary;
mod triggers;
mod view;

pub(crate) use build::check_name;
pub(crate) use exec::{Change, Ddl, log_ddl};
pub use stored::load_catalog;
pub(crate) use stored::{parse_create, parse_definition};
pub(crate) use triggers::{trigger_text, triggers_of};
pub(crate) use view::{kept_definer, named_definer};
