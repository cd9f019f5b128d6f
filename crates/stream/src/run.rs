//! The loop: events in, messages out, the place behind them.

use crate::error::StreamError;
use crate::login::Login;
use crate::message::{Form, Messages};
use crate::place::{Start, StreamPosition};
use crate::target::Target;
use omnibus_format::RawEvent;
use omnibus_format::header::MAGIC;
use omnibus_format::scan::parse_event;
use omnibus_replication::client::{BackOff, ClientError, LogSource, LogStream, Pause, Said, without_secrets};
use std::time::{Duration, Instant};

/// Messages that wait are sent when they are this many bytes; a transaction that has more comes in several batches.
const BATCH: usize = 1 << 20;
/// And when the oldest of them is this old, however much comes.
const LINGER: Duration = Duration::from_millis(200);
/// A place is kept at least so often, also if nothing is to be said: a target may forget what is old.
const KEEP: Duration = Duration::from_secs(600);
/// MySQL's error of a dump that cannot begin.
const NO_DUMP: u16 = 1236;

/// The settings of a stream.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// The server to ask; with a server id the log is followed for ever.
    pub source: LogSource,
    /// The target's address.
    pub to: String,
    /// The target's login.
    pub login: Login,
    /// The form of messages.
    pub form: Form,
    /// The start if no position is kept.
    pub from: Start,
    /// Begin there although a place is kept.
    pub anew: bool,
}

/// A progress note.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Note {
    /// The stream begins here.
    Begins(StreamPosition),
    /// So many messages are at the target; the place is kept, if a transaction ended with them.
    Sent(u64, Option<StreamPosition>),
    /// Something does not work, and is tried again after a pause.
    Trouble(String, Pause),
}

/// Streams until the log's end, or for ever: what may pass is told and tried again.
///
/// # Errors
/// An error that an administrator has to resolve. The first attempt must succeed.
pub fn run(options: &StreamOptions, notes: &mut dyn FnMut(Note)) -> Result<(), StreamError> {
    let (mut begun, mut back_off) = (false, BackOff::default());
    loop {
        match once(options, &mut begun, &mut back_off, notes) {
            Err(error) if begun && error.may_pass() => {
                let pause = back_off.failed();
                notes(Note::Trouble(error.to_string(), pause));
                pause.sleep();
            }
            other => return other,
        }
    }
}

/// From the place that is kept, as long as nothing fails.
fn once(
    options: &StreamOptions,
    begun: &mut bool,
    back_off: &mut BackOff,
    notes: &mut dyn FnMut(Note),
) -> Result<(), StreamError> {
    let mut target = Target::open(&options.to, &options.login)?;
    let mut place = begin(options, &mut target, *begun)?;
    let mut stream = LogStream::open(options.source.clone(), &place.file, place.position)?;
    notes(Note::Begins(place.clone()));
    *begun = true;
    back_off.succeeded();
    let mut messages = Messages::new(options.form, target.name());
    let (mut since, mut kept) = (Instant::now(), Instant::now());
    loop {
        let said = stream.next().map_err(|error| purged(error.into(), &place))?;
        let mut end = false;
        match said {
            Said::Event(offset, bytes) => {
                let parsed = parse_event(&bytes, 0, &stream.rules());
                let Ok(Some(event)) = parsed else { return Err(stream.damage("an event".into()).into()) };
                let file = stream.file().to_owned();
                let result = messages.event(&RawEvent { offset, ..event }, &file);
                result.map_err(|what| StreamError::Change { file, position: offset, what })?;
            }
            Said::Nothing if kept.elapsed() >= KEEP => {
                target.keep(&place)?;
                kept = Instant::now();
            }
            Said::File | Said::Nothing => {}
            Said::End => end = true,
        }
        let due = messages.has_ended() && (stream.is_idle() || since.elapsed() >= LINGER);
        if !due && !end && messages.bytes() < BATCH {
            continue;
        }
        since = Instant::now();
        let (ready, ended) = messages.take();
        if !ready.is_empty() {
            target.send(&ready)?;
        }
        if let Some((file, position)) = ended {
            place = StreamPosition { file, position, ..place };
            target.keep(&place)?;
            kept = Instant::now();
            notes(Note::Sent(ready.len() as u64, Some(place.clone())));
        } else if !ready.is_empty() {
            notes(Note::Sent(ready.len() as u64, None));
        }
        if end {
            return Ok(());
        }
    }
}

/// The place that is kept, or where the options say; that is kept before anything is sent.
fn begin(options: &StreamOptions, target: &mut Target, again: bool) -> Result<StreamPosition, StreamError> {
    let mut connection = options.source.connect()?;
    let server = connection.ask("SELECT @@GLOBAL.server_uuid").ok().flatten().unwrap_or_default();
    if let Some(place) = target.place()?
        && (again || !options.anew)
    {
        if place.server != server {
            return Err(StreamError::Refused(format!(
                "{} is at {}:{} of server {}, and this one is {server}: say --from FILE:POSITION --anew for where it goes on",
                without_secrets(&options.to),
                place.file,
                place.position,
                place.server
            )));
        }
        return Ok(place);
    }
    let first = |rows: Vec<Vec<Option<Vec<u8>>>>, column: usize| {
        let value = rows.into_iter().next().and_then(|row| row.into_iter().nth(column)).flatten();
        value.map(|value| String::from_utf8_lossy(&value).into_owned())
    };
    let none = || StreamError::Refused("the server has no binary log".to_owned());
    let (file, position) = match &options.from {
        Start::Position(file, position) => (file.clone(), *position),
        Start::Oldest => {
            (first(connection.query("SHOW BINARY LOGS")?, 0).ok_or_else(none)?, MAGIC.len() as u64)
        }
        Start::Newest => {
            let rows = match connection.query("SHOW BINARY LOG STATUS") {
                Ok(rows) => rows,
                Err(_) => connection.query("SHOW MASTER STATUS")?,
            };
            let position = first(rows.clone(), 1).and_then(|at| at.parse().ok());
            (first(rows, 0).ok_or_else(none)?, position.ok_or_else(none)?)
        }
    };
    let place = StreamPosition { server, file, position };
    target.keep(&place)?;
    Ok(place)
}

/// Returns the error for a stream whose position the server has purged.
fn purged(error: StreamError, place: &StreamPosition) -> StreamError {
    match error {
        StreamError::Server(ClientError::Server { code: NO_DUMP, message }) => StreamError::Refused(format!(
            "the server does not send from {}:{} on: {message}. What is between there and its oldest file is lost to the stream; say \
             --from oldest --anew to go on",
            place.file, place.position
        )),
        other => other,
    }
}
