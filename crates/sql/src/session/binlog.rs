//! BINLOG 'base64': what mariadb-binlog and mysqlbinlog print for row events, applied like statements.
//!
//! The events are FORMAT_DESCRIPTION, which a session must be given first, then per statement TABLE_MAP and rows events.
//! A row is found by its primary key; without one by all its columns, in the whole table. Columns must have the types
//! that the event says. The changes belong to the session's transaction and are logged as its own. On a thread that may
//! block. Not replication: nothing here knows of GTIDs.

use super::session::{Call, SqlSession};
use crate::api::{Mode, Outcome};
use crate::catalog::Table;
use crate::error::{ExecResult, Interrupt, SqlError, SqlResult};
use crate::select::{LockMode, WaitPolicy};
use crate::store::{InsertOutcome, RowAt, RowChange, duplicate_error, whole_index};
use bytes::Bytes;
use omnibus_format::events::{FormatDescription, Rows, RowsKind, TableMap};
use omnibus_format::header::HEADER_LEN;
use omnibus_format::row::{Images, RowImage, RowShape};
use omnibus_format::{DecodeError, EventHeader, EventType};
use omnibus_value::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Rows read at a time when a whole table is searched.
const BATCH: usize = 256;

/// What a session has been told about the events to come.
#[derive(Default)]
pub(super) struct BinlogInput {
    /// Bytes of checksum behind each event, once there was a FORMAT_DESCRIPTION.
    checksum: Option<usize>,
    mariadb: bool,
    tables: HashMap<u64, TableMap>,
}

impl SqlSession {
    /// BINLOG. The server has checked the privilege.
    pub(super) fn binlog(&mut self, text: &Bytes, call: &Call<'_>) -> ExecResult<Outcome> {
        if call.mode == Mode::Inline {
            return Err(Interrupt::NeedBlocking);
        }
        if self.state.settings.server_read_only {
            return Err(SqlError::option_prevents_statement("--read-only").into());
        }
        let bytes = from_base64(text)
            .ok_or_else(|| SqlError::new(1575, b"HY000", "Decoding of base64 string failed"))?;
        self.enter();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let header = EventHeader::decode(rest).map_err(damaged)?;
            let size = header.size as usize;
            if size < HEADER_LEN || size > rest.len() {
                return Err(damaged("an event's size").into());
            }
            let (event, behind) = rest.split_at(size);
            rest = behind;
            self.binlog_event(header.event_type, event)?;
        }
        Ok(Outcome::ok())
    }

    fn binlog_event(&mut self, event_type: EventType, event: &[u8]) -> ExecResult<()> {
        let input = &mut self.binlog_input;
        if event_type == EventType::FORMAT_DESCRIPTION {
            let checksum = FormatDescription::checksum_of_event(event).map_err(damaged)?;
            let cut = if checksum.is_some() { 4 } else { 0 };
            let body = event.get(HEADER_LEN..event.len() - cut).unwrap_or_default();
            input.mariadb = FormatDescription::decode(body).map_err(damaged)?.is_mariadb();
            input.checksum = Some(checksum.map_or(0, |checksum| checksum.len()));
            return Ok(());
        }
        let Some(cut) = input.checksum else {
            let name = event_type.name();
            let message = format!(
                "The BINLOG statement of type `{name}` was not preceded by a format description BINLOG statement."
            );
            return Err(SqlError::new(1609, b"HY000", message).into());
        };
        let body = event
            .get(HEADER_LEN..event.len().saturating_sub(cut))
            .ok_or_else(|| damaged("an event's size"))?;
        if event_type == EventType::TABLE_MAP {
            let map = TableMap::decode_dialect(body, input.mariadb).map_err(damaged)?;
            input.tables.insert(map.table_id, map);
            return Ok(());
        }
        if RowsKind::of(event_type).is_some() {
            return self.binlog_rows(Rows::decode(event_type, body).map_err(damaged)?);
        }
        match event_type {
            EventType::ROWS_QUERY | EventType::IGNORABLE => Ok(()),
            other => {
                let message = format!(
                    "malformed or very old relay log which does not have FormatDescriptor or an event of type {}",
                    other.name()
                );
                Err(SqlError::new(1730, b"HY000", message).into())
            }
        }
    }

    fn binlog_rows(&mut self, rows: Rows<'_>) -> ExecResult<()> {
        let map = self
            .binlog_input
            .tables
            .get(&rows.table_id)
            .ok_or_else(|| damaged("rows without their table"))?;
        let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let table = self.catalog().table(&name(&map.database), &name(&map.table))?.clone();
        same_types(&table, map)?;
        self.trx.start_write(&table)?;
        let shape = table.rows.shape();
        for change in Images::new(rows, shape).map_err(damaged)? {
            let change = change.map_err(damaged)?;
            let before = change.before.map(|image| decode(&image, shape)).transpose()?;
            let after = change.after.map(|image| decode(&image, shape)).transpose()?;
            self.binlog_change(&table, before, after)?;
        }
        Ok(())
    }

    fn binlog_change(
        &mut self,
        table: &Arc<Table>,
        before: Option<Vec<Option<Value>>>,
        after: Option<Vec<Option<Value>>>,
    ) -> ExecResult<()> {
        let Some(before) = before else {
            let values: Vec<Value> =
                after.unwrap_or_default().into_iter().map(Option::unwrap_or_default).collect();
            let row = table.rows.encode(&values)?;
            return match self.trx.insert_row(table, &values, row)? {
                InsertOutcome::Inserted => Ok(()),
                InsertOutcome::Duplicate(found) => Err(duplicate_error(table, found.index, &values).into()),
            };
        };
        let at = self.binlog_find(table, &before)?.ok_or_else(|| SqlError::key_not_found(&table.def.name))?;
        let old = table.decode(&at.row)?;
        let Some(after) = after else {
            return self.trx.delete_row(table, &at, &old);
        };
        let new: Vec<Value> =
            after.into_iter().zip(&old).map(|(value, old)| value.unwrap_or_else(|| old.clone())).collect();
        let new_row = table.rows.encode(&new)?;
        let change = RowChange { at: &at, old: &old, new: &new, new_row: &new_row, changed: u64::MAX };
        match self.trx.update_row(table, &change)? {
            None => Ok(()),
            Some(found) => Err(duplicate_error(table, found.index, &new).into()),
        }
    }

    /// The row that a before image means.
    fn binlog_find(&mut self, table: &Arc<Table>, image: &[Option<Value>]) -> ExecResult<Option<RowAt>> {
        if !table.def.hidden_key {
            let values: Vec<Value> = image.iter().map(|value| value.clone().unwrap_or_default()).collect();
            let key = table.keys[0].entry(&values, &[]).key;
            let row = self.trx.get_row(table, &key, LockMode::Exclusive, WaitPolicy::Wait)?;
            return Ok(row.map(|row| RowAt { key, row }));
        }
        let mut range = whole_index(table, 0);
        self.trx.begin_scan(table, &range, LockMode::Exclusive)?;
        loop {
            let mut found = Vec::new();
            let (lock, wait) = (LockMode::Exclusive, WaitPolicy::Wait);
            let done = self.trx.scan(table, 0, &mut range, lock, wait, BATCH, &mut found)?;
            for at in found {
                let values = table.decode(&at.row)?;
                if image.iter().zip(&values).all(|(want, have)| want.as_ref().is_none_or(|want| want == have))
                {
                    return Ok(Some(at));
                }
            }
            if done {
                return Ok(None);
            }
            self.trx.check_killed()?;
        }
    }
}

