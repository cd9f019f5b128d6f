//! Row events in `omnibus binlog --sql`: collected until their statement ends, then one BINLOG statement; or kept for
//! `--flashback`, which prints them turned round at the end.

use std::io::Write;

use omnibus_format::events::{Query, ROWS_FLAG_STMT_END, Rows, RowsKind, TableMap};
use omnibus_format::{DecodeError, EventType, RawEvent};

use super::flashback::Stuck;
use super::sql::{Failure, SqlPrinter};
use super::sql_args::Base64;
use super::sql_text::{base64, transaction_word, with_body};

impl SqlPrinter {
    pub(super) fn table_map(&mut self, event: &RawEvent<'_>) -> Result<(), Failure> {
        let map = TableMap::decode_dialect(event.body, self.mariadb)?;
        self.dropped.retain(|id| *id != map.table_id);
        let database = self.rewritten(&map.database);
        if self.wants(database) {
            let renamed = (database != map.database).then(|| self.renamed(event, &map, database));
            let bytes = renamed.as_deref().unwrap_or(event.bytes);
            match &mut self.flashback {
                Some(flashback) => flashback.table(bytes, &map),
                None => self.pending.extend_from_slice(bytes),
            }
        } else {
            self.dropped.push(map.table_id);
        }
        Ok(())
    }

    /// A TABLE_MAP event of the same table in another database.
    fn renamed(&self, event: &RawEvent<'_>, map: &TableMap, database: &[u8]) -> Vec<u8> {
        // Behind number and flags: the name with its length before it and a NUL behind it.
        let (head, rest) = event.body.split_at(8.min(event.body.len()));
        let mut body = head.to_vec();
        body.push(database.len() as u8);
        body.extend_from_slice(database);
        body.extend_from_slice(rest.get(1 + map.database.len()..).unwrap_or_default());
        with_body(event, event.header.event_type, &body, self.format_has_checksums())
    }

    /// Rows wait for the end of their statement: a server opens their tables once.
    pub(super) fn rows(&mut self, event: &RawEvent<'_>, out: &mut impl Write) -> Result<(), Failure> {
        let rows = Rows::decode(event.header.event_type, event.body)?;
        if !self.dropped.contains(&rows.table_id) {
            self.pending.extend_from_slice(event.bytes);
        }
        if rows.flags & ROWS_FLAG_STMT_END == 0 || self.pending.is_empty() {
            return Ok(());
        }
        let how = &self.options.how;
        match how.base64_output.unwrap_or_default() {
            Base64::Auto if !how.short_form => {}
            Base64::Never => {
                self.refusal =
                    Some("rows can only be printed as BINLOG statements: --base64-output=auto".into());
                return Ok(());
            }
            _ => {
                self.pending.clear();
                return Ok(());
            }
        }
        out.write_all(b"BINLOG '\n")?;
        if !std::mem::replace(&mut self.format_printed, true) {
            base64(&self.format, out)?;
        }
        base64(&self.pending, out)?;
        out.write_all(b"'\n/*!*/;\n")?;
        self.pending.clear();
        Ok(())
    }

    /// Keeps what takes an event's changes back.
    pub(super) fn turn_round(&mut self, event: &RawEvent<'_>) -> Result<(), DecodeError> {
        use EventType as E;
        let Some(flashback) = &mut self.flashback else { return Ok(()) };
        match event.header.event_type {
            E::XID => flashback.commit(),
            E::FORMAT_DESCRIPTION => {
                if let Err(Failure::Event(error)) = self.format(event) {
                    return Err(error);
                }
                let checksums = self.format_has_checksums();
                if let Some(flashback) = &mut self.flashback {
                    flashback.format(&self.format, checksums);
                }
            }
            E::QUERY => {
                let query = Query::decode(event.body)?;
                let is = |word: &[u8]| query.sql.eq_ignore_ascii_case(word);
                if is(b"COMMIT") {
                    flashback.commit();
                } else if is(b"ROLLBACK") {
                    flashback.roll_back();
                } else if transaction_word(query.sql) != Some(false) || query.sql.starts_with(b"XA") {
                    let sql: String = String::from_utf8_lossy(query.sql).chars().take(100).collect();
                    self.refusal = Some(format!("a statement cannot be taken back: {sql}"));
                }
            }
            E::XA_PREPARE | E::EXECUTE_LOAD_QUERY | E::EXEC_LOAD => {
                let name = event.header.event_type.name();
                self.refusal = Some(format!("an event of type {name} cannot be taken back"));
            }
            E::TABLE_MAP => match self.table_map(event) {
                Err(Failure::Event(error)) => return Err(error),
                Err(Failure::Output(_)) | Ok(()) => {}
            },
            kind if RowsKind::of(kind).is_some() => {
                let rows = Rows::decode(kind, event.body)?;
                match flashback.rows(event, rows) {
                    Ok(()) => {}
                    Err(Stuck::Damaged(error)) => return Err(error),
                    Err(Stuck::Partial) => {
                        let why = "rows without all their columns cannot be taken back (binlog_row_image=FULL has all)";
                        self.refusal = Some(why.into());
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}
