//! `omnibus replay`: changes as JSON lines become SQL: `omnibus binlog --json FILE | jq … | omnibus replay | mariadb`.
//!
//! Each line is read by the replication crate, made into the events that say the same, and printed as `binlog --sql`
//! prints events. So the rows are exact, whatever their types, and MySQL, MariaDB and Omnibus take the output. A wrong
//! line ends it with an error that names the line; what was begun is rolled back in the output.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use omnibus_format::checksum::crc32;
use omnibus_format::events::{
    FormatDescription, Gtid, MariadbGtidEvent, OptionalMetadata, Query, ROWS_FLAG_NO_FOREIGN_KEY_CHECKS,
    ROWS_FLAG_RELAXED_UNIQUE_CHECKS, ROWS_FLAG_STMT_END, RowsQuery, XaPrepare, Xid, put_rows_header,
};
use omnibus_format::header::HEADER_LEN;
use omnibus_format::{AnyGtid, Checksum, EventHeader, EventType, RawEvent};
use omnibus_replication::changes::{ApplyError, ApplyTarget, JsonReplay, Position};
use omnibus_replication::generate::{self, EventSink};
use omnibus_replication::model::{RowsView, StatementView, TableView, TrxHeader};

use super::sql::{SqlOptions, SqlPrinter};

/// Turn changes as JSON lines (`omnibus binlog --json`) into SQL for `mariadb`, `mysql` or Omnibus.
#[derive(Args, Clone, Debug, Default)]
pub struct ReplayArgs {
    /// Files of JSON lines, in order; standard input without any.
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Let the server that takes the output give its own GTIDs.
    #[arg(long)]
    skip_gtids: bool,
    /// The folder for the files that LOAD DATA reads; they stay there.
    #[arg(long, value_name = "FOLDER")]
    local_load: Option<PathBuf>,
}

/// Runs the command.
#[must_use]
pub fn run(args: ReplayArgs) -> ExitCode {
    let out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    match replay(&args, out) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("omnibus replay: {message}");
            ExitCode::FAILURE
        }
    }
}

fn replay(args: &ReplayArgs, out: impl Write) -> Result<(), String> {
    let (skip_gtids, local_load) = (args.skip_gtids, args.local_load.clone());
    let options = SqlOptions { skip_gtids, local_load, ..SqlOptions::default() };
    let mut target = Printing::new(SqlPrinter::new(options), out);
    target.printer.head(&mut target.out).map_err(|error| error.to_string())?;
    let mut result = Ok(());
    if args.files.is_empty() {
        result = lines(io::stdin().lock(), "standard input", &mut target);
    }
    for path in &args.files {
        let name = path.display().to_string();
        let file = File::open(path).map_err(|error| format!("{name}: {error}"))?;
        result = result.and_then(|()| lines(BufReader::new(file), &name, &mut target));
    }
    // Also after an error: what is open is rolled back there.
    target
        .printer
        .foot(&mut target.out)
        .and_then(|()| target.out.flush())
        .map_err(|error| error.to_string())?;
    result
}

fn lines<W: Write>(mut input: impl BufRead, name: &str, target: &mut Printing<W>) -> Result<(), String> {
    let mut replay = JsonReplay::default();
    let (mut line, mut number) = (String::new(), 0);
    loop {
        line.clear();
        number += 1;
        match input.read_line(&mut line) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(format!("{name}: line {number}: {error}")),
        }
        replay
            .line(line.trim_end(), target, None)
            .map_err(|error| format!("{name}: line {number}: {}", error.message))?;
    }
}

/// Prints what it is told to do.
struct Printing<W> {
    printer: SqlPrinter,
    out: W,
    /// The dialect of the last GTID, once there was one.
    mariadb: Option<bool>,
    trx: TrxHeader,
    /// BEGIN is still to be printed.
    opening: bool,
    /// A definition, which COMMIT does not follow.
    alone: bool,
    tables: u64,
}

impl<W: Write> Printing<W> {
    fn new(printer: SqlPrinter, out: W) -> Printing<W> {
        Printing {
            printer,
            out,
            mariadb: None,
            trx: TrxHeader::default(),
            opening: false,
            alone: false,
            tables: 0,
        }
    }

    fn event(&mut self, event_type: EventType, flags: u16, body: &[u8]) -> Result<(), ApplyError> {
        self.event_at(self.trx.timestamp, event_type, flags, body)
    }

