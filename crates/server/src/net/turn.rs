//! A turn of a worker: from when it wakes to when it has no task left to run. Replies that are posted in it leave together.
//!
//! A thread has turns while it is a worker of the runtime: `begin` opens them whenever it wakes, and they close when it may
//! block, for it may not be a worker afterwards (the runtime gives its tasks to another one). On a thread without turns every reply is
//! written by itself.
//!
//! - NET-3 Nothing that was posted waits for anything but the replies of tasks that are ready on its thread: what is here leaves before
//!   the thread sleeps, before it may block, and before it begins a command.

use super::driver::Driver;
use super::outbox::Outbox;
use super::ring::{Ring, send_now};
use std::cell::RefCell;
use std::sync::Arc;

/// Replies that leave without waiting for the turn's end.
const FULL: usize = 64;

/// The part of a turn that its thread keeps.
#[derive(Default)]
struct Turn {
    /// There while a turn is open.
    driver: Option<Arc<Driver>>,
    /// Made by the first replies that leave together.
    ring: Option<Ring>,
    posts: Vec<Arc<Outbox>>,
}

thread_local! {
    static TURN: RefCell<Turn> = RefCell::new(Turn::default());
}

/// The thread is a worker that has work.
pub fn begin(driver: &Arc<Driver>) {
    if driver.gathers() {
        TURN.with_borrow_mut(|turn| _ = turn.driver.get_or_insert_with(|| driver.clone()));
    }
}

pub(super) fn is_open() -> bool {
    TURN.with_borrow(|turn| turn.driver.is_some())
}

/// Puts an outbox on the list of the turn.
pub(super) fn gather(outbox: &Arc<Outbox>) {
    let full = TURN.with_borrow_mut(|turn| {
        turn.posts.push(outbox.clone());
        turn.posts.len() >= FULL
    });
    if full {
        end();
    }
}

/// Sends what was posted (NET-3). Cheap where nothing was.
pub fn end() {
    let taken = TURN.with_borrow_mut(|turn| {
        let some = !turn.posts.is_empty();
        some.then(|| (std::mem::take(&mut turn.posts), turn.ring.take(), turn.driver.clone()))
    });
    let Some((mut posts, mut ring, driver)) = taken else { return };
    if posts.len() > 1 && ring.is_none() {
        // Where the kernel has no memory for one more, replies leave by themselves.
        ring = Ring::new().ok();
    }
    send_all(&posts, ring.as_mut(), driver.as_deref());
    posts.clear();
    TURN.with_borrow_mut(|turn| (turn.posts, turn.ring) = (posts, ring));
}

fn send_all(posts: &[Arc<Outbox>], ring: Option<&mut Ring>, driver: Option<&Driver>) {
    // Wakers run when no outbox is locked: a task that ends with its runtime drops its socket, which locks its own.
    let wakers: Vec<_> = {
        let mut held: Vec<_> =
            posts.iter().filter_map(|outbox| Some((outbox, outbox.take_turn()?))).collect();
        let sends: Vec<_> = held.iter().map(|(_, held)| held.send()).collect();
        let mut results = Vec::with_capacity(sends.len());
        match (ring, driver) {
            (Some(ring), Some(driver)) if sends.len() > 1 => {
                driver.count(sends.len());
                ring.send(&sends, &mut results);
            }
            _ => results.extend(sends.iter().map(|send| send_now(*send))),
        }
        drop(sends);
        let done = held.iter_mut().zip(results);
        done.filter_map(|((outbox, held), result)| outbox.sent(held, result)).collect()
    };
    for waker in wakers {
        waker.wake();
    }
}

/// Runs what may block, in place of a worker (`block_in_place`), behind what was posted (NET-3).
pub fn blocking<R>(work: impl FnOnce() -> R) -> R {
    end();
    TURN.with_borrow_mut(|turn| turn.driver = None);
    tokio::task::block_in_place(work)
}
