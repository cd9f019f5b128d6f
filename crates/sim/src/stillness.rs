//! Detects from the operating system's information that no thread of this process has work. A time limit alone would
//! take a thread that gets no processor for one that waits for ever.

use std::time::{Duration, Instant};

/// The interval between two looks.
pub(crate) const BETWEEN: Duration = Duration::from_millis(100);

/// So many looks in a row are for ever: what sleeps for a while by itself does so for less.
const LOOKS: u32 = 100;

/// The number of consecutive looks that found all threads asleep.
#[derive(Debug)]
pub(crate) struct Stillness {
    looks: u32,
    last: Instant,
}

impl Stillness {
    /// Creates the state before the first look.
    pub(crate) fn new() -> Stillness {
        Stillness { looks: 0, last: Instant::now() }
    }

    /// Looks, if the last look was long enough ago. Returns true once all other threads have been asleep for so long
    /// that none will wake.
    pub(crate) fn lasts(&mut self) -> bool {
        if self.last.elapsed() >= BETWEEN {
            self.looks = if all_sleep() { self.looks + 1 } else { 0 };
            self.last = Instant::now();
        }
        self.looks >= LOOKS
    }
}

/// Returns whether every other thread sleeps. A thread that was woken and has no processor yet does not.
#[cfg(target_os = "linux")]
fn all_sleep() -> bool {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return true };
    let mine = thread_id().to_string();
    let others = tasks.flatten().filter(|task| task.file_name() != *mine);
    let mut states = others.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    states.all(|stat| is_asleep(&stat))
}

/// Elsewhere time has to do.
#[cfg(not(target_os = "linux"))]
fn all_sleep() -> bool {
    true
}

/// Returns whether a thread's `stat` says that it sleeps.
pub(crate) fn is_asleep(stat: &str) -> bool {
    stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S'))
}

/// This thread, as the operating system numbers it.
#[cfg(target_os = "linux")]
pub(crate) fn thread_id() -> u64 {
    let link = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    link.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok()).unwrap_or(0)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn thread_id() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::schedule::Schedule;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// One test, because it looks at all threads of its process.
    #[test]
    fn who_has_something_to_do_is_waited_for_and_who_never_will_is_seen() {
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        let busy = std::thread::spawn(move || while !stops.load(Ordering::Relaxed) {});
        let mut still = Stillness { looks: LOOKS - 1, last: Instant::now() - BETWEEN };
        assert!(!still.lasts(), "somebody has something to do");
        assert_eq!(still.looks, 0, "and all looks of before count for nothing");
        stop.store(true, Ordering::Relaxed);
        busy.join().unwrap();

        let schedule = Schedule::new();
        schedule.let_go();
        schedule.spawn(|| ());
        assert!(schedule.wait_all());
        let gone = Arc::new(AtomicBool::new(false));
        let is_gone = Arc::clone(&gone);
        schedule.spawn(move || {
            while !is_gone.load(Ordering::Relaxed) {
                std::thread::park();
            }
        });
        assert!(!schedule.wait_all(), "it waits for ever");
        gone.store(true, Ordering::Relaxed);
    }
}
