//! `omnibus binlog --sql`: SQL that a client sends to a server to do the log's changes again.
//!
//! Statements as they are, with SET for what of their context is not what the last one left; rows as `BINLOG '…'` with
//! the events themselves. MySQL, MariaDB and Omnibus take it. What only one of them knows stands in version comments.
//! Private and ignorable events are left out. An event-by-event printer: it keeps only the row events of one statement
//! (`sql_rows`) and files of LOAD DATA (`sql_load`).

use std::collections::HashMap;
use std::io::{self, Write};

use omnibus_format::events::{
    BeginLoadQuery, ExecuteLoadQuery, FormatDescription, Gtid, INTVAR_LAST_INSERT_ID, Incident, IntVar,
    MariadbGtidEvent, OldLoad, Query, Rand, Rotate, RowsKind, RowsQuery, UserVar, XaPrepare,
};
use omnibus_format::header::{FLAG_IN_USE, FLAGS_OFFSET};
use omnibus_format::{DecodeError, EventHeader, EventType, MAX_EVENT_SIZE, RawEvent};
use omnibus_replication::changes::{
    EventStatement, Payload, StatementVariables, mariadb_xa_start, plain_event,
};

use super::BinlogArgs;
use super::flashback::Flashback;
use super::sql_args::SqlArgs;
use super::sql_context::{Context, user_variable};
use super::sql_load::{LoadedFiles, OldStatement};
use super::sql_text::{is_left_out, remark, transaction_word, with_body};

/// The settings of SQL output.
#[derive(Clone, Debug, Default)]
pub(super) struct SqlOptions {
    /// No GTIDs: the server that takes the output gives its own.
    pub skip_gtids: bool,
    /// Only changes of this database.
    pub database: Option<Vec<u8>>,
    /// The folder for files of LOAD DATA.
    pub local_load: Option<std::path::PathBuf>,
    /// The rest of what the command line asks for.
    pub how: SqlArgs,
}

impl SqlOptions {
    /// Derives the settings from a command line.
    pub(super) fn of(args: &BinlogArgs, database: Option<Vec<u8>>) -> SqlOptions {
        let how = args.how.clone();
        SqlOptions { skip_gtids: how.skip_gtids, database, local_load: how.local_load.clone(), how }
    }
}

/// Prints events.
pub(super) struct SqlPrinter {
    pub(super) options: SqlOptions,
    pub(super) context: Context,
    pub(super) files: LoadedFiles,
    /// The last FORMAT_DESCRIPTION event, and whether it was printed.
    pub(super) format: Vec<u8>,
    pub(super) format_printed: bool,
    pub(super) mariadb: bool,
    /// TABLE_MAP and rows events of one statement.
    pub(super) pending: Vec<u8>,
    /// Tables that are not wanted.
    pub(super) dropped: Vec<u64>,
    pub(super) in_transaction: bool,
    /// The statement that comes is printed as a remark.
    left_out: bool,
    pub(super) flashback: Option<Flashback>,
    /// Why the output breaks off.
    pub(super) refusal: Option<String>,
    /// Statements of CREATE_FILE events, by file.
    pub(super) old_loads: HashMap<u32, OldStatement>,
}

impl SqlPrinter {
    pub(super) fn new(options: SqlOptions) -> SqlPrinter {
        let files = LoadedFiles::new(options.local_load.clone());
        let flashback = options.how.flashback.then(Flashback::default);
        SqlPrinter {
            options,
            context: Context::default(),
            files,
            format: Vec::new(),
            format_printed: false,
            mariadb: false,
            pending: Vec::new(),
            dropped: Vec::new(),
            in_transaction: false,
            left_out: false,
            flashback,
            refusal: None,
            old_loads: HashMap::new(),
        }
    }

    /// Prints the text before everything.
    pub(super) fn head(&mut self, out: &mut impl Write) -> io::Result<()> {
        let how = &self.options.how;
        if how.disable_log_bin {
            out.write_all(b"SET @OLD_SQL_LOG_BIN=@@SQL_LOG_BIN, SQL_LOG_BIN=0;\n")?;
        }
        if let Some(charset) = &how.set_charset {
            writeln!(out, "SET NAMES {charset};")?;
        }
        if how.idempotent {
            // MariaDB reads over it: what it calls so is a setting of the whole server.
            out.write_all(b"/*!50700 SET @@SESSION.RBR_EXEC_MODE=IDEMPOTENT*/;\n")?;
        }
        out.write_all(
            b"/*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=1*/;\n\
              /*!50003 SET @OLD_COMPLETION_TYPE=@@COMPLETION_TYPE,COMPLETION_TYPE=0*/;\nDELIMITER /*!*/;\n",
        )
    }

