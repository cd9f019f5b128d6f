//! Which thread goes on: one at a time, by the seed, from one request of the disk to the next.
//!
//! The code under test runs on real threads and takes real locks. Each request of the model disk is a place where its thread
//! stops until the simulation lets it go on, so the order of requests is the simulation's. A thread that blocks elsewhere, in
//! a lock that another one holds, is seen by what the operating system says of it; it goes on by itself up to its next request once the
//! other lets go. The simulation's own thread never stops: what it does is one step.
//!
//! Threads that the code under test starts for its background work are announced by it; one that is not joins at its first request.

use parking_lot::{Condvar, Mutex, MutexGuard};
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a thread may be at it before it is looked at.
const LOOK: Duration = Duration::from_micros(40);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Stands before a request.
    Waiting,
    Running,
    /// In a lock, or asleep.
    Blocked,
    Done,
}

#[derive(Debug)]
struct Thread {
    state: State,
    /// What the operating system calls it.
    id: u64,
    /// Started by the simulation, so that it ends by itself.
    announced: bool,
    /// Requests that it may make before it stops again.
    leave: u64,
    go: Arc<Condvar>,
}

#[derive(Debug, Default)]
struct Inner {
    threads: Vec<Thread>,
    free: bool,
    panics: Vec<String>,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Schedule {
    inner: Mutex<Inner>,
    changed: Condvar,
}

thread_local! {
    static ME: RefCell<Option<Seat>> = const { RefCell::new(None) };
    static CONDUCTOR: RefCell<bool> = const { RefCell::new(false) };
}

/// A thread's place in a schedule, until it ends, or until it is clear that it does not start.
struct Seat {
    schedule: Arc<Schedule>,
    number: usize,
}

impl Seat {
    /// The calling thread is the one.
    fn take(self) {
        self.schedule.inner.lock().threads[self.number].id = thread_id();
        ME.with(|me| *me.borrow_mut() = Some(self));
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.schedule.set(self.number, State::Done);
    }
}

impl Schedule {
    /// A new one, whose conductor is the calling thread.
    #[must_use]
    pub fn new() -> Arc<Schedule> {
        CONDUCTOR.with(|conductor| *conductor.borrow_mut() = true);
        Arc::default()
    }

    /// Starts `work` on a thread of its own, which stops before its first request.
    pub fn spawn(self: &Arc<Self>, work: impl FnOnce() + Send + 'static) {
        let number = self.add(true);
        let schedule = Arc::clone(self);
        let seat = Seat { schedule: Arc::clone(self), number };
        workers::run(Box::new(move || {
            seat.take();
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            if let Err(panic) = ended {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                schedule.inner.lock().panics.push(text.unwrap_or_default());
            }
            ME.with(|me| drop(me.borrow_mut().take()));
        }));
        self.settle(number);
    }

    /// See [`omnibus_disk::FileSystem::announce`].
    pub(crate) fn announce(self: &Arc<Self>) -> Box<dyn FnOnce() + Send> {
        let seat = Seat { schedule: Arc::clone(self), number: self.add(false) };
        Box::new(move || seat.take())
    }

    /// The threads that stand before a request.
    #[must_use]
    pub fn waiting(&self) -> Vec<usize> {
        self.look_again();
        let inner = self.inner.lock();
        inner
            .threads
            .iter()
            .enumerate()
            .filter(|(_, seat)| seat.state == State::Waiting)
            .map(|(n, _)| n)
            .collect()
    }

    /// How many threads of the simulation's have not ended.
    #[must_use]
    pub fn alive(&self) -> usize {
        let inner = self.inner.lock();
        inner.threads.iter().filter(|thread| thread.announced && thread.state != State::Done).count()
    }

    /// Whether one of the simulation's threads waits for a lock: of two, the operating system would choose.
    #[must_use]
    pub fn has_blocked(&self) -> bool {
        self.inner.lock().threads.iter().any(|thread| thread.announced && thread.state == State::Blocked)
    }

    /// What threads said when they panicked.
    #[must_use]
    pub fn panics(&self) -> Vec<String> {
        self.inner.lock().panics.clone()
    }

    /// Lets one make so many requests, or as many as it can before it ends or waits for a lock.
    pub fn go_on(&self, number: usize, requests: u64) {
        {
            let mut inner = self.inner.lock();
            let thread = &mut inner.threads[number];
            (thread.state, thread.leave) = (State::Running, requests);
            thread.go.notify_one();
        }
        self.settle(number);
    }

    /// From now on nobody stops.
    pub fn let_go(&self) {
        let mut inner = self.inner.lock();
        inner.free = true;
        for thread in &inner.threads {
            thread.go.notify_one();
        }
    }

    /// Waits, a bounded time, until every thread has ended.
    #[must_use]
    pub fn wait_all(&self) -> bool {
        let deadline = Instant::now() + Duration::from_secs(10);
        let mut inner = self.inner.lock();
        while inner.threads.iter().any(|thread| thread.announced && thread.state != State::Done) {
            if self.changed.wait_until(&mut inner, deadline).timed_out() {
                return false;
            }
        }
        true
    }

