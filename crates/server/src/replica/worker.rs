//! A worker's thread: applies one transaction after the other and enrols each when its turn comes.
//!
//! A transaction that fails while others before it are not committed yet is tried again in its turn, where everything is
//! as it was at the source; an error is one only then. Temporary ones are tried again some times more.

use super::applying::Applying;
use super::jobs::{Done, Job, Reached, Task};
use super::statements::changed_tables;
use super::threads::Lane;
use super::worker_target::{Interrupted, Ordered};
use crate::errors;
use omnibus_commit::{GtidGuard, Ownership, Ticket};
use omnibus_replication::changes::{ApplyError, ApplyTarget, EventDecoder, Position, Step};
use omnibus_replication::replica::{ErrorAt, EventBuf, Filtered, Item, Received};
use omnibus_sql::SqlSession;
use omnibus_sql::apply::Applier;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

/// How often a worker looks whether it is to end while the next piece does not come.
const TICK: Duration = Duration::from_millis(100);

/// The outcome of a transaction.
enum Outcome {
    Enrolled(Ticket, Option<GtidGuard>),
    /// It is here already.
    Known,
    /// The rest of it did not come.
    Lost,
    Interrupted(Interrupted),
    Failed(ApplyError),
}

/// Until there is nothing to do any more.
pub(super) fn run(applying: &Applying, slot: usize, done: &SyncSender<Done>) {
    let own = &applying.slots[slot];
    let mut session = SqlSession::new(applying.env.database.clone(), own.session, own.kill.clone());
    let waiter = session.watch();
    if let Some(process) = applying.env.server.processes.get(own.session.into()) {
        process.set_transaction(session.watch());
    }
    let _ = own.waiter.set(Box::new(move || {
        waiter.kill();
    }));
    session.state.login.user = "system user".into();
    session.state.connection.host =
        std::sync::Arc::new(super::host::ApplierHost(applying.env.server.clone()));
    let globals = &applying.env.server.globals;
    let vars = crate::sysvars::SessionVars::new(globals);
    session.state.settings = crate::sysvars::session_settings(&vars, globals, false, true);
    let mut applier = Applier::new(session, applying.plan.apply.clone())
        .with_server(Box::new(super::accounts::AccountStatements(applying.env.server.clone())));
    let mut decoder = EventDecoder::default().limited_to(applying.env.server.event_limit.clone());
    while let Some(job) = applying.next_job() {
        own.number.store(job.place.number, Ordering::SeqCst);
        if let (Some(received), false) = (&job.received, matches!(job.task, Task::Pass)) {
            own.lane.begin(received.trx);
        }
        let goes_on = work(applying, slot, &mut applier, &mut decoder, job, done);
        own.number.store(0, Ordering::SeqCst);
        if !goes_on {
            break;
        }
    }
}

