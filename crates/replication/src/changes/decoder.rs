//! Decodes binlog events of any dialect, one after the other, into calls of a target.
//!
//! The decoder keeps the state for later events: table maps, a coming statement's context, files of LOAD DATA. Every
//! event is checked before the target is called. There is one decoder per stream, or per thread that applies
//! transactions cut out of a stream.

use super::borders::{Borders, Class, Word, mariadb_xa_start};
use super::compressed;
use super::load::{EventFile, LoadFiles, OldStatement};
use super::tables::Tables;
use super::{ApplyError, ApplyTarget, EventRows, EventStatement, Position, StatementVariables};
use crate::limit::EventLimit;
use crate::model::TrxHeader;
use omnibus_format::cursor::Reader;
use omnibus_format::events::{
    BeginLoadQuery, ExecuteLoadQuery, FormatDescription, Incident, Modern, OldLoad, Query, Rows, RowsKind,
    RowsQuery, StartV3, XaPrepare,
};
use omnibus_format::header::FLAG_IGNORABLE;
use omnibus_format::payload::Payload;
use omnibus_format::{EventHeader, EventType};
use std::cell::RefCell;
use std::collections::HashMap;

/// The result of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<T> {
    /// The transaction continues, or there is none.
    More,
    /// The transaction is enrolled; the ticket completes when it is durable.
    Committed(T),
}

/// The table number with which MariaDB and MySQL end a statement without rows.
const NO_TABLE: u64 = 0x00ff_ffff;

/// Applies a stream of events; see the module.
#[derive(Default)]
pub struct EventDecoder {
    mariadb: bool,
    borders: Borders,
    /// The transaction that the target has begun.
    trx: Option<TrxHeader>,
    tables: Tables,
    context: StatementVariables,
    files: LoadFiles,
    /// Statements of CREATE_FILE events (MySQL 4), by file.
    old_loads: HashMap<u32, OldStatement>,
    modern: Modern,
    /// The text of a ROWS_QUERY or ANNOTATE_ROWS event, for the rows that follow.
    text: Option<Vec<u8>>,
    /// The limit of the event that a compressed event stands for.
    limit: EventLimit,
}

impl EventDecoder {
    /// Creates a decoder for events of a server that wrote `format`.
    #[must_use]
    pub fn new(format: &FormatDescription) -> EventDecoder {
        EventDecoder { mariadb: format.is_mariadb(), ..EventDecoder::default() }
    }

    /// Limits the event that a compressed event may stand for.
    #[must_use]
    pub fn limited_to(self, limit: EventLimit) -> EventDecoder {
        EventDecoder { limit, ..self }
    }

    /// Declares that the following events are of another file or server.
    pub fn set_format(&mut self, format: &FormatDescription) {
        let mariadb = format.is_mariadb();
        if mariadb != self.mariadb {
            // Read otherwise, the same bytes may be another table.
            self.tables = Tables::default();
        }
        self.mariadb = mariadb;
    }

    /// Returns whether a transaction has begun that has not ended.
    #[must_use]
    pub fn in_transaction(&self) -> bool {
        self.trx.is_some()
    }

    /// Forgets an unfinished transaction, after an error or a gap in the stream. The caller must roll the target back.
    pub fn reset(&mut self) {
        *self = EventDecoder {
            mariadb: self.mariadb,
            modern: self.modern,
            limit: self.limit.clone(),
            ..EventDecoder::default()
        };
    }

    /// Applies the next event. `body` excludes header and checksum; `position` becomes part of the transaction that
    /// the event ends, if it ends one.
    ///
    /// # Errors
    /// Damage, or the target's error. Call `reset` and roll the target back.
    pub fn apply<T: ApplyTarget>(
        &mut self,
        header: &EventHeader,
        body: &[u8],
        target: &mut T,
        position: Option<&Position>,
    ) -> Result<Step<T::Ticket>, ApplyError> {
        let body = &*self.modern.body(header, body);
        let class = self.borders.classify(header, body)?;
        match class {
            Class::Other => {
                self.other(header, body, target)?;
                return Ok(Step::More);
            }
            Class::Begin(trx) | Class::Single(trx) => self.begin(header, body, target, trx)?,
            Class::Inside | Class::End => {}
        }
        if header.event_type == EventType::TRANSACTION_PAYLOAD {
            return self.payload(header, body, target, position);
        }
        if !matches!(class, Class::End | Class::Single(_)) {
            self.change(header, body, target)?;
            return Ok(Step::More);
        }
        let ticket = match header.event_type {
            EventType::XA_PREPARE => {
                let xid = XaPrepare::decode(body)?;
                if xid.one_phase { target.commit(position)? } else { target.prepare(&xid, position)? }
            }
            _ => {
                if is_rollback(header, body) {
                    self.roll_back(target)?;
                }
                target.ends_with(position);
                if !self.trx.as_ref().is_some_and(TrxHeader::leaves_statement_out) {
                    self.change(header, body, target)?;
                }
                target.commit(position)?
            }
        };
        self.end();
        Ok(Step::Committed(ticket))
    }

