//! Describes an event in one line of text: [`info`] in the words of SHOW BINLOG EVENTS, [`summary`] in those of
//! `omnibus binlog`.
//!
//! Pure, from the event alone: decoding the rows of a row event needs its table and is left to the caller.

use crate::events::*;
use crate::private_log::LogPrivate;
use crate::{Checksum, DecodeError, EventType, Private, RawEvent};

/// Longest statement shown in a summary, in characters.
const STATEMENT_MAX: usize = 200;

/// Returns the `Info` column of SHOW BINLOG EVENTS. Statements are shown whole.
///
/// # Errors
/// The event's body is truncated or malformed.
pub fn info(event: &RawEvent<'_>) -> Result<String, DecodeError> {
    let body = event.body;
    Ok(match event.header.event_type {
        EventType::FORMAT_DESCRIPTION => {
            let format = FormatDescription::decode(body)?;
            format!("Server ver: {}, Binlog ver: {}", format.server_version, format.binlog_version)
        }
        EventType::PREVIOUS_GTIDS => PreviousGtids::decode(body)?.set.to_string(),
        kind @ (EventType::GTID | EventType::GTID_TAGGED) => {
            let gtid = Gtid::decode_as(kind, body)?;
            format!("SET @@SESSION.GTID_NEXT= '{}:{}'", gtid.source(), gtid.gno)
        }
        EventType::ANONYMOUS_GTID => "SET @@SESSION.GTID_NEXT= 'ANONYMOUS'".to_owned(),
        EventType::QUERY => query_info(&Query::decode(body)?),
        EventType::TABLE_MAP => {
            let map = TableMap::decode(body)?;
            let (database, table) = (lossy(&map.database), lossy(&map.table));
            format!("table_id: {} ({database}.{table})", map.table_id)
        }
        kind if kind.is_rows() => rows_info(&Rows::decode(kind, body)?),
        EventType::ROWS_QUERY => format!("# {}", lossy(RowsQuery::decode(body)?.0)),
        EventType::MARIADB_ANNOTATE_ROWS => lossy(body),
        EventType::XID => format!("COMMIT /* xid={} */", Xid::decode(body)?.0),
        EventType::ROTATE => {
            let rotate = Rotate::decode(body)?;
            format!("{};pos={}", lossy(rotate.file), rotate.position)
        }
        EventType::RAND => {
            let Rand(first, second) = Rand::decode(body)?;
            format!("rand_seed1={first},rand_seed2={second}")
        }
        EventType::INCIDENT => {
            let incident = Incident::decode(body)?;
            format!("#{} ({})", incident.code, lossy(incident.message))
        }
        EventType::STOP => String::new(),
        EventType::TRANSACTION_PAYLOAD => payload(body)?,
        _ => return summary(event),
    })
}

fn payload(body: &[u8]) -> Result<String, DecodeError> {
    let (compressed, size) = crate::payload::describe(body)?;
    let how = if compressed { "ZSTD" } else { "NONE" };
    Ok(match size {
        Some(size) => format!("compression='{how}', decompressed_size={size} bytes"),
        None => format!("compression='{how}'"),
    })
}

