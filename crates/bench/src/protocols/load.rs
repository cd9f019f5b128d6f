//! The clients: as many threads as connections, each committing one transaction after the other for a while.
//!
//! Threads for every protocol, not tasks: the two-phase protocols block their session's thread, and what is compared
//! should differ in the protocol alone. Many threads on few cores cost every protocol the same wake-ups.

use super::world::{World, own_bytes};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const STACK: usize = 256 << 10;

/// The result of one measurement.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) commits: u64,
    pub(super) elapsed: Duration,
    pub(super) log_syncs: u64,
    pub(super) redo_syncs: u64,
    pub(super) groups: u64,
    /// The bytes of a transaction's events without private events.
    pub(super) own_bytes: u64,
    /// The bytes that the pipeline appended for them, and the growth of the log, padding included.
    pub(super) log_bytes: u64,
    pub(super) log_growth: u64,
    /// The bytes that the process wrote to the disk for any purpose. Unknown with a redo log, which is written through
    /// the page cache: the kernel counts a folio of it as a whole, up to 1 MiB, however little of it is written.
    pub(super) disk_bytes: Option<u64>,
    pub(super) p50: Duration,
    pub(super) p99: Duration,
}

impl Sample {
    pub(super) fn per_second(&self) -> f64 {
        self.commits as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    pub(super) fn per_commit(&self, what: u64) -> f64 {
        what as f64 / self.commits.max(1) as f64
    }

    pub(super) fn group_size(&self) -> f64 {
        self.commits as f64 / self.groups.max(1) as f64
    }

    /// Log bytes over the events' own, without padding.
    pub(super) fn amplification(&self) -> f64 {
        self.log_bytes as f64 / self.own_bytes.max(1) as f64
    }

    /// Padding over the events' own bytes.
    pub(super) fn padding(&self) -> f64 {
        self.log_growth.saturating_sub(self.log_bytes) as f64 / self.own_bytes.max(1) as f64
    }
}

/// The value below which `fraction` of the sorted values lie.
pub(crate) fn quantile(sorted: &[Duration], fraction: f64) -> Duration {
    let at = (sorted.len() as f64 * fraction).ceil() as usize;
    sorted.get(at.saturating_sub(1)).copied().unwrap_or_default()
}

struct Counters {
    log_syncs: u64,
    redo_syncs: u64,
    groups: u64,
    log_bytes: u64,
    at: omnibus_commit::LogPosition,
    disk_bytes: Option<u64>,
}

impl Counters {
    fn of(world: &World) -> Counters {
        let stats = world.coordinator.stats();
        Counters {
            log_syncs: stats.syncs.load(Ordering::Relaxed),
            redo_syncs: world.coordinator.engine().stats().redo_syncs,
            groups: stats.group_size.totals().0,
            log_bytes: stats.bytes.load(Ordering::Relaxed),
            at: world.coordinator.position(),
            disk_bytes: written(&std::fs::read_to_string("/proc/self/io").unwrap_or_default()),
        }
    }
}

fn written(io: &str) -> Option<u64> {
    io.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.trim().parse().ok())
}

/// Runs `connections` clients that commit for `time`.
pub(super) fn run(world: &World, connections: usize, time: Duration) -> Result<Sample, String> {
    // Files that appear with the first commit are not part of it.
    commit(world)?;
    let before = Counters::of(world);
    let (stop, barrier) = (AtomicBool::new(false), Barrier::new(connections + 1));
    let (stop, barrier) = (&stop, &barrier);
    let (results, elapsed) = std::thread::scope(|scope| {
        let mut threads = Vec::with_capacity(connections);
        for _ in 0..connections {
            let thread = std::thread::Builder::new().stack_size(STACK);
            threads.push(thread.spawn_scoped(scope, move || client(world, stop, barrier)));
        }
        if let Some(error) = threads.iter().find_map(|thread| thread.as_ref().err()) {
            // Whoever waits at the barrier would wait for ever.
            eprintln!("omnibus bench protocols: {connections} threads can not be started: {error}");
            std::process::exit(1);
        }
        barrier.wait();
        let started = Instant::now();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        let ended = |thread: std::io::Result<std::thread::ScopedJoinHandle<'_, _>>| {
            thread.map_err(|error| error.to_string())?.join().map_err(|_| "a client panicked".to_owned())?
        };
        let results: Result<Vec<(Vec<Duration>, u64)>, String> = threads.into_iter().map(ended).collect();
        (results, started.elapsed())
    });
    let after = Counters::of(world);
    Ok(sample(results?, elapsed, &before, &after))
}