    fn event_at(
        &mut self,
        timestamp: u32,
        event_type: EventType,
        flags: u16,
        body: &[u8],
    ) -> Result<(), ApplyError> {
        let too_long = |_| ApplyError::damaged("a line too long for an event");
        let size = u32::try_from(HEADER_LEN + body.len()).map_err(too_long)?;
        // A description of a format always has a checksum.
        let sum = if event_type == EventType::FORMAT_DESCRIPTION { 4 } else { 0 };
        let header = EventHeader {
            timestamp,
            event_type,
            server_id: self.trx.server_id,
            size: size + sum,
            log_pos: 0,
            flags,
        };
        let mut bytes = header.encode().to_vec();
        bytes.extend_from_slice(body);
        if sum > 0 {
            let crc = crc32(&bytes);
            bytes.extend_from_slice(&crc.to_le_bytes());
        }
        let event = RawEvent { offset: 0, header, body, bytes: &bytes };
        let printed = self
            .printer
            .event(&event, &mut self.out)
            .map_err(|error| ApplyError::new(1026, format!("the output cannot be written: {error}")))?;
        printed.map_err(ApplyError::from)
    }

    /// Values of a MariaDB log are described as one.
    fn format(&mut self, mariadb: bool) -> Result<(), ApplyError> {
        if self.mariadb == Some(mariadb) {
            return Ok(());
        }
        self.mariadb = Some(mariadb);
        let version = if mariadb { "10.11.0-MariaDB-omnibus" } else { "8.4.0-omnibus" };
        let mut body = Vec::new();
        FormatDescription::new(version, 0, Checksum::None).encode(&mut body);
        self.event(EventType::FORMAT_DESCRIPTION, 0, &body)
    }

    fn query(&mut self, sql: &[u8]) -> Result<(), ApplyError> {
        let mut body = Vec::new();
        Query { thread_id: 0, exec_time: 0, error_code: 0, status: &[], database: &[], sql }
            .encode(&mut body);
        self.event(EventType::QUERY, 0, &body)
    }

    fn open(&mut self) -> Result<(), ApplyError> {
        if std::mem::take(&mut self.opening) { self.query(b"BEGIN") } else { Ok(()) }
    }

    fn parts(&mut self, view: &dyn StatementView, parts: Parts) -> Result<(), ApplyError> {
        let timestamp = seconds(view.timestamp_us());
        for (event_type, flags, body) in parts.0 {
            self.event_at(timestamp, EventType(event_type), flags, &body)?;
        }
        Ok(())
    }
}

/// The events of a statement.
#[derive(Default)]
struct Parts(Vec<(u8, u16, Vec<u8>)>);

impl EventSink for Parts {
    type Error = io::Error;

    fn event(&mut self, event_type: u8, flags: u16, body: &[u8]) -> Result<(), Self::Error> {
        self.0.push((event_type, flags, body.to_vec()));
        Ok(())
    }

    fn lost(&self, error: io::Error) -> io::Error {
        error
    }
}

fn seconds(us: i64) -> u32 {
    u32::try_from(us.div_euclid(1_000_000)).unwrap_or(0)
}

/// Statements that a transaction holds; any other commits by itself.
fn belongs_to_transaction(sql: &[u8]) -> bool {
    let word: Vec<u8> = sql
        .trim_ascii_start()
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .map(u8::to_ascii_uppercase)
        .collect();
    matches!(
        &word[..],
        b"INSERT"
            | b"UPDATE"
            | b"DELETE"
            | b"REPLACE"
            | b"LOAD"
            | b"WITH"
            | b"SAVEPOINT"
            | b"ROLLBACK"
            | b"SELECT"
            | b"DO"
            | b"CALL"
            | b"RELEASE"
            | b""
    )
}

impl<W: Write> ApplyTarget for Printing<W> {
    type Ticket = ();

    fn begin(&mut self, trx: &TrxHeader) -> Result<(), ApplyError> {
        self.trx = *trx;
        self.alone = trx.standalone;
        // MariaDB's GTID stands for BEGIN, so it is printed without its own.
        let mut body = Vec::new();
        match trx.gtid {
            Some(AnyGtid::Mariadb(gtid)) => {
                self.format(true)?;
                let flags = MariadbGtidEvent::FLAG_STANDALONE;
                MariadbGtidEvent { domain: gtid.domain, sequence: gtid.sequence, flags, commit_id: None }
                    .encode(&mut body);
                self.event(EventType::MARIADB_GTID, 0, &body)?;
            }
            Some(AnyGtid::Mysql { source, gno }) => {
                self.format(false)?;
                let gtid = Gtid { uuid: source.uuid, tag: source.tag, gno, ..Gtid::default() };
                gtid.encode(&mut body);
                self.event(gtid.event_type(), 0, &body)?;
            }
            None => {
                let as_before = self.mariadb.unwrap_or(false);
                self.format(as_before)?;
            }
        }
        self.opening = !self.alone;
        Ok(())
    }

