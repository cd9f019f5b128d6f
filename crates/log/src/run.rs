//! Reads whole events into a reusable buffer, for dumps. No event is copied on the way, no buffer is zeroed twice, and
//! bytes that the writer has just written come from memory (`recent`).
//!
//! The frame of every event is checked (length, end position), and its checksum unless [`TailReader::trust_checksums`]
//! was called. COMMIT-2: as [`TailReader::next`], never past the durable end.

use crate::error::ReadError;
use crate::position::LogPosition;
use crate::scan::{Next, TornReason};
use crate::tail::{Ahead, TailReader, TailRun};
use omnibus_format::ScanRules;
use omnibus_format::header::HEADER_LEN;
use omnibus_format::scan::{frame_len, parse_event};
use std::ops::Deref;

/// A reusable buffer of whole consecutive events. Its memory is kept between uses.
#[derive(Debug, Default)]
pub struct Run {
    /// The allocated bytes, which may be more than are filled.
    bytes: Vec<u8>,
    filled: usize,
}

impl Run {
    /// Frees the memory if it is more than `most` bytes.
    pub fn shrink(&mut self, most: usize) {
        if self.bytes.capacity() > most {
            *self = Run::default();
        }
    }

    fn make_room(&mut self, len: usize) {
        if self.bytes.len() < len {
            self.bytes.reserve_exact(len - self.bytes.len());
            self.bytes.resize(len, 0);
        }
    }
}

impl Deref for Run {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.filled]
    }
}

impl TailReader {
    /// Replaces the content of `run` by whole events: about `wanted` bytes, more if the last event is longer. Reads the
    /// log's end once for all of them.
    ///
    /// If checksums are trusted, an event longer than `wanted` is returned in pieces: [`TailReader::rest`] is the
    /// number of bytes still to come, in runs that hold nothing else.
    ///
    /// # Errors
    /// As [`TailReader::next`]; the events before a damaged place are returned first.
    pub fn read_run(&mut self, wanted: usize, run: &mut Run) -> Result<TailRun, ReadError> {
        run.filled = 0;
        let limit = match self.ahead()? {
            Ahead::Until(limit) => limit,
            Ahead::Switched(file) => return Ok(TailRun::NextFile(file)),
            Ahead::Nothing => return Ok(TailRun::CaughtUp),
        };
        if self.file.is_at_start() {
            return self.read_first(run);
        }
        if self.rest > 0 {
            return self.read_piece(wanted, run);
        }
        let start = self.position();
        let there = usize::try_from(limit - start.offset.0).unwrap_or(usize::MAX);
        let mut walk = Walk { start, there, wanted, rules: *self.file.rules(), have: 0, whole: 0 };
        self.bring(&mut walk, run, wanted.max(HEADER_LEN).min(there))?;
        let end = loop {
            match self.step(&mut walk, run)? {
                Step::Whole => {}
                Step::End(end) => break end,
            }
        };
        match end {
            RunEnd::Clean if walk.whole == 0 => return Ok(TailRun::CaughtUp),
            RunEnd::Damaged(reason) if walk.whole == 0 => {
                return Err(ReadError::Damaged { position: start, reason });
            }
            RunEnd::Cut(size) => {
                self.rest = (walk.whole + size - walk.have) as u64;
                run.filled = walk.have;
            }
            RunEnd::Clean | RunEnd::Damaged(_) => run.filled = walk.whole,
        }
        self.file.go_to(start.offset.0 + run.filled as u64);
        Ok(TailRun::Events)
    }

    /// The number of bytes still to come of the event that the last run ended in.
    #[must_use]
    pub fn rest(&self) -> u64 {
        self.rest
    }

