//! The parts of a connection, one object for each thing that lives as long: no statements and no commands, which are `session`'s and
//! `admin`'s and are handed the parts that they touch.
//!
//! - `client`: the socket, the entry in the process list; with `replies`, `reply_floor`, `local_file`: what goes over it. - `login`: whose it is, with
//!   `access` and `rule`: what the account may do, `acting`: whose rights count in a program. - `admission`: its place among the connections. - `settings`: its variables as they act; `host`,
//!   `hints` and `assign`: what the SQL layer asks of variables and the server. - `evaluate`: values without a statement. - `told`: what
//!   the client is told of the session's state. - `sink`: rows to packets.

mod access;
mod acting;
mod admission;
mod assign;
mod client;
mod evaluate;
mod hints;
mod host;
mod local_file;
mod login;
mod replies;
mod reply_floor;
mod rule;
mod settings;
mod sink;
mod told;

pub(crate) use access::SessionAccess;
pub(crate) use admission::{ConnectionPlace, has_to_change_password};
pub(crate) use assign::{Assignment, Keep, check_target, checked_value, default_collation, is_special};
pub(crate) use client::{Client, Ended};
pub(crate) use evaluate::evaluate_plain;
pub(crate) use host::SessionShared;
pub(crate) use login::Login;
pub(crate) use replies::{Replied, status};
pub(crate) use settings::Settings;
pub(crate) use sink::{ReplySink, put_column, put_field};
