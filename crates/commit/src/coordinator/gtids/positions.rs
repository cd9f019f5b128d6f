//! Finds the global transaction ids that precede a position in the log.
//!
//! Reads files; any thread that may block. The search for the file that a replica needs is in the source's code.

use super::Gtids;
use crate::head::read_head;
use omnibus_format::events::{MariadbGtid, MariadbGtidEvent};
use omnibus_format::{EventType, GtidPosition, GtidState};
use omnibus_log::{FileSeq, Next, ReadError};

impl Gtids<'_> {
    /// The set of transactions that were executed before a file began. `None` if the file has no such event.
    ///
    /// # Errors
    /// The file could not be read.
    pub fn before_file(self, file: FileSeq) -> Result<Option<GtidState>, ReadError> {
        Ok(read_head(&mut self.0.log().files().read(file)?)?.previous)
    }

    /// BINLOG_GTID_POS: the newest GTID of each domain before `offset` of a file. `None` if there is no such position.
    ///
    /// # Errors
    /// The file could not be read.
    pub fn position_at(self, file: &str, offset: u64) -> Result<Option<GtidPosition>, ReadError> {
        let files = self.0.log().files();
        let Some(entry) = files.list().into_iter().find(|entry| entry.name == file) else { return Ok(None) };
        if offset < 4 || offset > entry.size {
            return Ok(None);
        }
        let mut state = match self.before_file(entry.file)? {
            Some(GtidState::Mariadb(state)) => state,
            _ => return Ok(None),
        };
        let mut reader = files.read(entry.file)?;
        let mut at = 4;
        while at < offset {
            let Next::Event(event) = reader.next()? else { return Ok(None) };
            at = event.end();
            if event.header.event_type == EventType::MARIADB_GTID
                && let Ok(gtid) = MariadbGtidEvent::decode(event.body)
            {
                let (domain, sequence) = (gtid.domain, gtid.sequence);
                state.add(MariadbGtid { domain, server: event.header.server_id, sequence });
            }
        }
        Ok((at == offset).then(|| state.position()))
    }
}