    fn begin<T: ApplyTarget>(
        &mut self,
        header: &EventHeader,
        body: &[u8],
        target: &mut T,
        trx: TrxHeader,
    ) -> Result<(), ApplyError> {
        if self.trx.take().is_some() {
            // Its end never came: the source went away in the middle.
            target.rollback();
            self.end();
        }
        target.begin(&trx)?;
        self.trx = Some(trx);
        if header.event_type == EventType::MARIADB_GTID
            && let Some(sql) = mariadb_xa_start(body)?
        {
            let query =
                Query { thread_id: 0, exec_time: 0, error_code: 0, status: &[], database: &[], sql: &sql };
            target.statement(&EventStatement::new(*header, query, &self.context, true)?)?;
        }
        Ok(())
    }

    fn end(&mut self) {
        self.trx = None;
        self.tables.end();
        self.files.clear();
        self.old_loads.clear();
        self.context = StatementVariables::default();
        self.text = None;
    }

    /// Handles a transaction that was rolled back on its first server: only its identity is applied.
    fn roll_back<T: ApplyTarget>(&mut self, target: &mut T) -> Result<(), ApplyError> {
        target.rollback();
        match &self.trx {
            Some(trx) => target.begin(trx),
            None => Ok(()),
        }
    }

    /// Applies a compressed transaction, which follows its GTID event.
    fn payload<T: ApplyTarget>(
        &mut self,
        header: &EventHeader,
        body: &[u8],
        target: &mut T,
        position: Option<&Position>,
    ) -> Result<Step<T::Ticket>, ApplyError> {
        if self.trx.is_none() {
            return Err(ApplyError::damaged("a compressed transaction without a GTID event"));
        }
        let mut events = Payload::new(body)?.limited_to(self.limit.longest());
        // The borders have seen the transaction's end already; inside is what they would have seen.
        let mut inner = Borders::default();
        while let Some((own, body)) = events.next()? {
            let own = EventHeader { server_id: header.server_id, ..own };
            match inner.classify(&own, body)? {
                Class::End if own.event_type == EventType::XA_PREPARE => {
                    let xid = XaPrepare::decode(body)?;
                    let ticket = if xid.one_phase {
                        target.commit(position)?
                    } else {
                        target.prepare(&xid, position)?
                    };
                    self.end();
                    return Ok(Step::Committed(ticket));
                }
                Class::Other => {}
                _ => self.change(&own, body, target)?,
            }
        }
        let ticket = target.commit(position)?;
        self.end();
        Ok(Step::Committed(ticket))
    }

    fn other<T: ApplyTarget>(
        &mut self,
        header: &EventHeader,
        body: &[u8],
        target: &mut T,
    ) -> Result<(), ApplyError> {
        match header.event_type {
            EventType::FORMAT_DESCRIPTION => {
                self.set_format(&FormatDescription::decode(body)?);
                if self.trx.is_some() {
                    target.rollback();
                    self.reset();
                }
            }
            EventType::START_V3 if StartV3::decode(body)?.binlog_version == 3 => self.reset(),
            EventType::START_V3 | EventType::MARIADB_START_ENCRYPTION => {
                let name = header.event_type.name();
                return Err(ApplyError::damaged(format!("events behind {name} cannot be read")));
            }
            EventType::INCIDENT => return Err(incident(body)?),
            _ => {}
        }
        Ok(())
    }