    /// Prints the text behind everything.
    pub(super) fn foot(&mut self, out: &mut impl Write) -> io::Result<()> {
        if let Some(flashback) = &mut self.flashback {
            flashback.print(out)?;
        } else if self.in_transaction {
            out.write_all(b"ROLLBACK /* the log ends inside a transaction */\n/*!*/;\n")?;
        }
        if !self.options.skip_gtids && !self.mariadb {
            out.write_all(b"/*!80000 SET @@SESSION.GTID_NEXT= 'AUTOMATIC' */\n/*!*/;\n")?;
        }
        out.write_all(
            b"DELIMITER ;\n/*!50003 SET COMPLETION_TYPE=@OLD_COMPLETION_TYPE*/;\n\
              /*!50530 SET @@SESSION.PSEUDO_SLAVE_MODE=0*/;\n",
        )?;
        let how = &self.options.how;
        if how.idempotent {
            out.write_all(b"/*!50700 SET @@SESSION.RBR_EXEC_MODE=STRICT*/;\n")?;
        }
        if how.disable_log_bin { out.write_all(b"SET SQL_LOG_BIN=@OLD_SQL_LOG_BIN;\n") } else { Ok(()) }
    }

    /// Why the last event ends the output, if it does.
    pub(super) fn refusal(&mut self) -> Option<String> {
        self.refusal.take()
    }

    /// The next event. The outer error is the output's, the inner one the event's.
    pub(super) fn event(
        &mut self,
        event: &RawEvent<'_>,
        out: &mut impl Write,
    ) -> io::Result<Result<(), DecodeError>> {
        if event.header.event_type == EventType::TRANSACTION_PAYLOAD {
            return self.payload(event, out);
        }
        match plain_event(event.header.event_type, event.body, MAX_EVENT_SIZE) {
            Ok(None) => self.plain(event, out),
            Ok(Some((event_type, body))) => {
                let bytes = with_body(event, event_type, &body, self.format_has_checksums());
                let header = EventHeader { event_type, ..event.header };
                self.plain(&RawEvent { header, body: &body, bytes: &bytes, ..*event }, out)
            }
            Err(error) => Ok(Err(error)),
        }
    }

    /// A whole transaction, compressed: its events, one by one.
    fn payload(&mut self, event: &RawEvent<'_>, out: &mut impl Write) -> io::Result<Result<(), DecodeError>> {
        let mut events = match Payload::new(event.body) {
            Ok(events) => events,
            Err(error) => return Ok(Err(error)),
        };
        loop {
            let (header, body) = match events.next() {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(Ok(())),
                Err(error) => return Ok(Err(error)),
            };
            let header = EventHeader { server_id: event.header.server_id, ..header };
            let head = header.encode();
            let own = RawEvent { offset: event.offset, header, body, bytes: &head };
            let bytes = with_body(&own, header.event_type, body, self.format_has_checksums());
            if let Err(error) = self.plain(&RawEvent { bytes: &bytes, ..own }, out)? {
                return Ok(Err(error));
            }
        }
    }

    pub(super) fn format_has_checksums(&self) -> bool {
        FormatDescription::checksum_of_event(&self.format)
            .is_ok_and(|checksum| checksum.is_some_and(|checksum| !checksum.is_empty()))
    }

    fn plain(&mut self, event: &RawEvent<'_>, out: &mut impl Write) -> io::Result<Result<(), DecodeError>> {
        if is_left_out(event) {
            return Ok(Ok(()));
        }
        if self.flashback.is_some() {
            return Ok(self.turn_round(event));
        }
        if !self.options.how.short_form {
            self.comment(event, out)?;
        }
        match self.print(event, out) {
            Ok(()) => Ok(Ok(())),
            Err(Failure::Output(error)) => Err(error),
            Err(Failure::Event(error)) => Ok(Err(error)),
        }
    }

