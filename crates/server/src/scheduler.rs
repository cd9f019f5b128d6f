//! The event scheduler: a task that looks once a second which events are due and has each run on a session of its own.
//!
//! Nothing is kept of it but what the catalog says: when an event is due follows from its schedule and the time. What passed while
//! the server was down, or the scheduler off, is passed over, but for events that were due once and have not run.

use crate::process::{Process, ThreadState};
use crate::server::Server;
use crate::session::{drop_if_over, events, run_event};
use crate::sysvars::VarValue;
use omnibus_parser::ast::EventStatus;
use omnibus_sql::{EventTimes, ProgramDef};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Events that run at once.
const AT_ONCE: usize = 64;
/// Events that wait for their turn; more are passed over.
const MOST_WAITING: usize = 4096;

/// An event and when it is due.
struct Entry {
    def: Arc<ProgramDef>,
    /// None: never again.
    next: Option<i64>,
}

/// The events that wait.
#[derive(Default)]
struct Queue {
    entries: Vec<Entry>,
    /// The last second that was looked at; none: the scheduler has just begun.
    seen: Option<i64>,
}

/// An event that is due.
struct Due {
    def: Arc<ProgramDef>,
    runs: bool,
    last: bool,
}

/// When an event is due that the queue does not have yet.
fn first(def: &ProgramDef, seen: Option<i64>, now: i64) -> Option<i64> {
    let event = def.event.as_ref()?;
    let executed = event.executed();
    if let EventTimes::At(at) = event.times {
        return (executed == 0).then_some(at);
    }
    // One that was made since the last look is due from then on.
    let made = def.modified_us.div_euclid(1_000_000);
    let from = seen.map_or(now, |seen| made.clamp(seen.min(now), now));
    event.times.next(from.max(executed + 1), event.zone())
}

/// Whether a crash came between an event's last run and its end.
fn is_left_over(def: &ProgramDef) -> bool {
    let Some(event) = &def.event else { return false };
    let executed = event.executed();
    let over = match event.times {
        EventTimes::At(_) => executed > 0,
        EventTimes::Every { .. } => executed > 0 && event.times.next(executed + 1, event.zone()).is_none(),
    };
    over && event.status == EventStatus::Disabled && !event.preserve
}

impl Queue {
    /// The events due at `now`, in the order of their times; each has its next time then.
    fn due(&mut self, defs: Vec<Arc<ProgramDef>>, now: i64) -> Vec<Due> {
        let mut due = Vec::new();
        let mut old = std::mem::take(&mut self.entries);
        for def in defs {
            if def.event.as_ref().is_none_or(|event| event.status != EventStatus::Enabled) {
                continue;
            }
            let known = old.iter().position(|entry| Arc::ptr_eq(&entry.def, &def));
            let next = match known {
                Some(at) => old.swap_remove(at).next,
                None => first(&def, self.seen, now),
            };
            self.entries.push(Entry { def, next });
        }
        self.seen = Some(now);
        self.entries.sort_by_key(|entry| entry.next);
        self.entries.retain_mut(|entry| {
            let Some(event) = &entry.def.event else { return false };
            let runs = entry.next.is_some();
            if entry.next.is_some_and(|next| next > now) {
                return true;
            }
            entry.next = match event.times {
                EventTimes::At(_) => None,
                EventTimes::Every { .. } if runs => event.times.next(now + 1, event.zone()),
                EventTimes::Every { .. } => None,
            };
            let last = entry.next.is_none();
            due.push(Due { def: entry.def.clone(), runs, last });
            // One that ends stays known until its end is noted, so that it is not begun again.
            entry.next = entry.next.or(Some(i64::MAX));
            true
        });
        due
    }
}

/// The scheduler's line of SHOW PROCESSLIST, while it is on.
struct Line {
    process: Arc<Process>,
    server: Arc<Server>,
    empty: Arc<AtomicBool>,
}

impl Line {
    fn new(server: &Arc<Server>) -> Line {
        let empty = Arc::new(AtomicBool::new(true));
        let waits = empty.clone();
        let describe = move || ThreadState {
            command: "Daemon",
            state: match waits.load(Ordering::Relaxed) {
                true => "Waiting on empty queue",
                false => "Waiting for next activation",
            },
            since_us: 0,
        };
        let process = server.processes.register_thread("localhost", Box::new(describe));
        process.identity.lock().user = "event_scheduler".into();
        Line { process, server: server.clone(), empty }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.server.processes.remove(self.process.id);
    }
}

/// The events that run, and those that wait for it: each has a session and a thread while it runs, and an account may make thousands.
struct Runs {
    room: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
}

impl Default for Runs {
    fn default() -> Runs {
        Runs { room: Arc::new(Semaphore::new(AT_ONCE)), waiting: Arc::default() }
    }
}

impl Runs {
    /// Starts an event, at once or when others have ended; false: it is passed over, and comes again.
    fn start(&self, server: &Arc<Server>, due: Due) -> bool {
        if !due.last && due.runs && self.waiting.load(Ordering::Relaxed) >= MOST_WAITING {
            return false;
        }
        let (server, room, waiting) = (server.clone(), self.room.clone(), self.waiting.clone());
        waiting.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(async move {
            let place = room.acquire_owned().await;
            waiting.fetch_sub(1, Ordering::Relaxed);
            run_event(server, due.def, due.runs, due.last).await;
            drop(place);
        });
        true
    }
}

/// Runs events for as long as the server runs.
pub(crate) async fn run(server: Arc<Server>) {
    let mut on: Option<(Queue, Line)> = None;
    let runs = Runs::default();
    loop {
        let wanted = server.globals.named("event_scheduler").as_str() == "ON" && !server.skips_grants();
        if let Some((_, line)) = &on
            && line.process.kill.connection_killed()
        {
            // As MySQL: who kills its thread turns it off.
            server.globals.set_named("event_scheduler", VarValue::Str("OFF".into()));
            on = None;
            continue;
        }
        match &mut on {
            _ if !wanted => on = None,
            None => on = Some((Queue::default(), Line::new(&server))),
            Some(_) => {}
        }
        if let Some((queue, line)) = &mut on {
            let now = crate::clock::now_us().div_euclid(1_000_000);
            let events = events(&server.database);
            if queue.seen.is_none() {
                for def in events.iter().filter(|def| is_left_over(def)) {
                    drop_if_over(&server, def).await;
                }
            }
            let mut passed_over = 0;
            for due in queue.due(events, now) {
                if let Some(event) = due.def.event.as_ref().filter(|_| due.runs) {
                    event.executed.store(now, Ordering::Relaxed);
                }
                passed_over += usize::from(!runs.start(&server, due));
            }
            if passed_over > 0 {
                tracing::warn!(
                    events = passed_over,
                    "events are passed over: too many others wait for their turn"
                );
            }
            line.empty.store(queue.entries.is_empty(), Ordering::Relaxed);
        }
        let into = crate::clock::now_us().rem_euclid(1_000_000);
        tokio::time::sleep(Duration::from_micros((1_000_000 - into).cast_unsigned())).await;
    }
}
