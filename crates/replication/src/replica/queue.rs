//! The queue between the receiver and the applier: bounded in bytes, first in first out.
//!
//! A receiver that finds it full waits and does not read its socket meanwhile, so TCP makes the source wait as well.
//! Items are pushed and popped many at a time, because passing on each small transaction by itself costs more than
//! applying it.

use super::group::Item;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
struct QueueState {
    items: VecDeque<Item>,
    bytes: usize,
    /// The number of calls of `clear`: items read before one must not be pushed after it.
    epoch: u64,
    /// Waiting is not permitted any more.
    closed: bool,
    /// The number of threads that wait for items or for room; without any, nobody is notified.
    poppers: usize,
    pushers: usize,
}

/// The queue of a channel.
#[derive(Debug)]
pub struct Queue {
    state: Mutex<QueueState>,
    changed: Condvar,
    limit: usize,
}

impl Queue {
    /// Creates a queue for `limit` bytes, and for one item of any size.
    #[must_use]
    pub fn new(limit: usize) -> Queue {
        Queue { state: Mutex::default(), changed: Condvar::new(), limit }
    }

    /// The present epoch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.state.lock().epoch
    }

    /// Appends all of `items` when there is room for the first. Returns `false`, dropping the items, if the queue was
    /// cleared since `epoch` or is closed.
    #[must_use]
    pub fn push(&self, items: &mut Vec<Item>, epoch: u64) -> bool {
        let size: usize = items.iter().map(Item::size).sum();
        let mut state = self.state.lock();
        while !state.closed && state.epoch == epoch && state.bytes > 0 && state.bytes + size > self.limit {
            state.pushers += 1;
            self.changed.wait(&mut state);
            state.pushers -= 1;
        }
        if state.closed || state.epoch != epoch {
            items.clear();
            return false;
        }
        state.bytes += size;
        state.items.extend(items.drain(..));
        self.wake_popper(&state);
        true
    }

    /// Appends an item that must not be lost, even if the queue is full.
    pub fn force(&self, item: Item) {
        let mut state = self.state.lock();
        state.bytes += item.size();
        state.items.push_back(item);
        self.wake_popper(&state);
    }

    fn wake_popper(&self, state: &QueueState) {
        if state.poppers > 0 {
            self.changed.notify_all();
        }
    }

    /// Takes the next item; `None` after `timeout`.
    #[must_use]
    pub fn pop(&self, timeout: Duration) -> Option<Item> {
        let mut one = VecDeque::with_capacity(1);
        self.pop_some(1, timeout, &mut one);
        one.pop_front()
    }

    /// Moves up to `most` items to the end of `into`; none after `timeout`. The first piece of a large transaction is
    /// the last item taken: its applier takes the others.
    pub fn pop_some(&self, most: usize, timeout: Duration, into: &mut VecDeque<Item>) {
        let until = Instant::now() + timeout;
        let mut state = self.state.lock();
        while state.items.is_empty() {
            state.poppers += 1;
            let late = self.changed.wait_until(&mut state, until).timed_out();
            state.poppers -= 1;
            if late {
                break;
            }
        }
        for _ in 0..most {
            let Some(item) = state.items.pop_front() else { break };
            state.bytes -= item.size();
            let is_last = matches!(item, Item::First(_));
            into.push_back(item);
            if is_last {
                break;
            }
        }
        if state.pushers > 0 {
            self.changed.notify_all();
        }
    }

    /// Drops all items and returns the new epoch.
    pub fn clear(&self) -> u64 {
        let mut state = self.state.lock();
        state.items.clear();
        state.bytes = 0;
        state.epoch += 1;
        self.changed.notify_all();
        state.epoch
    }

    /// With `true`, closes the queue, so that nobody waits to push; with `false`, opens it again.
    pub fn set_closed(&self, closed: bool) {
        self.state.lock().closed = closed;
        self.changed.notify_all();
    }

    /// Wakes the threads that wait in `pop`, so that they can check other conditions.
    pub fn wake(&self) {
        self.changed.notify_all();
    }

    /// The timestamp of the first waiting transaction; 0 for none.
    #[must_use]
    pub fn front_timestamp(&self) -> u32 {
        let state = self.state.lock();
        let timestamp = |item: &Item| match item {
            Item::Trx(received) | Item::First(received) => Some(received.trx.timestamp),
            _ => None,
        };
        state.items.iter().find_map(timestamp).unwrap_or(0)
    }

    /// The number of waiting bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Returns whether the queue is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.state.lock().items.is_empty()
    }
}
