//! A replica's dump: it reads the log up to its durable end repeatedly, while groups, rotations, purges and resets
//! continue. No crash may take back the transactions that it has received (COMMIT-2).

use crate::names::id_of_event;
use omnibus_log::{LogHandle, LogPosition, ReadError, TailNext, TailReader};

/// A follower's position and the transactions that it has received.
#[derive(Debug, Default)]
pub(crate) struct Follower {
    reader: Option<TailReader>,
    /// Transactions of which it got something, for the oracle to take.
    pub(crate) sent: Vec<u64>,
    /// The reason why it could not continue where it should have.
    pub(crate) failed: Option<String>,
}

impl Follower {
    /// Reads what there is. A file that a reset has taken has it begin anew.
    pub(crate) fn follow(&mut self, log: &LogHandle) {
        if let Err(error) = self.read(log) {
            self.reader = None;
            if let ReadError::Damaged { position, reason } = error {
                self.failed = Some(format!("damaged at {position}: {reason}"));
            }
        }
    }

    fn read(&mut self, log: &LogHandle) -> Result<(), ReadError> {
        let reader = match &mut self.reader {
            Some(reader) => reader,
            none => {
                let end = || log.durable_end().get();
                let from = log.list().first().map_or_else(end, |file| LogPosition::new(file.file, 4));
                none.insert(TailReader::open(log, from)?)
            }
        };
        loop {
            match reader.next()? {
                TailNext::Event(event) => self.sent.extend(id_of_event(event.header.event_type, event.body)),
                TailNext::NextFile(_) => {}
                TailNext::CaughtUp => return Ok(()),
            }
        }
    }
}
