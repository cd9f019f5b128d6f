//! Following a server's log into an archive.
//!
//! A file is always read from its beginning: the server's bytes are compared with the archived ones, piece by piece,
//! and only the bytes behind these are shipped. So a log that was reset, another server's log, or a damaged archive is
//! found before anything is added. A piece is shipped when its oldest byte reaches a certain age, when it is large, and
//! when its file ends. While it is being shipped nothing is read, so at most one piece is in memory.
//!
//! The server sends what is durable and nothing else (COMMIT-2), so an archive is never ahead of the log. It keeps the files from
//! the one that is being read on (PURGE-1).

use crate::base;
use crate::error::ArchiveError;
use crate::inventory::Inventory;
use crate::layout::{self, Identity, LogEnd};
use crate::note::{Note, Notes};
use crate::piece::Piece;
use crate::retain;
use crate::store::Store;
use omnibus_format::header::MAGIC;
use omnibus_format::scan::parse_event;
use omnibus_replication::changes::{Borders, Class};
use omnibus_replication::client::{BackOff, ClientError, LogSource, LogStream, Pause, Said};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A piece that is this large does not wait for its time.
const PIECE_MAX: usize = 16 << 20;
/// The shortest time between two looks at the base backups.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// A backup that did not succeed is tried again after this time.
const BACKUP_AGAIN: Duration = Duration::from_secs(60);
/// MySQL's error of a dump that cannot begin.
const NO_DUMP: u16 = 1236;

/// The settings of shipping.
#[derive(Clone, Debug)]
pub struct ShipOptions {
    /// The server to ask, with `whole_files`; with a server id the log is followed for ever.
    pub source: LogSource,
    /// The oldest byte that is not shipped is at most about this old.
    pub piece: Duration,
    /// The folder in which base backups are made before they are shipped. It is on the server's machine, which must be
    /// this one.
    pub backup_in: Option<PathBuf>,
    /// The maximum age of the newest base backup.
    pub backup_every: Duration,
    /// The time into the past for which a restore must be possible; unlimited without.
    pub keep: Option<Duration>,
}

/// See the module.
pub struct Shipper<'a> {
    store: &'a Store,
    options: ShipOptions,
    notes: Notes<'a>,
}

/// The reason why following a log ended.
enum Followed {
    /// Its end was reached, as requested.
    End,
    /// The server has purged the next file.
    Purged(String, String),
}

