//! Log files encrypted at rest, in MySQL 8's form: a header of 512 bytes, and AES-256 in counter mode behind it.
//!
//! Each file has a password of its own, from which its key is made; the header has the password, encrypted under the server's
//! master key, which a [`Keyring`] keeps in a file elsewhere. So another master key means another header, and not another file.
//!
//! [`Encryption`] is a file system over another one, for the log and nothing else: whoever reads and writes through it
//! sees files in clear text, and positions without the header. A file that is not encrypted is opened as it is, so a log may have both,
//! and one without encryption costs nothing.
//!
//! **Spare space** stays zeros in the file itself: files are prepared before anyone knows their key, and what is written over again and again
//! at a log's end must not be the key stream, which two copies of a disk would show. Sixteen zeros in a row at a multiple
//! of sixteen therefore read as zeros. No encrypted bytes look like that (one chance in 2^128). Only the rest of
//! the last sixteen bytes is encrypted zeros ([`omnibus_disk::OpenFile::unit`]).
//!
//! What is encrypted can be changed unnoticed by who can write the file: checksums of events find accidents, not forgery. As in MySQL.

mod file;
mod files;
mod header;
mod key;
mod keyring;
mod scratch;

pub use files::Encryption;
pub use header::{HEADER, Header, HeaderError, MAGIC};
pub use key::{FileKey, MasterKey, Password};
pub use keyring::{Keyring, KeyringError};
