//! A continuous archive of a server in an object store or a folder: its log, as it grows, and base backups. Data
//! directories can be made from it as of any transaction.
//!
//! The objects of an archive (`layout`):
//!
//! ```text
//! archive.json                                  whose log it is
//! log/binlog.000007/0000000000000000-81920-5ab3c0de    bytes of a file: offset, length, CRC-32
//! log/binlog.000007.json                        the file has ended: its length and checksum
//! backups/20260131T120000.000000Z/lsm/..        the files of a base backup
//! backups/20260131T120000.000000Z.json          what they are; written last
//! ```
//!
//! An object appears completely or not at all, and is never changed. So a killed program leaves a prefix of the log and
//! perhaps a backup without its list, which is ignored. Two programs that ship the same log do no harm: pieces may
//! overlap, because a log file is only ever appended to.
//!
//! [`ship`](Shipper) speaks to a running server, [`restore`](restore::restore) needs none. Blocking; each on its caller's thread,
//! with a small runtime for the store's requests.

mod base;
mod error;
mod http;
mod inventory;
mod layout;
mod note;
mod piece;
pub mod restore;
mod retain;
mod ship;
mod store;
mod until;

pub use error::ArchiveError;
pub use inventory::{Inventory, LogRange};
pub use layout::BaseBackup;
pub use note::{Note, Notes};
pub use ship::{ShipOptions, Shipper};
pub use store::Store;
pub use until::Until;