/// Returns the event in the words of `omnibus binlog`. A row event is described by its table's number only.
///
/// # Errors
/// The event's body is truncated or malformed.
pub fn summary(event: &RawEvent<'_>) -> Result<String, DecodeError> {
    let body = event.body;
    Ok(match event.header.event_type {
        EventType::FORMAT_DESCRIPTION => format_description(&FormatDescription::decode(body)?),
        EventType::PREVIOUS_GTIDS => {
            let set = PreviousGtids::decode(body)?.set;
            if set.is_empty() { "(none)".to_owned() } else { set.to_string() }
        }
        kind @ (EventType::GTID | EventType::ANONYMOUS_GTID | EventType::GTID_TAGGED) => {
            gtid(&Gtid::decode_as(kind, body)?)
        }
        EventType::QUERY => query(&Query::decode(body)?),
        EventType::TABLE_MAP => table_map(&TableMap::decode(body)?),
        kind if kind.is_rows() => {
            let rows = Rows::decode(kind, body)?;
            format!("table {}{}", rows.table_id, statement_end(&rows))
        }
        EventType::ROWS_QUERY => statement(RowsQuery::decode(body)?.0),
        EventType::MARIADB_ANNOTATE_ROWS => statement(body),
        EventType::XID => format!("COMMIT, xid {}", Xid::decode(body)?.0),
        EventType::TRANSACTION_PAYLOAD => payload(body)?,
        EventType::ROTATE => {
            let rotate = Rotate::decode(body)?;
            format!("to {} at {}", lossy(rotate.file), rotate.position)
        }
        EventType::INTVAR => {
            let var = IntVar::decode(body)?;
            let name = if var.kind == INTVAR_LAST_INSERT_ID { "LAST_INSERT_ID" } else { "INSERT_ID" };
            format!("{name}={}", var.value)
        }
        EventType::RAND => {
            let Rand(first, second) = Rand::decode(body)?;
            format!("RAND_SEED1={first}, RAND_SEED2={second}")
        }
        EventType::USER_VAR => user_var(&UserVar::decode(body)?),
        EventType::INCIDENT => {
            let incident = Incident::decode(body)?;
            format!("incident {}: {}", incident.code, lossy(incident.message))
        }
        EventType::XA_PREPARE => xa_prepare(&XaPrepare::decode(body)?),
        EventType::IGNORABLE => private(Private::decode(body)?),
        EventType::BEGIN_LOAD_QUERY | EventType::APPEND_BLOCK => {
            let load = BeginLoadQuery::decode(body)?;
            format!("file {}, {} bytes", load.file_id, load.data.len())
        }
        EventType::EXECUTE_LOAD_QUERY => {
            let load = ExecuteLoadQuery::decode(body)?;
            format!("file {}: {}", load.file_id, query(&load.query))
        }
        EventType::START_V3 => {
            let start = StartV3::decode(body)?;
            format!("server {}, binlog v{}, checksums none", start.server_version, start.binlog_version)
        }
        EventType::LOAD | EventType::NEW_LOAD | EventType::CREATE_FILE => {
            let load = OldLoad::decode(event.header.event_type, body)?;
            let text = statement(&load.statement().0);
            let file =
                load.file_id.map_or(String::new(), |id| format!("file {id}, {} bytes: ", load.data.len()));
            format!("{file}use {}; {text}", identifier(load.database))
        }
        EventType::EXEC_LOAD | EventType::DELETE_FILE => {
            format!("file {}", crate::cursor::Reader::new(body).u32("file id")?)
        }
        EventType::SLAVE => {
            let slave = SlaveStart::decode(body)?;
            let (host, file) = (lossy(slave.host), lossy(slave.file));
            format!("source {host}:{}, {file} at {}", slave.port, slave.position)
        }
        EventType::MARIADB_GTID => mariadb_gtid(body, event.header.server_id)?,
        EventType::MARIADB_GTID_LIST => {
            let list = MariadbGtidList::decode(body)?.gtids;
            let texts: Vec<_> = list.iter().map(ToString::to_string).collect();
            if texts.is_empty() { "(none)".to_owned() } else { texts.join(",") }
        }
        EventType::MARIADB_BINLOG_CHECKPOINT => lossy(body.get(4..).unwrap_or_default()),
        _ => format!("{} bytes", body.len()),
    })
}

/// An identifier in backquotes.
#[must_use]
pub fn identifier(name: &[u8]) -> String {
    omnibus_value::literal::name(&lossy(name))
}