fn sample(
    clients: Vec<(Vec<Duration>, u64)>,
    elapsed: Duration,
    before: &Counters,
    after: &Counters,
) -> Sample {
    let redo = after.redo_syncs > 0;
    let own_bytes = clients.iter().map(|(_, own)| own).sum();
    let mut times: Vec<Duration> = clients.into_iter().flat_map(|(times, _)| times).collect();
    times.sort_unstable();
    let log_bytes = after.log_bytes - before.log_bytes;
    let same_file = before.at.file == after.at.file;
    Sample {
        commits: times.len() as u64,
        elapsed,
        log_syncs: after.log_syncs - before.log_syncs,
        redo_syncs: after.redo_syncs - before.redo_syncs,
        groups: after.groups - before.groups,
        own_bytes,
        log_bytes,
        log_growth: if same_file { after.at.offset.0 - before.at.offset.0 } else { log_bytes },
        disk_bytes: after
            .disk_bytes
            .zip(before.disk_bytes)
            .map(|(after, before)| after - before)
            .filter(|_| !redo),
        p50: quantile(&times, 0.50),
        p99: quantile(&times, 0.99),
    }
}

/// Returns one client's times, and the bytes of its events.
fn client(world: &World, stop: &AtomicBool, barrier: &Barrier) -> Result<(Vec<Duration>, u64), String> {
    let (mut times, mut own) = (Vec::with_capacity(1024), 0);
    barrier.wait();
    while !stop.load(Ordering::Relaxed) {
        let (time, bytes) = commit(world)?;
        times.push(time);
        own += bytes;
    }
    Ok((times, own))
}

fn commit(world: &World) -> Result<(Duration, u64), String> {
    let request = world.insert().map_err(|error| error.to_string())?;
    let own = own_bytes(&request);
    let started = Instant::now();
    world.coordinator.commit(request.inline()).wait().map_err(|error| error.to_string())?;
    Ok((started.elapsed(), own))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::world::EngineKind;
    use super::*;
    use omnibus_commit::CommitProtocol;

    #[test]
    fn quantiles_are_values_that_occurred() {
        let times: Vec<Duration> = (1..=100).map(Duration::from_micros).collect();
        assert_eq!(quantile(&times, 0.5), Duration::from_micros(50));
        assert_eq!(quantile(&times, 0.99), Duration::from_micros(99));
        assert_eq!(quantile(&times[..1], 0.99), Duration::from_micros(1));
        assert_eq!(quantile(&[], 0.5), Duration::ZERO);
    }

    #[test]
    fn bytes_given_to_the_disk_are_found_in_what_the_kernel_says() {
        assert_eq!(written("rchar: 5\nwrite_bytes: 4096\ncancelled_write_bytes: 1\n"), Some(4096));
        assert_eq!(written(""), None);
    }

    #[test]
    fn serialized_makes_three_syncs_a_commit_and_one_sync_at_most_one() {
        let at = tempfile::tempdir().unwrap();
        let sample = |protocol| {
            let world = World::open(at.path(), EngineKind::Lsm, protocol).unwrap();
            run(&world, 4, Duration::from_millis(100)).unwrap()
        };
        let old = sample(CommitProtocol::Serialized);
        assert_eq!((old.log_syncs, old.redo_syncs), (old.commits, 2 * old.commits));
        let new = sample(CommitProtocol::OneSync);
        assert!(new.commits > 0 && new.log_syncs <= new.commits && new.redo_syncs == 0);
        assert!(new.amplification() <= 1.15, "{}", new.amplification());
    }
}