    /// Examines the event behind those that are known to be whole.
    fn step(&mut self, walk: &mut Walk, run: &mut Run) -> Result<Step, ReadError> {
        let at = walk.start.offset.0 + walk.whole as u64;
        let bytes = &run.bytes[walk.whole..walk.have];
        if let Some(size) = frame_len(bytes, at, &walk.rules) {
            walk.whole += size;
            return Ok(Step::Whole);
        }
        let reason = match parse_event(bytes, at, &walk.rules) {
            Ok(Some(event)) => {
                walk.whole += event.bytes.len();
                walk.rules.follow(&event);
                self.file.follow(&event);
                return Ok(Step::Whole);
            }
            Ok(None) => return Ok(Step::End(RunEnd::Clean)),
            Err(error) => error.kind,
        };
        // Nothing but this is wrong with it. The limit is the file's real length, whatever a length field says.
        let TornReason::Torn { needed, .. } = reason else { return Ok(Step::End(RunEnd::Damaged(reason))) };
        let needed = usize::try_from(needed).unwrap_or(usize::MAX);
        if needed > walk.there - walk.whole {
            return Ok(Step::End(RunEnd::Damaged(reason)));
        }
        if needed > walk.wanted && needed > HEADER_LEN && !self.file.rules().verify_checksum {
            return Ok(Step::End(RunEnd::Cut(needed)));
        }
        let before = walk.have;
        self.bring(walk, run, walk.whole + needed)?;
        // The file is shorter than it should be.
        if walk.have == before { Ok(Step::End(RunEnd::Damaged(reason))) } else { Ok(Step::Whole) }
    }

    /// Reads the next piece of the event that the last run ended in.
    fn read_piece(&mut self, wanted: usize, run: &mut Run) -> Result<TailRun, ReadError> {
        let start = self.position();
        let size = usize::try_from(self.rest).unwrap_or(usize::MAX).min(wanted.max(1));
        let rules = *self.file.rules();
        let mut walk = Walk { start, there: size, wanted, rules, have: 0, whole: 0 };
        self.bring(&mut walk, run, size)?;
        if walk.have < size {
            let reason = TornReason::Torn { needed: self.rest, available: walk.have as u64 };
            return Err(ReadError::Damaged { position: start, reason });
        }
        self.rest -= size as u64;
        run.filled = size;
        self.file.go_to(start.offset.0 + size as u64);
        Ok(TailRun::Events)
    }

    /// Reads a file's first event, which sets the checksum algorithm of the others.
    fn read_first(&mut self, run: &mut Run) -> Result<TailRun, ReadError> {
        let start = self.position();
        match self.file.next()? {
            Next::Event(event) => {
                run.make_room(event.bytes.len());
                run.bytes[..event.bytes.len()].copy_from_slice(event.bytes);
                run.filled = event.bytes.len();
            }
            Next::End(end) => {
                return match end {
                    crate::ScanEnd::Torn(torn) => {
                        Err(ReadError::Damaged { position: torn.position.max(start), reason: torn.reason })
                    }
                    crate::ScanEnd::Clean(_) => Ok(TailRun::CaughtUp),
                };
            }
        }
        self.file.forget_buffer();
        Ok(TailRun::Events)
    }

    /// Fills `run` up to `wanted` bytes, fewer only at the end of the file.
    fn bring(&mut self, walk: &mut Walk, run: &mut Run, wanted: usize) -> Result<(), ReadError> {
        run.make_room(wanted);
        let from = LogPosition::new(walk.start.file, walk.start.offset.0 + walk.have as u64);
        let out = &mut run.bytes[walk.have..wanted];
        if self.follower.as_ref().is_some_and(|follower| follower.read(from, out)) {
            // Bytes that have not been on a disk cannot be damaged there.
            walk.rules.verify_checksum &= walk.have > 0;
            walk.have = wanted;
        } else {
            walk.have += self.file.read_at(from.offset.0, out)?;
            walk.rules.verify_checksum = self.file.rules().verify_checksum;
        }
        Ok(())
    }
}

/// The state of filling a run.
struct Walk {
    start: LogPosition,
    /// The number of bytes up to the limit.
    there: usize,
    wanted: usize,
    rules: ScanRules,
    /// The number of bytes read, and the number of these in whole events.
    have: usize,
    whole: usize,
}

enum Step {
    /// One more event is whole, or a piece of one was read.
    Whole,
    End(RunEnd),
}

/// The content behind the whole events.
enum RunEnd {
    /// The end.
    Clean,
    /// The beginning of an event of this length, which comes in pieces.
    Cut(usize),
    /// Bytes that are not an event.
    Damaged(TornReason),
}
