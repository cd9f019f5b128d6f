//! `omnibus bench wakeup`: what it costs a leader to wake thousands of waiters, in three ways.
//!
//! - one condition for all: a broadcast, after which everybody queues for the one mutex;
//! - one condition each: the leader signals one after the other;
//! - tickets: the very object that a committing session waits on here, awaited by tasks of an async runtime.
//!
//! Published for 5,000 threads on four cores with hyperthreading: 46.9 ms with the broadcast, 17.6 ms with one
//! condition each. Threads wait in the first two; the leader is the main thread; every waiter notes when it ran.

mod usage;

use crate::protocols::{load::quantile, report::aligned};
use clap::Args;
use omnibus_commit::{CommitResult, ticket_to_complete};
use parking_lot::{Condvar, Mutex};
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use usage::Usage;

/// Compare ways of waking the followers of a group.
#[derive(Args, Debug)]
pub struct WakeupArgs {
    /// Waiters.
    #[arg(long, value_name = "N", default_value_t = 5000)]
    waiters: usize,
    /// Times each way is measured, in alternation; the round with the median time counts.
    #[arg(long, value_name = "N", default_value_t = 5)]
    rounds: usize,
    /// Print one JSON object instead of a table.
    #[arg(long)]
    json: bool,
}

/// The result of one round of one method.
#[derive(Clone, Debug, Default)]
struct Sample {
    /// From each waiter's wake-up to its running, sorted; counted from when the leader began.
    times: Vec<Duration>,
    /// The busy time of the leader itself.
    leader: Duration,
    usage: Usage,
}

impl Sample {
    fn last(&self) -> Duration {
        self.times.last().copied().unwrap_or_default()
    }
}

type Way = fn(usize) -> Result<Sample, String>;

const WAYS: [(&str, Way); 3] = [
    ("one condition, broadcast", broadcast),
    ("one condition each", one_each),
    ("tickets on tasks", tickets),
];

/// Published times until all have run, with 5,000 threads, of the first two ways.
const PUBLISHED_MS: (f64, f64) = (46.9, 17.6);
const STACK: usize = 64 << 10;
/// A waiter has said that it waits a moment before it does; this is for the last of them to fall asleep.
const SETTLE: Duration = Duration::from_millis(50);

