//! The scheduler of the simulation: one thread runs at a time, chosen by the seed, from one request of the disk to the
//! next.
//!
//! The code under test runs on real threads and takes real locks. At each request of the model disk its thread stops
//! until the simulation lets it continue, so the order of requests is the simulation's. A thread that waits for a lock
//! or for another thread reports it (`omnibus_sync`, with the feature `scheduled`), and waits for its turn once it is
//! woken. A thread that blocks elsewhere is recognised by its state in the operating system; it continues by itself up
//! to its next request. The simulation's own thread stops only for a lock that one of its threads holds, which runs
//! meanwhile; otherwise its actions are one step.
//!
//! The code under test announces the threads that it starts for background work; a thread that was not announced joins
//! at its first request.

use crate::random::Random;
use crate::stillness::{self, Stillness, thread_id};
use omnibus_sync::{Seat, take_seat};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

/// The interval after which a running thread is examined.
const LOOK: Duration = Duration::from_micros(if cfg!(feature = "scheduled") { 500 } else { 40 });

/// The simulated duration of a request.
const TICK: Duration = Duration::from_micros(400);
/// One in so many locks is a place to stop at, where threads stop at locks.
const STOP: u64 = 8;
/// One in so many writes returns late, where threads stop at locks.
const LATE: u64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadState {
    /// The thread is stopped before a request.
    Waiting,
    Running,
    /// The thread waits for a lock or for another thread, and has reported it; or for time to pass.
    Parked {
        timed: bool,
    },
    /// Waits for something that only the operating system knows.
    Blocked,
    Done,
}

#[derive(Debug)]
struct Thread {
    state: ThreadState,
    /// The operating system's id of the thread.
    id: u64,
    /// Started by the simulation, so that it ends by itself.
    announced: bool,
    /// Requests that it may make before it stops again.
    leave: u64,
    /// Whether it was woken since it began to wait.
    woken: bool,
    go: Arc<Condvar>,
}

#[derive(Debug, Default)]
struct Inner {
    threads: Vec<Thread>,
    free: bool,
    panics: Vec<String>,
    /// The number of times that a thread stopped or passed a stop, which is the simulated time.
    ticks: u32,
    /// Chooses when a thread stops before a lock or behind a write, too.
    stops: Option<Random>,
    /// The number of turns of other threads while a sync is under way.
    slow: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Schedule {
    inner: Mutex<Inner>,
    began: Instant,
    changed: Condvar,
}

thread_local! {
    static ME: RefCell<Option<Chair>> = const { RefCell::new(None) };
    static ID: u64 = thread_id();
    static CONDUCTOR: RefCell<Option<Arc<Conductor>>> = const { RefCell::new(None) };
}

/// A thread's place in a schedule, until it ends, or until it is clear that it does not start.
struct Chair(Arc<ThreadPlace>);

struct ThreadPlace {
    schedule: Arc<Schedule>,
    number: usize,
}

impl Chair {
    fn new(schedule: &Arc<Schedule>, announced: bool) -> Chair {
        let number = schedule.add(announced);
        Chair(Arc::new(ThreadPlace { schedule: Arc::clone(schedule), number }))
    }

    /// The calling thread is the one.
    fn take(self) {
        let ThreadPlace { schedule, number } = &*self.0;
        schedule.inner.lock().threads[*number].id = ID.with(|id| *id);
        take_seat(Some(self.0.clone()));
        ME.with(|me| *me.borrow_mut() = Some(self));
    }
}

impl Drop for Chair {
    fn drop(&mut self) {
        take_seat(None);
        self.0.schedule.set(self.0.number, ThreadState::Done);
    }
}

/// The simulation's own thread, and the schedules that it conducts, the newest last.
#[derive(Default)]
struct Conductor {
    schedules: Mutex<Vec<Weak<Schedule>>>,
    woken: AtomicBool,
}

impl Conductor {
    fn of_this_thread() -> Arc<Conductor> {
        CONDUCTOR.with(|conductor| {
            let mut conductor = conductor.borrow_mut();
            let conductor = conductor.get_or_insert_with(|| {
                let conductor = Arc::<Conductor>::default();
                take_seat(Some(conductor.clone()));
                conductor
            });
            Arc::clone(conductor)
        })
    }

