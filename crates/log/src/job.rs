//! A sealed piece of the log on its way to the device. It is owned and `Send`: the sync stage runs it on any thread.
//!
//! Rules for the caller that runs jobs:
//! - Jobs for which [`jobs_overlap`] is true run one after the other, in the order in which they were sealed: the later
//!   one rewrites the last block of the earlier one. Others may run at the same time, in any order.
//! - A job that is made durable answers for all earlier ones of its file that were written with
//!   [`WriteJob::run_without_sync`]: it waits for them before it syncs. So each sealed job must be run or dropped
//!   without waiting for a later one.
//! - Acknowledge strictly in the order of [`WriteJob::end`]. A crash may leave a later job on the device and not an
//!   earlier one; that hole is a torn tail, and recovery cuts there.
//!
//! A write that finds the disk full waits, if the log was opened so (`space.rs`). Any other failure poisons the log:
//! this job, every later one and the writer return the same error until the log is reopened.

use crate::buffer::AlignedBuf;
use crate::durable::Shared;
use crate::error::{IoFailure, WriteError};
use crate::file::LogFile;
use crate::position::LogPosition;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes to be written at one place of one file.
#[derive(Debug)]
pub struct WriteJob {
    pub(crate) shared: Arc<Shared>,
    pub(crate) file: Arc<LogFile>,
    /// File offset of the first byte of `buffer`, which consists of whole blocks.
    pub(crate) base: u64,
    pub(crate) buffer: AlignedBuf,
    /// The first byte that no earlier job holds.
    pub(crate) start: LogPosition,
    pub(crate) end: LogPosition,
    /// The job's place among the jobs of its file.
    pub(crate) order: u64,
}

impl WriteJob {
    /// The position of the job's first new byte.
    #[must_use]
    pub fn start(&self) -> LogPosition {
        self.start
    }

    /// The position behind the job's last byte: the durable end once this and all earlier jobs have run.
    #[must_use]
    pub fn end(&self) -> LogPosition {
        self.end
    }

    /// Returns whether nothing was appended since the previous job.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Writes the bytes and returns when they are durable.
    ///
    /// # Errors
    /// The write or the sync failed, or one did earlier.
    pub fn run(self) -> Result<(), WriteError> {
        let len = self.len();
        self.file.generations.release(self.order);
        self.guarded(|job| {
            if !job.is_empty() {
                job.file.write_through(&job.buffer, len, job.base)?;
            }
            job.file.generations.wait_for_earlier(job.order);
            job.file.sync()
        })
    }

    /// Writes the bytes into the page cache. Used with `sync_binlog=0`, and for a group between two syncs.
    /// # Errors
    /// As [`WriteJob::run`].
    pub fn run_without_sync(self) -> Result<(), WriteError> {
        let len = self.len();
        self.guarded(|job| job.file.write_unsynced(&job.buffer, len, job.base))
    }

    /// Makes the bytes of earlier jobs of the same file durable, and writes nothing itself. For a job with bytes of its
    /// own use [`WriteJob::run`], which does both.
    ///
    /// # Errors
    /// As [`WriteJob::run`].
    pub fn sync_only(self) -> Result<(), WriteError> {
        self.file.generations.release(self.order);
        self.guarded(|job| {
            job.file.generations.wait_for_earlier(job.order);
            job.file.sync()
        })
    }

    fn len(&self) -> usize {
        usize::try_from(self.end.offset.0 - self.base).unwrap_or(usize::MAX).min(self.buffer.len())
    }

    /// Runs `operation` unless the log is poisoned, and poisons the log if it fails. A write that fails for lack of
    /// space is repeated from its beginning, because none of its bytes were acknowledged.
    fn guarded(self, operation: impl Fn(&WriteJob) -> Result<(), IoFailure>) -> Result<(), WriteError> {
        self.shared.poison.check()?;
        self.shared.space.patiently(|| operation(&self)).map_err(|failure| self.shared.poison.set(failure))
    }

    fn blocks(&self) -> (u64, u64) {
        // The page cache merges neighbours: without it blocks are large.
        (self.base, self.file.blocks.ceil(self.end.offset.0))
    }
}

impl Drop for WriteJob {
    fn drop(&mut self) {
        let buffer = std::mem::replace(&mut self.buffer, AlignedBuf::none());
        self.shared.pool.give(buffer);
        self.file.generations.release(self.order);
        self.file.outstanding.fetch_sub(1, Ordering::SeqCst);
        self.shared.job_done();
    }
}

/// Returns whether two jobs have a block in common and must therefore run in order, one at a time.
#[must_use]
pub fn jobs_overlap(a: &WriteJob, b: &WriteJob) -> bool {
    if a.file.seq != b.file.seq {
        return false;
    }
    let ((a_from, a_to), (b_from, b_to)) = (a.blocks(), b.blocks());
    a_from < b_to && b_from < a_to
}