    /// Applies an event that changes something or prepares for it, without the borders of a transaction, which `apply`
    /// handles.
    ///
    /// # Errors
    /// As [`EventDecoder::apply`].
    pub fn change<T: ApplyTarget>(
        &mut self,
        header: &EventHeader,
        body: &[u8],
        target: &mut T,
    ) -> Result<(), ApplyError> {
        if let Some((event_type, body)) =
            compressed::plain_event(header.event_type, body, self.limit.longest())?
        {
            return self.change(&EventHeader { event_type, ..*header }, &body, target);
        }
        use EventType as E;
        match header.event_type {
            E::QUERY => self.statement(header, Query::decode(body)?, target)?,
            E::TABLE_MAP => self.tables.say(body, self.mariadb)?,
            E::INTVAR => self.context.intvar(body)?,
            E::RAND => self.context.rand(body)?,
            E::USER_VAR => self.context.user_variable(body)?,
            E::ROWS_QUERY => self.text = Some(RowsQuery::decode(body)?.0.to_vec()),
            E::MARIADB_ANNOTATE_ROWS => self.text = Some(body.to_vec()),
            E::BEGIN_LOAD_QUERY => {
                let block = BeginLoadQuery::decode(body)?;
                self.files.create(block.file_id, block.data).map_err(file_error)?;
            }
            E::APPEND_BLOCK => {
                let block = BeginLoadQuery::decode(body)?;
                if !self.files.append(block.file_id, block.data).map_err(file_error)? {
                    return Err(ApplyError::damaged("a block of a file that did not begin"));
                }
            }
            E::DELETE_FILE => drop(self.files.take(Reader::new(body).u32("file id")?)),
            E::CREATE_FILE => {
                let load = OldLoad::decode(E::CREATE_FILE, body)?;
                let id = load.file_id.unwrap_or(0);
                self.files.create(id, load.data).map_err(file_error)?;
                self.old_loads.insert(id, OldStatement::of(&load));
            }
            E::EXEC_LOAD => {
                let id = Reader::new(body).u32("file id")?;
                let load = self.old_loads.remove(&id);
                let load = load.ok_or_else(|| ApplyError::damaged("LOAD DATA without its statement"))?;
                self.load(header, &load.event(id), target)?;
            }
            // The file was asked of the source's disk by other means, and is not in the log.
            E::LOAD | E::NEW_LOAD => {
                let load = OldStatement::of(&OldLoad::decode(header.event_type, body)?);
                self.statement(header, load.event(0).query, target)?;
            }
            E::EXECUTE_LOAD_QUERY => self.load(header, &ExecuteLoadQuery::decode(body)?, target)?,
            E::INCIDENT => return Err(incident(body)?),
            // Their parts of a transaction are done by `apply`.
            E::GTID | E::ANONYMOUS_GTID | E::GTID_TAGGED | E::MARIADB_GTID | E::XID | E::XA_PREPARE => {}
            E::FORMAT_DESCRIPTION => self.set_format(&FormatDescription::decode(body)?),
            event_type if RowsKind::of(event_type).is_some() => {
                self.rows(header, Rows::decode(event_type, body)?, target)?;
            }
            E::IGNORABLE => {}
            _ if header.flags & FLAG_IGNORABLE != 0 => {}
            other => {
                let what = format!("events of type {} ({}) are not supported", other.0, other.name());
                return Err(ApplyError::damaged(what));
            }
        }
        Ok(())
    }

    fn statement<T: ApplyTarget>(
        &mut self,
        header: &EventHeader,
        query: Query<'_>,
        target: &mut T,
    ) -> Result<(), ApplyError> {
        let is_xa = query.sql.get(..3).is_some_and(|start| start.eq_ignore_ascii_case(b"XA "));
        if !is_xa && Word::of(query.sql) != Word::Other {
            return Ok(());
        }
        let context = std::mem::take(&mut self.context);
        target.statement(&EventStatement::new(*header, query, &context, self.mariadb)?)
    }

    fn load<T: ApplyTarget>(
        &mut self,
        header: &EventHeader,
        event: &ExecuteLoadQuery<'_>,
        target: &mut T,
    ) -> Result<(), ApplyError> {
        let file = self.files.take(event.file_id);
        let file = file.ok_or_else(|| ApplyError::damaged("LOAD DATA without its file"))?;
        let (start, end) = event.file_name_span;
        if start > end || end as usize > event.query.sql.len() {
            return Err(ApplyError::damaged("the place of LOAD DATA's file name"));
        }
        let file = EventFile {
            file: RefCell::new(file),
            span: event.file_name_span,
            duplicate_handling: event.duplicate_handling,
        };
        let context = std::mem::take(&mut self.context);
        let statement = EventStatement::new(*header, event.query, &context, self.mariadb)?;
        target.statement(&statement.with_file(&file))
    }

    fn rows<T: ApplyTarget>(
        &mut self,
        header: &EventHeader,
        rows: Rows<'_>,
        target: &mut T,
    ) -> Result<(), ApplyError> {
        let Some(table) = self.tables.get(rows.table_id) else {
            if rows.table_id == NO_TABLE && rows.rows.is_empty() {
                return Ok(());
            }
            return Err(ApplyError::damaged("rows without their table"));
        };
        let mut view = EventRows::new(table, rows, header.timestamp);
        view.query = self.text.as_deref();
        target.rows(&view)?;
        if rows.flags & omnibus_format::events::ROWS_FLAG_STMT_END != 0 {
            self.text = None;
        }
        Ok(())
    }
}

fn is_rollback(header: &EventHeader, body: &[u8]) -> bool {
    header.event_type == EventType::QUERY
        && Query::decode(body).is_ok_and(|query| query.sql.eq_ignore_ascii_case(b"ROLLBACK"))
}

fn file_error(error: std::io::Error) -> ApplyError {
    ApplyError::new(1026, format!("Error writing file 'LOAD DATA' (errno: {error})"))
}

fn incident(body: &[u8]) -> Result<ApplyError, ApplyError> {
    let incident = Incident::decode(body)?;
    let name = if incident.code == 1 { "LOST_EVENTS" } else { "UNKNOWN" };
    let message = String::from_utf8_lossy(incident.message);
    Ok(ApplyError::new(1590, format!("The incident {name} occurred on the source. Message: {message}")))
}
