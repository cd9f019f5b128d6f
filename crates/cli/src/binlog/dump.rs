//! Going through the files: which events are printed, how each file ended, and what was damaged.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use omnibus_format::RawEvent;
use omnibus_log::{Disk, FileSeq, LogOffset, Next, Open, ReadError, ReadFile, ScanEnd, TornReason};
use omnibus_replication::client::ClientError;

use super::BinlogArgs;
use super::filter::{Filter, Verdict};
use super::output::{Output, Printed, unreadable};

/// Why the command did not succeed.
#[derive(Debug)]
pub(super) enum Failure {
    /// Bytes in a file are damaged.
    Damage { path: PathBuf, offset: u64, what: String },
    /// There is no such file.
    Missing(PathBuf),
    /// A file cannot be read.
    Read(ReadError),
    /// The output cannot be written.
    Output(io::Error),
    /// The server that was asked.
    Source(ClientError),
    /// The request cannot be fulfilled with this log.
    Refused(String),
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
            Failure::Source(ClientError::Server { code, message }) => {
                write!(f, "the server answered: ERROR {code}: {message}")
            }
            Failure::Source(error) => write!(f, "{error}"),
            Failure::Refused(why) => write!(f, "{why}"),
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
    let mut output = Output::new(args);
    output.head(out)?;
    for (n, path) in args.files.iter().enumerate() {
        if args.files.len() > 1 && !args.json {
            writeln!(out, "# {}", path.display())?;
        }
        let start = args.start_position.filter(|_| n == 0);
        let stop = args.stop_position.filter(|_| n + 1 == args.files.len());
        let mut dump = Dump::of(args, path, &mut output, Filter::default(), None);
        if dump.file(start, stop, out)? == Verdict::Stop {
            break;
        }
    }
    output.foot(out)?;
    Ok(())
}

/// A file being printed.
pub(super) struct Dump<'a> {
    args: &'a BinlogArgs,
    path: &'a Path,
    output: &'a mut Output,
    filter: Filter,
    /// The first event whose body made no sense although its checksum is right.
    unreadable: Option<(u64, String)>,
}

impl<'a> Dump<'a> {
    /// The file at `path`, as far as it has been printed.
    pub(super) fn of(
        args: &'a BinlogArgs,
        path: &'a Path,
        output: &'a mut Output,
        filter: Filter,
        unreadable: Option<(u64, String)>,
    ) -> Dump<'a> {
        Dump { args, path, output, filter, unreadable }
    }

    /// Returns the state that continues with the file's next event.
    pub(super) fn into_parts(self) -> (Option<Filter>, Option<(u64, String)>) {
        (Some(self.filter), self.unreadable)
    }

    /// The next event; `first` of its file.
    pub(super) fn take(
        &mut self,
        event: &RawEvent<'_>,
        first: bool,
        out: &mut impl Write,
    ) -> Result<Verdict, Failure> {
        if first {
            self.output.format(event);
        }
        let verdict = if first { Verdict::Print } else { self.judge(event) };
        if verdict == Verdict::Print {
            self.event(event, out)?;
        }
        Ok(verdict)
    }

    fn file(
        &mut self,
        start: Option<u64>,
        stop: Option<u64>,
        out: &mut impl Write,
    ) -> Result<Verdict, Failure> {
        // The number in the name only serves error messages, and any file name is welcome.
        let mut file = match ReadFile::open(&self.disk()?, FileSeq::FIRST, self.path) {
            Err(ReadError::NoSuchFile(_)) => return Err(Failure::Missing(self.path.to_owned())),
            file => file?,
        };
        if let Some(end) = self.first_event(&mut file, start, out)? {
            self.end(&end, out)?;
            return Ok(Verdict::Print);
        }
        let end = loop {
            if stop.is_some_and(|stop| file.position().offset.0 >= stop) {
                break None;
            }
            match file.next()? {
                Next::Event(event) => match self.judge(&event) {
                    Verdict::Print => self.event(&event, out)?,
                    Verdict::Skip => {}
                    Verdict::Stop => return self.verdict(Verdict::Stop),
                },
                Next::End(end) => break Some(end),
            }
        };
        if let Some(end) = end {
            self.end(&end, out)?;
        }
        self.verdict(Verdict::Print)
    }

    fn disk(&self) -> Result<Disk, Failure> {
        self.args.keys.over(Disk::default()).map_err(Failure::Refused)
    }

    fn verdict(&self, verdict: Verdict) -> Result<Verdict, Failure> {
        match self.unreadable {
            None => Ok(verdict),
            Some((offset, ref what)) => {
                Err(self.damage(offset, format!("event with a valid frame but {what}")))
            }
        }
    }

    /// The first event tells whose dialect the file speaks, also when printing starts further on.
    /// Returns the end of a file that has no first event.
    fn first_event(
        &mut self,
        file: &mut ReadFile,
        start: Option<u64>,
        out: &mut impl Write,
    ) -> Result<Option<ScanEnd>, Failure> {
        match file.next()? {
            Next::End(end) => return Ok(Some(end)),
            Next::Event(event) => {
                self.output.format(&event);
                if start.is_none_or(|start| start <= event.offset) || self.output.wants_format() {
                    self.event(&event, out)?;
                }
            }
        }
        if let Some(start) = start.filter(|start| *start > file.position().offset.0) {
            file.seek(LogOffset(start))?;
        }
        Ok(None)
    }

    fn judge(&mut self, event: &RawEvent<'_>) -> Verdict {
        if !self.args.wanted.is_some() {
            return Verdict::Print;
        }
        match self.filter.judge(event, &self.args.wanted) {
            Ok(verdict) => verdict,
            Err(error) => {
                self.body_damage(event, error.to_string());
                Verdict::Print
            }
        }
    }

    fn event(&mut self, event: &RawEvent<'_>, out: &mut impl Write) -> Result<(), Failure> {
        match self.output.event(event, self.path, out)? {
            Printed::Whole => {}
            Printed::Damaged(what) => self.body_damage(event, what),
            Printed::Refused(why) => {
                let why = format!("{} at offset {}: {why}", self.path.display(), event.offset);
                return Err(Failure::Refused(why));
            }
        }
        Ok(())
    }

    /// Remembers the first unreadable body.
    fn body_damage(&mut self, event: &RawEvent<'_>, what: String) {
        self.unreadable.get_or_insert_with(|| (event.offset, unreadable(&what)));
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
        if !self.args.json {
            writeln!(out, "# preallocated space from offset {offset}")?;
        }
        Ok(())
    }

    /// The first byte behind `offset` that is not zero.
    fn non_zero_behind(&self, offset: u64) -> Result<Option<u64>, Failure> {
        let failed = |error: io::Error| self.damage(offset, format!("cannot read the rest: {error}"));
        let file = self.disk()?.open(self.path, Open::Read).map_err(failed)?;
        let mut buffer = vec![0; 256 << 10];
        let mut at = offset;
        loop {
            let read = file.read_at(&mut buffer, at).map_err(failed)?;
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