    /// The newest one.
    fn schedule(&self) -> Option<Arc<Schedule>> {
        let mut schedules = self.schedules.lock();
        schedules.retain(|schedule| schedule.strong_count() > 0);
        schedules.last().and_then(Weak::upgrade)
    }
}

impl Seat for Conductor {
    fn now(&self) -> Option<Instant> {
        self.schedule().map(|schedule| schedule.now())
    }

    fn begin(&self) -> bool {
        self.woken.store(false, Ordering::SeqCst);
        self.schedule().is_some_and(|schedule| !schedule.inner.lock().free)
    }

    /// Lets other threads run until one of them releases the wanted lock.
    fn wait(&self, timed: bool) -> bool {
        let mut still = Stillness::new();
        while !self.woken.load(Ordering::SeqCst) {
            let Some(schedule) = self.schedule() else { return false };
            match schedule.waiting().first() {
                Some(first) => {
                    still = Stillness::new();
                    schedule.go_on(*first, 1);
                }
                None if timed || schedule.inner.lock().free => return false,
                // A thread sleeps, too, while one of an earlier life that has lost its processor holds what both need for an instant.
                None => {
                    assert!(!still.lasts(), "everybody waits for each other: {schedule:?}");
                    std::thread::sleep(TICK);
                }
            }
        }
        true
    }

    fn wake(&self) {
        self.woken.store(true, Ordering::SeqCst);
    }
}

impl Schedule {
    fn now(&self) -> Instant {
        let ticks = self.inner.lock().ticks;
        self.began + TICK * ticks
    }
}

impl Seat for ThreadPlace {
    fn now(&self) -> Option<Instant> {
        Some(self.schedule.now())
    }

    fn pass(&self) {
        self.schedule.stand_sometimes(self.number, STOP);
    }

    fn begin(&self) -> bool {
        let mut inner = self.schedule.inner.lock();
        inner.threads[self.number].woken = false;
        !inner.free
    }

    fn wait(&self, timed: bool) -> bool {
        let mut inner = self.schedule.inner.lock();
        let woken = inner.threads[self.number].woken;
        let state = if woken { ThreadState::Waiting } else { ThreadState::Parked { timed } };
        self.schedule.stand(&mut inner, self.number, state);
        inner.threads[self.number].woken
    }

    fn wake(&self) {
        let mut inner = self.schedule.inner.lock();
        let thread = &mut inner.threads[self.number];
        thread.woken = true;
        if matches!(thread.state, ThreadState::Parked { .. }) {
            thread.state = ThreadState::Waiting;
        }
    }
}

impl Schedule {
    /// A new one, whose conductor is the calling thread.
    #[must_use]
    pub fn new() -> Arc<Schedule> {
        let (inner, changed) = (Mutex::default(), Condvar::new());
        let schedule = Arc::new(Schedule { inner, began: Instant::now(), changed });
        Conductor::of_this_thread().schedules.lock().push(Arc::downgrade(&schedule));
        schedule
    }

    /// Its process has come and gone beside another one, whose schedule is the newest again.
    pub(crate) fn retire(self: &Arc<Self>) {
        let conductor = Conductor::of_this_thread();
        conductor.schedules.lock().retain(|schedule| !std::ptr::eq(schedule.as_ptr(), Arc::as_ptr(self)));
    }

    /// From now on threads stop before some locks and behind some writes, too.
    pub(crate) fn stop_at_locks(&self, random: Random) {
        self.inner.lock().stops = Some(random);
    }

    /// Makes syncs take this number of turns of threads longer from now on.
    pub(crate) fn slow_down(&self, turns: u64) {
        self.inner.lock().slow = turns;
    }

