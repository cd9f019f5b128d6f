//! Distinguishes damage from a crash: data that recovery must not cut.
//!
//! A crash leaves at most a torn tail of groups that were not acknowledged. The following findings are not results of a
//! crash, and end the start with an error that names the place and the remedy (COMMIT-3):
//! - the head of a group behind the torn place says that the bytes there were durable; in a file of an earlier version,
//!   which has no groups, a whole event there claims it (`claim`);
//! - a file that was closed (its in-use flag is cleared) does not end with whole transactions;
//! - a file begins at a later transaction than the one after the last of the file before it.
//!
//! Damage to the very last transactions of a file that was in use cannot be told from a torn tail. It is cut with a
//! warning that names the place, the number of bytes cut, and the conclusion for an operator.
//! `binlog_truncate_damaged_tail` cuts in the first two cases, too.

use super::{RecoverError, claim};
use omnibus_engine::CommitNo;
use omnibus_format::EventType;
use omnibus_format::events::{Gtid, MariadbGtidEvent};
use omnibus_log::{FileNames, FileSeq, LogDir, LogTail, ReadError, TornReason};

const TAIL_ADVICE: &str = "restore the file from a copy, or start once with --binlog-truncate-damaged-tail=ON to give \
                           up everything from there on";
const FILE_ADVICE: &str = "restore it from a copy, or the whole data directory from one backup";

/// The state of the file that recovery is reading.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FileFacts {
    /// The last commit number before the file, from its head.
    pub(crate) base: Option<u64>,
    /// The file was not closed.
    pub(crate) in_use: bool,
    /// This server wrote it, in this version or an earlier one.
    pub(crate) ours: bool,
}

/// Checks whether the tail of the last file may be cut. Warns of the bytes that are cut.
pub(crate) fn judge_tail(
    dir: &LogDir,
    tail: &LogTail,
    last: CommitNo,
    file: FileFacts,
) -> Result<(), RecoverError> {
    // Of a file with groups it is known whether it was ended.
    let ended = tail.torn.is_none() || tail.groups.is_none_or(|groups| groups.closed);
    let spare =
        ended && matches!(tail.torn, None | Some(TornReason::Preallocated)) && !tail.incomplete_transaction;
    if spare && (!file.in_use || !tail.needs_truncation()) {
        return Ok(());
    }
    let name = dir.names().log(tail.end.file);
    let reason =
        tail.torn.map_or_else(|| "the file ends inside of a transaction".to_owned(), |r| r.to_string());
    let proof = if file.ours && file.base.is_none() {
        // INDEX-1: it was whole before the index named the file.
        Some(format!("the file's head is damaged ({reason})"))
    } else if file.in_use {
        let (proof, data_end) = look_behind(dir, tail, last, file)?;
        let bytes = data_end.saturating_sub(tail.end.offset.0);
        if proof.is_none() && bytes > 0 {
            tracing::warn!(
                file = %name, offset = %tail.end.offset, bytes, %reason,
                "the last log file has a torn tail, which is cut. A crash or a power cut leaves one, and then nothing in it was \
                 acknowledged. If neither happened, the device has damaged the newest transactions: compare with a replica \
                 or another copy of the file before anything more is written"
            );
        }
        proof
    } else {
        Some(format!("{reason}, but the file had been closed"))
    };
    let Some(what) = proof else { return Ok(()) };
    let damaged = RecoverError::Damaged { file: name, offset: tail.end.offset, what, advice: TAIL_ADVICE };
    if dir.config().truncate_damaged {
        tracing::warn!("binlog_truncate_damaged_tail: giving up everything from there on: {damaged}");
        return Ok(());
    }
    Err(damaged)
}

/// Searches for an event that claims that transaction `last` + 1 was durable; also returns the end of the data.
fn look_behind(
    dir: &LogDir,
    tail: &LogTail,
    last: CommitNo,
    file: FileFacts,
) -> Result<(Option<String>, u64), RecoverError> {
    let Some(base) = file.base else { return Ok((None, tail.file_len.0)) };
    let mut reader = dir.read(tail.end.file)?;
    if let Some(groups) = tail.groups {
        let behind = reader.groups_behind(tail.end.offset, groups.salt)?;
        let claim = behind.claim.filter(|(_, durable)| *durable > last.0);
        let proof = claim.map(|(offset, durable)| {
            format!(
                "transactions are unreadable there, but the group at offset {offset} was written when everything up to {durable} was durable"
            )
        });
        return Ok((proof, behind.data_end));
    }
    // The format description says which checksum to expect.
    reader.next()?;
    let mut proof = None;
    let behind = reader.search_behind(tail.end.offset, &mut |event| {
        let (no, claimed) = match event.header.event_type {
            kind @ (EventType::GTID | EventType::ANONYMOUS_GTID | EventType::GTID_TAGGED) => {
                let Ok(gtid) = Gtid::decode_as(kind, event.body) else { return true };
                let no = CommitNo(base.saturating_add(gtid.sequence_number));
                (no, claim::decode(no, gtid.more_flags))
            }
            EventType::MARIADB_GTID => {
                let gtid = MariadbGtidEvent::decode(event.body);
                let Some(id) = gtid.ok().and_then(|gtid| gtid.commit_id) else { return true };
                (CommitNo(id >> 8), claim::of_group(id))
            }
            _ => return true,
        };
        let Some(durable) = claimed.filter(|durable| *durable > last) else { return true };
        proof = Some(format!(
            "transactions are unreadable there, but transaction {no} at offset {} was written when everything up \
             to {durable} was durable",
            event.offset
        ));
        false
    })?;
    Ok((proof, behind.data_end))
}

/// Turns damage that the scan found into an error with the file's name and the remedy.
pub(crate) fn named(dir: &LogDir, error: ReadError) -> RecoverError {
    match error {
        ReadError::Damaged { position, reason } => RecoverError::Damaged {
            file: dir.names().log(position.file),
            offset: position.offset,
            what: reason.to_string(),
            advice: FILE_ADVICE,
        },
        other => RecoverError::Read(other),
    }
}

/// Checks that a file's head follows the events read before it. `first` is the file that the pass began with.
pub(crate) fn check_succession(
    names: &FileNames,
    first: Option<FileSeq>,
    file: FileSeq,
    last: CommitNo,
    base: CommitNo,
) -> Result<(), RecoverError> {
    if first.is_none_or(|first| first == file) || base <= last {
        return Ok(());
    }
    let before = names.log(FileSeq(file.0.saturating_sub(1)));
    Err(RecoverError::Damaged {
        what: format!("it begins behind transaction {base}, but {before} ends with {last}"),
        file: names.log(file),
        offset: omnibus_log::LogOffset::FIRST_EVENT,
        advice: FILE_ADVICE,
    })
}
