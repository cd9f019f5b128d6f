//! The commits half: this very program serves a fresh data directory, and clients insert rows over its socket as
//! mysqlslap does (an integer and 128 characters, autocommit), every commit synced.
//!
//! The server is killed and its directory removed when the measurement ends; a run that was interrupted leaves a
//! directory, which the next run removes once no server is in it.

use super::client::Client;
use omnibus_log::{DirLock, Disk, Preparation, prepare_file};
use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const PREFIX: &str = ".omnibus-bench-server-";
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The destination of the log's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Log {
    Prepared,
    GrowsByPieces,
    GrowsWithEachWrite,
}

/// Published commits per second by number of connections.
type Figures = &'static [(usize, f64)];

/// Every row; the first and the last are those that were published.
pub(super) const LOGS: [(Log, &str, Figures); 3] = [
    (Log::Prepared, "prepared file", &[(1, 3707.0), (20, 7696.0), (50, 8156.0)]),
    (Log::GrowsByPieces, "file grows 1 MiB of zeros at a time (binlog_preallocate=0)", &[]),
    (
        Log::GrowsWithEachWrite,
        "file grows with each write, fdatasync",
        &[(1, 359.0), (20, 798.0), (50, 760.0)],
    ),
];

/// The settings that all rows share.
pub(super) struct Bench<'a> {
    pub(super) dir: &'a Path,
    pub(super) size: u64,
    pub(super) seconds: u64,
}

impl Bench<'_> {
    /// Commits per second for each number of connections.
    pub(super) fn rates(
        &self,
        log: Log,
        connections: &[usize],
        say: &mut dyn FnMut(usize),
    ) -> io::Result<Vec<f64>> {
        let server = Server::start(self, log)?;
        let mut first = server.connect()?;
        first.execute("CREATE DATABASE bench")?;
        first.execute("CREATE TABLE bench.t (intcol1 INT, charcol1 VARCHAR(128))")?;
        let mut rates = Vec::new();
        for &count in connections {
            say(count);
            rates.push(self.rate(&server, count)?);
        }
        Ok(rates)
    }

    fn rate(&self, server: &Server, connections: usize) -> io::Result<f64> {
        let clients: Vec<Client> = (0..connections).map(|_| server.connect()).collect::<io::Result<_>>()?;
        let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
        let started = Instant::now();
        std::thread::scope(|scope| {
            let threads: Vec<_> = clients
                .into_iter()
                .enumerate()
                .map(|(n, client)| {
                    let (stop, done) = (&stop, &done);
                    scope.spawn(move || insert(client, n as u64, stop, done))
                })
                .collect();
            std::thread::sleep(Duration::from_secs(self.seconds));
            stop.store(true, Ordering::Relaxed);
            for thread in threads {
                thread.join().map_err(|_| io::Error::other("a client ended unexpectedly"))??;
            }
            Ok(done.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
        })
    }
}

/// Runs one client until it is told to stop.
fn insert(mut client: Client, seed: u64, stop: &AtomicBool, done: &AtomicU64) -> io::Result<()> {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    while !stop.load(Ordering::Relaxed) {
        let number = next() % 2_000_000_000;
        let text: String = (0..8).map(|_| format!("{:016x}", next())).collect();
        client.execute(&format!("INSERT INTO bench.t VALUES ({number}, '{text}')"))?;
        done.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// A server of our own; dropping it ends it and removes its directory.
struct Server {
    child: Child,
    dir: PathBuf,
}

impl Server {
    fn start(bench: &Bench<'_>, log: Log) -> io::Result<Server> {
        let dir = bench.dir.canonicalize()?.join(format!("{PREFIX}{}", std::process::id()));
        let data = dir.join("data");
        let pool = data.join("pre-allocated-binlog");
        fs::create_dir_all(if log == Log::Prepared { &pool } else { &dir })?;
        if log == Log::Prepared {
            let go_on = &mut |_| ControlFlow::Continue(());
            if let Err(error) = prepare_file(
                &Disk::default(),
                &pool.join("empty.000001"),
                bench.size,
                Preparation::ZeroFill,
                go_on,
            ) {
                let _ = fs::remove_dir_all(&dir);
                return Err(io::Error::other(error));
            }
        }
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("serve").arg("--datadir").arg(&data).arg("--socket").arg(dir.join("s.sock"));
        command.args(["--skip-networking", "--sync-binlog=1", "--binlog-preallocate=0"]);
        command.arg(format!("--max-binlog-size={}", bench.size.clamp(4096, 1 << 30)));
        if log == Log::GrowsWithEachWrite {
            command.args(["--binlog-extend-size=0", "--binlog-flush-method=fdatasync"]);
        }
        let messages = fs::File::create(dir.join("server.log"))?;
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(messages).spawn()?;
        let mut server = Server { child, dir };
        server.wait_until_ready()?;
        Ok(server)
    }

    fn wait_until_ready(&mut self) -> io::Result<()> {
        let started = Instant::now();
        while self.connect().is_err() {
            if self.child.try_wait()?.is_some() || started.elapsed() > START_TIMEOUT {
                let said = fs::read_to_string(self.dir.join("server.log")).unwrap_or_default();
                let last = said.lines().last().unwrap_or("nothing").to_owned();
                return Err(io::Error::other(format!("the server did not start; it said: {last}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn connect(&self) -> io::Result<Client> {
        Client::connect(&self.dir.join("s.sock"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Removes what interrupted runs left in `dir`.
pub(super) fn remove_stale(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX)
            && DirLock::acquire(&entry.path().join("data")).is_ok()
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
