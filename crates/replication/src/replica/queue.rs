//! Between the receiver and whoever applies: bounded in bytes, first in first out.
//!
//! A receiver that finds it full waits, and does not read its socket meanwhile: TCP makes the source wait as well.

use super::group::Item;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Item>,
    bytes: usize,
    /// Counts `clear`s: what was read before one must not come in after it.
    epoch: u64,
    /// Nobody is to wait any more.
    closed: bool,
}

/// The queue of a channel.
#[derive(Debug)]
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    limit: usize,
}

impl Queue {
    /// Takes up to `limit` bytes, and one item whatever its size.
    #[must_use]
    pub fn new(limit: usize) -> Queue {
        Queue { state: Mutex::default(), changed: Condvar::new(), limit }
    }

    /// The present epoch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.state.lock().epoch
    }

    /// Appends, when there is room. `false`: the queue was cleared since `epoch`, or is closed; the item is dropped.
    #[must_use]
    pub fn push(&self, item: Item, epoch: u64) -> bool {
        let size = item.size();
        let mut state = self.state.lock();
        while !state.closed && state.epoch == epoch && state.bytes > 0 && state.bytes + size > self.limit {
            self.changed.wait(&mut state);
        }
        if state.closed || state.epoch != epoch {
            return false;
        }
        state.bytes += size;
        state.items.push_back(item);
        self.changed.notify_all();
        true
    }

    /// Appends what must not be lost, full or not.
    pub fn force(&self, item: Item) {
        let mut state = self.state.lock();
        state.bytes += item.size();
        state.items.push_back(item);
        self.changed.notify_all();
    }

    /// The next item; `None` after `timeout`.
    #[must_use]
    pub fn pop(&self, timeout: Duration) -> Option<Item> {
        let until = Instant::now() + timeout;
        let mut state = self.state.lock();
        loop {
            if let Some(item) = state.items.pop_front() {
                state.bytes -= item.size();
                self.changed.notify_all();
                return Some(item);
            }
            if self.changed.wait_until(&mut state, until).timed_out() {
                return None;
            }
        }
    }

    /// Drops everything; returns the new epoch.
    pub fn clear(&self) -> u64 {
        let mut state = self.state.lock();
        state.items.clear();
        state.bytes = 0;
        state.epoch += 1;
        self.changed.notify_all();
        state.epoch
    }

    /// Lets a receiver in again, or keeps it out: with `true` nobody waits to push.
    pub fn set_closed(&self, closed: bool) {
        self.state.lock().closed = closed;
        self.changed.notify_all();
    }

    /// Wakes whoever waits in `pop`, to look at something else.
    pub fn wake(&self) {
        self.changed.notify_all();
    }

    /// Timestamp of the first transaction waiting; 0 for none.
    #[must_use]
    pub fn front_timestamp(&self) -> u32 {
        let state = self.state.lock();
        let timestamp = |item: &Item| match item {
            Item::Trx(received) | Item::First(received) => Some(received.trx.timestamp),
            _ => None,
        };
        state.items.iter().find_map(timestamp).unwrap_or(0)
    }

    /// Bytes waiting.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.state.lock().items.is_empty()
    }
}
