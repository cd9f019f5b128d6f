//! COMMIT-2: sync generations under thousands of interleavings, chosen by a scheduler (`omnibus_sync`).

use omnibus_sync::interleavings as sync;

#[allow(clippy::duplicate_mod, reason = "the same file over the explored `sync`")]
#[path = "generation.rs"]
mod generation;

use generation::Generations;
use std::collections::BTreeSet;
use std::sync::Arc;
use sync::thread;

const SCHEDULES: usize = 2000;

/// A model of files and a device: a sync makes durable what was in the page cache when it began.
#[derive(Default)]
struct World {
    generations: Generations,
    cached: sync::Mutex<BTreeSet<u64>>,
    durable: sync::Mutex<BTreeSet<u64>>,
}

impl World {
    fn sync(&self) -> Result<(), crate::IoFailure> {
        let covered = self.cached.lock().clone();
        thread::yield_now();
        self.durable.lock().extend(covered);
        Ok(())
    }

    /// Writes into the page cache and makes that durable. With `early`, the write is counted before it has returned,
    /// which is wrong.
    fn write_and_cover(&self, id: u64, early: bool) {
        if early {
            self.generations.wrote();
        }
        self.cached.lock().insert(id);
        if !early {
            self.generations.wrote();
        }
        self.generations.cover(|| self.sync()).expect("a device that does not fail");
        assert!(self.durable.lock().contains(&id), "COMMIT-2: what was written before is durable");
    }
}

fn writers(early: bool) {
    let world = Arc::new(World::default());
    let threads: Vec<_> = (0..3)
        .map(|id| {
            let world = world.clone();
            thread::spawn(move || (0..2).for_each(|round| world.write_and_cover(id * 10 + round, early)))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a writer"));
}

#[test]
fn a_sync_covers_what_its_caller_has_written_under_every_schedule() {
    sync::explore(SCHEDULES, || writers(false));
}

/// The search finds a write that is counted before it has returned.
#[test]
fn a_write_that_is_told_of_too_early_is_found() {
    assert!(std::panic::catch_unwind(|| sync::explore(SCHEDULES, || writers(true))).is_err());
}

/// Runs jobs in order, some of which promise durability for all earlier ones.
fn jobs(forgets: bool) {
    let world = Arc::new(World::default());
    let threads: Vec<_> = (0..4u64)
        .map(|id| (id, world.generations.seal()))
        .map(|(id, order)| {
            let world = world.clone();
            thread::spawn(move || {
                let synced = id % 2 == 1;
                if synced {
                    world.generations.release(order);
                    world.cached.lock().insert(id);
                    world.generations.wrote();
                    if !forgets {
                        world.generations.wait_for_earlier(order);
                    }
                    world.generations.cover(|| world.sync()).expect("a device that does not fail");
                    let durable = world.durable.lock();
                    // Those that sync vouch for themselves.
                    let mut vouched = (0..id).filter(|earlier| earlier % 2 == 0).chain([id]);
                    assert!(vouched.all(|earlier| durable.contains(&earlier)), "COMMIT-2: without a hole");
                } else {
                    world.cached.lock().insert(id);
                    world.generations.wrote();
                    world.generations.release(order);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a job"));
}

#[test]
fn a_job_that_syncs_vouches_for_those_before_it_under_every_schedule() {
    sync::explore(SCHEDULES, || jobs(false));
}

#[test]
fn a_job_that_does_not_wait_for_earlier_ones_is_found() {
    assert!(std::panic::catch_unwind(|| sync::explore(SCHEDULES, || jobs(true))).is_err());
}
