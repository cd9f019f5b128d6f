//! [`LogAdmin`] over the coordinator.

use super::backup::backup;
use super::counters;
use super::events;
use super::failure::FailureWatch;
use super::keys::LogKeys;
use super::purge::{PurgeFailure, Wish, hindrance, purge};
use super::variables::{Applied, LOG_VARIABLES, LogLimits, apply};
use crate::backup::{BackupInfo, BackupTarget};
use crate::errors;
use crate::log_admin::{LogAdmin, LogEvent, LogFile, LogStatus};
use crate::sysvars::VarValue;
use omnibus_commit::{CommitError, Coordinator, ResetLogError};
use omnibus_encryption::{Encryption, TableEncryption};
use omnibus_engine::CommitNo;
use omnibus_format::Dialect;
use omnibus_log::{FileEntry, FileSeq, LogHandle, PurgeError, PurgeLimit};
use omnibus_sql::{KillFlag, SqlError, SqlResult};
use parking_lot::Mutex;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The source that `gtid_purged` was read from: the oldest file, and a number that changes otherwise.
type PurgedSource = (Option<FileSeq>, u64);

/// The log's administration. Any thread.
pub struct CoordinatorAdmin {
    coordinator: Arc<Coordinator>,
    limits: Arc<LogLimits>,
    failures: Arc<FailureWatch>,
    /// `gtid_purged`, as it was read last.
    purged: Mutex<Option<(PurgedSource, String)>>,
    /// One backup at a time.
    backing_up: Mutex<()>,
    keys: LogKeys,
}

impl CoordinatorAdmin {
    /// Administers `coordinator`; `limits` are shared with the housekeeping.
    #[must_use]
    pub fn new(
        coordinator: Arc<Coordinator>,
        limits: Arc<LogLimits>,
        failures: Arc<FailureWatch>,
        encryption: Arc<Encryption>,
        tables: Arc<TableEncryption>,
    ) -> CoordinatorAdmin {
        CoordinatorAdmin {
            coordinator,
            limits,
            failures,
            purged: Mutex::new(None),
            backing_up: Mutex::new(()),
            keys: LogKeys::new(encryption, tables),
        }
    }

    /// At start-up: makes the values of all variables act that are the log's. The first file has the
    /// checksum that the log was started with.
    pub fn apply_all(&self, value_of: impl Fn(&str) -> Option<VarValue>) {
        for name in LOG_VARIABLES {
            if let Some(value) = value_of(name) {
                apply(&self.coordinator, &self.limits, &self.failures, name, &value);
            }
        }
    }

    /// A reader stops it early with a warning, which is no failure: it is what a replica that is behind does.
    fn purge(&self, wish: Wish) -> SqlResult<Option<SqlError>> {
        let purged = purge(&self.coordinator, wish).map_err(purge_error)?;
        let Some(why) = hindrance(&self.coordinator, &purged) else { return Ok(None) };
        tracing::warn!("PURGE BINARY LOGS stopped early: {why}");
        match purged.limit {
            Some(PurgeLimit::Reader(_)) => Ok(Some(SqlError::new(1867, b"HY000", why))),
            _ => {
                let message = format!("A purgeable log is in use, will not purge: {why}");
                Err(SqlError::new(1378, b"HY000", message))
            }
        }
    }
}

impl LogAdmin for CoordinatorAdmin {
    fn coordinator(&self) -> Option<&Arc<Coordinator>> {
        Some(&self.coordinator)
    }

    fn dialect(&self) -> Dialect {
        self.coordinator.log().dialect()
    }

    fn gtid_executed(&self) -> String {
        self.coordinator.gtids().state().to_string()
    }

    fn gtid_executed_at(&self, number: u64) -> String {
        self.coordinator.gtids().state_at(CommitNo(number)).to_string()
    }

    fn gtid_purged(&self) -> String {
        let log = self.coordinator.log();
        let source = (log.files().oldest(), log.gtid_generation());
        let mut cached = self.purged.lock();
        if let Some((of, text)) = &*cached
            && *of == source
        {
            return text.clone();
        }
        match self.coordinator.gtids().purged() {
            Ok(set) => {
                let text = set.to_string();
                *cached = Some((source, text.clone()));
                text
            }
            Err(error) => {
                tracing::warn!(%error, "gtid_purged: the oldest log file can not be read");
                String::new()
            }
        }
    }

    fn status(&self) -> LogStatus {
        let files = self.coordinator.log().files();
        let end = files.durable_end().get();
        LogStatus { file: files.names().log(end.file), position: end.offset.0 }
    }

    fn handle(&self) -> Option<LogHandle> {
        Some(self.coordinator.log().files().clone())
    }

    fn files(&self) -> SqlResult<Vec<LogFile>> {
        let list = self.coordinator.log().files().list();
        let folder = self.coordinator.log().files().path();
        let describe = |entry: FileEntry| LogFile {
            encrypted: self.keys.is_encrypted(&folder.join(&entry.name)),
            name: entry.name,
            size: entry.size,
        };
        Ok(list.into_iter().map(describe).collect())
    }

    fn events(
        &self,
        file: Option<&str>,
        from: u64,
        each: &mut dyn FnMut(LogEvent) -> SqlResult<bool>,
    ) -> SqlResult<()> {
        events::events(self.coordinator.log().files(), file, from, each)
    }

