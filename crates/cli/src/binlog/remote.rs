//! A server's log instead of files: the same events through the same printing, or raw copies of its files.
//!
//! Asks as `mysqlbinlog` does: not as a replica, so nothing is registered, and the server ends the stream at its log's end
//! unless it is to be followed. One connection a FILE. Events are checked before they are used; a file name that a server
//! says is never more than a name here.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use omnibus_format::RawEvent;
use omnibus_format::header::MAGIC;
use omnibus_format::scan::parse_event;
use omnibus_replication::client::{ClientError, LogSource, LogStream, Reader, Said, StreamError};
use std::time::Duration;

use super::BinlogArgs;
use super::dump::{Dump, Failure};
use super::filter::{Filter, Verdict};
use super::output::Output;

/// The interval of heartbeats from a server that has nothing to send.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Between two attempts to reach a server that was there, with --stop-never.
const RETRY: Duration = Duration::from_secs(1);

/// Prints, or copies, what the command asks a server for.
pub(super) fn files(args: &BinlogArgs, out: &mut impl Write) -> Result<(), Failure> {
    let mut output = Output::new(args);
    let mut raw = args.remote.raw.then(|| RawFiles::new(args.result_file.clone()));
    if raw.is_none() {
        output.head(out)?;
    }
    for (n, path) in args.files.iter().enumerate() {
        let name = path.to_string_lossy();
        let start = args.start_position.filter(|_| n == 0);
        let last = n + 1 == args.files.len();
        let stop = args.stop_position.filter(|_| last);
        let mut stream = RemoteDump::open(args, &name, start.unwrap_or(4))?;
        // In the middle of the list a file ends where the next one begins.
        stream.to_last = last && args.remote.to_last();
        if raw.is_none() && args.files.len() > 1 && !args.json {
            writeln!(out, "# {name}")?;
        }
        let verdict = match &mut raw {
            Some(raw) => stream.copy(args, stop, raw)?,
            None => stream.print(args, stop, &mut output, out)?,
        };
        if verdict == Verdict::Stop {
            break;
        }
    }
    if raw.is_none() {
        output.foot(out)?;
    }
    Ok(())
}

/// A dump.
struct RemoteDump<'a> {
    args: &'a BinlogArgs,
    stream: LogStream,
    to_last: bool,
}

