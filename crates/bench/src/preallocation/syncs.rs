//! The low-level half: one thread writes and syncs a file, from its start on, in four states of the file, and in two
//! more that the log itself can be in.
//!
//! A file loses its name as soon as it is open, so that nothing stays behind however the program ends.

use omnibus_log::{Allocation, FlushMethod, SyncCall, measure_sync};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes per write: 131072 of them were a gigabyte.
pub(super) const WRITE: usize = 8192;
const PIECE: usize = 1 << 20;
/// The pause that the file system gets after a large file is removed.
const SETTLE: Duration = Duration::from_millis(500);

/// The state of the file when the writes begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    Growing,
    Overwriting,
    FilledJustNow,
    FilledAndRested,
    Reserved,
    Log,
}

/// Every row with its published figure.
pub(super) const VARIANTS: [(Variant, Option<f64>); 6] = [
    (Variant::Growing, Some(3086.0)),
    (Variant::Overwriting, Some(12330.0)),
    (Variant::FilledJustNow, Some(6569.0)),
    (Variant::FilledAndRested, Some(11670.0)),
    (Variant::Reserved, None),
    (Variant::Log, None),
];

/// Small files first: freeing a gigabyte keeps the file system's journal busy for a while, and a sync that changes
/// metadata then waits for it (reserved space: 430 syncs per second behind such a file, 13,000 without).
pub(super) const ORDER: [usize; 6] = [0, 4, 5, 1, 2, 3];

impl Variant {
    pub(super) fn describe(self, wait: u64) -> String {
        match self {
            Variant::Growing => "grows with each write, fdatasync".into(),
            Variant::Overwriting => "written and synced before, overwritten, fdatasync".into(),
            Variant::FilledJustNow => "zero-filled and written at once, fdatasync".into(),
            Variant::FilledAndRested => format!("zero-filled, {wait} s of rest, fdatasync"),
            Variant::Reserved => "reserved (fallocate), fdatasync".into(),
            Variant::Log => "zero-filled and synced, O_DIRECT and O_DSYNC, as the log does it".into(),
        }
    }
}

/// Syncs per second over `count` writes.
pub(super) fn rate(variant: Variant, dir: &Path, size: u64, count: u64, wait: u64) -> io::Result<f64> {
    let (space, call) = match variant {
        Variant::Reserved => (Allocation::Reserved, SyncCall::Method(FlushMethod::Fdatasync)),
        Variant::Log => (Allocation::ZeroFilled, SyncCall::Method(FlushMethod::ODirectDsync)),
        _ => {
            let rate = plain_rate(variant, dir, size, count, wait);
            if variant != Variant::Growing {
                std::thread::sleep(SETTLE);
            }
            return rate;
        }
    };
    let count = usize::try_from(count.min(size / WRITE as u64).max(1)).unwrap_or(1);
    let times = measure_sync(dir, space, call, WRITE, count)?;
    let total: Duration = times.iter().sum();
    Ok(times.len() as f64 / total.as_secs_f64().max(1e-9))
}

fn plain_rate(variant: Variant, dir: &Path, size: u64, count: u64, wait: u64) -> io::Result<f64> {
    let file = nameless(dir)?;
    match variant {
        Variant::Overwriting => {
            fill(&file, size, 0x33)?;
            file.sync_all()?;
        }
        Variant::FilledJustNow => fill(&file, size, 0)?,
        Variant::FilledAndRested => {
            fill(&file, size, 0)?;
            std::thread::sleep(Duration::from_secs(wait));
        }
        _ => {}
    }
    let block = [0x5a; WRITE];
    let places = (size / WRITE as u64).max(1);
    let started = Instant::now();
    for n in 0..count {
        // A growing file grows for as long as it takes; the others begin again at their start.
        let place = if variant == Variant::Growing { n } else { n % places };
        file.write_all_at(&block, place * WRITE as u64)?;
        file.sync_data()?;
    }
    Ok(count as f64 / started.elapsed().as_secs_f64().max(1e-9))
}

fn nameless(dir: &Path) -> io::Result<File> {
    let path = dir.join(format!(".omnibus-bench-{}.file", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    std::fs::remove_file(&path)?;
    Ok(file)
}

fn fill(file: &File, size: u64, byte: u8) -> io::Result<()> {
    let piece = vec![byte; PIECE];
    let mut at = 0;
    while at < size {
        let len = usize::try_from(size - at).unwrap_or(PIECE).min(PIECE);
        file.write_all_at(&piece[..len], at)?;
        at += len as u64;
    }
    Ok(())
}