    /// Called by the disk before each request.
    pub(crate) fn step(self: &Arc<Self>) {
        if CONDUCTOR.with(|conductor| *conductor.borrow()) {
            return;
        }
        let mine = ME.with(|me| {
            let me = me.borrow();
            match &*me {
                Some(seat) if Arc::ptr_eq(&seat.schedule, self) => seat.number,
                _ => {
                    let number = self.add(false);
                    drop(me);
                    Seat { schedule: Arc::clone(self), number }.take();
                    number
                }
            }
        });
        let mut inner = self.inner.lock();
        if inner.free {
            return;
        }
        let thread = &mut inner.threads[mine];
        // One that was blocked goes on only when it is told to.
        if thread.state == State::Running && thread.leave > 0 {
            thread.leave -= 1;
            return;
        }
        let go = Arc::clone(&thread.go);
        (thread.state, thread.leave) = (State::Waiting, 0);
        self.changed.notify_one();
        while !inner.free && inner.threads[mine].state == State::Waiting {
            go.wait(&mut inner);
        }
        let thread = &mut inner.threads[mine];
        (thread.state, thread.leave) = (State::Running, thread.leave.saturating_sub(1));
    }

    fn add(&self, announced: bool) -> usize {
        let mut inner = self.inner.lock();
        inner.threads.push(Thread { state: State::Running, id: 0, announced, leave: 0, go: Arc::default() });
        inner.threads.len() - 1
    }

    fn set(&self, number: usize, state: State) {
        self.inner.lock().threads[number].state = state;
        self.changed.notify_one();
    }

    /// Waits until a thread stands, blocks or has ended.
    fn settle(&self, number: usize) {
        let mut asleep = 0;
        let mut inner = self.inner.lock();
        while inner.threads[number].state == State::Running {
            if !self.changed.wait_for(&mut inner, LOOK).timed_out() {
                continue;
            }
            // Not under the lock, for which it may be waiting itself.
            let id = inner.threads[number].id;
            asleep = MutexGuard::unlocked(&mut inner, || if is_asleep(id) { asleep + 1 } else { 0 });
            let thread = &mut inner.threads[number];
            if asleep >= 2 && thread.state == State::Running {
                (thread.state, thread.leave) = (State::Blocked, 0);
            }
        }
    }

    /// Threads that were blocked and are not any more go on to their next request before anything else happens.
    fn look_again(&self) {
        let deadline = Instant::now() + Duration::from_secs(5);
        let mut still = 0;
        while still < 2 && Instant::now() < deadline {
            let before = self.moving();
            let asleep: Vec<bool> = before.iter().map(|(_, _, id)| is_asleep(*id)).collect();
            if before.is_empty() || asleep.iter().all(|asleep| *asleep) && self.moving() == before {
                let mut inner = self.inner.lock();
                for (number, state, _) in &before {
                    let thread = &mut inner.threads[*number];
                    if thread.state == *state {
                        (thread.state, thread.leave) = (State::Blocked, 0);
                    }
                }
                still += if before.is_empty() { 2 } else { 1 };
            } else {
                still = 0;
                std::thread::yield_now();
            }
        }
    }

    /// The threads that stand before no request and have not ended.
    fn moving(&self) -> Vec<(usize, State, u64)> {
        let inner = self.inner.lock();
        let threads = inner.threads.iter().enumerate();
        let moving = threads.filter(|(_, thread)| matches!(thread.state, State::Running | State::Blocked));
        moving.map(|(number, thread)| (number, thread.state, thread.id)).collect()
    }
}

#[cfg(target_os = "linux")]
fn thread_id() -> u64 {
    let link = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    link.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok()).unwrap_or(0)
}

#[cfg(not(target_os = "linux"))]
fn thread_id() -> u64 {
    0
}

/// Whether the operating system has a thread sleep, or has never heard of it.
fn is_asleep(thread: u64) -> bool {
    if thread == 0 {
        return false;
    }
    match std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")) {
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S')),
        Err(_) => true,
    }
}

/// Threads that are used again: making one costs more than what it does here.
mod workers {
    use parking_lot::Mutex;
    use std::sync::mpsc::{Sender, channel};

    type Work = Box<dyn FnOnce() + Send>;

    static IDLE: Mutex<Vec<Sender<Work>>> = Mutex::new(Vec::new());

    pub(super) fn run(work: Work) {
        let idle = IDLE.lock().pop();
        let worker = idle.unwrap_or_else(start);
        // Its receiver lives as long as its thread, which never ends.
        let _ = worker.send(work);
    }

    fn start() -> Sender<Work> {
        let (sender, receiver) = channel::<Work>();
        let again = sender.clone();
        std::thread::spawn(move || {
            while let Ok(work) = receiver.recv() {
                work();
                IDLE.lock().push(again.clone());
            }
        });
        sender
    }
}
