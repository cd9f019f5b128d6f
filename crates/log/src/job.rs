//! One sealed piece of the log on its way to the device. Owned and `Send`: the sync stage runs it on any thread.
//!
//! Rules for whoever runs jobs:
//! - Jobs for which [`jobs_overlap`] is true run one after the other, in the order they were sealed: the later one
//!   rewrites the last block of the earlier one. Others may run at the same time, in any order.
//! - A job that is made durable vouches for all earlier ones of its file that were written with
//!   [`WriteJob::run_without_sync`]: it waits for them before it syncs. So each sealed job is run or dropped by somebody who
//!   does not wait for a later one.
//! - Acknowledge strictly in the order of [`WriteJob::end`]. A crash may leave a later job on the device and not an
//!   earlier one; that hole is a torn tail and recovery cuts there.
//!
//! A write that finds the disk full waits, if the log was opened so (`space.rs`). Any other
//! failure poisons the log: this job, every later one and the writer give the same error until the log is reopened.

use crate::buffer::AlignedBuf;
use crate::durable::Shared;
use crate::error::{IoFailure, WriteError};
use crate::file::LogFile;
use crate::position::LogPosition;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Bytes of one file, to be written at one place.
#[derive(Debug)]
pub struct WriteJob {
    pub(crate) shared: Arc<Shared>,
    pub(crate) file: Arc<LogFile>,
    /// Where the first byte of `buffer` goes; it is whole blocks.
    pub(crate) base: u64,
    pub(crate) buffer: AlignedBuf,
    /// The first byte that no earlier job holds.
    pub(crate) start: LogPosition,
    pub(crate) end: LogPosition,
    /// Its place among the jobs of its file.
    pub(crate) order: u64,
}

impl WriteJob {
    /// The first new byte of this job.
    #[must_use]
    pub fn start(&self) -> LogPosition {
        self.start
    }

    /// The position behind the last byte of this job: the durable end once this and all earlier jobs have run.
    #[must_use]
    pub fn end(&self) -> LogPosition {
        self.end
    }

    /// Whether nothing was appended since the job before.
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

    /// Writes the bytes into the page cache: `sync_binlog=0`, or a group between two syncs.
    ///
    /// # Errors
    /// As [`WriteJob::run`].
    pub fn run_without_sync(self) -> Result<(), WriteError> {
        let len = self.len();
        self.guarded(|job| job.file.write_unsynced(&job.buffer, len, job.base))
    }

    /// Makes durable what earlier jobs of the same file have written, and writes nothing itself. For a job that has
    /// bytes of its own use [`WriteJob::run`], which does both.
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

    /// A write for which there is no room is done again from its beginning once there may be: nobody was told of any of it.
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

/// Whether two jobs touch a block in common and must therefore run in order, one at a time.
#[must_use]
pub fn jobs_overlap(a: &WriteJob, b: &WriteJob) -> bool {
    if a.file.seq != b.file.seq {
        return false;
    }
    let ((a_from, a_to), (b_from, b_to)) = (a.blocks(), b.blocks());
    a_from < b_to && b_from < a_to
}
