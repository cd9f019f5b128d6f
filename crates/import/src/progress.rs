//! Lines for whoever watches, one every few seconds while tables are worked on.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Between two lines.
const EVERY: Duration = Duration::from_secs(5);

/// Says something to whoever watches; results go to standard output instead.
pub(crate) fn say(text: &str) {
    eprintln!("omnibus import: {text}");
}

/// Counters of what is done, and the thread that tells of them.
#[derive(Debug)]
pub(crate) struct Progress {
    what: &'static str,
    tables: u64,
    /// The source's estimate of all bytes.
    bytes: u64,
    began: Instant,
    pub tables_done: AtomicU64,
    pub rows_done: AtomicU64,
    pub bytes_done: AtomicU64,
    ended: Mutex<bool>,
    bell: Condvar,
}

impl Progress {
    /// Counters for so many tables and bytes.
    pub(crate) fn new(what: &'static str, tables: usize, bytes: u64) -> Progress {
        Progress {
            what,
            tables: tables as u64,
            bytes,
            began: Instant::now(),
            tables_done: AtomicU64::new(0),
            rows_done: AtomicU64::new(0),
            bytes_done: AtomicU64::new(0),
            ended: Mutex::new(false),
            bell: Condvar::new(),
        }
    }

    /// Counts rows and their bytes.
    pub(crate) fn add(&self, rows: u64, bytes: u64) {
        self.rows_done.fetch_add(rows, Relaxed);
        self.bytes_done.fetch_add(bytes, Relaxed);
    }

    /// Says lines until [`Progress::end`].
    pub(crate) fn tell(&self) {
        let mut ended = self.ended.lock();
        while !*ended {
            if self.bell.wait_for(&mut ended, EVERY).timed_out() {
                say(&self.line());
            }
        }
    }

    /// Ends the telling.
    pub(crate) fn end(&self) {
        *self.ended.lock() = true;
        self.bell.notify_all();
    }

    /// The present state, as a line.
    pub(crate) fn line(&self) -> String {
        let (rows, bytes) = (self.rows_done.load(Relaxed), self.bytes_done.load(Relaxed));
        let seconds = self.began.elapsed().as_secs_f64().max(0.001);
        let left = if bytes > 0 && self.bytes > bytes {
            format!(", about {} left", time((self.bytes - bytes) as f64 * seconds / bytes as f64))
        } else {
            String::new()
        };
        format!(
            "{}: {} of {} tables, {rows} rows, {} in {} ({}/s{left})",
            self.what,
            self.tables_done.load(Relaxed),
            self.tables,
            size(bytes),
            time(seconds),
            size((bytes as f64 / seconds) as u64)
        )
    }
}

/// Bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            return if unit == "B" { format!("{bytes} B") } else { format!("{value:.1} {unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.1} TiB")
}

/// Seconds for people.
pub(crate) fn time(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0..=99 => format!("{seconds:.1} s"),
        100..=5999 => format!("{} min {} s", whole / 60, whole % 60),
        _ => format!("{} h {} min", whole / 3600, whole / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_readable() {
        assert_eq!((&*size(17), &*size(2048), &*size(5 << 40)), ("17 B", "2.0 KiB", "5.0 TiB"));
        assert_eq!((&*time(1.25), &*time(130.0), &*time(7260.0)), ("1.2 s", "2 min 10 s", "2 h 1 min"));
    }
}
