//! Prints the changes of one table, from log files or from the data directory of a running server.
//!
//!     change-stream shop.item data/binlog.000001 data/binlog.000002
//!     change-stream shop.item --follow data
//!     change-stream shop.item --follow data --from binlog.000002:4711
//!
//! An example to copy. All that is about changes is in [`Printer`]; the rest is a command line. It follows a live log by
//! looking again four times a second, so it sees a change when it is in the file. A program that must not act on what a
//! crash could still take back asks the server itself: as a replica, or in it with a `TailReader`.

use omnibus_format::field::FieldType;
use omnibus_replication::consume::{Consumer, End, Feed, FilePosition, LogFiles};
use omnibus_replication::model::{RowsView, StatementView, TableView, TrxHeader};
use omnibus_value::{ColumnKind, ColumnType, Value};
use std::error::Error;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Duration;

/// The consumer: one line a change, one a commit that changed something.
struct Printer<W> {
    database: String,
    table: String,
    out: W,
    /// What names the transaction.
    gtid: String,
    changes: usize,
}

impl<W: Write> Consumer for Printer<W> {
    type Error = io::Error;

    fn begin(&mut self, trx: &TrxHeader, _: Option<FilePosition<'_>>) -> io::Result<()> {
        self.gtid = trx.gtid.map_or("without GTID".to_owned(), |gtid| gtid.to_string());
        self.changes = 0;
        Ok(())
    }

    /// Definitions, and changes that were logged as text (`binlog_format`): which rows they change the log does not say.
    fn statement(&mut self, statement: &dyn StatementView) -> io::Result<()> {
        let sql = String::from_utf8_lossy(statement.sql());
        if statement.database() == self.database.as_bytes() && sql.contains(&self.table) {
            self.changes += 1;
            writeln!(self.out, "statement {sql}")?;
        }
        Ok(())
    }

    fn rows(&mut self, rows: &dyn RowsView) -> io::Result<()> {
        let table = rows.table();
        // Nothing of the rows has been decoded when this says no.
        if table.database() != self.database.as_bytes() || table.name() != self.table.as_bytes() {
            return Ok(());
        }
        let mut failed = Ok(());
        let decoded = rows.each(&mut |change| {
            self.changes += 1;
            let images = [("before", &change.before), ("after", &change.after)];
            let mut line = format!("{:?}", rows.kind()).to_lowercase();
            for (name, image) in images {
                let Some(values) = image.as_ref().map(|image| image.decode(table.shape())) else { continue };
                line += &format!(
                    " {name} {{{}}}",
                    values.map_or("?".to_owned(), |values| members(table, &values))
                );
            }
            failed = writeln!(self.out, "{line}");
            if failed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        decoded.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        failed
    }

    /// `place` is where to go on after a restart: keep it with what was made of the changes.
    fn end(&mut self, _: End<'_>, place: Option<FilePosition<'_>>) -> io::Result<()> {
        if let (Some(place), true) = (place, self.changes > 0) {
            writeln!(self.out, "commit {} up to {}:{}", self.gtid, place.file, place.offset)?;
            self.out.flush()?;
        }
        Ok(())
    }
}

/// `name=value` for each column that the image has.
fn members(table: &dyn TableView, values: &[Option<Value>]) -> String {
    let member = |at: usize, value: &Value| {
        let name = match &table.metadata(at).name {
            Some(name) => String::from_utf8_lossy(name).into_owned(),
            None => format!("@{}", at + 1),
        };
        format!("{name}={}", text(value, table.columns()[at]))
    };
    let present = values.iter().enumerate().filter_map(|(at, value)| Some(member(at, value.as_ref()?)));
    present.collect::<Vec<_>>().join(", ")
}

/// A value as a person reads it.
fn text(value: &Value, field: FieldType) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => format!("{text:?}"),
            Err(_) => format!("{bytes:02x?}"),
        },
        value => {
            let mut column = ColumnType::of(ColumnKind::VarChar);
            column.decimals = field.meta.min(6) as u8;
            String::from_utf8_lossy(&value.to_bytes(&column)).into_owned()
        }
    }
}

const USAGE: &str = "usage: change-stream DATABASE.TABLE FILE...\n       change-stream DATABASE.TABLE --follow DATADIR [--from FILE:POSITION]";

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let table = words.next().ok_or(USAGE)?;
    let (database, table) = table.split_once('.').ok_or(USAGE)?;
    let (mut follow, mut from, mut files) = (None, None, Vec::new());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--follow" => follow = Some(PathBuf::from(words.next().ok_or(USAGE)?).join("binlog.index")),
            "--from" => from = Some(words.next().ok_or(USAGE)?),
            _ => files.push(PathBuf::from(word)),
        }
    }
    let mut log = match &follow {
        Some(index) => LogFiles::of_index(index)?,
        None => LogFiles::of(files),
    };
    if let Some(from) = &from {
        let (file, offset) = from.split_once(':').ok_or(USAGE)?;
        if !log.seek(file, offset.parse()?) {
            return Err(format!("{file} is not there; what it held may have been purged").into());
        }
    }
    let out = io::stdout().lock();
    let (database, table) = (database.to_owned(), table.to_owned());
    let mut feed = Feed::new(Printer { database, table, out, gtid: String::new(), changes: 0 });
    loop {
        log.read(&mut feed)?;
        if follow.is_none() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(250));
    }
}