/// One job; `false` ends the worker.
fn work(
    applying: &Applying,
    slot: usize,
    applier: &mut Applier,
    decoder: &mut EventDecoder,
    mut job: Job,
    done: &SyncSender<Done>,
) -> bool {
    let mut after = job.place.after;
    let mut tries = 0;
    let lane = &*applying.slots[slot].lane;
    loop {
        if !wait(applying, after) {
            return false;
        }
        let outcome = match &job.received {
            Some(received) if !matches!(job.task, Task::Pass) => {
                attempt(applying, slot, applier, decoder, received, &job)
            }
            _ => Outcome::Known,
        };
        if !matches!(outcome, Outcome::Enrolled(..)) {
            applier.rollback();
            decoder.reset();
        }
        match outcome {
            Outcome::Enrolled(ticket, guard) => {
                let mut events = events_of(&job);
                if let Task::Pieces = job.task
                    && let Some(end) = applying.reached.lock().clone()
                {
                    (job.position, job.wants_ack, events) = (end.position, end.wants_ack, end.events);
                }
                lane.end();
                return enrolled(applying, job, events, Some((ticket, guard)), done);
            }
            Outcome::Known => {
                lane.drop_current();
                let events = events_of(&job);
                return wait(applying, job.place.number - 1) && enrolled(applying, job, events, None, done);
            }
            Outcome::Lost => {
                // It comes again. What is between is in the queue's next epoch.
                lane.drop_current();
                applying.turns.advance(job.place.number);
                return true;
            }
            Outcome::Interrupted(Interrupted::Stopped) => return false,
            Outcome::Interrupted(Interrupted::GaveWay) => again(applying, lane, None),
            // Interrupted, or to be seen again after the next START REPLICA; nobody's turn comes behind it.
            Outcome::Failed(_) if applying.stopping() => {
                applying.turns.end();
                return false;
            }
            Outcome::Failed(error) if is_my_turn_at(after, &job) => {
                if !error.temporary || tries >= applying.plan.retries {
                    fail(applying, slot, &job, &error);
                    return false;
                }
                tries += 1;
                again(applying, lane, Some(&error));
                if let Task::Pieces = job.task {
                    // The pieces are gone: everything from the applied position once more.
                    applying.reached.lock().take();
                    applying.lose(job.place.number);
                    lane.drop_current();
                    applying.turns.advance(job.place.number);
                    return true;
                }
                std::thread::sleep(Duration::from_millis(20 * tries.min(10)));
            }
            Outcome::Failed(error) => again(applying, lane, Some(&error)),
        }
        after = job.place.number - 1;
    }
}

/// The transaction is tried once more.
fn again(applying: &Applying, lane: &Lane, error: Option<&ApplyError>) {
    applying.status.update(|s| s.retried += 1);
    lane.again(error.map(|error| ErrorAt::now(error.code, error.message.clone())));
}

/// Whether the attempt began in its own turn, with everything before it done.
fn is_my_turn_at(after: u64, job: &Job) -> bool {
    after + 1 == job.place.number
}

fn wait(applying: &Applying, number: u64) -> bool {
    loop {
        match applying.turns.wait(number, Duration::from_secs(1)) {
            Some(true) => return true,
            Some(false) => {}
            None => return false,
        }
    }
}

/// How many events a job is; what is between transactions counts as one.
fn events_of(job: &Job) -> u64 {
    job.received.as_ref().map_or(1, |received| received.events.len() as u64)
}

fn enrolled(
    applying: &Applying,
    job: Job,
    events: u64,
    commit: Option<(Ticket, Option<GtidGuard>)>,
    done: &SyncSender<Done>,
) -> bool {
    let Job { place, position, wants_ack, received, .. } = job;
    let (ticket, guard) = commit.map_or((None, None), |(ticket, guard)| (Some(ticket), guard));
    let applied = ticket.is_some();
    let defines = applied && received.as_ref().is_some_and(|received| received.trx.standalone);
    let message = Done { number: place.number, defines, events, applied, ticket, position, wants_ack, guard };
    // Before the next one's turn begins, so that they come in order.
    let sent = done.send(message).is_ok();
    applying.turns.advance(place.number);
    sent
}

fn fail(applying: &Applying, slot: usize, job: &Job, error: &ApplyError) {
    let (gtid, end) = job.received.as_ref().map_or_else(Default::default, |received| {
        let gtid = received.trx.gtid.map_or("ANONYMOUS".to_owned(), |gtid| gtid.to_string());
        (gtid, received.end.clone())
    });
    let message = format!(
        "Worker {} failed executing transaction '{gtid}' at source log {}, end_log_pos {}; {}",
        slot + 1,
        end.file,
        end.position,
        errors::words_of(error.code, error.message.clone(), applying.env.coordinator.log().dialect())
    );
    applying.slots[slot].lane.failed(ErrorAt::now(error.code, message.clone()));
    applying.fail(error.code, message);
}