/// ", statement end" if these are the last rows of their statement.
#[must_use]
pub fn statement_end(rows: &Rows<'_>) -> &'static str {
    if rows.flags & ROWS_FLAG_STMT_END != 0 { ", statement end" } else { "" }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn rows_info(rows: &Rows<'_>) -> String {
    let end = if rows.flags & ROWS_FLAG_STMT_END != 0 { " flags: STMT_END_F" } else { "" };
    format!("table_id: {}{end}", rows.table_id)
}

fn query_info(query: &Query<'_>) -> String {
    let text = lossy(query.sql);
    if needs_database(query) { format!("use {}; {text}", identifier(query.database)) } else { text }
}

/// Returns whether the statement depends on its current database.
fn needs_database(query: &Query<'_>) -> bool {
    let starts =
        |word: &[u8]| query.sql.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    !query.database.is_empty()
        && ![&b"BEGIN"[..], b"COMMIT", b"ROLLBACK", b"SAVEPOINT ", b"XA "].iter().any(|word| starts(word))
}

fn query(query: &Query<'_>) -> String {
    let text = statement(query.sql);
    let error =
        if query.error_code == 0 { String::new() } else { format!(" /* error {} */", query.error_code) };
    if needs_database(query) {
        return format!("use {}; {text}{error}", identifier(query.database));
    }
    text + &error
}

/// Returns a statement in one line, cut to [`STATEMENT_MAX`] characters.
fn statement(sql: &[u8]) -> String {
    let text = String::from_utf8_lossy(sql);
    let mut line: String =
        text.chars().take(STATEMENT_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().count() > STATEMENT_MAX {
        line.push('…');
    }
    line
}

fn format_description(format: &FormatDescription) -> String {
    let checksum = match format.checksum {
        Some(Checksum::Crc32) => "CRC32",
        _ => "none",
    };
    format!("server {}, binlog v{}, checksums {checksum}", format.server_version, format.binlog_version)
}

fn gtid(gtid: &Gtid) -> String {
    let name = match gtid.event_type() {
        EventType::ANONYMOUS_GTID => "ANONYMOUS".to_owned(),
        _ => format!("{}:{}", gtid.source(), gtid.gno),
    };
    let length = gtid.transaction_length;
    format!("{name}, clock {}->{}, {length} bytes", gtid.last_committed, gtid.sequence_number)
}

fn mariadb_gtid(body: &[u8], server: u32) -> Result<String, DecodeError> {
    let gtid = MariadbGtidEvent::decode(body)?;
    let id = MariadbGtid { domain: gtid.domain, server, sequence: gtid.sequence };
    let begin = if gtid.flags & MariadbGtidEvent::FLAG_STANDALONE == 0 { "BEGIN " } else { "" };
    Ok(match MariadbGtidEvent::alter_phase(body)? {
        None => format!("{begin}GTID {id}"),
        Some(AlterPhase::Start) => format!("START ALTER GTID {id}"),
        Some(AlterPhase::Commit { start }) => format!("COMMIT ALTER {start} GTID {id}"),
        Some(AlterPhase::Rollback { start }) => format!("ROLLBACK ALTER {start} GTID {id}"),
    })
}

fn table_map(map: &TableMap) -> String {
    let columns = map.columns.len();
    format!("{}.{} is {}, {columns} columns", identifier(&map.database), identifier(&map.table), map.table_id)
}

fn xa_prepare(xa: &XaPrepare<'_>) -> String {
    let (verb, end) = if xa.one_phase { ("COMMIT", " ONE PHASE") } else { ("PREPARE", "") };
    format!(
        "XA {verb} X'{}',X'{}',{}{end}",
        omnibus_value::hex::lower(xa.gtrid),
        omnibus_value::hex::lower(xa.bqual),
        xa.format_id
    )
}

fn user_var(var: &UserVar<'_>) -> String {
    let value = match var.value {
        UserVarValue::Null => "NULL".to_owned(),
        UserVarValue::String(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
        UserVarValue::Real(real) => real.to_string(),
        UserVarValue::Int { bits, unsigned: true } => bits.to_string(),
        UserVarValue::Int { bits, unsigned: false } => (bits as i64).to_string(),
        UserVarValue::Decimal(bytes) => decimal(bytes).unwrap_or_else(|| "DECIMAL".to_owned()),
    };
    format!("@{}={value}", identifier(var.name))
}

/// Precision, scale and the digits of a DECIMAL user variable.
fn decimal(bytes: &[u8]) -> Option<String> {
    let [precision, scale, digits @ ..] = bytes else { return None };
    let (value, _) = omnibus_value::decimal::Decimal::from_binlog(*precision, *scale, digits).ok()?;
    let mut out = Vec::new();
    value.write_text(&mut out);
    String::from_utf8(out).ok()
}

fn private(private: Option<Private<'_>>) -> String {
    match private {
        None => "not ours".to_owned(),
        Some(Private::WriteSet(set)) => format!("write set, {} writes", set.len()),
        Some(Private::AllWrites(set)) => format!("all writes of the transaction, {} here", set.len()),
        Some(Private::RowIds(ids)) => format!("row ids of the next event, {}", ids.len()),
        Some(Private::BuildIndex { table_id, index_id }) => format!("table {table_id} has index {index_id}"),
        Some(Private::DropSpaces(spaces)) => format!("spaces dropped: {spaces:?}"),
        Some(Private::Log(LogPrivate::FileStart { first, .. })) => format!("file begins with commit {first}"),
        Some(Private::Log(LogPrivate::Group { head, .. })) => {
            format!("group of {} bytes, durable up to commit {}", head.len, head.durable)
        }
        Some(Private::Log(LogPrivate::CommitMark { no, .. })) => format!("commit {no}, without a GTID"),
        Some(Private::Log(LogPrivate::Filler(len))) => format!("filler, {len} bytes"),
        Some(Private::Unknown { kind, version }) => format!("private, kind {kind} version {version}"),
    }
}
