//! SET GLOBAL of the log's variables: from a checked value to the setting that acts.

use super::failure::FailureWatch;
use crate::sysvars::VarValue;
use omnibus_commit::Coordinator;
use omnibus_format::{Checksum, Dialect, GtidMode};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Every variable that [`super::CoordinatorAdmin`] acts on.
pub const LOG_VARIABLES: &[&str] = &[
    "sync_binlog",
    "binlog_order_commits",
    "release_locks_early",
    "binlog_max_flush_queue_time",
    "binlog_group_commit_sync_delay",
    "binlog_group_commit_sync_no_delay_count",
    "binlog_max_writes_in_flight",
    "binlog_cache_size",
    "max_binlog_cache_size",
    "binlog_large_commit_threshold",
    "max_binlog_size",
    "binlog_checksum",
    "binlog_expire_logs_seconds",
    "binlog_expire_logs_auto_purge",
    "binlog_verify_interval",
    "binlog_space_limit",
    "max_binlog_total_size",
    "binlog_error_action",
    "server_id",
    "gtid_strict_mode",
    "gtid_mode",
];

/// How long files are kept, and how often they are read again. The housekeeping reads it, SET GLOBAL writes it.
#[derive(Debug)]
pub struct LogLimits {
    expire_seconds: AtomicU64,
    total_bytes: AtomicU64,
    auto_purge: AtomicBool,
    verify_seconds: AtomicU64,
    /// Finished files that were read again and found whole.
    pub(super) verified_files: AtomicU64,
    /// The same, damaged.
    pub(super) damaged_files: AtomicU64,
}

impl Default for LogLimits {
    fn default() -> LogLimits {
        LogLimits {
            expire_seconds: AtomicU64::new(2_592_000),
            total_bytes: AtomicU64::new(0),
            auto_purge: AtomicBool::new(true),
            verify_seconds: AtomicU64::new(86_400),
            verified_files: AtomicU64::new(0),
            damaged_files: AtomicU64::new(0),
        }
    }
}

impl LogLimits {
    /// `binlog_expire_logs_seconds`: the age at which a finished file goes.
    #[must_use]
    pub fn expire_after(&self) -> Option<Duration> {
        let seconds = self.expire_seconds.load(Ordering::Relaxed);
        (seconds > 0 && self.auto_purge.load(Ordering::Relaxed)).then(|| Duration::from_secs(seconds))
    }

    /// `binlog_verify_interval`: how often every finished file is read again.
    #[must_use]
    pub fn verify_every(&self) -> Option<Duration> {
        let seconds = self.verify_seconds.load(Ordering::Relaxed);
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// `binlog_space_limit`: how many bytes all files may have.
    #[must_use]
    pub fn total_bytes(&self) -> Option<u64> {
        let bytes = self.total_bytes.load(Ordering::Relaxed);
        (bytes > 0 && self.auto_purge.load(Ordering::Relaxed)).then_some(bytes)
    }
}

/// The work that is left after a variable was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applied {
    /// It holds already.
    Done,
    /// It holds from the next file on, which should begin now.
    Rotate,
}

/// Makes a value act. Names that are not the log's are nobody's concern here.
pub(super) fn apply(
    coordinator: &Coordinator,
    limits: &LogLimits,
    failures: &FailureWatch,
    name: &str,
    value: &VarValue,
) -> Applied {
    let (settings, caches) = (coordinator.settings(), coordinator.cache_settings());
    let set = |target: &AtomicU64| target.store(value.as_u64(), Ordering::Relaxed);
    match name {
        "sync_binlog" => set(&settings.sync_binlog),
        "release_locks_early" => settings.release_locks_early.store(value.as_bool(), Ordering::Relaxed),
        "binlog_order_commits" => settings.order_commits.store(value.as_bool(), Ordering::Relaxed),
        "binlog_max_flush_queue_time" => set(&settings.max_flush_queue_time_us),
        "binlog_group_commit_sync_delay" => set(&settings.sync_delay_us),
        "binlog_group_commit_sync_no_delay_count" => set(&settings.sync_no_delay_count),
        "binlog_max_writes_in_flight" => set(&settings.max_in_flight),
        "binlog_cache_size" => set(&caches.cache_size),
        "max_binlog_cache_size" => set(&caches.max_cache_size),
        "binlog_large_commit_threshold" => set(&caches.large.threshold),
        "max_binlog_size" => coordinator.log().files().set_max_size(value.as_u64()),
        "binlog_checksum" => return set_checksum(coordinator, value),
        "binlog_expire_logs_seconds" => set(&limits.expire_seconds),
        "binlog_expire_logs_auto_purge" => limits.auto_purge.store(value.as_bool(), Ordering::Relaxed),
        "binlog_verify_interval" => set(&limits.verify_seconds),
        "binlog_space_limit" | "max_binlog_total_size" => set(&limits.total_bytes),
        "binlog_error_action" => {
            failures.set_ignore_errors(value.as_str().eq_ignore_ascii_case("IGNORE_ERROR"));
        }
        "gtid_strict_mode" => coordinator.log().set_strict(value.as_bool()),
        // SET GLOBAL has changed it already, by one step.
        "gtid_mode" if coordinator.log().dialect() == Dialect::Mysql => {
            coordinator.log().set_gtid_mode(GtidMode::from_name(value.as_str()).unwrap_or_default());
        }
        "server_id" => coordinator.log().set_server_id(u32::try_from(value.as_u64()).unwrap_or(u32::MAX)),
        _ => {}
    }
    Applied::Done
}

/// A file has one algorithm throughout.
fn set_checksum(coordinator: &Coordinator, value: &VarValue) -> Applied {
    let wanted = if value.as_str().eq_ignore_ascii_case("NONE") { Checksum::None } else { Checksum::Crc32 };
    if coordinator.log().checksum() == wanted {
        return Applied::Done;
    }
    coordinator.log().set_checksum(wanted);
    Applied::Rotate
}
