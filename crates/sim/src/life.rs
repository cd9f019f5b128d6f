//! One process: it opens, recovers, serves requests in an order that the seed decides, and ends in one of several ways.

use crate::branch_oracle::Before;
use crate::branches::{self, Answer, Ask, Branch};
use crate::disk::SimDisk;
use crate::engine::{FIRST, SECOND};
use crate::engines::{Contents, Engines, Kept};
use crate::follower::Follower;
use crate::mutant::Mutant;
use crate::oracle::{Oracle, Shown};
use crate::plan::{Frame, SERVER_ID, Settings};
use crate::port::Port;
use crate::random::Random;
use crate::request::{Reader, RowEngines, Wanted};
use crate::schedule::Schedule;
use omnibus_commit::{
    CacheSettings, CommitError, CommitResult, Coordinator, Gate, LogEnv, LogIdentity, Recovered, Ticket,
    recover,
};
use omnibus_disk::Disk;
use omnibus_encryption::{Encryption, Keyring};
use omnibus_format::{Dialect, ServerUuid};
use omnibus_log::LogDir;
use omnibus_sql::Database;
use omnibus_sql::recover::Replayer;
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

pub(crate) const DATA: &str = "/data";
const BACKUP: &str = "/backup";
const UUID: ServerUuid = ServerUuid([9; 16]);

/// The kind of action that is RESET BINARY LOGS AND GTIDS.
const RESET: u64 = 29;

/// Requests that wait for an answer.
type Tickets = Arc<Mutex<Vec<(u64, Ticket)>>>;

/// The replies to sessions with XA branches.
type Answers = Arc<Mutex<Vec<(Ask, Before, Answer)>>>;

/// A closed log file that a backup holds on to, and what it had when it was taken.
pub(crate) struct Backup {
    path: PathBuf,
    bytes: Vec<u8>,
}

/// See the module.
pub(crate) struct Life {
    disk: SimDisk,
    schedule: Arc<Schedule>,
    pub(crate) coordinator: Arc<Coordinator>,
    engines: Engines,
    settings: Settings,
    /// The database, in histories with tables.
    database: Option<Arc<Database>>,
    answers: Answers,
    tickets: Tickets,
    /// Sessions that have seen what may not be durable yet, and what up to.
    replies: Vec<(u64, Ticket)>,
    follower: Arc<Mutex<Follower>>,
    published: u64,
    gate: Gate,
    /// The number of switches of the gate under way.
    switching: Arc<AtomicUsize>,
    next_backup: u64,
    next_xid: u64,
    mutant: Option<Mutant>,
}

impl Life {
    /// Starts on what the disk has.
    pub(crate) fn open(
        disk: &SimDisk,
        schedule: &Arc<Schedule>,
        frame: &Frame,
        settings: Settings,
        kept: &Kept,
        mutant: Option<Mutant>,
    ) -> Result<(Life, Shown), String> {
        let seam = disk.disk();
        let text = |error: &dyn std::error::Error| error.to_string();
        let engines = Engines::open(&seam, Path::new(DATA), kept, frame.two, mutant, disk);
        let engines = engines.map_err(|error| text(&error))?;
        let seam = if frame.encrypted { encrypted(seam, settings.encrypts())? } else { seam };
        let dir = LogDir::open(DATA, settings.log(seam, mutant)).map_err(|error| text(&error))?;
        let shared = engines.shared();
        let sql = frame.tables.then(|| Replayer::new(Arc::clone(&shared), &Default::default())).transpose();
        let mut sql = sql.map_err(|error| text(&error))?;
        if let Some(replayer) = sql.as_mut().filter(|_| settings.large > 0) {
            replayer.keep_in_memory(usize::try_from(settings.large).unwrap_or(usize::MAX));
        }
        let mut reader = Reader::new(sql, mutant);
        let recovered = recover(&dir, &*shared, &mut reader).map_err(|error| text(&error))?;
        engines.is_recovered();
        let identity = LogIdentity {
            server_id: SERVER_ID,
            uuid: UUID,
            version: match frame.dialect {
                Dialect::Mysql => "8.4.0-omnibus".to_owned(),
                Dialect::Mariadb => "11.4.5-MariaDB-omnibus".to_owned(),
            },
            dialect: frame.dialect,
        };
        let on_failure = Box::new(|_: &str| {});
        let (env, appender) =
            LogEnv::start(dir, &recovered, identity, settings.checksum, shared.clone(), on_failure)
                .map_err(|error| text(&error))?;
        let caches = CacheSettings { dialect: frame.dialect, ..CacheSettings::new(std::env::temp_dir()) };
        caches.cache_size.store(if settings.large == 0 { 1 << 20 } else { 1000 }, Ordering::Relaxed);
        caches.large.threshold.store(settings.large, Ordering::Relaxed);
        let commit = Arc::new(settings.commit());
        let coordinator = Coordinator::start(shared, env, appender, &recovered, commit, Arc::new(caches))
            .map_err(|error| text(&error))?;
        let coordinator = Arc::new(coordinator);
        let port = || Port::new(Arc::clone(&coordinator), mutant);
        let database = frame.tables.then(|| Database::open(Arc::new(port()))).transpose();
        let database = database.map_err(|error| text(&error))?;
        let shown = show(&engines, &recovered, database.as_ref())?;
        let life = Life {
            disk: disk.clone(),
            schedule: Arc::clone(schedule),
            next_xid: coordinator.first_xid(),
            coordinator,
            database,
            answers: Answers::default(),
            engines,
            settings,
            tickets: Tickets::default(),
            replies: Vec::new(),
            follower: Arc::default(),
            published: recovered.last.0,
            gate: Gate::Open,
            switching: Arc::default(),
            next_backup: disk.steps(),
            mutant,
        };
        Ok((life, shown))
    }