    /// Starts `work` on a thread of its own, which stops before its first request.
    pub fn spawn(self: &Arc<Self>, work: impl FnOnce() + Send + 'static) {
        let chair = Chair::new(self, true);
        let (schedule, number) = (Arc::clone(self), chair.0.number);
        workers::run(Box::new(move || {
            chair.take();
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
        let chair = Chair::new(self, false);
        Box::new(move || chair.take())
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
            .filter(|(_, seat)| seat.state == ThreadState::Waiting)
            .map(|(n, _)| n)
            .collect()
    }

    /// The number of the simulation's threads that have not ended.
    #[must_use]
    pub fn alive(&self) -> usize {
        let inner = self.inner.lock();
        inner.threads.iter().filter(|thread| thread.announced && thread.state != ThreadState::Done).count()
    }

    /// Returns whether one of the simulation's threads waits for something that only the operating system knows, which
    /// would choose between two waiters.
    #[must_use]
    pub fn has_blocked(&self) -> bool {
        self.inner
            .lock()
            .threads
            .iter()
            .any(|thread| thread.announced && thread.state == ThreadState::Blocked)
    }

    /// The messages of threads that panicked.
    #[must_use]
    pub fn panics(&self) -> Vec<String> {
        self.inner.lock().panics.clone()
    }

    /// Lets a thread make a number of requests, or as many as it can before it ends or waits for a lock.
    pub fn go_on(&self, number: usize, requests: u64) {
        {
            let mut inner = self.inner.lock();
            let thread = &mut inner.threads[number];
            (thread.state, thread.leave) = (ThreadState::Running, requests);
            thread.go.notify_one();
        }
        self.settle(number);
        self.settle_others();
    }

    /// Lets all threads run freely from now on.
    pub fn let_go(&self) {
        let mut inner = self.inner.lock();
        inner.free = true;
        for thread in &inner.threads {
            thread.go.notify_one();
        }
    }

    /// Waits until every thread has ended; false if one of them never will.
    #[must_use]
    pub fn wait_all(&self) -> bool {
        let mut still = Stillness::new();
        let mut inner = self.inner.lock();
        while inner.threads.iter().any(|thread| thread.announced && thread.state != ThreadState::Done) {
            let waited = self.changed.wait_for(&mut inner, stillness::BETWEEN);
            // Not under the lock, for which others would sleep.
            if waited.timed_out() && MutexGuard::unlocked(&mut inner, || still.lasts()) {
                return false;
            }
        }
        true
    }

    /// Called by the disk before each request. Returns the thread's number; the simulation's own has none.
    pub(crate) fn step(self: &Arc<Self>) -> Option<usize> {
        if CONDUCTOR.with(|conductor| conductor.borrow().is_some()) {
            return None;
        }
        let mine = ME.with(|me| {
            let me = me.borrow();
            match &*me {
                Some(chair) if Arc::ptr_eq(&chair.0.schedule, self) => chair.0.number,
                _ => {
                    let chair = Chair::new(self, false);
                    let number = chair.0.number;
                    drop(me);
                    chair.take();
                    number
                }
            }
        });
        let mut inner = self.inner.lock();
        if inner.free {
            return Some(mine);
        }
        inner.ticks += 1;
        let thread = &mut inner.threads[mine];
        // One that was blocked goes on only when it is told to.
        if thread.state == ThreadState::Running && thread.leave > 0 {
            thread.leave -= 1;
            return Some(mine);
        }
        self.stand(&mut inner, mine, ThreadState::Waiting);
        let thread = &mut inner.threads[mine];
        thread.leave = thread.leave.saturating_sub(1);
        Some(mine)
    }

    /// Called by the disk behind a write: its thread may learn of it late, when others have gone on.
    pub(crate) fn written(&self) {
        if let Some(number) = self.my_number() {
            self.stand_sometimes(number, LATE);
        }
    }

    /// Called by the disk in the middle of a sync.
    pub(crate) fn syncing(&self) {
        let Some(number) = self.my_number() else { return };
        let mut inner = self.inner.lock();
        for _ in 0..inner.slow {
            if !inner.free {
                self.stand(&mut inner, number, ThreadState::Waiting);
            }
        }
    }

    fn my_number(&self) -> Option<usize> {
        let place = ME.with(|me| me.borrow().as_ref().map(|chair| Arc::clone(&chair.0)));
        place.filter(|place| std::ptr::eq(&raw const *place.schedule, self)).map(|place| place.number)
    }

    fn stand_sometimes(&self, number: usize, one_in: u64) {
        let mut inner = self.inner.lock();
        let stops = inner.stops.as_mut().is_some_and(|random| random.one_in(one_in));
        if stops && !inner.free {
            self.stand(&mut inner, number, ThreadState::Waiting);
        }
    }

    /// Stops the calling thread until it may continue.
    fn stand(&self, inner: &mut MutexGuard<'_, Inner>, number: usize, state: ThreadState) {
        let thread = &mut inner.threads[number];
        let go = Arc::clone(&thread.go);
        (thread.state, thread.leave) = (state, 0);
        self.changed.notify_one();
        // One that was told to go on and has not woken yet may look as if it were blocked.
        let is_told = |state| matches!(state, ThreadState::Running | ThreadState::Blocked);
        while !inner.free && !is_told(inner.threads[number].state) {
            go.wait(inner);
        }
        inner.threads[number].state = ThreadState::Running;
    }

    /// Ends all timed waits.
    pub fn let_time_pass(&self) {
        let mut inner = self.inner.lock();
        let timed = |thread: &&mut Thread| thread.state == ThreadState::Parked { timed: true };
        inner.threads.iter_mut().filter(timed).for_each(|thread| thread.state = ThreadState::Waiting);
    }

    fn add(&self, announced: bool) -> usize {
        let mut inner = self.inner.lock();
        inner.threads.push(Thread {
            state: ThreadState::Running,
            id: 0,
            announced,
            leave: 0,
            woken: false,
            go: Arc::default(),
        });
        inner.threads.len() - 1
    }

    fn set(&self, number: usize, state: ThreadState) {
        self.inner.lock().threads[number].state = state;
        self.changed.notify_one();
    }

    /// Waits until a thread stands, blocks or has ended.
    fn settle(&self, number: usize) {
        let mut asleep = 0;
        let mut inner = self.inner.lock();
        while inner.threads[number].state == ThreadState::Running {
            if !self.changed.wait_for(&mut inner, LOOK).timed_out() {
                continue;
            }
            // Not under the lock, for which it may be waiting itself.
            let id = inner.threads[number].id;
            asleep = MutexGuard::unlocked(&mut inner, || if is_asleep(id) { asleep + 1 } else { 0 });
            let thread = &mut inner.threads[number];
            if asleep >= 2 && thread.state == ThreadState::Running {
                (thread.state, thread.leave) = (ThreadState::Blocked, 0);
            }
        }
    }

    /// Waits until all of them stand, block or have ended: also those that were just started.
    fn settle_others(&self) {
        for (number, state, _) in self.moving() {
            if state == ThreadState::Running {
                self.settle(number);
            }
        }
    }

    /// Lets threads that are no longer blocked run to their next request before anything else happens.
    fn look_again(&self) {
        self.settle_others();
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
                        (thread.state, thread.leave) = (ThreadState::Blocked, 0);
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
    fn moving(&self) -> Vec<(usize, ThreadState, u64)> {
        let inner = self.inner.lock();
        let threads = inner.threads.iter().enumerate();
        let moving =
            threads.filter(|(_, thread)| matches!(thread.state, ThreadState::Running | ThreadState::Blocked));
        moving.map(|(number, thread)| (number, thread.state, thread.id)).collect()
    }
}

/// Returns whether a thread sleeps according to the operating system, or is unknown to it.
fn is_asleep(thread: u64) -> bool {
    if thread == 0 {
        return false;
    }
    match std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")) {
        Ok(stat) => stillness::is_asleep(&stat),
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
