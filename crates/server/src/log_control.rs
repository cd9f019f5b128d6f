//! The log's administration on the commit coordinator.

use crate::log_admin::{LogAdmin, LogEvent, LogFile, LogStatus};
use crate::sysvars::VarValue;
use omnibus_commit::{Coordinator, Histogram};
use omnibus_format::{Checksum, describe};
use omnibus_log::{FileSeq, LogOffset, Next, PurgeLimit, Purged};
use omnibus_sql::{Database, SqlError, SqlResult};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, UNIX_EPOCH};

/// The log of a running server.
pub struct LogControl {
    coordinator: Arc<Coordinator>,
    /// For lock figures; known once the database is open.
    database: OnceLock<Arc<Database>>,
}

fn io_error(error: impl std::fmt::Display) -> SqlError {
    SqlError { code: 1377, state: *b"HY000", message: format!("Fatal error during log purge or read: {error}") }
}

fn failed(error: impl std::fmt::Display) -> SqlError {
    SqlError { code: 1598, state: *b"HY000", message: format!("Binary logging not possible. Message: {error}") }
}

fn say_limit(purged: &Purged) {
    if let Some(limit) = purged.limit {
        let (file, why) = match limit {
            PurgeLimit::Recovery(file) => (file, "the storage engine may need it to recover"),
            PurgeLimit::Reader(file) => (file, "it is being read"),
            PurgeLimit::Active(file) => (file, "it is being written"),
        };
        tracing::info!(%file, "purge stopped before a log file: {why}");
    }
}

impl LogControl {
    /// On this coordinator.
    #[must_use]
    pub fn new(coordinator: Arc<Coordinator>) -> LogControl {
        LogControl { coordinator, database: OnceLock::new() }
    }

    /// Adds the database's figures.
    pub fn set_database(&self, database: Arc<Database>) {
        let _ = self.database.set(database);
    }

    fn file(&self, name: &str) -> SqlResult<FileSeq> {
        let files = self.coordinator.log().files();
        let seq = files.names().parse(name).ok_or_else(crate::errors::unknown_target_binlog)?;
        let known = files.list().iter().any(|entry| entry.file == seq);
        if known { Ok(seq) } else { Err(crate::errors::unknown_target_binlog()) }
    }

    fn keep_from(&self) -> SqlResult<FileSeq> {
        self.coordinator.recovery_start().map_err(io_error)
    }
}

impl LogAdmin for LogControl {
    fn gtid_executed(&self) -> String {
        self.coordinator.gtid_executed().to_string()
    }

    fn gtid_purged(&self) -> String {
        match self.coordinator.gtid_purged() {
            Ok(set) => set.to_string(),
            Err(error) => {
                tracing::warn!(%error, "gtid_purged can't be read from the oldest log file");
                String::new()
            }
        }
    }

    fn status(&self) -> LogStatus {
        let files = self.coordinator.log().files();
        let end = files.durable_end().get();
        LogStatus { file: files.names().log(end.file), position: end.offset.0 }
    }

    fn files(&self) -> SqlResult<Vec<LogFile>> {
        let list = self.coordinator.log().files().list();
        Ok(list.into_iter().map(|entry| LogFile { name: entry.name, size: entry.size }).collect())
    }

    fn events(&self, file: Option<&str>, from: u64, skip: u64, count: u64) -> SqlResult<Vec<LogEvent>> {
        let files = self.coordinator.log().files();
        let seq = match file {
            Some(name) => self.file(name)?,
            None => files.list().first().map_or(FileSeq::FIRST, |entry| entry.file),
        };
        let name = files.names().log(seq);
        let mut reader = files.read(seq).map_err(io_error)?;
        reader.seek(LogOffset(from)).map_err(io_error)?;
        let (mut events, mut passed) = (Vec::new(), 0);
        while (events.len() as u64) < count {
            let Next::Event(event) = reader.next().map_err(io_error)? else { break };
            if passed < skip {
                passed += 1;
                continue;
            }
            events.push(LogEvent {
                file: name.clone(),
                position: event.offset,
                kind: event.header.event_type.name().to_owned(),
                server_id: event.header.server_id,
                end: event.end(),
                info: describe::info(&event).unwrap_or_else(|error| format!("({error})")),
            });
        }
        Ok(events)
    }

    fn rotate(&self) -> SqlResult<()> {
        self.coordinator.rotate().map_err(failed)
    }

    fn purge_to(&self, file: &str) -> SqlResult<()> {
        let to = self.file(file)?;
        let files = self.coordinator.log().files();
        let purged = files.purge_to(to, self.keep_from()?).map_err(io_error)?;
        say_limit(&purged);
        Ok(())
    }

    fn purge_before(&self, unix: i64) -> SqlResult<()> {
        let time = UNIX_EPOCH + Duration::from_secs(u64::try_from(unix).unwrap_or(0));
        let files = self.coordinator.log().files();
        let purged = files.purge_before(time, self.keep_from()?).map_err(io_error)?;
        say_limit(&purged);
        Ok(())
    }

