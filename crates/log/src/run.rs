//! Reading whole events straight into a buffer that is used again: what a dump is made of. No event is copied on the way, no
//! buffer is zeroed twice, and what the writer has just written comes from memory (`recent`).
//!
//! The frame of every event is checked (length, end position), its checksum unless [`TailReader::trust_checksums`] said
//! otherwise. COMMIT-2: as [`TailReader::next`], never past the durable end.

use crate::error::ReadError;
use crate::position::LogPosition;
use crate::scan::{Next, TornReason};
use crate::tail::{Ahead, TailReader, TailRun};
use omnibus_format::ScanRules;
use omnibus_format::header::HEADER_LEN;
use omnibus_format::scan::{frame_len, parse_event};
use std::ops::Deref;

/// Whole events, one behind the other. To be used again: its memory stays what it was.
#[derive(Debug, Default)]
pub struct Run {
    /// Longer than what is filled.
    bytes: Vec<u8>,
    filled: usize,
}

impl Run {
    /// Gives the memory back if it is more than `most` bytes.
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
    /// Reads whole events into `run`, in place of what was there: about `wanted` bytes, more for the last one's end. Looks at
    /// the log's end once for all of them.
    ///
    /// If checksums are trusted, an event longer than `wanted` comes in pieces: [`TailReader::rest`] says how much of it is
    /// still to come, in runs of nothing else.
    ///
    /// # Errors
    /// As [`TailReader::next`]; what came before the damaged place is given first.
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

    /// How much of the event that the last run ended in is still to come.
    #[must_use]
    pub fn rest(&self) -> u64 {
        self.rest
    }

    /// Looks at the event behind those that are known to be whole.
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

    /// More of the event that the last run ended in.
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

    /// A file's first event, which says how the others end.
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

    /// Has `run` filled up to `wanted` bytes, fewer only at the end of the file.
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

/// A look at what was read so far.
struct Walk {
    start: LogPosition,
    /// How many bytes there are up to the limit.
    there: usize,
    wanted: usize,
    rules: ScanRules,
    /// How many were read, and how many of these are whole events.
    have: usize,
    whole: usize,
}

enum Step {
    /// One more event is whole, or a part of it came.
    Whole,
    End(RunEnd),
}

/// What is behind the whole events.
enum RunEnd {
    /// Nothing.
    Clean,
    /// The beginning of an event of this length, which comes in pieces.
    Cut(usize),
    /// No event.
    Damaged(TornReason),
}
