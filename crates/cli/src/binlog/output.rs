//! Forms of output for events: a line of a list, changes as JSON lines, or SQL.

use std::io::{self, Write};
use std::path::Path;

use omnibus_format::events::{FormatDescription, Modern, TableMap};
use omnibus_format::{EventType, RawEvent};
use omnibus_replication::consume::{ConsumeError, Feed, JsonLines};

use super::by_database::ByDatabase;
use super::sql::{SqlOptions, SqlPrinter};
use super::tables::Tables;
use super::{BinlogArgs, pseudo_sql, remarks, summary};

/// The output of the events.
pub(super) struct Output {
    form: Form,
    /// `--offset`: events that are still to be left out.
    skip: u64,
    hexdump: bool,
    table_metadata: bool,
}

/// The result of printing an event.
pub(super) enum Printed {
    Whole,
    /// Its body makes no sense.
    Damaged(String),
    /// It cannot be printed in the requested form.
    Refused(String),
}

/// The forms of output.
enum Form {
    List(Listing),
    Json(Box<Feed<ByDatabase<JsonLines<Vec<u8>>>>>),
    Sql(Box<SqlPrinter>, Listing),
}

/// A list with one line per event.
#[derive(Default)]
pub(super) struct Listing {
    tables: Tables,
    mariadb: bool,
    verbose: bool,
    modern: Modern,
}

impl Output {
    pub(super) fn new(args: &BinlogArgs) -> Output {
        Output {
            form: Form::new(args),
            skip: args.offset,
            hexdump: args.hexdump && !args.json,
            table_metadata: args.print_table_metadata && !args.json,
        }
    }

    /// Prints the text before everything.
    pub(super) fn head(&mut self, out: &mut impl Write) -> io::Result<()> {
        match &mut self.form {
            Form::List(_) => {
                writeln!(
                    out,
                    "{:>12} {:<18} {:>10} {:>12}  Info",
                    "Pos", "Event_type", "Server_id", "End_log_pos"
                )
            }
            Form::Json(_) => Ok(()),
            Form::Sql(printer, _) => printer.head(out),
        }
    }

    /// Prints the text behind everything.
    pub(super) fn foot(&mut self, out: &mut impl Write) -> io::Result<()> {
        match &mut self.form {
            Form::Sql(printer, _) => printer.foot(out),
            _ => Ok(()),
        }
    }

    /// Prints the FORMAT_DESCRIPTION with which a file begins.
    pub(super) fn format(&mut self, event: &RawEvent<'_>) {
        if let Form::List(list) | Form::Sql(_, list) = &mut self.form
            && event.header.event_type == EventType::FORMAT_DESCRIPTION
            && let Ok(format) = FormatDescription::decode(event.body)
        {
            list.mariadb = format.is_mariadb();
        }
    }

    /// Returns whether a file's first event is needed although printing starts later.
    pub(super) fn wants_format(&self) -> bool {
        !matches!(self.form, Form::List(_))
    }

    /// Prints an event.
    pub(super) fn event(
        &mut self,
        event: &RawEvent<'_>,
        path: &Path,
        out: &mut impl Write,
    ) -> io::Result<Printed> {
        if self.skip > 0 {
            self.skip -= 1;
            // How what follows is to be read must be known all the same.
            if event.header.event_type != EventType::FORMAT_DESCRIPTION || !self.wants_format() {
                return Ok(Printed::Whole);
            }
        }
        let damaged = |what: Option<String>| what.map_or(Printed::Whole, Printed::Damaged);
        match &mut self.form {
            Form::List(list) => {
                let body = list.modern.body(&event.header, event.body);
                let result = list.event(&RawEvent { body: &body, ..*event }, out)?;
                self.extras(event, out)?;
                Ok(damaged(result))
            }
            Form::Sql(printer, list) => {
                let body = list.modern.body(&event.header, event.body);
                let result = printer.event(&RawEvent { body: &body, ..*event }, out)?;
                if let Some(why) = printer.refusal() {
                    return Ok(Printed::Refused(why));
                }
                let rows = if list.verbose { list.rows(event, out)? } else { None };
                self.extras(event, out)?;
                Ok(damaged(result.err().map(|error| error.to_string()).or(rows)))
            }
            Form::Json(feed) => {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let result = feed.event(event, Some(&name));
                let lines = feed.consumer().inner().out();
                out.write_all(lines)?;
                lines.clear();
                match result {
                    Ok(()) => Ok(Printed::Whole),
                    Err(ConsumeError::Event(error)) => Ok(Printed::Damaged(error.to_string())),
                    Err(ConsumeError::Consumer(error)) => Ok(Printed::Damaged(error.to_string())),
                }
            }
        }
    }

    /// Remarks for people behind an event.
    fn extras(&self, event: &RawEvent<'_>, out: &mut impl Write) -> io::Result<()> {
        if self.table_metadata
            && event.header.event_type == EventType::TABLE_MAP
            && let Form::List(list) | Form::Sql(_, list) = &self.form
            && let Ok(map) = TableMap::decode_dialect(event.body, list.mariadb)
        {
            remarks::columns(&map, out)?;
        }
        if self.hexdump { remarks::hexdump(event, out) } else { Ok(()) }
    }
}

impl Form {
    fn new(args: &BinlogArgs) -> Form {
        let listing = Listing { verbose: args.verbose > 0, ..Listing::default() };
        let database = args.database.as_ref().map(|name| name.clone().into_bytes());
        if args.json {
            return Form::Json(Box::new(Feed::new(ByDatabase::new(JsonLines::new(Vec::new()), database))));
        }
        if args.prints_sql() {
            return Form::Sql(Box::new(SqlPrinter::new(SqlOptions::of(args, database))), listing);
        }
        Form::List(listing)
    }
}

impl Listing {
    fn event(&mut self, event: &RawEvent<'_>, out: &mut impl Write) -> io::Result<Option<String>> {
        self.note_table(event);
        let mut damage = None;
        let info = match summary::of(event, &self.tables) {
            Ok(info) => info,
            Err(error) => {
                damage = Some(error.to_string());
                unreadable(&error.to_string())
            }
        };
        let (offset, name, server) = (event.offset, event.header.event_type.name(), event.header.server_id);
        writeln!(out, "{offset:>12} {name:<18} {server:>10} {:>12}  {info}", event.end())?;
        if self.verbose && event.header.event_type.is_rows() {
            damage = self.print_rows(event, out)?.or(damage);
        }
        Ok(damage)
    }

    fn note_table(&mut self, event: &RawEvent<'_>) {
        if event.header.event_type == EventType::TABLE_MAP
            && let Ok(map) = TableMap::decode_dialect(event.body, self.mariadb)
        {
            self.tables.insert(map);
        }
    }

    /// Rows as remarks, behind the SQL that makes them.
    fn rows(&mut self, event: &RawEvent<'_>, out: &mut impl Write) -> io::Result<Option<String>> {
        self.note_table(event);
        if event.header.event_type.is_rows() { self.print_rows(event, out) } else { Ok(None) }
    }

    fn print_rows(&self, event: &RawEvent<'_>, out: &mut impl Write) -> io::Result<Option<String>> {
        match self.tables.rows(event) {
            Ok(Some((table, images))) => pseudo_sql::write(out, table, images),
            // The summary line has said so.
            Ok(None) | Err(_) => Ok(None),
        }
    }
}

/// Describes an event whose body is malformed.
pub(super) fn unreadable(what: &str) -> String {
    format!("unreadable body: {what} of it")
}
