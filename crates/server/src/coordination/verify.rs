//! Reading finished log files again before somebody needs them: recovery reads the newest only, so damage in an older file would
//! otherwise first be met by a replica or a restore.
//!
//! Every `binlog_verify_interval` seconds all finished files are read once, a bounded number of bytes a look, every group and
//! event checked as recovery would. What is found is said in the error log and counted (`Binlog_verify_damaged`); nothing is
//! changed. On the housekeeping's thread.

use super::variables::LogLimits;
use omnibus_commit::Coordinator;
use omnibus_log::{FileSeq, GroupedFile, Next, ReadError, ScanEnd, TornReason};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// How much is read at a look, of which there is one a second: a small part of what a device gives.
const BYTES_A_LOOK: u64 = 16 << 20;

/// The present round, if there is one.
pub(super) struct Verifier {
    coordinator: Arc<Coordinator>,
    limits: Arc<LogLimits>,
    began: Option<Instant>,
    waiting: VecDeque<FileSeq>,
    reading: Option<(FileSeq, GroupedFile)>,
}

impl Verifier {
    pub(super) fn new(coordinator: Arc<Coordinator>, limits: Arc<LogLimits>) -> Verifier {
        Verifier { coordinator, limits, began: None, waiting: VecDeque::new(), reading: None }
    }

    /// Reads on. The first round begins an interval after the start: what was just recovered was just read.
    pub(super) fn look(&mut self, now: Instant) {
        let Some(interval) = self.limits.verify_every() else {
            *self = Verifier::new(self.coordinator.clone(), self.limits.clone());
            return;
        };
        let began = *self.began.get_or_insert(now);
        if self.waiting.is_empty() && self.reading.is_none() {
            if now.duration_since(began) < interval {
                return;
            }
            self.began = Some(now);
            let active = self.coordinator.log().files().durable_end().get().file;
            let files = self.coordinator.log().files().list();
            self.waiting = files.iter().map(|entry| entry.file).filter(|file| *file < active).collect();
        }
        let mut left = BYTES_A_LOOK;
        while left > 0 {
            let Some((file, mut reader)) = self.reading.take().or_else(|| self.open_next()) else { return };
            match read_on(&mut reader, &mut left) {
                Ok(None) => self.reading = Some((file, reader)),
                Ok(Some(end)) => self.ended(&reader, end),
                Err(error) => self.damaged(&error),
            }
        }
    }

    fn open_next(&mut self) -> Option<(FileSeq, GroupedFile)> {
        loop {
            let file = self.waiting.pop_front()?;
            match self.coordinator.log().files().read(file).and_then(GroupedFile::new) {
                Ok(reader) => return Some((file, reader)),
                // Purged meanwhile.
                Err(ReadError::NoSuchFile(_)) => {}
                Err(error) => self.damaged(&error),
            }
        }
    }

    fn ended(&self, reader: &GroupedFile, end: ScanEnd) {
        match end {
            ScanEnd::Clean(_) => {}
            // A long spare tail is cut in the background.
            ScanEnd::Torn(torn) if torn.reason == TornReason::Preallocated && reader.is_closed() => {}
            ScanEnd::Torn(torn) => {
                return self.damaged(&ReadError::Damaged { position: torn.position, reason: torn.reason });
            }
        }
        self.limits.verified_files.fetch_add(1, Ordering::Relaxed);
    }

    fn damaged(&self, error: &ReadError) {
        tracing::error!(
            %error,
            "a finished binary log file is damaged: replicas that need it and restores to a point in time behind it will fail. \
             Take a backup now, and bring the file back from another copy (`omnibus check` on a stopped server names all)"
        );
        self.limits.damaged_files.fetch_add(1, Ordering::Relaxed);
    }
}

/// Up to `left` bytes more; how the file ended, if it did.
fn read_on(reader: &mut GroupedFile, left: &mut u64) -> Result<Option<ScanEnd>, ReadError> {
    while *left > 0 {
        match reader.next()? {
            Next::Event(event) => *left = left.saturating_sub(event.bytes.len() as u64),
            Next::End(end) => return Ok(Some(end)),
        }
    }
    Ok(None)
}
