//! The environment of the pipeline: a log to append to and write, and an engine to install versions in.
//!
//! It is small on purpose, so that a test can push thousands of concurrent commits through the pipeline without files
//! or a database. The real one is `crate::log_env`.

use crate::error::Refusal;
use crate::request::{CommitRequest, StagedWrites};
use omnibus_engine::{CommitNo, WriteSet};
use omnibus_log::LogPosition;
use std::sync::Arc;

/// The reason why a transaction's events did not get into the log buffer.
#[derive(Debug)]
#[non_exhaustive]
pub enum AppendError {
    /// The transaction's own cache could not be read. The buffer is unchanged and the commit number is not used up.
    Cache(Arc<str>),
    /// The transaction may not have the id that it was given. As `Cache` otherwise.
    Refused(Refusal),
    /// The log itself failed and accepts no more events.
    Log(Arc<str>),
}

/// The environment of a pipeline. `Writer` methods run under the flush lock, one thread at a time.
pub trait Env: Send + Sync + 'static {
    /// The log's append side.
    type Writer: Send;
    /// Sealed bytes on their way to the device.
    type Job: Send;

    /// Appends the finished events of `request` to the writer. `last_seen` is the newest number assigned when the
    /// session committed: the transaction depends on no newer one.
    fn append(
        &self,
        writer: &mut Self::Writer,
        no: CommitNo,
        last_seen: CommitNo,
        request: &mut CommitRequest,
    ) -> Result<(), AppendError>;

    /// The position of the next byte.
    fn position(&self, writer: &Self::Writer) -> LogPosition;

    /// Seals the bytes appended since the last seal. With `pad`, the job ends at a block boundary, so that the next job
    /// may be in flight at the same time.
    fn seal(&self, writer: &mut Self::Writer, pad: bool) -> Result<Self::Job, Arc<str>>;

    /// Returns whether a job sealed now would touch a block of the one sealed before.
    fn overlaps(&self, writer: &Self::Writer) -> bool;

    /// Writes a job; with `sync`, it and everything before it in the file are durable on return.
    fn write(&self, job: Self::Job, sync: bool) -> Result<(), Arc<str>>;

    /// Returns whether a write waits for what may never come, such as room on a full disk. What is queued then stays in the
    /// queue, where its session can take it back (COMMIT-4).
    fn is_stuck(&self) -> bool {
        false
    }

    /// Returns whether the file has exceeded its maximum size.
    fn wants_rotation(&self, writer: &Self::Writer) -> bool;

    /// Switches to the next file. Nothing is in flight.
    fn rotate(&self, writer: &mut Self::Writer) -> Result<(), Arc<str>>;

    /// Installs a transaction's versions (engine `prepare_ordered`), in order, under the flush lock.
    fn install(&self, no: CommitNo, writes: WriteSet);

    /// As `install`, for a large transaction whose versions are ready.
    fn install_staged(&self, no: CommitNo, writes: StagedWrites);

    /// Two-phase protocols: syncs the redo of every transaction whose prepare returned before this call. Under the
    /// flush lock, after the group was taken from the queue: a transaction that prepares and enrols while this runs is
    /// in the next group, or its log record could become durable before its redo is.
    fn flush_engines(&self) -> Result<(), Arc<str>> {
        Ok(())
    }

    /// Two-phase protocols: the prepared transaction `xid` is durable in the log at `no`; the engines note it in their
    /// redo, unsynced. In order in the commit stage, or with `binlog_order_commits=0` by the sessions in parallel.
    fn commit_prepared(&self, _xid: u64, _no: CommitNo) {}

    /// Two-phase protocols: rolls the prepared transaction `xid` back, because it did not get into the log.
    fn rollback_prepared(&self, _xid: u64) {}

    /// Tells the engine that the log is durable up to `no` (engine `commit_ordered`), in order.
    fn durable(&self, no: CommitNo, position: LogPosition);

    /// Tells the engine that no snapshot older than `oldest` is in use.
    fn watermark(&self, oldest: CommitNo);

    /// Reports that the log failed: commits that are not durable now never will be.
    fn failed(&self, reason: &str);
}
