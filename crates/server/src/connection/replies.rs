//! Replies: OK, rows and errors, to the client or to the procedure whose statement it was.

use super::client::Client;
use super::sink::{ReplySink, RowFormat};
use crate::result_set::ResultSet;
use omnibus_sql::{Floor, Info, Level, Outcome, RowSink, SqlError, SqlResult, SqlSession};
use omnibus_wire::{Capability, OkPacket, Status};
use std::sync::Arc;

/// How a statement was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replied {
    /// OK or rows.
    Good,
    /// ERR: statements behind it in the same text are not run.
    Bad,
}

/// The state that replies depend on, and the one that was sent in them.
pub(crate) struct Replies {
    /// The commit that they wait for.
    pub(crate) floor: Arc<Floor>,
    /// Several statements in one COM_QUERY are allowed.
    pub(crate) multi_statements: bool,
    /// Rows that the client has got so far.
    pub(crate) rows_sent: u64,
    /// Rows that the last statement changed.
    pub(crate) rows_affected: u64,
    /// The statement's reply is an error.
    pub(crate) failed: bool,
    /// Statements of procedures that the session runs for them.
    pub(crate) inside: Inside,
}

/// Where the reply to a statement of a procedure goes.
#[derive(Debug, Default)]
pub(crate) struct Inside {
    /// How many procedures wait for the server.
    pub(crate) depth: u32,
    /// Rows are binary: the CALL was prepared.
    pub(crate) binary: bool,
    /// The error of the statement.
    pub(crate) error: Option<SqlError>,
}

impl Replies {
    pub(super) fn new(floor: Arc<Floor>, multi_statements: bool) -> Replies {
        Replies {
            floor,
            multi_statements,
            rows_sent: 0,
            rows_affected: 0,
            failed: false,
            inside: Inside::default(),
        }
    }
}

/// The status flags of a reply.
pub(crate) fn status(sql: &SqlSession) -> Status {
    let settings = &sql.state.settings;
    let mut status = Status::default();
    if sql.in_transaction() {
        status = status.with(Status::IN_TRANS);
    }
    if settings.transactions.autocommit {
        status = status.with(Status::AUTOCOMMIT);
    }
    if settings.sql_mode & omnibus_sql::api::sql_mode::NO_BACKSLASH_ESCAPES != 0 {
        status = status.with(Status::NO_BACKSLASH_ESCAPES);
    }
    status
}

/// As `status`, before the reply to another statement of the same text.
fn status_before(sql: &SqlSession, more: bool) -> Status {
    let status = status(sql);
    if more { status.with(Status::MORE_RESULTS) } else { status }
}

impl Client {
    /// How rows are sent.
    pub(crate) fn row_format(&self, sql: &SqlSession, binary: bool) -> RowFormat {
        RowFormat {
            caps: self.packets.caps,
            binary,
            collation: sql.state.settings.collation_results,
            status: status(sql),
            write_timeout: self.packets.timeouts.write,
        }
    }

    /// Adds OK or an error.
    pub(crate) fn reply(&mut self, sql: &mut SqlSession, done: SqlResult<()>) {
        match done {
            Ok(()) => self.ok(sql, false),
            Err(error) => {
                self.failed(sql, error);
            }
        }
    }

    /// Adds the OK of a statement that changed no rows.
    pub(crate) fn ok(&mut self, sql: &SqlSession, more: bool) {
        self.reply_outcome(sql, &Outcome::ok(), more);
    }

    /// Adds the end of a successful statement.
    pub(crate) fn reply_outcome(&mut self, sql: &SqlSession, outcome: &Outcome, more: bool) {
        if outcome.result_set {
            return self.end_of_rows(sql, more);
        }
        if self.replies.inside.depth > 0 {
            return;
        }
        self.replies.rows_affected = outcome.affected;
        let caps = self.packets.caps;
        let tracks = caps.has(Capability::SESSION_TRACK);
        let coordinator = self.server.log.coordinator().filter(|_| tracks).map(|log| &**log);
        let changes = self.told.take(sql.state.database.as_deref(), coordinator);
        let changes = if tracks { changes.as_packets() } else { Vec::new() };
        let mut room = [0; Info::ROOM];
        let packet = OkPacket {
            affected: outcome.affected,
            last_insert_id: outcome.last_insert_id,
            status: status_before(sql, more),
            warnings: sql.state.diagnostics.own_count(),
            info: outcome.info.bytes(&mut room),
            changes: changes.as_slice(),
        };
        self.packets.out.packet(|out| packet.encode(out, caps, false));
    }

    /// Adds the packet that ends rows.
    pub(crate) fn end_of_rows(&mut self, sql: &SqlSession, more: bool) {
        let status = status_before(sql, more);
        let caps = self.packets.caps;
        let warnings = sql.state.diagnostics.own_count();
        if caps.has(Capability::DEPRECATE_EOF) {
            let packet = OkPacket { status, warnings, ..OkPacket::default() };
            self.packets.out.packet(|out| packet.encode(out, caps, true));
        } else {
            self.packets.out.packet(|out| omnibus_wire::reply::encode_eof(out, warnings, status));
        }
    }

    /// Adds a result that the server itself made, with its end.
    pub(crate) fn reply_rows(&mut self, sql: &SqlSession, rows: &ResultSet, more: bool) -> SqlResult<()> {
        let format = self.row_format(sql, self.replies.inside.binary);
        let mut sink = ReplySink::new(&mut self.packets.out, format, None);
        sink.room = self.packets.outgoing.as_mut();
        rows.send(&mut sink as &mut dyn RowSink)?;
        self.replies.rows_sent += rows.rows.len() as u64;
        self.end_of_rows(sql, more);
        Ok(())
    }

    /// Adds an error that the SQL layer has noted in its diagnostics itself.
    pub(crate) fn failed_in_sql(&mut self, sql: &mut SqlSession, error: SqlError) -> Replied {
        if sql.state.diagnostics.has(&error) {
            let error = self.in_dialect(error);
            return self.error_reply(error);
        }
        self.failed(sql, error)
    }

    fn in_dialect(&self, error: SqlError) -> SqlError {
        crate::errors::in_dialect(error, self.server.log.dialect())
    }

    /// Adds an error, and notes it for SHOW WARNINGS.
    pub(crate) fn failed(&mut self, sql: &mut SqlSession, error: SqlError) -> Replied {
        let error = self.in_dialect(error);
        let diagnostics = &mut sql.state.diagnostics;
        diagnostics.clear();
        diagnostics.push(Level::Error, error.clone());
        self.error_reply(error)
    }

    /// Tells the client, or the procedure whose statement it was.
    fn error_reply(&mut self, error: SqlError) -> Replied {
        if self.replies.inside.depth > 0 {
            self.replies.inside.error = Some(error);
        } else {
            self.replies.failed = true;
            self.packets.error(&error);
        }
        Replied::Bad
    }
}