fn decode(image: &RowImage<'_>, shape: &RowShape) -> SqlResult<Vec<Option<Value>>> {
    image.decode(shape).map_err(damaged)
}

/// Rows of other types would be read as nonsense.
fn same_types(table: &Table, map: &TableMap) -> SqlResult<()> {
    let theirs = RowShape::of_table_map(map);
    let (ours, theirs) = (table.rows.shape().columns(), theirs.columns());
    let differs = |at: &usize| ours.get(*at).map(|c| c.field) != theirs.get(*at).map(|c| c.field);
    match (0..ours.len().max(theirs.len())).find(differs) {
        None => Ok(()),
        Some(at) => {
            let (db, name) = (&table.def.db, &table.def.name);
            let message = format!(
                "Column {at} of table '{db}.{name}' cannot be converted from the type that the event has"
            );
            Err(SqlError::new(1677, b"HY000", message))
        }
    }
}

fn damaged(what: impl Into<Damage>) -> SqlError {
    let Damage(what) = what.into();
    SqlError::new(1064, b"42000", format!("The BINLOG statement's events are damaged: {what}"))
}

/// What is wrong with the events.
struct Damage(String);

impl From<&str> for Damage {
    fn from(what: &str) -> Damage {
        Damage(what.to_owned())
    }
}

impl From<DecodeError> for Damage {
    fn from(error: DecodeError) -> Damage {
        Damage(error.to_string())
    }
}

/// Decodes runs of base64, each with its own padding, with blanks and line ends anywhere.
fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let mut group = [0u8; 4];
    let (mut filled, mut padding) = (0, 0);
    for byte in text.iter().filter(|byte| !byte.is_ascii_whitespace()) {
        group[filled] = match byte {
            b'A'..=b'Z' if padding == 0 => byte - b'A',
            b'a'..=b'z' if padding == 0 => byte - b'a' + 26,
            b'0'..=b'9' if padding == 0 => byte - b'0' + 52,
            b'+' if padding == 0 => 62,
            b'/' if padding == 0 => 63,
            b'=' if filled >= 2 => {
                padding += 1;
                0
            }
            _ => return None,
        };
        filled += 1;
        if filled == 4 {
            let bits = group.iter().fold(0u32, |bits, six| bits << 6 | u32::from(*six));
            out.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
            (filled, padding) = (0, 0);
        }
    }
    (filled == 0).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_runs_follow_each_other() {
        assert_eq!(from_base64(b"\nAP8n\nAQ==\n/+8=\n").as_deref(), Some(&b"\x00\xff\x27\x01\xff\xef"[..]));
        for bad in ["A", "AA=A", "=AAA", "A===", "AA*A", "AAAAA"] {
            assert_eq!(from_base64(bad.as_bytes()), None, "{bad}");
        }
    }
}
