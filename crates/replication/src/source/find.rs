//! Finds the file with which a stream by GTID begins: the newest file behind whose head everything lies that the client
//! lacks.
//!
//! Reads the heads of files, newest first, on a thread that may block. No file is pinned yet; if one is purged
//! meanwhile, opening it fails.

use super::error::SourceError;
use omnibus_format::events::{MariadbGtidList, PreviousGtids};
use omnibus_format::{BinlogState, GtidPosition};
use omnibus_format::{EventType, GtidSet, ServerUuid};
use omnibus_log::{FileSeq, LogHandle, Next, ReadError};

/// The set of transactions executed before a file, from its head.
#[derive(Clone, Debug)]
enum Head {
    Mysql(GtidSet),
    Mariadb(BinlogState),
    Neither,
}

/// The transactions that the source has, in MySQL's dialect.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// `server_uuid`.
    pub uuid: ServerUuid,
    /// `gtid_executed`.
    pub executed: GtidSet,
    /// `gtid_purged`.
    pub purged: GtidSet,
}

/// MySQL's dialect: returns the first file for a client that has `executed`.
///
/// # Errors
/// The client lacks transactions that were purged, or has transactions that this server does not have.
pub fn by_set(log: &LogHandle, executed: &GtidSet, own: &Own) -> Result<FileSeq, SourceError> {
    let mut unknown = GtidSet::new();
    for (source, intervals) in executed.iter().filter(|(source, _)| source.uuid == own.uuid) {
        intervals.iter().for_each(|&interval| unknown.add_interval(source, interval));
    }
    unknown.subtract(&own.executed);
    if !unknown.is_empty() {
        return Err(SourceError::ClientIsAhead { unknown: unknown.to_string() });
    }
    let mut missing = own.purged.clone();
    missing.subtract(executed);
    if !missing.is_empty() {
        return Err(SourceError::Purged { client: executed.to_string(), missing: missing.to_string() });
    }
    let fits = |head: &Head| matches!(head, Head::Mysql(previous) if executed.contains_set(previous));
    newest(log, fits)?.ok_or_else(|| {
        let mut missing = own.executed.clone();
        missing.subtract(executed);
        SourceError::Purged { client: executed.to_string(), missing: missing.to_string() }
    })
}

/// MariaDB's dialect: returns the first file for a client at `position`, and the state before that file.
///
/// # Errors
/// The position was purged, or is not in this log.
pub fn by_position(
    log: &LogHandle,
    position: &GtidPosition,
    own: &BinlogState,
) -> Result<(FileSeq, BinlogState), SourceError> {
    for gtid in position.0.values() {
        // A domain that this server has never logged in begins for the client with its first transaction.
        if own.newest(gtid.domain).is_some() && !own.contains(*gtid) {
            return Err(SourceError::NotInLog { gtid: gtid.to_string() });
        }
    }
    let mut before = BinlogState::default();
    let found = newest(log, |head| match head {
        Head::Mariadb(state) if lies_ahead(position, state) => {
            before = state.clone();
            true
        }
        _ => false,
    })?;
    match found {
        Some(file) => Ok((file, before)),
        None => Err(SourceError::PositionPurged { client: position.to_string() }),
    }
}

/// Returns whether everything that a client at `position` lacks comes after `before`.
fn lies_ahead(position: &GtidPosition, before: &BinlogState) -> bool {
    before.list().into_iter().all(|logged| match position.get(logged.domain) {
        // It has nothing of this domain, whose beginning is in an earlier file.
        None => false,
        Some(at) if at.server != logged.server => true,
        // Its transaction is the domain's last before the file: everything since is ahead.
        Some(at) if at.sequence == logged.sequence => before.newest(logged.domain) == Some(at),
        Some(at) => at.sequence > logged.sequence,
    })
}

fn newest(log: &LogHandle, mut fits: impl FnMut(&Head) -> bool) -> Result<Option<FileSeq>, SourceError> {
    for entry in log.list().into_iter().rev() {
        let head = match head(log, entry.file) {
            Ok(head) => head,
            // Purged since it was listed, and all before it.
            Err(ReadError::NoSuchFile(_)) => return Ok(None),
            Err(error) => {
                return Err(SourceError::of_read(&error, |position| log.names().log(position.file)));
            }
        };
        if fits(&head) {
            return Ok(Some(entry.file));
        }
    }
    Ok(None)
}

fn head(log: &LogHandle, file: FileSeq) -> Result<Head, ReadError> {
    let mut reader = log.read(file)?;
    // Behind FORMAT_DESCRIPTION, before any transaction.
    for _ in 0..4 {
        let Next::Event(event) = reader.next()? else { break };
        match event.header.event_type {
            EventType::PREVIOUS_GTIDS => {
                return Ok(PreviousGtids::decode(event.body).map_or(Head::Neither, |e| Head::Mysql(e.set)));
            }
            EventType::MARIADB_GTID_LIST => {
                let list = MariadbGtidList::decode(event.body);
                return Ok(list.map_or(Head::Neither, |l| Head::Mariadb(BinlogState::from_list(&l.gtids))));
            }
            _ => {}
        }
    }
    Ok(Head::Neither)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_file_fits_if_what_is_missing_is_ahead_of_it() {
        let ahead = |position: &str, before: &str| {
            lies_ahead(&position.parse().unwrap(), &before.parse::<BinlogState>().unwrap())
        };
        assert!(ahead("", ""), "nothing was logged before");
        assert!(ahead("0-1-5", "0-1-5") && ahead("0-1-6", "0-1-5"));
        assert!(!ahead("0-1-4", "0-1-5") && !ahead("", "0-1-5"));
        assert!(!ahead("0-1-5", "0-1-5,0-2-6"), "0-2-6 came behind 0-1-5, in an earlier file");
        assert!(ahead("0-2-6", "0-1-5,0-2-6"));
        assert!(!ahead("0-1-5", "0-1-5,1-1-1"), "another domain's beginning is in an earlier file");
        assert!(ahead("0-1-5,1-1-1", "0-1-5,1-1-1"));
    }
}