    /// An engine persists what it has.
    pub(crate) fn checkpoint(&self, random: &mut Random) {
        self.engines.checkpoint(self.slot(random));
    }

    fn slot(&self, random: &mut Random) -> usize {
        if self.engines.are_two() { random.index(2) } else { 0 }
    }

    /// Does one thing.
    pub(crate) fn act(
        &mut self,
        random: &mut Random,
        oracle: &mut Oracle,
        next_id: &mut u64,
        backups: &mut Vec<Backup>,
    ) {
        let waiting = self.schedule.waiting();
        // Mostly what is under way goes on.
        let full = self.schedule.has_blocked() || self.schedule.alive() >= self.settings.threads;
        if !waiting.is_empty() && (full || !random.one_in(self.settings.eager)) {
            let requests = random.pick(&[1, 1, 1, 2, 4, 20]);
            return self.schedule.go_on(random.pick(&waiting), requests);
        }
        let what = random.below(if self.database.is_some() { 44 } else { 34 });
        match if self.settings.does(what) { what } else { what % 2 * 13 } {
            0..=12 => self.submit(random, oracle, next_id),
            13..=22 => {
                self.lead();
                // Groups meet in flight only where the next one comes at once.
                while random.one_in(2) {
                    self.submit(random, oracle, next_id);
                    self.lead();
                }
            }
            23 => self.work(|coordinator| drop(coordinator.rotate())),
            24 if self.engines.are_two() && !random.one_in(3) => {
                let (engines, slot) = (self.engines.clone(), self.slot(random));
                self.work(move |_| engines.checkpoint(slot));
            }
            24 => self.work(|coordinator| drop(coordinator.engine().checkpoint())),
            25 => {
                let (mutant, beside_reset) = (self.mutant, self.settings.does(RESET) && random.one_in(2));
                self.work(move |coordinator| purge(coordinator, mutant, beside_reset));
                if beside_reset {
                    self.reset(oracle);
                }
            }
            26 => self.sync_all(oracle),
            27 => self.switch_gate(random),
            28 => self.back_up(backups),
            RESET if random.one_in(3) => self.reset(oracle),
            30 => {
                let seen = self.coordinator.numbered();
                self.replies.push((seen.0, self.coordinator.wait_published(seen)));
            }
            31 => {
                let follower = Arc::clone(&self.follower);
                self.work(move |coordinator| {
                    // Of two the operating system would choose.
                    if let Some(mut follower) = follower.try_lock() {
                        follower.follow(coordinator.log().files());
                    }
                });
            }
            32 => self.schedule.let_time_pass(),
            34.. => self.ask(what - 34, random, oracle, next_id),
            _ => {
                if let Some(waiting) = waiting.first() {
                    self.schedule.go_on(*waiting, 1);
                }
            }
        }
    }