    fn statement(&mut self, view: &dyn StatementView) -> Result<(), ApplyError> {
        let is_xa = view.sql().get(..3).is_some_and(|start| start.eq_ignore_ascii_case(b"XA "));
        if self.opening && (is_xa || !belongs_to_transaction(view.sql())) {
            (self.opening, self.alone) = (false, true);
        }
        self.open()?;
        let mut parts = Parts::default();
        generate::statement(&mut parts, view).map_err(ApplyError::damaged)?;
        self.parts(view, parts)
    }

    fn rows(&mut self, view: &dyn RowsView) -> Result<(), ApplyError> {
        self.open()?;
        let timestamp = seconds(view.timestamp_us());
        if let Some(query) = view.query() {
            let mut body = Vec::new();
            RowsQuery(query).encode(&mut body);
            self.event_at(timestamp, EventType::ROWS_QUERY, 0, &body)?;
        }
        self.tables += 1;
        let table = table_map(view.table(), self.tables);
        self.event_at(timestamp, EventType::TABLE_MAP, 0, &table)?;
        let mut flags = 0;
        for (on, flag) in [
            (view.ends_statement(), ROWS_FLAG_STMT_END),
            (!view.foreign_key_checks(), ROWS_FLAG_NO_FOREIGN_KEY_CHECKS),
            (!view.unique_checks(), ROWS_FLAG_RELAXED_UNIQUE_CHECKS),
        ] {
            flags |= if on { flag } else { 0 };
        }
        let bitmaps: Vec<&[u8]> = [view.columns_before(), view.columns_after()]
            .into_iter()
            .filter(|bits| !bits.is_empty())
            .collect();
        let mut body = Vec::new();
        put_rows_header(&mut body, self.tables, flags, view.table().columns().len(), &bitmaps);
        view.each(&mut |change| {
            for image in [change.before, change.after].into_iter().flatten() {
                body.extend_from_slice(image.prefix);
                body.extend_from_slice(image.bytes);
            }
            std::ops::ControlFlow::Continue(())
        })?;
        let kind = view.kind().event_type();
        let kind = if view.has_json_diffs() { EventType::PARTIAL_UPDATE_ROWS } else { kind };
        self.event_at(timestamp, kind, 0, &body)
    }

    fn commit(&mut self, _: Option<&Position>) -> Result<(), ApplyError> {
        self.open()?;
        if std::mem::take(&mut self.alone) {
            return Ok(());
        }
        let mut body = Vec::new();
        Xid(0).encode(&mut body);
        self.event(EventType::XID, 0, &body)
    }

    fn prepare(&mut self, xid: &XaPrepare<'_>, _: Option<&Position>) -> Result<(), ApplyError> {
        let mut body = Vec::new();
        xid.encode(&mut body);
        self.event(EventType::XA_PREPARE, 0, &body)
    }

    fn rollback(&mut self) {
        if !std::mem::take(&mut self.opening) && !std::mem::take(&mut self.alone) {
            // What fails to be written fails again at the end, and is reported there.
            let _ = self.query(b"ROLLBACK");
        }
    }
}

fn table_map(table: &dyn TableView, table_id: u64) -> Vec<u8> {
    let columns = table.columns();
    let map = omnibus_format::events::TableMap {
        table_id,
        flags: 0,
        database: table.database().to_vec(),
        table: table.name().to_vec(),
        columns: columns.to_vec(),
        nullable: (0..columns.len()).map(|at| table.nullable(at)).collect(),
        metadata: (0..columns.len()).map(|at| table.metadata(at).clone()).collect(),
        primary_key: table.primary_key().to_vec(),
    };
    // A sign that the lines do not know must not be told as one.
    let known = map.columns.iter().zip(&map.metadata).all(|(c, m)| !c.is_numeric() || m.unsigned.is_some());
    let mut body = Vec::new();
    map.encode(if known { OptionalMetadata::Minimal } else { OptionalMetadata::None }, &mut body);
    body
}