/// Runs the command.
#[must_use]
pub fn run(args: WakeupArgs) -> ExitCode {
    match measure(&args) {
        Ok(rounds) => {
            let text =
                if args.json { format!("{:#}\n", as_json(&args, &rounds)) } else { text(&args, &rounds) };
            // A closed pipe on the other side is no failure of the measurement.
            let _ = std::io::stdout().lock().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("omnibus bench wakeup: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The median round of each way.
fn measure(args: &WakeupArgs) -> Result<Vec<Sample>, String> {
    if !(1..=100_000).contains(&args.waiters) || !(1..=10_000).contains(&args.rounds) {
        return Err("waiters go from 1 to 100000, rounds from 1 to 10000".into());
    }
    let mut samples = vec![Vec::new(); WAYS.len()];
    for _ in 0..args.rounds {
        for ((_, way), samples) in WAYS.iter().zip(&mut samples) {
            samples.push(way(args.waiters)?);
        }
    }
    Ok(samples.into_iter().map(median).collect())
}

fn median(mut rounds: Vec<Sample>) -> Sample {
    rounds.sort_by_key(Sample::last);
    let middle = rounds.len() / 2;
    rounds.into_iter().nth(middle).unwrap_or_default()
}

/// Waits until `waiting` is `count`, and a little for the last to be asleep.
fn settle(waiting: &AtomicUsize, count: usize) {
    while waiting.load(Ordering::SeqCst) < count {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(SETTLE);
}

/// A mutex with its condition; the value is false until the leader sets it.
#[derive(Default)]
struct Latch {
    open: Mutex<bool>,
    condition: Condvar,
}

impl Latch {
    fn pass(&self, waiting: &AtomicUsize) -> Instant {
        let mut open = self.open.lock();
        waiting.fetch_add(1, Ordering::SeqCst);
        while !*open {
            self.condition.wait(&mut open);
        }
        Instant::now()
    }

    fn open_for_all(&self) {
        *self.open.lock() = true;
        self.condition.notify_all();
    }
}

fn broadcast(waiters: usize) -> Result<Sample, String> {
    let latch = Latch::default();
    threads(waiters, |_| &latch, || latch.open_for_all())
}

fn one_each(waiters: usize) -> Result<Sample, String> {
    let latches: Vec<Latch> = (0..waiters).map(|_| Latch::default()).collect();
    threads(waiters, |n| &latches[n], || latches.iter().for_each(Latch::open_for_all))
}

/// Threads that wait at the latch each is given, until the leader opens them.
fn threads<'a>(
    waiters: usize,
    latch: impl Fn(usize) -> &'a Latch,
    leader: impl Fn(),
) -> Result<Sample, String> {
    let waiting = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let mut handles = Vec::with_capacity(waiters);
        let mut refused = None;
        for n in 0..waiters {
            let (latch, waiting) = (latch(n), &waiting);
            let thread = std::thread::Builder::new().stack_size(STACK);
            match thread.spawn_scoped(scope, move || latch.pass(waiting)) {
                Ok(handle) => handles.push(handle),
                Err(error) => {
                    refused = Some(format!("only {n} threads could be started: {error}"));
                    break;
                }
            }
        }
        settle(&waiting, handles.len());
        let (before, started) = (usage::now(), Instant::now());
        leader();
        let busy = started.elapsed();
        let woken: Vec<Instant> = handles.into_iter().filter_map(|handle| handle.join().ok()).collect();
        match refused {
            Some(error) => Err(error),
            None => Ok(sample(started, busy, woken, usage::now().since(before))),
        }
    })
}

fn sample(started: Instant, leader: Duration, woken: Vec<Instant>, usage: Usage) -> Sample {
    let mut times: Vec<Duration> = woken.iter().map(|at| at.duration_since(started)).collect();
    times.sort_unstable();
    Sample { times, leader, usage }
}

/// Tasks on a runtime like the server's, each awaiting a ticket that the leader completes.
fn tickets(waiters: usize) -> Result<Sample, String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().build().map_err(|error| error.to_string())?;
    let waiting = Arc::new(AtomicUsize::new(0));
    let (mut completers, mut tasks) = (Vec::with_capacity(waiters), Vec::with_capacity(waiters));
    for _ in 0..waiters {
        let (complete, ticket) = ticket_to_complete();
        let waiting = waiting.clone();
        completers.push(complete);
        tasks.push(runtime.spawn(async move {
            waiting.fetch_add(1, Ordering::SeqCst);
            let _: CommitResult = ticket.await;
            Instant::now()
        }));
    }
    settle(&waiting, waiters);
    let (before, started) = (usage::now(), Instant::now());
    completers.into_iter().for_each(|complete| complete(Ok(Default::default())));
    let busy = started.elapsed();
    let woken = runtime.block_on(async {
        let mut woken = Vec::with_capacity(waiters);
        for task in tasks {
            woken.push(task.await.map_err(|error| error.to_string())?);
        }
        Ok::<_, String>(woken)
    })?;
    Ok(sample(started, busy, woken, usage::now().since(before)))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn text(args: &WakeupArgs, rounds: &[Sample]) -> String {
    let head = [
        "way",
        "all have run ms",
        "p50 ms",
        "p99 ms",
        "leader busy ms",
        "context switches",
        "CPU ms",
        "published ms",
    ];
    let published = [Some(PUBLISHED_MS.0), Some(PUBLISHED_MS.1), None];
    let row = |((name, _), (sample, published)): (&(&str, Way), (&Sample, Option<f64>))| {
        let time = |time| format!("{:.2}", ms(time));
        vec![
            (*name).to_owned(),
            time(sample.last()),
            time(quantile(&sample.times, 0.50)),
            time(quantile(&sample.times, 0.99)),
            time(sample.leader),
            sample.usage.switches.to_string(),
            time(sample.usage.cpu),
            published.map_or("-".into(), |ms| format!("{ms:.1}")),
        ]
    };
    let rows: Vec<Vec<String>> = WAYS.iter().zip(rounds.iter().zip(published)).map(row).collect();
    format!(
        "{} waiters, one leader; {} rounds in alternation, the one with the median time of each.\n\n{}\n{}\n",
        args.waiters,
        args.rounds,
        aligned(&head, &rows),
        conclusion(rounds)
    )
}

/// In words, from the figures.
fn conclusion(rounds: &[Sample]) -> String {
    let [all, each, tickets] = rounds else { return String::new() };
    let times = |a: &Sample, b: &Sample| ms(a.last()) / ms(b.last()).max(1e-6);
    let gain = times(all, each);
    let word = if gain >= 1.2 { "reproduced" } else { "not reproduced on these cores with this mutex" };
    format!(
        "The broadcast takes {gain:.1} times as long as one condition each (published {:.1}): {word}. Tickets on tasks are \
         {:.1} times as quick as one condition each, with {} context switches.",
        PUBLISHED_MS.0 / PUBLISHED_MS.1,
        times(each, tickets),
        tickets.usage.switches
    )
}

fn as_json(args: &WakeupArgs, rounds: &[Sample]) -> Value {
    let way = |((name, _), sample): (&(&str, Way), &Sample)| {
        json!({
            "way": name, "all_ms": ms(sample.last()), "p50_ms": ms(quantile(&sample.times, 0.50)),
            "p99_ms": ms(quantile(&sample.times, 0.99)), "leader_ms": ms(sample.leader),
            "context_switches": sample.usage.switches, "cpu_ms": ms(sample.usage.cpu),
        })
    };
    json!({
        "waiters": args.waiters, "rounds": args.rounds,
        "ways": WAYS.iter().zip(rounds).map(way).collect::<Vec<_>>(),
        "published_ms": { "broadcast": PUBLISHED_MS.0, "one_each": PUBLISHED_MS.1, "waiters": 5000 },
        "conclusion": conclusion(rounds),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn everybody_is_woken_in_every_way() {
        let args = WakeupArgs { waiters: 40, rounds: 1, json: false };
        let rounds = measure(&args).unwrap();
        assert!(rounds.iter().all(|sample| sample.times.len() == 40 && sample.times.is_sorted()));
        assert_eq!(as_json(&args, &rounds)["ways"].as_array().unwrap().len(), 3);
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused() {
        for (waiters, rounds) in [(0, 1), (1, 0), (1 << 30, 1)] {
            assert!(measure(&WakeupArgs { waiters, rounds, json: false }).is_err());
        }
    }

    #[test]
    fn the_conclusion_follows_from_the_figures() {
        let sample = |ms| Sample { times: vec![Duration::from_millis(ms)], ..Sample::default() };
        let said = conclusion(&[sample(40), sample(20), sample(5)]);
        assert!(said.contains("2.0 times as long") && said.contains(": reproduced"), "{said}");
        assert!(said.contains("4.0 times as quick"), "{said}");
        assert!(conclusion(&[sample(20), sample(20), sample(5)]).contains("not reproduced"));
    }
}
