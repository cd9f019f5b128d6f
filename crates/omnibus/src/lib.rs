//! Omnibus inside your program: a MySQL-compatible server whose binary log is its only write-ahead log, started, asked and
//! stopped by calls.
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
//! `docs/use/embedding.md` says what an embedded server leaves to its program. The server itself is `omnibus_server`; here is what a
//! program needs of it, and nothing of a network: [`Options`] turn that on.

mod options;
mod server;
mod session;

pub use options::Options;
pub use server::{Server, StartError};
pub use session::{Error, Rows, Session};