impl<'a> Shipper<'a> {
    /// Creates a shipper. Nothing is shipped yet.
    #[must_use]
    pub fn new(store: &'a Store, options: ShipOptions, notes: Notes<'a>) -> Shipper<'a> {
        Shipper { store, options, notes }
    }

    /// Ships until the log's end, or for ever. Temporary errors are reported and retried.
    ///
    /// # Errors
    /// An error that an administrator has to resolve, such as a refused login, also when shipping begins.
    pub fn run(&self) -> Result<(), ArchiveError> {
        let mut back_off = BackOff::default();
        while let Err(error) = self.prepare() {
            if !self.follows() || !is_away(&error) {
                return Err(error);
            }
            self.pause(&error, &mut back_off);
        }
        std::thread::scope(|threads| {
            let (stop, stopped) = std::sync::mpsc::channel::<()>();
            if self.follows() {
                threads.spawn(move || self.keep_backups(&stopped));
            } else {
                self.keep_backup()?;
            }
            let result = self.ship();
            drop(stop);
            result
        })
    }

    fn follows(&self) -> bool {
        self.options.source.server_id != 0
    }

    /// Reports an error and waits until the next attempt.
    fn pause(&self, error: &ArchiveError, back_off: &mut BackOff) {
        let pause = back_off.failed();
        (self.notes)(Note::Trouble { what: error.to_string(), pause: Some(pause) });
        pause.sleep();
    }

    fn ship(&self) -> Result<(), ArchiveError> {
        let mut back_off = BackOff::default();
        loop {
            match self.follow(&mut back_off) {
                Ok(Followed::End) => return Ok(()),
                Ok(Followed::Purged(file, _)) if self.was_reset(&file)? => {
                    let place = "from its beginning on: it is not there".to_owned();
                    return Err(ArchiveError::Diverged { file, place });
                }
                Ok(Followed::Purged(file, why)) if self.options.backup_in.is_none() => {
                    return Err(ArchiveError::Purged { file, why });
                }
                Ok(Followed::Purged(file, why)) => {
                    let what =
                        format!("the server has no {file} any more ({why}): a base backup begins anew");
                    (self.notes)(Note::Trouble { what, pause: None });
                    self.back_up()?;
                    if self.first_file()? == file {
                        return Err(ArchiveError::Purged { file, why });
                    }
                }
                Err(error) if error.may_pass() && self.follows() => self.pause(&error, &mut back_off),
                Err(error) => return Err(error),
            }
        }
    }

    /// Checks that the archive is this server's, or makes it so, and ships the first base backup.
    fn prepare(&self) -> Result<(), ArchiveError> {
        let mut connection = self.options.source.connect()?;
        let version = connection.version();
        if !version.contains("omnibus") {
            return Err(ArchiveError::Unfit(format!(
                "the server is {version}: only Omnibus's log is all that a server is made of"
            )));
        }
        let server = connection.ask("SELECT @@GLOBAL.server_uuid")?.unwrap_or_default();
        let there = Inventory::of(self.store)?;
        match &there.server {
            Some(other) if *other != server => {
                return Err(ArchiveError::Unfit(format!(
                    "{} is the archive of server {other}, and this one is {server}: archive it to another place",
                    self.store.url()
                )));
            }
            Some(_) => {}
            None => self.store.put(layout::IDENTITY, layout::bytes(&Identity { server }.document()))?,
        }
        if self.options.backup_in.is_some() {
            retain::remove_unfinished(self.store, &there, self.notes)?;
            if there.backups.is_empty() {
                self.back_up()?;
            }
        }
        Ok(())
    }

    fn back_up(&self) -> Result<(), ArchiveError> {
        let Some(folder) = &self.options.backup_in else { return Ok(()) };
        base::take(self.store, &self.options.source, folder, self.notes).map(drop)
    }

    /// Takes base backups when it is time, and removes what is not kept, until told to stop.
    fn keep_backups(&self, stopped: &std::sync::mpsc::Receiver<()>) {
        let mut failures = 0;
        loop {
            let wait = match self.keep_backup() {
                Ok(wait) => {
                    failures = 0;
                    wait
                }
                Err(error) => {
                    failures += 1;
                    let pause = Pause { attempt: failures, time: BACKUP_AGAIN };
                    (self.notes)(Note::Trouble { what: format!("base backup: {error}"), pause: Some(pause) });
                    BACKUP_AGAIN
                }
            };
            if stopped.recv_timeout(wait) == Err(std::sync::mpsc::RecvTimeoutError::Disconnected) {
                return;
            }
        }
    }

    fn keep_backup(&self) -> Result<Duration, ArchiveError> {
        let now_us = omnibus_log::now_us();
        let there = Inventory::of(self.store)?;
        let newest = there.backups.last().map_or(0, |backup| backup.taken_us);
        let mut age = Duration::from_micros(now_us.saturating_sub(newest));
        if self.options.backup_in.is_some() && age >= self.options.backup_every {
            self.back_up()?;
            age = Duration::ZERO;
        }
        if let Some(keep) = self.options.keep {
            retain::remove_old(self.store, now_us, keep, self.notes)?;
        }
        let until_next = self.options.backup_every.saturating_sub(age);
        Ok(until_next.clamp(LOOK_AGAIN, BACKUP_AGAIN))
    }

    /// The file to begin with: the newest that is archived, unless a later base backup begins anew.
    fn first_file(&self) -> Result<String, ArchiveError> {
        let there = Inventory::of(self.store)?;
        let newest = there.log.last();
        let of_backup = there.backups.last().map(|backup| &backup.info.file);
        let seq = |file: &String| crate::inventory::split(file).map(|(_, seq)| seq);
        if let Some(file) = of_backup.filter(|file| newest.is_none_or(|newest| seq(file) > Some(newest.seq)))
        {
            return Ok(file.clone());
        }
        if let Some(newest) = newest {
            return Ok(newest.file.clone());
        }
        let first = self.server_files()?.into_iter().next();
        first.ok_or_else(|| ArchiveError::Unfit("the server has no binary log".into()))
    }

    /// The log files that the server has, oldest first.
    fn server_files(&self) -> Result<Vec<String>, ArchiveError> {
        let rows = self.options.source.connect()?.query("SHOW BINARY LOGS")?;
        let names = rows.into_iter().filter_map(|row| row.into_iter().next().flatten());
        Ok(names.map(|name| String::from_utf8_lossy(&name).into_owned()).collect())
    }

    /// Returns whether a file that the server does not have precedes its log rather than follows it.
    fn was_reset(&self, file: &str) -> Result<bool, ArchiveError> {
        let newest = self.server_files()?.pop();
        let seq = |file: &str| crate::inventory::split(file).map(|(_, seq)| seq);
        Ok(newest.is_none_or(|newest| seq(&newest) < seq(file)))
    }

    fn follow(&self, back_off: &mut BackOff) -> Result<Followed, ArchiveError> {
        let file = self.first_file()?;
        let purged = |file: &str, error| match error {
            ClientError::Server { code: NO_DUMP, message } => Ok(Followed::Purged(file.to_owned(), message)),
            other => Err(ArchiveError::from(other)),
        };
        let mut stream = match LogStream::open(self.options.source.clone(), &file, MAGIC.len() as u64) {
            Ok(stream) => stream,
            Err(error) => return purged(&file, error),
        };
        let mut copy = FileCopy::begin(self, &file)?;
        back_off.succeeded();
        loop {
            let said = match stream.next() {
                Ok(said) => said,
                Err(omnibus_replication::client::StreamError::Source(error)) => {
                    // What came is not lost with the connection.
                    copy.ship()?;
                    return purged(&copy.file, error);
                }
                Err(other) => return Err(other.into()),
            };
            match said {
                Said::Event(offset, bytes) => copy.event(offset, &bytes, &stream)?,
                Said::File => {
                    copy.end()?;
                    copy = FileCopy::begin(self, stream.file())?;
                }
                Said::Nothing => copy.pause()?,
                Said::End => {
                    copy.ship()?;
                    return Ok(Followed::End);
                }
            }
        }
    }
}

