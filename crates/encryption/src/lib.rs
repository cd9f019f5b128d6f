//! Log files and engines' files encrypted at rest.
//!
//! [`TableEncryption`] is the file system of the engines' files; `tables` says how. The rest of this page is about logs.
//!
//! Log files have MySQL 8's form: a header of 512 bytes, and AES-256 in counter mode behind it.
//!
//! Each file has a password of its own, from which its key is derived. The header has the password, encrypted under the
//! server's master key, which a [`Keyring`] keeps in a file elsewhere. So a new master key needs new headers, and not
//! new files.
//!
//! [`Encryption`] is a file system over another one, for the log only: through it, files are in clear text and
//! positions exclude the header. A file that is not encrypted is opened unchanged, so a log may have both kinds, and
//! encryption costs nothing when it is off.
//!
//! **Spare space** stays zeros in the file itself: files are prepared before their key is known, and the key stream
//! must not appear at a log's end, where two copies of a disk would reveal it. Sixteen zeros in a row at a multiple of
//! sixteen therefore read as zeros. Encrypted bytes look like that with a chance of one in 2^128. Only the rest of the
//! last sixteen bytes is encrypted zeros ([`omnibus_disk::OpenFile::unit`]).
//!
//! Encryption does not authenticate, as in MySQL: a person who can write the file can change encrypted bytes unnoticed,
//! because checksums of events find accidents and not forgery.

mod file;
mod files;
mod header;
mod key;
mod keyring;
mod keyring_file;
mod scratch;
mod table_file;
mod table_header;
mod table_key;
mod tables;
mod xts;

pub use files::Encryption;
pub use header::{HEADER, Header, HeaderError, MAGIC};
pub use key::{FileKey, MasterKey, Password};
pub use keyring::{Keyring, KeyringError};
pub use table_header::{TABLE_HEADER, TABLE_MAGIC};
pub use table_key::{TABLE_KEY_FILE, damaged_table_key};
pub use tables::{REPLICA_PASSWORDS, Survey, TableEncryption, TableKeyError};
