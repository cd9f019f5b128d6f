//! Options for the keys of encrypted logs.

use clap::Args;
use omnibus_encryption::{Encryption, Keyring, TableEncryption};
use omnibus_log::Disk;
use std::path::{Path, PathBuf};

/// For commands that read log files.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct KeyringArgs {
    /// The keyring of the server that encrypted the log or the tables (binlog_encryption, default_table_encryption).
    #[arg(long, value_name = "FILE")]
    keyring_file_data: Option<PathBuf>,
}

impl KeyringArgs {
    /// `disk`, where encrypted logs are read in clear text.
    pub(crate) fn over(&self, disk: Disk) -> Result<Disk, String> {
        Ok(Disk::new(Encryption::over(disk, self.keyring()?)))
    }

    /// `disk`, where a data directory's encrypted tables are read in clear text.
    pub(crate) fn tables(&self, datadir: &Path, disk: Disk) -> Result<Disk, String> {
        let tables = TableEncryption::open(disk, datadir, self.keyring()?, false);
        Ok(Disk::new(tables.map_err(|error| error.to_string())?))
    }

    fn keyring(&self) -> Result<Option<Keyring>, String> {
        let keyring = self.keyring_file_data.as_ref().map(|path| match path.exists() {
            true => Keyring::open(path, "").map_err(|error| error.to_string()),
            false => Err(format!("there is no keyring {}", path.display())),
        });
        keyring.transpose()
    }
}