/// Returns whether only the connection to the server failed: it may be about to start.
fn is_away(error: &ArchiveError) -> bool {
    use ClientError as E;
    matches!(error, ArchiveError::Server(E::Connect { .. } | E::Lost(_) | E::Ended))
}

/// A file being shipped.
struct FileCopy<'s, 'a> {
    shipper: &'s Shipper<'a>,
    file: String,
    /// The archived pieces, with which the server's bytes are compared.
    archived: VecDeque<Piece>,
    /// Bytes that are not compared or shipped yet, and where in the file they begin.
    bytes: Vec<u8>,
    at: u64,
    /// The time when the first of them arrived.
    since: Option<Instant>,
    hash: crc32fast::Hasher,
    last_us: u64,
    borders: Borders,
}

impl<'s, 'a> FileCopy<'s, 'a> {
    fn begin(shipper: &'s Shipper<'a>, file: &str) -> Result<FileCopy<'s, 'a>, ArchiveError> {
        let archived = Inventory::pieces(shipper.store, file)?;
        let mut hash = crc32fast::Hasher::new();
        hash.update(&MAGIC);
        Ok(FileCopy {
            shipper,
            file: file.to_owned(),
            archived: archived.into(),
            bytes: MAGIC.to_vec(),
            at: 0,
            since: None,
            hash,
            last_us: 0,
            borders: Borders::default(),
        })
    }