    fn rotate(&self) -> SqlResult<()> {
        let active = self.coordinator.log().files().list().last().map(|entry| entry.file);
        if let Some(active) = active.filter(|active| !active.has_next_in_turn()) {
            return Err(numbers_used_up(active));
        }
        self.coordinator.rotate().map_err(|error| commit_error(&error))?;
        // Whoever asked may read the finished file at once: its spare tail must be gone. Commits do not wait.
        self.coordinator.log().files().wait_for_background();
        Ok(())
    }

    fn rotate_master_key(&self) -> SqlResult<()> {
        self.keys.rotate(self.coordinator.log().files(), || self.rotate())
    }

    fn rotate_table_key(&self) -> SqlResult<()> {
        self.keys.rotate_tables()
    }

    fn backup_to(&self, target: &BackupTarget, kill: &KillFlag) -> SqlResult<BackupInfo> {
        let Some(_one) = self.backing_up.try_lock() else {
            return Err(errors::no_backup(&"another backup is being made"));
        };
        let started = std::time::Instant::now();
        let go_on = || kill.check().map_err(|_| std::io::Error::from(ErrorKind::Interrupted));
        let info = backup(&self.coordinator, target, &go_on).map_err(|error| {
            let failed = errors::no_backup(&error);
            kill.check().err().unwrap_or(failed)
        })?;
        let (path, milliseconds) = (target.name().display(), started.elapsed().as_millis() as u64);
        tracing::info!(%path, bytes = info.bytes(), milliseconds, "made a backup");
        Ok(info)
    }

    fn purge_to(&self, file: &str) -> SqlResult<Option<SqlError>> {
        let seq = self.coordinator.log().files().names().parse(file).ok_or_else(unknown_file)?;
        self.purge(Wish::To(seq))
    }

    fn purge_before(&self, unix: i64) -> SqlResult<Option<SqlError>> {
        let since = Duration::from_secs(u64::try_from(unix).unwrap_or(0));
        match SystemTime::UNIX_EPOCH.checked_add(since) {
            Some(time) => self.purge(Wish::Before(time)),
            None => Err(SqlError::wrong_arguments("PURGE LOGS BEFORE")),
        }
    }

    fn reset(&self, to: Option<u64>) -> SqlResult<()> {
        let first = u32::try_from(to.unwrap_or(1)).map_err(|_| bad_number(to))?;
        let result = self.coordinator.reset_log(FileSeq(first));
        *self.purged.lock() = None;
        result.map_err(|error| match error {
            ResetLogError::Commit(error) => commit_error(&error),
            ResetLogError::Engine(error) => error.into(),
            ResetLogError::Files(omnibus_commit::ResetError::BadNumber(_)) => bad_number(to),
            other => fatal_purge(&other),
        })
    }

    fn set_variable(&self, name: &str, value: &VarValue) -> SqlResult<()> {
        if name == "binlog_encryption" {
            return self.keys.switch(value.as_bool(), || blocking(|| self.rotate()));
        }
        match apply(&self.coordinator, &self.limits, &self.failures, name, value) {
            Applied::Done => Ok(()),
            Applied::Rotate => blocking(|| self.rotate()),
        }
    }

    fn counters(&self) -> Vec<(String, String)> {
        let mut lines = counters::lines(&self.coordinator, &self.limits);
        lines.extend(blocking(|| self.keys.counters()));
        lines
    }
}

/// Lets the runtime's other tasks go on while a file is switched, if there is a runtime that can.
fn blocking<R>(work: impl FnOnce() -> R) -> R {
    use tokio::runtime::{Handle, RuntimeFlavor};
    match Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => crate::net::blocking(work),
        _ => work(),
    }
}

fn unknown_file() -> SqlError {
    SqlError::new(1373, b"HY000", "Target log not found in binlog index")
}

fn bad_number(to: Option<u64>) -> SqlError {
    let number = to.unwrap_or(1);
    SqlError::new(
        3567,
        b"HY000",
        format!(
            "The requested value '{number}' for the next binary log index is out of range. Please use a value between '1' and '{}'.",
            FileSeq::LAST_IN_TURN.0 - 1
        ),
    )
}

fn numbers_used_up(active: FileSeq) -> SqlError {
    let message = format!(
        "Can't begin a log file behind number {}: what numbers are left are for starts of the server. When replicas and archives have what \
         they need, RESET BINARY LOGS AND GTIDS begins again with 1",
        active.0
    );
    SqlError::new(1098, b"HY000", message)
}

fn fatal_purge(error: &dyn std::fmt::Display) -> SqlError {
    tracing::error!("the log files could not be removed: {error}");
    SqlError::new(1377, b"HY000", format!("Fatal error during log purge: {error}"))
}

fn purge_error(error: PurgeFailure) -> SqlError {
    match error {
        PurgeFailure::Purge(PurgeError::NoSuchFile(_)) => unknown_file(),
        PurgeFailure::Engine(error) => error.into(),
        other => fatal_purge(&other),
    }
}

fn commit_error(error: &CommitError) -> SqlError {
    match error {
        CommitError::ShuttingDown => SqlError::server_shutdown(),
        other => SqlError::new(1598, b"HY000", format!("Binary logging not possible. Message: {other}")),
    }
}
