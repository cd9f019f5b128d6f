//! Omnibus inside a Rust program: a MySQL-compatible server whose binary log is its only write-ahead log, started,
//! queried and stopped by function calls.
//!
//! ```
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("data");
//! let server = omnibus::Server::start(&omnibus::Options::new(path))?;
//! let mut session = server.session("root", "")?;
//! session.query("CREATE DATABASE shop")?;
//! session.query("CREATE TABLE shop.item (id INT PRIMARY KEY, name VARCHAR(50))")?;
//! session.query("INSERT INTO shop.item VALUES (1, 'tea')")?; // durable when it returns
//! assert_eq!(session.query("SELECT name FROM shop.item")?.text(0, 0), Some("tea"));
//! server.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/use/embedding.md` describes the duties of a program with an embedded server. The server itself is
//! `omnibus_server`; this crate has the interface for programs and opens no network port unless [`Options`] say so.

mod options;
mod server;
mod session;

pub use options::Options;
pub use server::{Server, StartError};
pub use session::{Error, Rows, Session};
