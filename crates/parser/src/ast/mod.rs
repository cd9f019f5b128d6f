//! The statement tree: what the parser produces and everything above consumes.
//!
//! Not a lossless tree: comments, white space and the case of keywords are gone. What the server
//! needs from the source text is kept as [`bytes::Bytes`] slices of it (result column names, string literals), so
//! a tree owns what it refers to and may be cached. String literals are raw bytes in the client's
//! character set, after escapes; identifiers are UTF-8.
//!
//! Names are MySQL's grammar words, so most fields need no sentence of their own.
#![allow(missing_docs, reason = "fields and variants are named by the grammar's own words")]

mod admin;
mod alter;
mod ddl;
mod dml;
mod event;
mod expr;
mod handler;
mod kind;
mod name;
mod program;
mod select;
mod set;
mod show;
mod statement;
mod traits;
mod truth;
mod user;
mod view;
mod words;

pub use admin::*;
pub use alter::*;
pub use ddl::*;
pub use dml::*;
pub use event::*;
pub use expr::*;
pub use handler::*;
pub use name::*;
pub use program::*;
pub use select::*;
pub use set::*;
pub use show::*;
pub use statement::*;
pub use traits::*;
pub use truth::*;
pub use user::*;
pub use view::*;