    /// Something that may take requests of the disk: on a thread of its own.
    fn work(&self, work: impl FnOnce(&Coordinator) + Send + 'static) {
        let coordinator = Arc::clone(&self.coordinator);
        self.schedule.spawn(move || work(&coordinator));
    }

    fn lead(&self) {
        self.work(|coordinator| {
            coordinator.lead();
        });
    }

    fn submit(&mut self, random: &mut Random, oracle: &mut Oracle, next_id: &mut u64) {
        for _ in 0..1 + random.below(3) {
            let id = *next_id;
            *next_id += 1;
            let logged = !random.one_in(6);
            let row_bytes = random.pick(&[10, 10, 200, 3000]);
            let rows = 1 + random.index(4);
            let prepares = logged && !random.one_in(5);
            let xid = self.next_xid;
            self.next_xid += 1;
            let drops = if random.one_in(8) { oracle.pick_promised(random) } else { None };
            let place = match self.engines.are_two() {
                true => random.pick(&[
                    RowEngines::Slot(0),
                    RowEngines::Slot(1),
                    RowEngines::Both,
                    RowEngines::Both,
                ]),
                false => RowEngines::Slot(0),
            };
            let wanted = Wanted { logged, xid, prepares, ..Wanted::new(id, place, rows, row_bytes, drops) };
            oracle.asked(wanted.clone());
            let blocks = self.settings.protocol.is_two_phase() || self.settings.large > 0;
            if !blocks && !random.one_in(4) {
                match wanted.request(&self.coordinator) {
                    Ok(request) => self.tickets.lock().push((id, self.coordinator.commit(request))),
                    Err(_) => oracle.refused(id),
                }
                continue;
            }
            let tickets = Arc::clone(&self.tickets);
            self.work(move |coordinator| {
                let ticket = match wanted.request(coordinator) {
                    Ok(request) => coordinator.commit(request.inline()),
                    Err(reason) => Ticket::done(Err(CommitError::Cache(reason.into()))),
                };
                tickets.lock().push((id, ticket));
            });
        }
    }

    /// A session with XA branches.
    fn ask(&self, what: u64, random: &mut Random, oracle: &mut Oracle, next_id: &mut u64) {
        let Some(database) = self.database.clone() else { return };
        let ask = match what {
            0..=3 => {
                let (rows, row_bytes) = (random.index(4), random.pick(&[10, 10, 200, 3000]));
                let branch = Branch::new(*next_id, rows, row_bytes, random.below(8));
                *next_id += 2;
                Ask::Prepare(branch)
            }
            4..=7 => match oracle.pick_branch(random) {
                Some(id) => Ask::Finish { id, commit: random.one_in(2) },
                None => return,
            },
            8 => Ask::List,
            _ => Ask::Read,
        };
        let before = oracle.asks(&ask);
        let answers = Arc::clone(&self.answers);
        self.schedule.spawn(move || {
            let answer = branches::answer(&database, &ask);
            answers.lock().push((ask, before, answer));
        });
    }

    /// Makes the tables.
    pub(crate) fn found(&mut self) -> Result<(), String> {
        let done = Arc::new(Mutex::new(Ok(())));
        let (coordinator, outcome) = (Arc::clone(&self.coordinator), Arc::clone(&done));
        let engine = if self.engines.are_two() { SECOND } else { FIRST };
        self.schedule.spawn(move || {
            let database = Database::open(Arc::new(Port::new(coordinator, None)));
            let database = database.map_err(|error| error.to_string());
            *outcome.lock() = database.and_then(|database| branches::found(&database, engine));
        });
        self.come_to_rest(&mut Random::new(0), &mut Oracle::default())?;
        let done = done.lock();
        done.clone()
    }

    fn reset(&self, oracle: &mut Oracle) {
        oracle.resets();
        self.work(|coordinator| drop(coordinator.reset_log(omnibus_log::FileSeq::FIRST)));
    }

    fn sync_all(&self, oracle: &mut Oracle) {
        oracle.told(self.coordinator.durable().0);
        self.work(|coordinator| drop(coordinator.with_quiet_log(|_, _| ())));
    }