    fn reset(&self, to: Option<u64>) -> SqlResult<()> {
        let first = match to {
            None => FileSeq::FIRST,
            Some(n) => u32::try_from(n)
                .ok()
                .map(FileSeq)
                .filter(|seq| *seq >= FileSeq::FIRST && *seq <= FileSeq::MAX)
                .ok_or_else(|| SqlError::wrong_arguments("RESET BINARY LOGS AND GTIDS TO"))?,
        };
        self.coordinator.reset_log(first).map_err(failed)
    }

    fn set_variable(&self, name: &str, value: &VarValue) -> SqlResult<()> {
        let settings = self.coordinator.settings();
        let caches = self.coordinator.cache_settings();
        let store = |cell: &AtomicU64| cell.store(value.as_u64(), Ordering::Relaxed);
        match name {
            "sync_binlog" => store(&settings.sync_binlog),
            "binlog_order_commits" => settings.order_commits.store(value.as_bool(), Ordering::Relaxed),
            "binlog_max_flush_queue_time" => store(&settings.max_flush_queue_time_us),
            "binlog_group_commit_sync_delay" => store(&settings.sync_delay_us),
            "binlog_group_commit_sync_no_delay_count" => store(&settings.sync_no_delay_count),
            "binlog_cache_size" => store(&caches.cache_size),
            "max_binlog_cache_size" => store(&caches.max_cache_size),
            "max_binlog_size" => self.coordinator.log().files().set_max_size(value.as_u64()),
            "server_id" => self.coordinator.log().set_server_id(value.as_u64() as u32),
            "binlog_checksum" => {
                let checksum = if value.as_str() == "NONE" { Checksum::None } else { Checksum::Crc32 };
                if checksum != self.coordinator.log().checksum() {
                    self.coordinator.log().set_checksum(checksum);
                    // The new algorithm begins with a file, as in MySQL.
                    tokio::task::block_in_place(|| self.rotate())?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn counters(&self) -> Vec<(String, String)> {
        let stats = self.coordinator.stats();
        let caches = self.coordinator.cache_settings();
        let get = |cell: &AtomicU64| cell.load(Ordering::Relaxed).to_string();
        let mut lines: Vec<(String, String)> = [
            ("Binlog_commits", get(&stats.commits)),
            ("Binlog_group_commits", get(&stats.groups)),
            ("Binlog_syncs", get(&stats.syncs)),
            ("Binlog_bytes_written", get(&stats.bytes)),
            ("Binlog_inline_groups", get(&stats.inline_groups)),
            ("Binlog_cache_use", get(&caches.uses)),
            ("Binlog_cache_disk_use", get(&caches.disk_uses)),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        histogram(&mut lines, "Binlog_group_size", &stats.group_size);
        histogram(&mut lines, "Binlog_queue_us", &stats.queue_us);
        histogram(&mut lines, "Binlog_flush_us", &stats.flush_us);
        histogram(&mut lines, "Binlog_sync_us", &stats.sync_us);
        histogram(&mut lines, "Binlog_commit_us", &stats.commit_us);
        self.snapshot_position(&mut lines);
        self.engine_lines(&mut lines);
        lines
    }
}

impl LogControl {
    /// Where the log ends for a snapshot taken now.
    fn snapshot_position(&self, lines: &mut Vec<(String, String)>) {
        let status = self.status();
        lines.push(("Binlog_snapshot_file".into(), status.file));
        lines.push(("Binlog_snapshot_position".into(), status.position.to_string()));
    }

    fn engine_lines(&self, lines: &mut Vec<(String, String)>) {
        let mut put = |name: &str, value: u64| lines.push((name.to_owned(), value.to_string()));
        let engine = self.coordinator.engine().stats();
        put("Lsm_memtable_bytes", engine.memtable_bytes);
        put("Lsm_flushes", engine.flushes);
        put("Lsm_compactions", engine.compactions);
        put("Lsm_write_stalls", engine.write_stalls);
        put("Lsm_disk_bytes", engine.disk_bytes);
        if let Some(database) = self.database.get() {
            let locks = database.locks().stats();
            put("Innodb_row_lock_current_waits", locks.current_waits);
            put("Innodb_row_lock_waits", locks.waits);
            put("Innodb_row_lock_time", locks.wait_us_total / 1000);
            put("Innodb_row_lock_time_avg", locks.wait_us_total / 1000 / locks.waits.max(1));
            put("Innodb_row_lock_time_max", locks.wait_us_max / 1000);
            put("Innodb_deadlocks", locks.deadlocks);
            put("Innodb_row_lock_timeouts", locks.timeouts);
        }
    }
}

/// One line with count and sum, and one for each bucket in use.
fn histogram(lines: &mut Vec<(String, String)>, name: &str, histogram: &Histogram) {
    let (count, sum) = histogram.totals();
    lines.push((format!("{name}_count"), count.to_string()));
    lines.push((format!("{name}_avg"), format!("{:.1}", sum as f64 / count.max(1) as f64)));
    lines.push((format!("{name}_p50"), histogram.quantile(0.5).to_string()));
    lines.push((format!("{name}_p99"), histogram.quantile(0.99).to_string()));
    let rows: Vec<_> = histogram.rows().iter().map(|(bound, n)| format!("<={bound}:{n}")).collect();
    lines.push((format!("{name}_histogram"), rows.join(" ")));
}