    fn event(&mut self, offset: u64, bytes: &[u8], stream: &LogStream) -> Result<(), ArchiveError> {
        if offset != self.at + self.bytes.len() as u64 {
            return Err(stream.damage(format!("an event of offset {offset} is the next one")).into());
        }
        let event = parse_event(bytes, 0, &stream.rules()).ok().flatten();
        if let Some(event) = event
            && let Ok(Class::Begin(trx) | Class::Single(trx)) =
                self.borders.classify(&event.header, event.body)
        {
            let seconds = u64::from(trx.timestamp) * 1_000_000;
            self.last_us = if trx.immediate_commit_us == 0 { seconds } else { trx.immediate_commit_us };
        }
        self.hash.update(bytes);
        self.bytes.extend_from_slice(bytes);
        self.since.get_or_insert_with(Instant::now);
        self.compare()?;
        if self.bytes.len() >= PIECE_MAX { self.ship() } else { self.pause() }
    }

    /// Compares what came with what was shipped before.
    fn compare(&mut self) -> Result<(), ArchiveError> {
        while let Some(piece) = self.archived.front()
            && self.at + self.bytes.len() as u64 >= piece.end()
        {
            // Pieces of a chain may overlap; what they share was compared with the first of the two.
            let (from, len) = (piece.offset.min(self.at), (piece.end() - self.at) as usize);
            if from == self.at && !piece.is(&self.bytes[..len]) {
                let place = format!("between {} and {}", piece.offset, piece.end());
                return Err(ArchiveError::Diverged { file: self.file.clone(), place });
            }
            self.at = piece.end();
            self.bytes.drain(..len);
            self.archived.pop_front();
            if self.archived.is_empty() {
                let (file, position) = (self.file.clone(), self.at);
                (self.shipper.notes)(Note::Checked { file, position });
                self.since = (!self.bytes.is_empty()).then(Instant::now);
            }
        }
        Ok(())
    }

    /// Ships what is old enough.
    fn pause(&mut self) -> Result<(), ArchiveError> {
        match self.since {
            Some(since) if since.elapsed() >= self.shipper.options.piece => self.ship(),
            _ => Ok(()),
        }
    }

    /// Ships what there is. Until that has succeeded nothing else happens.
    fn ship(&mut self) -> Result<(), ArchiveError> {
        if self.since.is_none() || !self.archived.is_empty() {
            return Ok(());
        }
        let piece = Piece::of(self.at, &self.bytes);
        let name = format!("{}/{piece}", layout::log_folder(&self.file));
        let bytes = bytes::Bytes::from(std::mem::take(&mut self.bytes));
        let mut back_off = BackOff::default();
        while let Err(error) = self.shipper.store.put(&name, bytes.clone()) {
            if !error.may_pass() || !self.shipper.follows() {
                return Err(error);
            }
            self.shipper.pause(&error, &mut back_off);
        }
        (self.at, self.since) = (piece.end(), None);
        let (file, position) = (self.file.clone(), self.at);
        (self.shipper.notes)(Note::Shipped { file, position, bytes: piece.len });
        Ok(())
    }

    /// The server's file has ended.
    fn end(&mut self) -> Result<(), ArchiveError> {
        if let Some(piece) = self.archived.front() {
            let place =
                format!("from {}, where it ends, to {}", self.at + self.bytes.len() as u64, piece.end());
            return Err(ArchiveError::Diverged { file: self.file.clone(), place });
        }
        self.ship()?;
        let end = LogEnd { bytes: self.at, crc: self.hash.clone().finalize(), last_us: self.last_us };
        let store = self.shipper.store;
        if Inventory::log_end(store, &self.file)? != Some(end) {
            store.put(&layout::log_end(&self.file), layout::bytes(&end.document()))?;
            (self.shipper.notes)(Note::Ended { file: self.file.clone(), bytes: end.bytes });
        }
        Ok(())
    }
}