impl<'a> RemoteDump<'a> {
    fn open(args: &'a BinlogArgs, file: &str, position: u64) -> Result<RemoteDump<'a>, Failure> {
        let (endpoint, may_be_plain) = args.remote.endpoint()?;
        let heartbeat = args.remote.stop_never.then_some(HEARTBEAT);
        let source = LogSource {
            endpoint,
            may_be_plain,
            program: "omnibus binlog",
            reader: Reader { heartbeat, whole_files: args.remote.raw },
            server_id: args.remote.server_id(),
        };
        let stream = LogStream::open(source, file, position).map_err(Failure::Source)?;
        Ok(RemoteDump { args, stream, to_last: false })
    }

    /// The server is gone: asks it again behind the last event, until it answers or says that it never will.
    fn open_again(&mut self, lost: &ClientError) -> Result<(), Failure> {
        let (file, position) = (self.stream.file(), self.stream.position());
        eprintln!("omnibus binlog: {lost}; trying again every second, from {file} at {position}");
        loop {
            std::thread::sleep(RETRY);
            match self.stream.reopen() {
                Ok(()) => return Ok(()),
                Err(error) if error.may_pass() => {}
                Err(error) => return Err(Failure::Source(error)),
            }
        }
    }

    fn next(&mut self) -> Result<Said, Failure> {
        match self.stream.next() {
            Ok(said) => Ok(said),
            Err(StreamError::Source(error))
                if self.args.remote.stop_never && self.to_last && error.may_pass() =>
            {
                self.open_again(&error)?;
                Ok(Said::Nothing)
            }
            // Followed and no further than this file: the server was shut down.
            Err(StreamError::Source(ClientError::Ended)) => Ok(Said::End),
            Err(StreamError::Source(error)) => Err(Failure::Source(error)),
            Err(StreamError::Damage { file, offset, what }) => {
                Err(Failure::Damage { path: PathBuf::from(file), offset, what })
            }
        }
    }

    fn damage(&self, what: String) -> Failure {
        Failure::Damage { path: PathBuf::from(self.stream.file()), offset: self.stream.position(), what }
    }

    /// Events through the filter to `take`.
    fn each(
        &mut self,
        stop: Option<u64>,
        mut take: impl FnMut(&str, Option<&RawEvent<'_>>) -> Result<Verdict, Failure>,
    ) -> Result<Verdict, Failure> {
        loop {
            match self.next()? {
                Said::End => return Ok(Verdict::Print),
                Said::Nothing => {}
                Said::File if !self.to_last => return Ok(Verdict::Print),
                Said::File => drop(take(self.stream.file(), None)?),
                Said::Event(offset, bytes) => {
                    if stop.is_some_and(|stop| offset >= stop) {
                        return Ok(Verdict::Stop);
                    }
                    // Checked when it came.
                    let parsed = parse_event(&bytes, 0, &self.stream.rules());
                    let Ok(Some(event)) = parsed else { return Err(self.damage("an event".into())) };
                    if take(self.stream.file(), Some(&RawEvent { offset, ..event }))? == Verdict::Stop {
                        return Ok(Verdict::Stop);
                    }
                }
            }
        }
    }

    fn print(
        &mut self,
        args: &BinlogArgs,
        stop: Option<u64>,
        output: &mut Output,
        out: &mut impl Write,
    ) -> Result<Verdict, Failure> {
        let mut filter = Some(Filter::default());
        let mut unreadable = None;
        let mut begun = false;
        let verdict = self.each(stop, |file, event| {
            let path = PathBuf::from(file);
            let Some(event) = event else {
                if !args.json {
                    writeln!(out, "# {file}")?;
                }
                (filter, begun) = (Some(Filter::default()), false);
                return Ok(Verdict::Print);
            };
            let mut dump =
                Dump::of(args, &path, output, filter.take().unwrap_or_default(), unreadable.take());
            let verdict = dump.take(event, !std::mem::replace(&mut begun, true), out);
            (filter, unreadable) = dump.into_parts();
            if args.remote.stop_never {
                out.flush()?;
            }
            verdict
        })?;
        match unreadable {
            Some((_, what)) => Err(self.damage(what)),
            None => Ok(verdict),
        }
    }

    fn copy(&mut self, args: &BinlogArgs, stop: Option<u64>, raw: &mut RawFiles) -> Result<Verdict, Failure> {
        let mut filter = Filter::default();
        raw.begin(self.stream.file())?;
        let verdict = self.each(stop, |file, event| {
            let Some(event) = event else {
                raw.begin(file)?;
                return Ok(Verdict::Print);
            };
            if args.wanted.stops() && matches!(filter.judge(event, &args.wanted), Ok(Verdict::Stop)) {
                return Ok(Verdict::Stop);
            }
            raw.event(event.bytes, args.remote.stop_never)?;
            Ok(Verdict::Print)
        })?;
        raw.end()?;
        Ok(verdict)
    }
}

/// Copies of a server's files.
struct RawFiles {
    prefix: String,
    file: Option<BufWriter<File>>,
}

impl RawFiles {
    fn new(prefix: Option<PathBuf>) -> RawFiles {
        let prefix = prefix.map_or_else(String::new, |prefix| prefix.to_string_lossy().into_owned());
        RawFiles { prefix, file: None }
    }

    fn begin(&mut self, name: &str) -> Result<(), Failure> {
        self.end()?;
        let is_name = !name.is_empty() && !name.contains(['/', '\0']) && name != "." && name != "..";
        if !is_name {
            let what = format!("the server calls its log file {name:?}, which is no file's name");
            return Err(Failure::Output(io::Error::new(io::ErrorKind::InvalidData, what)));
        }
        let path = format!("{}{name}", self.prefix);
        let file =
            File::create(&path).map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))?;
        let mut file = BufWriter::with_capacity(256 << 10, file);
        file.write_all(&MAGIC)?;
        self.file = Some(file);
        Ok(())
    }

    fn event(&mut self, bytes: &[u8], now: bool) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        file.write_all(bytes)?;
        if now { file.flush() } else { Ok(()) }
    }

    fn end(&mut self) -> io::Result<()> {
        match self.file.take() {
            Some(mut file) => file.flush(),
            None => Ok(()),
        }
    }
}