    fn switch_gate(&mut self, random: &mut Random) {
        if self.gate == Gate::Open {
            self.gate = random.pick(&[Gate::AfterSync, Gate::AfterCommit]);
        } else if random.one_in(2) {
            return self.work(|coordinator| {
                coordinator.release(coordinator.log().files().durable_end().get());
            });
        } else {
            self.gate = Gate::Open;
        }
        self.set_gate();
    }

    fn set_gate(&self) {
        let (gate, switching) = (self.gate, Arc::clone(&self.switching));
        switching.fetch_add(1, Ordering::SeqCst);
        self.work(move |coordinator| {
            coordinator.set_gate(gate);
            switching.fetch_sub(1, Ordering::SeqCst);
        });
    }

    /// Links the closed files, as BACKUP TO does.
    fn back_up(&mut self, backups: &mut Vec<Backup>) {
        let disk = self.disk.disk();
        if disk.create_dir_all(Path::new(BACKUP)).is_err() {
            return;
        }
        for entry in self.coordinator.log().files().list().iter().filter(|entry| !entry.active) {
            self.next_backup += 1;
            let from = Path::new(DATA).join(&entry.name);
            let path = Path::new(BACKUP).join(format!("{}.{}", entry.name, self.next_backup));
            if disk.hard_link(&from, &path).is_ok()
                && let Some(mut bytes) = self.disk.peek(&path)
            {
                bytes.truncate(usize::try_from(entry.size).unwrap_or(usize::MAX));
                backups.push(Backup { path, bytes });
            }
        }
        let _ = disk.sync_dir(Path::new(BACKUP));
    }

    /// Passes the replies to the oracle, unless the process has ended: then nobody received them.
    pub(crate) fn tell(&mut self, oracle: &mut Oracle) -> Result<(), String> {
        if self.disk.is_dead() {
            return Ok(());
        }
        let mut done: Vec<(u64, CommitResult)> = Vec::new();
        self.tickets.lock().retain(|(id, ticket)| match ticket.poll_now() {
            Some(result) => {
                done.push((*id, result));
                false
            }
            None => true,
        });
        done.sort_by_key(|(_, result)| result.as_ref().map_or(u64::MAX, |no| no.0));
        for (id, result) in done {
            match result {
                Ok(no) => oracle.committed(id, no.0, self.settings.promises()),
                Err(CommitError::LogFailed(_)) => {}
                Err(_) => oracle.refused(id),
            }
        }
        let promises = self.settings.promises();
        for (ask, before, answer) in self.answers.lock().drain(..) {
            oracle.answered(&ask, &before, &answer, promises)?;
        }
        self.replies.retain(|(no, ticket)| match ticket.poll_now() {
            Some(Ok(_)) => {
                oracle.replied(*no, promises);
                false
            }
            Some(Err(_)) => false,
            None => true,
        });
        if let Some(mut follower) = self.follower.try_lock() {
            follower.sent.drain(..).for_each(|id| oracle.sent(id));
            if let Some(reason) = follower.failed.take().filter(|_| !self.has_failed()) {
                return Err(format!("a replica's dump fails: {reason}"));
            }
        }
        let published = self.coordinator.published().number().0;
        if published < self.published {
            return Err(format!("published went from {} back to {published}", self.published));
        }
        self.published = published;
        if self.settings.promises() {
            oracle.told(published);
        }
        oracle.told(self.coordinator.durable().0);
        match self.schedule.panics().first() {
            Some(panic) => Err(format!("a thread panicked: {panic}")),
            None => Ok(()),
        }
    }

    /// Lets everything finish that was begun. Every request must then have an answer.
    pub(crate) fn come_to_rest(&mut self, random: &mut Random, oracle: &mut Oracle) -> Result<(), String> {
        let (mut quiet, mut opened) = (0, false);
        for _ in 0..100_000 {
            // Not beside one that closes it.
            if !opened && self.switching.load(Ordering::SeqCst) == 0 {
                (self.gate, opened) = (Gate::Open, true);
                self.set_gate();
            }
            let waiting = self.schedule.waiting();
            if !waiting.is_empty() {
                self.schedule.go_on(random.pick(&waiting), 1 + random.below(20));
            } else if self.schedule.alive() > 0 || !self.tickets.lock().is_empty() {
                quiet += 1;
                self.lead();
                if quiet > 200 {
                    std::thread::sleep(Duration::from_millis(2));
                }
            } else {
                return Ok(());
            }
            self.tell(oracle)?;
            if self.disk.is_dead() {
                return Ok(());
            }
            if quiet > 600 {
                let waits = self.tickets.lock().len() + self.schedule.alive();
                let held = self.coordinator.held();
                return Err(format!("nothing moves, and {waits} still wait for an answer; {held:?}"));
            }
        }
        Err("it never comes to rest".to_owned())
    }

