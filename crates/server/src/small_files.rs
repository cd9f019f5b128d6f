//! The small files of a data directory that have a checksum, all of them: whether they can be read.

use crate::auth::RSA_KEY;
use crate::net::TlsFiles;
use crate::sealed;
use omnibus_disk::Disk;
use std::path::Path;

/// The small files of a data directory that can't be read, and why. `rows` is where encrypted tables are read; without it no file is
/// looked at that is encrypted as they are. For `omnibus check`.
#[must_use]
pub fn damaged_small_files(datadir: &Path, rows: Option<&Disk>) -> Vec<String> {
    let identity = crate::datadir::check(datadir);
    let passwords = rows.and_then(|rows| crate::replica::check_passwords(rows, datadir).err());
    let passwords = passwords.map(|error| error.to_string());
    let variables = crate::sysvars::persisted::read(datadir).err();
    let keys = TlsFiles::check(datadir).into_iter().chain(sealed::damage(&datadir.join(RSA_KEY)));
    let table_key = omnibus_encryption::damaged_table_key(&Disk::default(), datadir);
    let table_key = table_key.unwrap_or_else(|error| Some(error.to_string()));
    identity
        .into_iter()
        .map(|error| error.to_string())
        .chain(passwords)
        .chain(variables)
        .chain(keys)
        .chain(table_key)
        .collect()
}
