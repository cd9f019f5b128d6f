//! A server's log instead of files: the same events through the same printing, or raw copies of its files.
//!
//! Asks as `mysqlbinlog` does: not as a replica, so nothing is registered, and the server ends the stream at its log's end
//! unless it is to be followed. One connection a FILE. Events are checked before they are used; a file name that a server
//! says is never more than a name here.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use omnibus_format::events::{FormatDescription, Rotate};
use omnibus_format::header::{FLAG_ARTIFICIAL, MAGIC};
use omnibus_format::scan::{ScanErrorKind, ScanRules, parse_event};
use omnibus_format::{Checksum, EventType, RawEvent};
use omnibus_replication::client::{ClientError, Connection, DumpRequest, DumpStart, Reader};
use std::time::Duration;

use super::BinlogArgs;
use super::dump::{Dump, Failure};
use super::filter::{Filter, Verdict};
use super::output::Output;

/// How often a server that has nothing to send says so.
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
        let mut stream = Source::open(args, &name, start.unwrap_or(4))?;
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
struct Source<'a> {
    args: &'a BinlogArgs,
    connection: Connection,
    /// It was asked for again: the file's head has been seen.
    again: bool,
    rules: ScanRules,
    /// The file that the events are from, and where the last one ended.
    file: String,
    position: u64,
    to_last: bool,
}

/// What a dump says next.
enum Said {
    /// An event of the file.
    Event(u64, Vec<u8>),
    /// What follows is from another file.
    File,
    /// Nothing that is in a file.
    Nothing,
    End,
}

impl<'a> Source<'a> {
    fn open(args: &'a BinlogArgs, file: &str, position: u64) -> Result<Source<'a>, Failure> {
        let (connection, rules) = dump(args, file, position)?;
        Ok(Source { args, connection, again: false, rules, file: file.to_owned(), position, to_last: false })
    }

    /// The server is gone: asks it again behind the last event, until it answers or says that it never will.
    fn open_again(&mut self, lost: &ClientError) -> Result<(), Failure> {
        eprintln!(
            "omnibus binlog: {lost}; trying again every second, from {} at {}",
            self.file, self.position
        );
        loop {
            std::thread::sleep(RETRY);
            match dump(self.args, &self.file, self.position) {
                Ok((connection, rules)) => {
                    (self.connection, self.rules, self.again) = (connection, rules, true);
                    return Ok(());
                }
                Err(Failure::Source(error)) if error.may_pass() => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn next(&mut self) -> Result<Said, Failure> {
        let bytes = match self.connection.next_event(false) {
            Ok(packet) => packet.event.to_vec(),
            Err(error) if self.args.remote.stop_never && self.to_last && error.may_pass() => {
                self.open_again(&error)?;
                return Ok(Said::Nothing);
            }
            Err(ClientError::Ended) => return Ok(Said::End),
            Err(error) => return Err(Failure::Source(error)),
        };
        let event = match parse_event(&bytes, 0, &self.rules) {
            Ok(Some(event)) if event.bytes.len() == bytes.len() => event,
            Ok(_) => return Err(self.damage("an event that is not as long as it says".into())),
            Err(error) if matches!(error.kind, ScanErrorKind::BadChecksum { .. }) => {
                return Err(self.damage("a wrong checksum".into()));
            }
            Err(error) => return Err(self.damage(error.kind.to_string())),
        };
        let header = event.header;
        match header.event_type {
            EventType::HEARTBEAT | EventType::HEARTBEAT_V2 => return Ok(Said::Nothing),
            EventType::ROTATE if header.flags & FLAG_ARTIFICIAL != 0 || header.log_pos == 0 => {
                let rotate = Rotate::decode(event.body).map_err(|error| self.damage(error.to_string()))?;
                let name = String::from_utf8_lossy(rotate.file).into_owned();
                self.position = rotate.position;
                if self.file == name {
                    return Ok(Said::Nothing);
                }
                self.file = name;
                return Ok(Said::File);
            }
            EventType::FORMAT_DESCRIPTION => {
                let found = FormatDescription::checksum_of_event(event.bytes);
                self.rules.checksum = found.ok().flatten().unwrap_or(Checksum::None);
                let format = FormatDescription::decode(event.body);
                self.rules.zero_position = format.is_ok_and(|format| format.leaves_out_positions());
            }
            // Made for us, in no file.
            _ if header.flags & FLAG_ARTIFICIAL != 0 => return Ok(Said::Nothing),
            _ => {}
        }
        if header.log_pos == 0 && self.rules.zero_position && !is_head(header.event_type) {
            self.position += u64::from(header.size);
            return Ok(Said::Event(self.position - u64::from(header.size), bytes));
        }
        if header.log_pos == 0 && self.again {
            return Ok(Said::Nothing);
        }
        if header.log_pos == 0 {
            // A file's head, repeated for a start behind it.
            return Ok(Said::Event(4, bytes));
        }
        // The header has the lower 32 bits.
        let mut end = self.position & !0xffff_ffff | u64::from(header.log_pos);
        if end < self.position {
            end += 1 << 32;
        }
        self.position = end;
        Ok(Said::Event(end - u64::from(header.size), bytes))
    }

    fn damage(&self, what: String) -> Failure {
        Failure::Damage { path: PathBuf::from(&self.file), offset: self.position, what }
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
                Said::File => drop(take(&self.file, None)?),
                Said::Event(offset, bytes) => {
                    if stop.is_some_and(|stop| offset >= stop) {
                        return Ok(Verdict::Stop);
                    }
                    // Checked when it came.
                    let rules = ScanRules { verify_checksum: false, ..self.rules };
                    let parsed = parse_event(&bytes, 0, &rules);
                    let Ok(Some(event)) = parsed else { return Err(self.damage("an event".into())) };
                    if take(&self.file, Some(&RawEvent { offset, ..event }))? == Verdict::Stop {
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
        raw.begin(&self.file)?;
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

/// Asks for the events of a file behind a position.
fn dump(args: &BinlogArgs, file: &str, position: u64) -> Result<(Connection, ScanRules), Failure> {
    let (mut endpoint, may_be_plain) = args.remote.endpoint()?;
    let attributes = [("program_name", "omnibus binlog"), ("_client_role", "binary_log_listener")];
    let connection = match Connection::open(&endpoint, &attributes, &|| false, drop) {
        Err(ClientError::Tls(_)) if may_be_plain => {
            endpoint.tls.required = false;
            Connection::open(&endpoint, &attributes, &|| false, drop)
        }
        other => other,
    };
    let mut connection = connection.map_err(Failure::Source)?;
    let heartbeat = args.remote.stop_never.then_some(HEARTBEAT);
    let checksum = connection
        .introduce_reader(Reader { heartbeat, whole_files: args.remote.raw })
        .map_err(Failure::Source)?;
    let request = DumpRequest {
        server_id: args.remote.server_id(),
        start: DumpStart::File { file: file.to_owned(), position },
        annotate: true,
        semi_sync: false,
    };
    connection.start_dump(&request).map_err(Failure::Source)?;
    let rules = ScanRules { checksum, verify_position: false, ..ScanRules::default() };
    Ok((connection, rules))
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

/// Whether a source repeats an event of the file's beginning, without a position, for a start further behind.
fn is_head(kind: EventType) -> bool {
    matches!(
        kind,
        EventType::FORMAT_DESCRIPTION
            | EventType::PREVIOUS_GTIDS
            | EventType::MARIADB_GTID_LIST
            | EventType::MARIADB_START_ENCRYPTION
    )
}
