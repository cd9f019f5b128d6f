//! Going through the files and printing each event; saying how each file ended.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use omnibus_format::events::{FormatDescription, TableMap};
use omnibus_format::{EventType, RawEvent};
use omnibus_log::{FileSeq, LogOffset, Next, ReadError, ReadFile, ScanEnd, TornReason};

use super::tables::Tables;
use super::{BinlogArgs, json, pseudo_sql, summary};

/// Why the command did not succeed.
#[derive(Debug)]
pub(super) enum Failure {
    /// Bytes in a file are damaged.
    Damage { path: PathBuf, offset: u64, what: String },
    /// There is no such file.
    Missing(PathBuf),
    /// A file cannot be read.
    Read(ReadError),
    /// Nothing can be written.
    Output(io::Error),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Damage { path, offset, what } => {
                write!(f, "{} is damaged at offset {offset}: {what}", path.display())
            }
            Failure::Missing(path) => write!(f, "{} does not exist", path.display()),
            Failure::Read(error) => write!(f, "{error}"),
            Failure::Output(error) => write!(f, "cannot write: {error}"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Failure::Read(error)
    }
}

/// Prints all files of the command.
pub(super) fn files(args: &BinlogArgs, out: &mut impl Write) -> Result<(), Failure> {
    if !args.json {
        writeln!(out, "{:>12} {:<18} {:>10} {:>12}  Info", "Pos", "Event_type", "Server_id", "End_log_pos")?;
    }
    for (n, path) in args.files.iter().enumerate() {
        if args.files.len() > 1 && !args.json {
            writeln!(out, "# {}", path.display())?;
        }
        let start = args.start_position.filter(|_| n == 0);
        let stop = args.stop_position.filter(|_| n + 1 == args.files.len());
        Dump { args, path, tables: Tables::default(), mariadb: false, unreadable: None }
            .file(start, stop, out)?;
    }
    Ok(())
}

/// One file being printed.
struct Dump<'a> {
    args: &'a BinlogArgs,
    path: &'a Path,
    tables: Tables,
    mariadb: bool,
    /// The first event whose body made no sense although its checksum is right.
    unreadable: Option<(u64, String)>,
}

impl Dump<'_> {
    fn file(mut self, start: Option<u64>, stop: Option<u64>, out: &mut impl Write) -> Result<(), Failure> {
        // The number in the name only serves error messages, and any file name is welcome.
        let mut file = match ReadFile::open(FileSeq::FIRST, self.path) {
            Err(ReadError::NoSuchFile(_)) => return Err(Failure::Missing(self.path.to_owned())),
            file => file?,
        };
        if let Some(end) = self.look_at_format(&mut file)? {
            return self.end(&end, out);
        }
        file.seek(start.map_or(LogOffset::FIRST_EVENT, LogOffset))?;
        let end = loop {
            if stop.is_some_and(|stop| file.position().offset.0 >= stop) {
                break None;
            }
            match file.next()? {
                Next::Event(event) => self.event(&event, out)?,
                Next::End(end) => break Some(end),
            }
        };
        if let Some(end) = end {
            self.end(&end, out)?;
        }
        match self.unreadable {
            None => Ok(()),
            Some((offset, ref what)) => {
                Err(self.damage(offset, format!("event with a valid frame but {what}")))
            }
        }
    }

    /// The first event tells whose dialect the file speaks, also when printing starts further on.
    /// Gives how the file ended when it has no first event.
    fn look_at_format(&mut self, file: &mut ReadFile) -> Result<Option<ScanEnd>, Failure> {
        match file.next()? {
            Next::End(end) => Ok(Some(end)),
            Next::Event(event) => {
                if event.header.event_type == EventType::FORMAT_DESCRIPTION
                    && let Ok(format) = FormatDescription::decode(event.body)
                {
                    self.mariadb = format.is_mariadb();
                }
                Ok(None)
            }
        }
    }

    fn event(&mut self, event: &RawEvent<'_>, out: &mut impl Write) -> Result<(), Failure> {
        if event.header.event_type == EventType::TABLE_MAP
            && let Ok(map) = TableMap::decode_dialect(event.body, self.mariadb)
        {
            self.tables.insert(map);
        }
        let info = match summary::of(event, &self.tables) {
            Ok(info) => info,
            Err(error) => self.body_damage(event, error.to_string()),
        };
        if self.args.json {
            let object = match json::object(event, &info, &self.tables) {
                Ok(object) => object,
                Err(error) => {
                    let info = self.body_damage(event, error.to_string());
                    serde_json::json!({ "position": event.offset, "end": event.end(), "info": info })
                }
            };
            writeln!(out, "{object}")?;
            return Ok(());
        }
        let (offset, name, server) = (event.offset, event.header.event_type.name(), event.header.server_id);
        writeln!(out, "{offset:>12} {name:<18} {server:>10} {:>12}  {info}", event.end())?;
        if self.args.verbose && event.header.event_type.is_rows() {
            self.rows(event, out)?;
        }
        Ok(())
    }

    fn rows(&mut self, event: &RawEvent<'_>, out: &mut impl Write) -> Result<(), Failure> {
        let damage = match self.tables.rows(event) {
            Ok(Some((table, images))) => pseudo_sql::write(out, table, images)?,
            // The summary line has said so.
            Ok(None) | Err(_) => None,
        };
        if let Some(what) = damage {
            self.body_damage(event, what);
        }
        Ok(())
    }

    /// Remembers the first unreadable body, and says so in the event's line.
    fn body_damage(&mut self, event: &RawEvent<'_>, what: String) -> String {
        let what = format!("unreadable body: {what} of it");
        self.unreadable.get_or_insert_with(|| (event.offset, what.clone()));
        what
    }

    fn end(&self, end: &ScanEnd, out: &mut impl Write) -> Result<(), Failure> {
        let ScanEnd::Torn(torn) = end else { return Ok(()) };
        let offset = torn.position.offset.0;
        if torn.reason != TornReason::Preallocated {
            return Err(self.damage(offset, torn.reason.to_string()));
        }
        if let Some(hole_end) = self.non_zero_behind(offset)? {
            let what = format!("zeros, but other bytes again at offset {hole_end}");
            return Err(self.damage(offset, what));
        }
        if self.args.json {
            writeln!(out, "{}", serde_json::json!({ "position": offset, "info": "preallocated space" }))?;
        } else {
            writeln!(out, "# preallocated space from offset {offset}")?;
        }
        Ok(())
    }

    /// The first byte behind `offset` that is not zero.
    fn non_zero_behind(&self, offset: u64) -> Result<Option<u64>, Failure> {
        let failed = |error: io::Error| self.damage(offset, format!("cannot read the rest: {error}"));
        let mut file = File::open(self.path).map_err(failed)?;
        file.seek(SeekFrom::Start(offset)).map_err(failed)?;
        let mut buffer = vec![0; 256 << 10];
        let mut at = offset;
        loop {
            let read = file.read(&mut buffer).map_err(failed)?;
            if read == 0 {
                return Ok(None);
            }
            if let Some(i) = buffer[..read].iter().position(|&byte| byte != 0) {
                return Ok(Some(at + i as u64));
            }
            at += read as u64;
        }
    }

    fn damage(&self, offset: u64, what: String) -> Failure {
        Failure::Damage { path: self.path.to_owned(), offset, what }
    }
}
