//! Fair turns for statements that compute: of those that run where they may block, as many at once as the machine has
//! processors.
//!
//! Each such statement has a thread, and a thousand runnable threads would make logins, commits and KILL wait for
//! processor time, and short critical sections wait for those whose holders do not run. So a statement that computes asks
//! for a turn now and then, and parks when others have waited longer. Rejected: lower priority for their threads, because
//! a runtime's thread can't be given its priority back, and who is preempted inside a lock makes others wait.
//!
//! A statement that waits for a lock or sleeps gives its turn back first; for whatever else (a disk, a client) it does not: a turn whose
//! owner has not asked for `LAPSE_US` goes to who waits in front. So turns never add a deadlock.

use super::kill::{KillFlag, now_us};
use crate::error::SqlResult;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;
use std::time::Duration;

/// How long a turn lasts when others wait: long against a switch of threads, short for a round of many.
const TURN_US: u64 = 10_000;
/// When a turn is taken from an owner who does not ask any more: long enough that one that only lacks a processor, on a
/// machine that others keep busy, keeps it.
const LAPSE_US: u64 = 400_000;
/// How often one looks who is not in front. Whoever comes to the front is woken.
const LOOK_US: u64 = 1_000_000;

/// The sessions that compute, and those that wait for it.
#[derive(Debug)]
pub struct Turns {
    slots: usize,
    ids: AtomicU64,
    line: Mutex<Line>,
}

#[derive(Debug, Default)]
struct Line {
    running: Vec<Running>,
    waiting: VecDeque<Arc<Waiter>>,
}

#[derive(Debug)]
struct Running {
    id: u64,
    since_us: u64,
    asked_us: u64,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    thread: Thread,
    granted: AtomicBool,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns::new(std::thread::available_parallelism().map_or(2, std::num::NonZero::get))
    }
}

impl Turns {
    /// For `slots` at once.
    #[must_use]
    pub fn new(slots: usize) -> Turns {
        Turns { slots: slots.max(1), ids: AtomicU64::new(1), line: Mutex::default() }
    }

    pub(super) fn new_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    /// Goes on in the present turn or parks until the next one. Called every few milliseconds by who computes.
    ///
    /// # Errors
    /// 1317 and 3024, also while it waits.
    pub(super) fn pass(&self, id: u64, kill: &KillFlag) -> SqlResult<()> {
        let now = now_us();
        let waiter = {
            let mut line = self.line.lock();
            let alone = line.waiting.is_empty();
            if let Some(at) = line.running.iter().position(|running| running.id == id) {
                let mine = &mut line.running[at];
                mine.asked_us = now;
                if alone || now.saturating_sub(mine.since_us) < TURN_US {
                    return Ok(());
                }
                line.running.swap_remove(at);
            } else if alone && line.running.len() < self.slots {
                line.running.push(Running { id, since_us: now, asked_us: now });
                return Ok(());
            }
            let waiter =
                Arc::new(Waiter { id, thread: std::thread::current(), granted: AtomicBool::new(false) });
            line.waiting.push_back(waiter.clone());
            line.grant(self.slots, now);
            waiter
        };
        kill.parks(Some(waiter.thread.clone()));
        let result = self.wait(&waiter, kill);
        kill.parks(None);
        result
    }

    fn wait(&self, waiter: &Arc<Waiter>, kill: &KillFlag) -> SqlResult<()> {
        loop {
            let now = now_us();
            let next = {
                let mut line = self.line.lock();
                line.grant(self.slots, now);
                if waiter.granted.load(Ordering::Acquire) {
                    return Ok(());
                }
                if let Err(error) = kill.check() {
                    line.waiting.retain(|other| other.id != waiter.id);
                    line.wake_front();
                    return Err(error);
                }
                let in_front = line.waiting.front().is_some_and(|front| front.id == waiter.id);
                if in_front { line.next_lapse() } else { now.saturating_add(LOOK_US) }
            };
            let until = kill.deadline_us().map_or(next, |deadline| deadline.min(next));
            std::thread::park_timeout(Duration::from_micros(until.saturating_sub(now).max(1000)));
        }
    }

    /// The owner computes no more.
    pub(super) fn leave(&self, id: u64) {
        let mut line = self.line.lock();
        if let Some(at) = line.running.iter().position(|running| running.id == id) {
            line.running.swap_remove(at);
            line.grant(self.slots, now_us());
        }
    }
}

impl Line {
    /// Gives what is free, and what has lapsed, to those who have waited longest.
    fn grant(&mut self, slots: usize, now: u64) {
        let mut granted = false;
        while !self.waiting.is_empty() {
            let lapsed = |running: &Running| now >= running.asked_us.saturating_add(LAPSE_US);
            if self.running.len() >= slots {
                let Some(at) = self.running.iter().position(lapsed) else { break };
                self.running.swap_remove(at);
            }
            let Some(next) = self.waiting.pop_front() else { break };
            self.running.push(Running { id: next.id, since_us: now, asked_us: now });
            next.granted.store(true, Ordering::Release);
            next.thread.unpark();
            granted = true;
        }
        if granted {
            self.wake_front();
        }
    }

    /// Wakes the thread that is in front now: it must look when turns lapse.
    fn wake_front(&self) {
        if let Some(front) = self.waiting.front() {
            front.thread.unpark();
        }
    }

    fn next_lapse(&self) -> u64 {
        let asked = self.running.iter().map(|running| running.asked_us).min();
        asked.map_or(0, |asked| asked.saturating_add(LAPSE_US))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Instant;

    #[test]
    fn all_who_compute_have_their_turns() {
        let turns = Arc::new(Turns::new(1));
        let (send, receive) = channel();
        let threads: Vec<_> = (0..4)
            .map(|id| {
                let (turns, send) = (turns.clone(), send.clone());
                std::thread::spawn(move || {
                    let kill = KillFlag::default();
                    let end = Instant::now() + Duration::from_secs(20);
                    // Four turns of each, in whatever order.
                    for _ in 0..4 {
                        turns.pass(id, &kill).unwrap();
                        assert!(turns.line.lock().running.len() <= 1);
                        send.send(id).unwrap();
                        let turn = Instant::now();
                        while turn.elapsed() < Duration::from_micros(TURN_US) && Instant::now() < end {
                            std::hint::spin_loop();
                        }
                    }
                    turns.leave(id);
                })
            })
            .collect();
        drop(send);
        let order: Vec<u64> = receive.iter().collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(order.len(), 16);
        assert!(turns.line.lock().running.is_empty());
    }

    #[test]
    fn who_waits_is_killed_at_once_and_a_turn_lapses() {
        let turns = Arc::new(Turns::new(1));
        turns.pass(1, &KillFlag::default()).unwrap();
        let kill = Arc::new(KillFlag::default());
        kill.kill_query();
        assert_eq!(turns.pass(2, &kill).unwrap_err().code, 1317);
        assert!(turns.line.lock().waiting.is_empty());
        // Number 1 asks no more: it waits for something.
        turns.pass(3, &KillFlag::default()).unwrap();
        assert_eq!(turns.line.lock().running.iter().map(|r| r.id).collect::<Vec<_>>(), [3]);
        // It comes back, and must wait like everybody.
        kill.reset();
        kill.set_deadline(1, crate::api::TimeLimit::Query);
        assert_eq!(turns.pass(1, &kill).unwrap_err().code, 3024);
    }
}