    /// After the disk has ended: threads end too.
    pub(crate) fn bury(self) -> Result<(), String> {
        let (coordinator, schedule) = (Arc::clone(&self.coordinator), Arc::clone(&self.schedule));
        schedule.spawn(move || drop(coordinator.close()));
        if !schedule.wait_all() {
            let threads = format!("{schedule:?}");
            std::mem::forget(self);
            return Err(format!("a thread does not end after the process was killed: {threads}"));
        }
        Ok(())
    }

    /// Returns whether the log has failed, as a result of a device error.
    pub(crate) fn has_failed(&self) -> bool {
        self.coordinator.log().files().check().is_err()
    }

    pub(crate) fn rows(&self) -> usize {
        self.engines.rows()
    }
}

impl Drop for Life {
    /// Threads in the background stand before requests, and those who end them wait for them: also where something was found.
    fn drop(&mut self) {
        self.disk.die();
    }
}

/// Returns the contents of a server that has just recovered.
fn show(engines: &Engines, recovered: &Recovered, database: Option<&Arc<Database>>) -> Result<Shown, String> {
    let Contents { rows, order } = engines.contents()?;
    let branches = database.map(branches::show).transpose()?;
    let text = recovered.executed.to_string();
    let gtids = match text.rsplit(['-', ':']).next().and_then(|last| last.parse::<u64>().ok()) {
        None => Some((0, text.is_empty())),
        Some(last) if recovered.executed.set().is_some() => {
            let (one, many) = (format!("{UUID}:1"), format!("{UUID}:1-{last}"));
            Some((last, text == one || text == many))
        }
        Some(last) => Some((last, text == format!("0-7-{last}"))),
    };
    Ok(Shown { order, rows, last: recovered.last.0, gtids, branches })
}

/// Purges all that may go; once the log has begun anew and has a few files, if another administrator is about to do that.
fn purge(coordinator: &Coordinator, mutant: Option<Mutant>, beside_reset: bool) {
    let early = (mutant == Some(Mutant::PurgeAsksEarly)).then(|| coordinator.recovery_start());
    let files = coordinator.log().files();
    let newest = files.list().last().map(|file| file.file);
    for _ in 0..if beside_reset { 600 } else { 0 } {
        files.disk().pause(Duration::ZERO);
        let list = files.list();
        if list.len() > 2 && list.last().map(|file| file.file) < newest {
            break;
        }
    }
    if let Some(last) = files.list().last() {
        let keep_from = || match mutant {
            Some(Mutant::PurgeTooMuch) => Ok(last.file),
            _ => early.unwrap_or_else(|| coordinator.recovery_start()),
        };
        let _ = files.purge_to(last.file, keep_from);
    }
}

/// The log's disk. The keyring is none of the simulation's: it is never lost.
fn encrypted(disk: Disk, on: bool) -> Result<Disk, String> {
    let encryption = Encryption::over(disk, Some(Keyring::fixed([7; 32])));
    if on {
        encryption.turn_on().map_err(|error| error.to_string())?;
    }
    Ok(Disk::new(encryption))
}

/// Checks that every file that a backup holds is unchanged.
pub(crate) fn check_backups(disk: &SimDisk, backups: &mut Vec<Backup>) -> Result<(), String> {
    for backup in backups.iter() {
        let Some(now) = disk.peek(&backup.path) else { continue };
        if now.get(..backup.bytes.len()) != Some(&backup.bytes[..]) {
            let lengths = (backup.bytes.len(), now.len());
            return Err(format!("a backup's {} was changed: {lengths:?}", backup.path.display()));
        }
    }
    backups.retain(|backup| disk.peek(&backup.path).is_some());
    Ok(())
}