/// The right to commit the transaction's id, if it has one. `Err`: it is not to be applied.
fn own(applying: &Applying, received: &Received) -> Result<Option<GtidGuard>, Outcome> {
    let Some(gtid) = received.trx.gtid else { return Ok(None) };
    loop {
        match applying.env.coordinator.gtids().own(gtid) {
            Ownership::Owned(guard) => return Ok(Some(guard)),
            Ownership::Executed(_) => return Err(Outcome::Known),
            Ownership::Off => {
                let why = "Cannot replicate GTID-transaction when @@GLOBAL.GTID_MODE = OFF";
                return Err(Outcome::Failed(ApplyError::new(3115, why)));
            }
            Ownership::Busy(ticket) => drop(ticket.wait()),
        }
    }
}

fn attempt(
    applying: &Applying,
    slot: usize,
    applier: &mut Applier,
    decoder: &mut EventDecoder,
    received: &Received,
    job: &Job,
) -> Outcome {
    let guard = match own(applying, received) {
        Ok(guard) => guard,
        Err(outcome) => return outcome,
    };
    let target = Ordered { applier, applying, slot, place: job.place, interrupted: None };
    decoder.set_format(&received.format);
    let mut run = Run { applying, target, decoder };
    let position = position_of(applying, job);
    let result = match job.task {
        Task::Empty => run.empty(received, &position),
        Task::Pieces => run.pieces(received, job, &position),
        _ => run.events(&received.events, &position),
    };
    match result {
        Ok(Some(ticket)) => Outcome::Enrolled(ticket, guard),
        Ok(None) if matches!(job.task, Task::Pieces) => Outcome::Lost,
        Ok(None) => Outcome::Failed(ApplyError::damaged("a transaction without its end")),
        Err(error) => match run.target.interrupted {
            Some(interrupted) => Outcome::Interrupted(interrupted),
            None => Outcome::Failed(error),
        },
    }
}

fn position_of(applying: &Applying, job: &Job) -> Position {
    Position { channel: applying.plan.channel.clone(), state: job.position.encode() }
}

struct Run<'a> {
    applying: &'a Applying,
    target: Ordered<'a>,
    /// Keeps the tables of the transactions before.
    decoder: &'a mut EventDecoder,
}

impl Run<'_> {
    fn events(&mut self, events: &EventBuf, position: &Position) -> Result<Option<Ticket>, ApplyError> {
        let mut ticket = None;
        let filters = &*self.applying.plan.filters;
        for event in events.iter() {
            let (header, body) = event?;
            let step = if filters.is_empty() {
                self.decoder.apply(&header, body, &mut self.target, Some(position))?
            } else {
                let mut target = Filtered { inner: &mut self.target, filters, tables: &changed_tables };
                self.decoder.apply(&header, body, &mut target, Some(position))?
            };
            if let Step::Committed(done) = step {
                ticket = Some(done);
            }
        }
        Ok(ticket)
    }

    fn empty(&mut self, received: &Received, position: &Position) -> Result<Option<Ticket>, ApplyError> {
        self.target.begin(&received.trx)?;
        self.target.commit(Some(position)).map(Some)
    }

    /// The first piece, and then what comes. `None`: the rest does not come.
    fn pieces(
        &mut self,
        received: &Received,
        job: &Job,
        position: &Position,
    ) -> Result<Option<Ticket>, ApplyError> {
        self.applying.reached.lock().take();
        self.events(&received.events, position)?;
        let mut count = received.events.len() as u64;
        while !self.applying.stopping() {
            let Some(item) = self.applying.queue.pop(TICK) else { continue };
            let Item::More { events, end } = item else { return Ok(None) };
            count += events.len() as u64;
            let Some((end, wants_ack)) = end else {
                self.events(&events, position)?;
                continue;
            };
            let mut at = job.position.clone();
            at.source = end;
            let position = Position { channel: position.channel.clone(), state: at.encode() };
            *self.applying.reached.lock() = Some(Reached { position: at, wants_ack, events: count });
            return self.events(&events, &position);
        }
        self.target.interrupted = Some(Interrupted::Stopped);
        Err(ApplyError::new(1053, "Server shutdown in progress"))
    }
}