    fn comment(&self, event: &RawEvent<'_>, out: &mut impl Write) -> io::Result<()> {
        let header = &event.header;
        let at =
            omnibus_value::temporal::DateTime::from_unix(i64::from(header.timestamp), 0).unwrap_or_default();
        let mut text = Vec::new();
        at.write_text(0, &mut text);
        writeln!(
            out,
            "# at {}\n#{} server id {}  end_log_pos {}  {}",
            event.offset,
            String::from_utf8_lossy(&text),
            header.server_id,
            event.end(),
            header.event_type.name()
        )
    }

    fn print(&mut self, event: &RawEvent<'_>, out: &mut impl Write) -> Result<(), Failure> {
        use EventType as E;
        let body = event.body;
        match event.header.event_type {
            E::FORMAT_DESCRIPTION => self.format(event)?,
            E::GTID | E::ANONYMOUS_GTID | E::GTID_TAGGED => self.gtid(event, out)?,
            E::MARIADB_GTID => self.mariadb_gtid(event, out)?,
            E::QUERY => self.query(event, &Query::decode(body)?, out)?,
            E::INTVAR => {
                let var = IntVar::decode(body)?;
                let name = if var.kind == INTVAR_LAST_INSERT_ID { "LAST_INSERT_ID" } else { "INSERT_ID" };
                write!(out, "SET {name}={}\n/*!*/;\n", var.value)?;
            }
            E::RAND => {
                let Rand(first, second) = Rand::decode(body)?;
                write!(out, "SET @@RAND_SEED1={first}, @@RAND_SEED2={second}\n/*!*/;\n")?;
            }
            E::USER_VAR => user_variable(&UserVar::decode(body)?, out)?,
            E::XID => self.end(b"COMMIT", out)?,
            E::XA_PREPARE => self.xa_prepare(&XaPrepare::decode(body)?, out)?,
            E::ROWS_QUERY | E::MARIADB_ANNOTATE_ROWS if self.options.how.short_form => {}
            E::ROWS_QUERY => remark(RowsQuery::decode(body)?.0, out)?,
            E::MARIADB_ANNOTATE_ROWS => remark(body, out)?,
            E::TABLE_MAP => self.table_map(event)?,
            E::ROTATE => {
                let rotate = Rotate::decode(body)?;
                let file = String::from_utf8_lossy(rotate.file).replace('\n', " ");
                writeln!(out, "# continues in {file} at {}", rotate.position)?;
            }
            E::INCIDENT => {
                let incident = Incident::decode(body)?;
                let message = String::from_utf8_lossy(incident.message).replace('\n', " ");
                // No server takes this: whoever replays must know that something is missing.
                write!(
                    out,
                    "# incident {}: {message}\nRELOAD DATABASE; # a syntax error, on purpose\n/*!*/;\n",
                    incident.code
                )?;
            }
            E::BEGIN_LOAD_QUERY => {
                let block = BeginLoadQuery::decode(body)?;
                self.files.begin(block.file_id, block.data)?;
            }
            E::APPEND_BLOCK => {
                let block = BeginLoadQuery::decode(body)?;
                self.files.append(block.file_id, block.data)?;
            }
            E::CREATE_FILE => self.old_load_begins(&OldLoad::decode(E::CREATE_FILE, body)?)?,
            E::EXEC_LOAD => self.old_load(event, out)?,
            E::LOAD | E::NEW_LOAD => {
                let load = OldLoad::decode(event.header.event_type, body)?;
                let text = String::from_utf8_lossy(&load.statement().0).replace('\n', " ");
                writeln!(out, "# the log does not have the file of: {text}")?;
            }
            E::EXECUTE_LOAD_QUERY => self.load(event, &ExecuteLoadQuery::decode(body)?, out)?,
            kind if RowsKind::of(kind).is_some() => self.rows(event, out)?,
            _ => {}
        }
        Ok(())
    }

    pub(super) fn format(&mut self, event: &RawEvent<'_>) -> Result<(), Failure> {
        self.mariadb = FormatDescription::decode(event.body)?.is_mariadb();
        self.format.clear();
        self.format.extend_from_slice(event.bytes);
        // The file may be in use; the event in its statement is not.
        self.format[FLAGS_OFFSET] &= !(FLAG_IN_USE as u8);
        self.format_printed = false;
        Ok(())
    }

