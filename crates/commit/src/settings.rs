//! The pipeline's dynamic settings, named after their system variables.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// The maximum number of log threads; `max_in_flight` beyond it has no effect.
pub(crate) const LOG_THREADS: usize = 8;

/// The settings of a pipeline. All may change at any time; a group uses the values that it reads when it starts.
#[derive(Debug)]
pub struct CommitSettings {
    /// `sync_binlog`: sync every n-th group; 0 leaves it to the operating system.
    pub sync_binlog: AtomicU64,
    /// `binlog_order_commits`. Publishing is by number, so engines of the one-sync protocol are in commit order
    /// regardless of it; it matters for two-phase engines.
    pub order_commits: AtomicBool,
    /// `binlog_max_flush_queue_time`, microseconds: how long the flush stage continues to take new arrivals one by one.
    /// With 0 it takes only those present.
    pub max_flush_queue_time_us: AtomicU64,
    /// `binlog_group_commit_sync_delay`, microseconds to wait for more transactions before a sync.
    pub sync_delay_us: AtomicU64,
    /// `binlog_group_commit_sync_no_delay_count`: stop waiting at this many transactions.
    pub sync_no_delay_count: AtomicU64,
    /// `release_locks_early`: row locks go in the flush stage, not once the commit is durable.
    pub release_locks_early: AtomicBool,
    /// `commit_protocol`.
    pub protocol: crate::CommitProtocol,
    /// The number of log threads. With none, the owner of the coordinator leads ([`crate::Coordinator::lead`]), as a
    /// simulation does.
    pub log_threads: usize,
    /// The maximum number of writes in flight when the device is slow.
    pub max_in_flight: AtomicU64,
    /// A device that syncs faster than this, in microseconds, gets one write at a time and may be
    /// driven by the committing thread itself.
    pub fast_sync_us: AtomicU64,
}

impl Default for CommitSettings {
    fn default() -> CommitSettings {
        CommitSettings {
            sync_binlog: AtomicU64::new(1),
            order_commits: AtomicBool::new(true),
            max_flush_queue_time_us: AtomicU64::new(0),
            sync_delay_us: AtomicU64::new(0),
            sync_no_delay_count: AtomicU64::new(0),
            release_locks_early: AtomicBool::new(true),
            protocol: crate::CommitProtocol::default(),
            log_threads: LOG_THREADS,
            max_in_flight: AtomicU64::new(4),
            fast_sync_us: AtomicU64::new(300),
        }
    }
}
