//! `omnibus alloc`: prepares empty log files ahead of time, for `binlog_preallocate=0` or before a busy day.
//!
//! Each file is zero-filled and synced under a temporary name and gets its own name only then. A name that exists is
//! never overwritten: it ends the run with an error, and nothing is created behind it. Runs on its own, with or without
//! a server on the directory; the server takes `empty.NNNNNN` at its next rotation. No invariants of its own.

use clap::Args;
use omnibus_log::{Disk, Preparation, PrepareError, Progress, prepare_file, remove_stale_temporaries};
use std::io::{IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Prepare empty binary log files, so that no commit and no rotation has to wait for space.
#[derive(Args, Debug)]
pub struct AllocArgs {
    /// Number of the first file.
    #[arg(long, value_name = "N", default_value_t = 1)]
    start_suffix: u32,
    /// Number of the last file.
    #[arg(long, value_name = "N")]
    end_suffix: u32,
    /// Size of each file in bytes; K, M, G and T are understood. Best the server's max_binlog_size.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = omnibus_log::parse_size)]
    binlog_size: u64,
    /// The path of the files without their number, normally DATADIR/pre-allocated-binlog/empty.
    #[arg(long, value_name = "PATH")]
    binlog_name: PathBuf,
    /// Only reserve the space. Much quicker, but every first write to a block then waits for the file system's journal.
    #[arg(long)]
    reserve_only: bool,
}

/// Runs the command.
#[must_use]
pub fn run(args: AllocArgs) -> ExitCode {
    match allocate(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("omnibus alloc: {message}");
            ExitCode::FAILURE
        }
    }
}

fn allocate(args: &AllocArgs) -> Result<(), String> {
    if args.end_suffix < args.start_suffix {
        return Err(format!(
            "--end-suffix={} is before --start-suffix={}",
            args.end_suffix, args.start_suffix
        ));
    }
    let base = args.binlog_name.file_name().ok_or("--binlog-name needs a file name, such as .../empty")?;
    let dir = args.binlog_name.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // That folder and no other: a mistake in the data directory's name is not to become one.
    match std::fs::create_dir(dir) {
        Err(error) if !dir.is_dir() => return Err(format!("can not create {}: {error}", dir.display())),
        _ => {}
    }
    remove_stale_temporaries(&Disk::default(), dir);
    let how = if args.reserve_only { Preparation::Reserve } else { Preparation::ZeroFill };
    for number in args.start_suffix..=args.end_suffix {
        let mut name = base.to_owned();
        name.push(format!(".{number:06}"));
        allocate_one(&dir.join(name), args, how).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn allocate_one(path: &Path, args: &AllocArgs, how: Preparation) -> Result<(), PrepareError> {
    let mut bar = Bar::new(path);
    let result = prepare_file(&Disk::default(), path, args.binlog_size, how, &mut |progress| {
        bar.show(progress);
        ControlFlow::Continue(())
    });
    bar.clear();
    let report = result?;
    let seconds = report.elapsed.as_secs_f64();
    // A closed pipe on the other side is no reason to stop preparing.
    let what = match (report.reserved, report.zero_filled > 0) {
        (true, true) => "reserved and zero-filled",
        (true, false) => "reserved only",
        (false, _) => "zero-filled; the file system can not reserve",
    };
    let (path, size) = (report.path.display(), report.size);
    let _ = writeln!(std::io::stdout(), "{path}: {size} bytes in {seconds:.1} s, {what}");
    Ok(())
}

/// One line of progress, redrawn a few times per second, and only on a terminal.
struct Bar {
    label: String,
    started: Instant,
    drawn: Option<Instant>,
    terminal: bool,
}

impl Bar {
    fn new(path: &Path) -> Bar {
        let label = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Bar { label, started: Instant::now(), drawn: None, terminal: std::io::stderr().is_terminal() }
    }

    fn show(&mut self, progress: Progress) {
        let recent = self.drawn.is_some_and(|drawn| drawn.elapsed() < Duration::from_millis(200));
        if !self.terminal || recent {
            return;
        }
        let percent = progress.done * 100 / progress.total.max(1);
        let rate = progress.done as f64 / self.started.elapsed().as_secs_f64().max(1e-6) / f64::from(1 << 20);
        let cells = usize::try_from(percent / 4).unwrap_or(25);
        eprint!("\r{} [{:25}] {percent:3}% {rate:6.0} MiB/s", self.label, "#".repeat(cells));
        let _ = std::io::stderr().flush();
        self.drawn = Some(Instant::now());
    }

    fn clear(&self) {
        if self.drawn.is_some() {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn args(dir: &Path, from: u32, to: u32) -> AllocArgs {
        AllocArgs {
            start_suffix: from,
            end_suffix: to,
            binlog_size: 10_000,
            binlog_name: dir.join("pre-allocated-binlog/empty"),
            reserve_only: false,
        }
    }

    #[test]
    fn the_run_stops_at_the_first_name_that_exists() {
        let dir = std::env::temp_dir().join(format!("omnibus-alloc-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        let pool = dir.join("pre-allocated-binlog");
        std::fs::create_dir_all(&pool).unwrap();
        std::fs::write(pool.join("empty.000003"), b"mine").unwrap();
        std::fs::write(pool.join(".empty.000001-1.tmp"), b"left behind").unwrap();
        std::fs::write(pool.join(".notes.tmp"), b"somebody else's").unwrap();
        let error = allocate(&args(&dir, 1, 5)).unwrap_err();
        assert!(error.contains("empty.000003 exists already"), "{error}");
        let mut names: Vec<_> = std::fs::read_dir(&pool).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".notes.tmp", "empty.000001", "empty.000002", "empty.000003"]);
        assert_eq!(std::fs::read(pool.join("empty.000003")).unwrap(), b"mine");
        assert_eq!(std::fs::metadata(pool.join("empty.000002")).unwrap().len(), 10_000);
        assert!(allocate(&args(&dir, 5, 4)).is_err());
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