    fn gtid(&mut self, event: &RawEvent<'_>, out: &mut impl Write) -> Result<(), Failure> {
        let gtid = Gtid::decode_as(event.header.event_type, event.body)?;
        if self.options.skip_gtids {
            return Ok(());
        }
        let name = match event.header.event_type {
            EventType::ANONYMOUS_GTID => "ANONYMOUS".to_owned(),
            _ => format!("{}:{}", gtid.source(), gtid.gno),
        };
        write!(out, "/*!80000 SET @@SESSION.GTID_NEXT= '{name}' */\n/*!*/;\n")?;
        Ok(())
    }

    fn mariadb_gtid(&mut self, event: &RawEvent<'_>, out: &mut impl Write) -> Result<(), Failure> {
        let gtid = MariadbGtidEvent::decode(event.body)?;
        // Whoever replays the text does an ALTER once.
        self.left_out = MariadbGtidEvent::alter_phase(event.body)?.is_some_and(|phase| !phase.is_executed());
        if !self.options.skip_gtids {
            write!(
                out,
                "/*!100001 SET @@session.gtid_domain_id={} */\n/*!*/;\n/*!100001 SET @@session.server_id={} */\n/*!*/;\n\
                 /*!100001 SET @@session.gtid_seq_no={} */\n/*!*/;\n",
                gtid.domain, event.header.server_id, gtid.sequence
            )?;
        }
        if gtid.flags & MariadbGtidEvent::FLAG_STANDALONE == 0 {
            self.in_transaction = true;
            let start = mariadb_xa_start(event.body)?;
            out.write_all(start.as_deref().unwrap_or(b"BEGIN"))?;
            out.write_all(b"\n/*!*/;\n")?;
        }
        Ok(())
    }

    fn query(
        &mut self,
        event: &RawEvent<'_>,
        query: &Query<'_>,
        out: &mut impl Write,
    ) -> Result<(), Failure> {
        let context = StatementVariables::default();
        let database = self.rewritten(query.database).to_vec();
        let query = &Query { database: &database, ..*query };
        let view = EventStatement::new(event.header, *query, &context, self.mariadb)?;
        match transaction_word(query.sql) {
            Some(true) => return self.end(query.sql, out),
            Some(false) => {
                // No transaction may be open when `autocommit` changes, so its own is set before it begins.
                // Whether a savepoint's "name" is a name depends on sql_mode.
                if !self.in_transaction || query.sql.contains(&b'"') {
                    self.context.variables(&view, self.in_transaction, out)?;
                }
                self.in_transaction = true;
                out.write_all(query.sql)?;
                out.write_all(b"\n/*!*/;\n")?;
                return Ok(());
            }
            None => {}
        }
        if !self.wants(query.database) {
            return Ok(());
        }
        self.context.set(&view, self.in_transaction, out)?;
        if query.error_code != 0 {
            writeln!(out, "# it ended with error {} where it was born", query.error_code)?;
        }
        if self.left_out {
            remark(query.sql, out)?;
        } else {
            out.write_all(query.sql)?;
            out.write_all(b"\n/*!*/;\n")?;
            self.context.executed(query.sql);
        }
        Ok(())
    }

    fn end(&mut self, word: &[u8], out: &mut impl Write) -> Result<(), Failure> {
        self.in_transaction = false;
        out.write_all(word)?;
        out.write_all(b"\n/*!*/;\n")?;
        Ok(())
    }

    fn xa_prepare(&mut self, xa: &XaPrepare<'_>, out: &mut impl Write) -> Result<(), Failure> {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let (verb, end) = if xa.one_phase { ("COMMIT", " ONE PHASE") } else { ("PREPARE", "") };
        let (gtrid, bqual) = (hex(xa.gtrid), hex(xa.bqual));
        let word = format!("XA {verb} X'{gtrid}',X'{bqual}',{}{end}", xa.format_id);
        self.end(word.as_bytes(), out)
    }

    pub(super) fn wants(&self, database: &[u8]) -> bool {
        self.options.database.as_ref().is_none_or(|wanted| wanted == database)
    }

    /// A database's name in the output.
    pub(super) fn rewritten<'n>(&'n self, database: &'n [u8]) -> &'n [u8] {
        let rule = self.options.how.rewrite_db.iter().find(|rule| rule.from == database);
        rule.map_or(database, |rule| &rule.to)
    }
}

/// Why an event is not printed.
pub(super) enum Failure {
    Output(io::Error),
    Event(DecodeError),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Failure {
        Failure::Event(error)
    }
}
