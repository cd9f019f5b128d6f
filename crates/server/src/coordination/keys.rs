//! The log's encryption as statements see it: on and off, and another master key.
//!
//! A rotation of the master key, and what a crash at each step leaves: 1. the new key is in the keyring, beside the others — files that begin from now
//! on have it; 2. the log's next file begins, so no file that is written to is under an old key; 3. the headers of finished files are
//! written anew; 4. the keyring forgets the others. Steps 3 and 4 are done by the next start, which finds more than one key.

use omnibus_encryption::{Encryption, KeyringError, Survey, TableEncryption};
use omnibus_log::LogHandle;
use omnibus_sql::{SqlError, SqlResult};
use parking_lot::Mutex;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct LogKeys {
    encryption: Arc<Encryption>,
    tables: Arc<TableEncryption>,
    /// One change at a time.
    changing: Mutex<()>,
    /// The last survey of the engines' folders.
    counted: Mutex<Option<(Instant, Survey)>>,
}

/// For so long folders are not looked at again: each file is opened for that.
const COUNTED_FOR: Duration = Duration::from_secs(5);
/// The same where nothing is encrypted.
const PLAIN_FOR: Duration = Duration::from_secs(60);

impl LogKeys {
    pub(super) fn new(encryption: Arc<Encryption>, tables: Arc<TableEncryption>) -> LogKeys {
        LogKeys { encryption, tables, changing: Mutex::new(()), counted: Mutex::new(None) }
    }

    /// One whose header cannot be read is not plain in any case.
    pub(super) fn is_encrypted(&self, path: &Path) -> bool {
        self.encryption.is_encrypted(path).unwrap_or(true)
    }

    /// SET GLOBAL binlog_encryption: files are what they were, and the next one begins now.
    pub(super) fn switch(&self, on: bool, rotate: impl FnOnce() -> SqlResult<()>) -> SqlResult<()> {
        let _one = self.changing.lock();
        if on == self.encryption.is_on() {
            return Ok(());
        }
        if on {
            match self.encryption.turn_on() {
                Ok(true) => {}
                Ok(false) => return Err(no_master_key()),
                Err(error) => return Err(keyring_failed(&error)),
            }
        } else {
            self.encryption.turn_off();
        }
        rotate()
    }

    /// Lines for SHOW STATUS: how many of the engines' files are encrypted, and what is in clear text.
    pub(super) fn counters(&self) -> Vec<(String, String)> {
        let mut counted = self.counted.lock();
        let lasts = if self.tables.has_key() { COUNTED_FOR } else { PLAIN_FOR };
        let survey = match *counted {
            Some((at, survey)) if at.elapsed() < lasts => survey,
            _ => {
                let survey = self.tables.survey().unwrap_or_else(|error| {
                    tracing::warn!(%error, "the engines' folders cannot be looked at");
                    Survey::default()
                });
                *counted = Some((Instant::now(), survey));
                survey
            }
        };
        let line = |name: &str, value: u64| (name.to_owned(), value.to_string());
        vec![
            line("Encryption_files", survey.encrypted),
            line("Encryption_plain_files", survey.plain),
            line("Encryption_plain_bytes", survey.plain_bytes),
        ]
    }

    /// ALTER INSTANCE ROTATE INNODB MASTER KEY.
    pub(super) fn rotate_tables(&self) -> SqlResult<()> {
        let _one = self.changing.lock();
        match self.tables.rotate() {
            Ok(true) => Ok(()),
            Ok(false) => Err(SqlError::no_master_key()),
            Err(error) => {
                tracing::error!("the tables' master key stays the one of before: {error}");
                Err(SqlError::no_master_key())
            }
        }
    }

    /// ALTER INSTANCE ROTATE BINLOG MASTER KEY.
    pub(super) fn rotate(&self, log: &LogHandle, rotate: impl FnOnce() -> SqlResult<()>) -> SqlResult<()> {
        let _one = self.changing.lock();
        if !self.encryption.is_on() {
            return Err(SqlError::new(
                3805,
                b"HY000",
                "Cannot rotate binary log master key when 'binlog-encryption' is off.",
            ));
        }
        self.encryption.new_master_key().map_err(|error| keyring_failed(&error))?;
        rotate()?;
        finish(&self.encryption, log).map_err(|error| {
            tracing::error!(
                "the master key was changed, but not all log files have it: {error}. The next start goes on"
            );
            SqlError::new(3788, b"HY000", format!("Failed to rotate some of the logs: {error}"))
        })
    }
}

/// Steps 3 and 4, at a start.
pub(crate) fn end_key_rotation(encryption: &Encryption, log: &LogHandle) {
    if encryption.has_old_keys()
        && let Err(error) = finish(encryption, log)
    {
        tracing::warn!("some log files stay under an old master key, which is kept: {error}");
    }
}

fn finish(encryption: &Encryption, log: &LogHandle) -> Result<(), Box<dyn std::error::Error>> {
    log.change_fronts(&|path| encryption.is_under_old_key(path), &|path| encryption.rewrap(path))?;
    Ok(encryption.forget_old_keys()?)
}

fn no_master_key() -> SqlError {
    SqlError::new(
        3794,
        b"HY000",
        "Unable to recover binlog encryption master key, please check if keyring plugin is loaded. The option keyring_file_data names the keyring.",
    )
}

fn keyring_failed(error: &KeyringError) -> SqlError {
    tracing::error!("{error}");
    SqlError::new(3791, b"HY000", format!("Failed to store key: {error}"))
}
