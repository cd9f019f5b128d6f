//! Entries on their way from sessions to the writer: bounded, so that a writer that hangs costs memory for a while and then entries.

use super::Entry;
use parking_lot::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// Bytes that wait at most.
const LIMIT: usize = 16 << 20;
/// The bytes of an entry besides its text.
const OVERHEAD: usize = 256;
/// How long FLUSH waits for what is queued: the disk may hang.
const SETTLE: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct Queued {
    entries: Vec<Entry>,
    bytes: usize,
    pushed: u64,
    written: u64,
    stopped: bool,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<Queued>,
    filled: Condvar,
    settled: Condvar,
}

impl Queue {
    /// False if there is no room.
    pub(super) fn push(&self, entry: Entry) -> bool {
        let bytes = entry.text_len() + OVERHEAD;
        let mut state = self.state.lock();
        if state.stopped || state.bytes + bytes > LIMIT {
            return false;
        }
        state.bytes += bytes;
        state.pushed += 1;
        state.entries.push(entry);
        if state.entries.len() == 1 {
            self.filled.notify_one();
        }
        true
    }

    /// Waits for entries and takes all there are; none when it has been stopped and is empty.
    pub(super) fn take(&self) -> Vec<Entry> {
        let mut state = self.state.lock();
        while state.entries.is_empty() && !state.stopped {
            self.filled.wait(&mut state);
        }
        state.bytes = 0;
        std::mem::take(&mut state.entries)
    }

    /// So many were dealt with.
    pub(super) fn done(&self, entries: usize) {
        self.state.lock().written += entries as u64;
        self.settled.notify_all();
    }

    /// Waits until what is queued now is dealt with, but not for ever.
    pub(super) fn settle(&self) {
        let deadline = Instant::now() + SETTLE;
        let mut state = self.state.lock();
        let goal = state.pushed;
        while state.written < goal && !state.stopped {
            if self.settled.wait_until(&mut state, deadline).timed_out() {
                return;
            }
        }
    }

    /// Takes nothing more.
    pub(super) fn stop(&self) {
        self.state.lock().stopped = true;
        self.filled.notify_all();
        self.settled.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(bytes: usize) -> Entry {
        Entry::General { at_us: 0, who: "".into(), id: 1, command: "Query", text: vec![0; bytes].into() }
    }

    #[test]
    fn a_writer_that_hangs_costs_entries_and_holds_nobody() {
        let queue = Queue::default();
        assert!(queue.push(entry(LIMIT / 2)));
        assert!(!queue.push(entry(LIMIT / 2)), "there is no room for both");
        assert!(queue.push(entry(10)), "there is for a small one");
        assert_eq!(queue.take().len(), 2);
        assert!(queue.push(entry(LIMIT / 2)), "what was taken makes room");
        queue.done(2);
        queue.stop();
        assert!(!queue.push(entry(1)));
        assert_eq!(queue.take().len(), 1, "what was queued before the end is still written");
        assert_eq!(queue.take().len(), 0);
    }
}
