//! SHOW BINLOG EVENTS: the events of one file, up to the durable end.

use crate::log_admin::LogEvent;
use omnibus_format::describe;
use omnibus_log::{LogHandle, LogOffset, LogPosition, TailNext, TailReader};
use omnibus_sql::{SqlError, SqlResult};

/// Hands on the events of `file` (the oldest without a name) from the event that starts at `from` on, until `each` wants no more.
pub(super) fn events(
    log: &LogHandle,
    file: Option<&str>,
    from: u64,
    each: &mut dyn FnMut(LogEvent) -> SqlResult<bool>,
) -> SqlResult<()> {
    let list = log.list();
    let entry = match file {
        None => list.first(),
        Some(name) => {
            let seq = log.names().parse(name);
            list.iter().find(|entry| Some(entry.file) == seq)
        }
    };
    let entry = entry.ok_or_else(|| refused("Could not find target log"))?;
    let from = from.max(LogOffset::FIRST_EVENT.0);
    if from > entry.size.max(LogOffset::FIRST_EVENT.0) {
        return Err(refused("Wrong offset or I/O error"));
    }
    let mut reader =
        TailReader::open(log, LogPosition::new(entry.file, from)).map_err(|error| wrong(&error))?;
    while let TailNext::Event(event) = reader.next().map_err(|error| wrong(&error))? {
        let told = LogEvent {
            file: entry.name.clone(),
            position: event.offset,
            kind: event.header.event_type.name().to_owned(),
            server_id: event.header.server_id,
            end: event.end(),
            info: describe::info(&event).unwrap_or_else(|error| format!("unreadable: {error}")),
        };
        if !each(told)? {
            break;
        }
    }
    Ok(())
}

fn wrong(error: &omnibus_log::ReadError) -> SqlError {
    // To a client an offset that is no event's start and a damaged file are one; the log tells them apart.
    tracing::warn!(%error, "SHOW BINLOG EVENTS");
    refused("Wrong offset or I/O error")
}

fn refused(why: &str) -> SqlError {
    SqlError::new(1220, b"HY000", format!("Error when executing command SHOW BINLOG EVENTS: {why}"))
}
