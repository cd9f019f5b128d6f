//! The server's whole life in one call: runtime, assembly, listeners, signals, shutdown.

use crate::assemble::{Assembled, StartError, assemble, check};
use crate::http::Http;
use crate::net::{Driver, Listeners};
use crate::options::{ServerOptions, Task};
use crate::pid_file::PidFile;
use crate::pulse::Pulse;
use crate::server::Server;
use crate::starting::Starting;
use crate::sysvars::{GlobalVars, VarValue};
use std::io::Write;
use std::os::unix::fs::MetadataExt as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How long the runtime's own threads get at the end.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Runs a server until it is shut down. Failures are logged; the code says whether there was one.
#[must_use]
pub fn serve(options: ServerOptions) -> ExitCode {
    raise_file_limit();
    let ended = match options.task {
        Task::Help => {
            print!("{}", crate::options::help());
            return ExitCode::SUCCESS;
        }
        Task::Version => {
            println!("{}", options.version());
            return ExitCode::SUCCESS;
        }
        Task::Initialize => initialize(options),
        Task::Serve => live(options, |_, _| ()),
    };
    match ended {
        Ok(Ended::ForGood) => ExitCode::SUCCESS,
        Ok(Ended::ToRestart) => crate::supervisor::restart_code(),
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// A first start that nobody can connect to.
fn initialize(mut options: ServerOptions) -> Result<Ended, StartError> {
    let datadir = options.datadir();
    if std::fs::read_dir(&datadir).is_ok_and(|mut files| files.next().is_some()) {
        let path = datadir.display();
        return Err(StartError(format!(
            "--initialize-insecure: there are files in the data directory {path}"
        )));
    }
    options.announce = false;
    options.set("skip_networking", VarValue::Bool(true));
    options.set("socket", VarValue::Str("".into()));
    options.set("http_address", VarValue::Str("".into()));
    live(options, |server, _| server.stop("its data directory is made"))
}

/// How a server ended.
pub(crate) enum Ended {
    ForGood,
    /// By RESTART.
    ToRestart,
}

/// A server's life on this thread: blocks until it has ended. `ready` is called once, when it lets clients in.
pub(crate) fn live(
    mut options: ServerOptions,
    ready: impl FnOnce(Arc<Server>, Handle),
) -> Result<Ended, StartError> {
    options.load_persisted().map_err(|e| StartError(e.to_string()))?;
    for warning in &options.warnings {
        tracing::warn!("{warning}");
    }
    let workers = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).max(2);
    let connections = options.globals.named("max_connections").as_u64() as usize;
    let network = choose_network(&options.globals)?;
    let turns = network.clone();
    let runtime = Builder::new_multi_thread()
        .thread_stack_size(omnibus_value::stack::STACK_BYTES)
        .worker_threads(workers)
        // A statement in blocking mode takes a thread of this pool; each connection may have one.
        .max_blocking_threads(connections + 64)
        .thread_name("session")
        .on_thread_unpark(move || crate::net::begin_turn(&turns))
        .on_thread_park(crate::net::end_turn)
        .enable_all()
        .build()
        .map_err(|e| StartError(format!("starting the runtime: {e}")))?;
    let result = run(&runtime, options, network, ready);
    runtime.shutdown_timeout(LAST_WAIT);
    result
}

fn run(
    runtime: &Runtime,
    options: ServerOptions,
    network: Arc<Driver>,
    ready: impl FnOnce(Arc<Server>, Handle),
) -> Result<Ended, StartError> {
    let (announce, embedded, pid_file) = (options.announce, options.embedded, options.pid_file());
    // A start that is refused has made and changed no file.
    check(&options)?;
    let reserved = options.places().reserve().map_err(|e| StartError(e.to_string()))?;
    let starting = Arc::<Starting>::default();
    let seat = serve_http(runtime, &options.globals, &starting)?;
    let assembled = {
        let _inside = runtime.enter();
        assemble(options, &starting, network)?
    };
    let Assembled { server, coordinator, failures, housekeeping, query_log, datadir } = assembled;
    let pid_file = pid_file.map(|path| PidFile::write(&path).map_err(|e| (path, e))).transpose();
    let listeners = {
        let _inside = runtime.enter();
        let backlog = server.globals.named("back_log").as_u64() as u32;
        match &pid_file {
            Ok(_) => reserved.listen(backlog).map_err(|e| StartError(e.to_string())),
            Err((path, e)) => Err(StartError(format!("pid_file: {}: {e}", path.display()))),
        }
    };
    let result = match listeners {
        // A log that failed while recovery wrote to it: nobody may be told that the server is ready.
        Ok(_) if failures.stopped_because().is_some() => Ok(Ended::ForGood),
        Ok(listeners) => {
            // Before the word that the server is ready: whoever reads it may send a signal at once.
            let signals = {
                let _inside = runtime.enter();
                if embedded { None } else { Signals::register() }
            };
            let _pulse = Pulse::start(runtime.handle().clone())
                .map_err(|e| StartError(format!("starting a thread: {e}")))?;
            let _ = seat.send(Some(server.clone()));
            say_ready(&server, &listeners, announce);
            if let Some(replicas) = server.replicas.get() {
                replicas.start_at_startup(server.globals.named("skip_replica_start").as_bool());
            }
            ready(server.clone(), runtime.handle().clone());
            runtime.block_on(until_stopped(&server, listeners, signals));
            Ok(if server.is_to_restart() { Ended::ToRestart } else { Ended::ForGood })
        }
        Err(error) => Err(error),
    };
    if let Some(replicas) = server.replicas.get() {
        replicas.shut_down();
    }
    housekeeping.stop();
    query_log.stop();
    // Everything acknowledged is durable already; this makes the next start short.
    match coordinator.close() {
        Ok(()) => tracing::info!("shutdown complete"),
        Err(error) => {
            tracing::error!(%error, "the shutdown was not clean; the next start recovers from the binary log")
        }
    }
    drop(datadir);
    drop(pid_file);
    match failures.stopped_because() {
        Some(why) => Err(StartError(format!("stopped: {why}"))),
        None => result,
    }
}

/// The driver that `network_driver` asks for; the variable says from now on which one it is.
fn choose_network(globals: &GlobalVars) -> Result<Arc<Driver>, StartError> {
    let wanted = globals.named("network_driver");
    let driver = Driver::choose(wanted.as_str()).map_err(|error| {
        StartError(format!("network_driver: the kernel does not let this process use io_uring ({error}); use --network-driver=auto"))
    })?;
    globals.set_named("network_driver", VarValue::Str(driver.name().into()));
    tracing::info!("network driver: {}", driver.name());
    Ok(Arc::new(driver))
}

/// Opens the HTTP address, where there is one, which shows how far the start is until the server takes its seat.
fn serve_http(
    runtime: &Runtime,
    globals: &GlobalVars,
    starting: &Arc<Starting>,
) -> Result<watch::Sender<Option<Arc<Server>>>, StartError> {
    let (seat, seated) = watch::channel(None);
    let address = globals.named("http_address");
    if !address.as_str().is_empty() {
        let failed = |e| StartError(format!("http_address: can't listen on '{}': {e}", address.as_str()));
        let http = runtime.block_on(Http::bind(address.as_str())).map_err(failed)?;
        tracing::info!("http://{}/ shows what the server does", http.address());
        runtime.spawn(http.run(seated, starting.clone()));
    }
    Ok(seat)
}

async fn until_stopped(server: &Arc<Server>, listeners: Listeners, signals: Option<Signals>) {
    let watch = signals.map(|signals| tokio::spawn(watch_signals(server.clone(), signals)));
    server.run(listeners).await;
    if let Some(watch) = watch {
        watch.abort();
    }
}

/// The signals that the server answers.
struct Signals {
    term: Signal,
    int: Signal,
    hup: Signal,
}

impl Signals {
    /// From now on they no longer end the process by themselves.
    fn register() -> Option<Signals> {
        let (Ok(term), Ok(int), Ok(hup)) =
            (signal(SignalKind::terminate()), signal(SignalKind::interrupt()), signal(SignalKind::hangup()))
        else {
            tracing::warn!("signals can't be watched; use SHUTDOWN");
            return None;
        };
        Some(Signals { term, int, hup })
    }
}

/// The first SIGTERM or SIGINT asks, the second one insists.
async fn watch_signals(server: Arc<Server>, signals: Signals) {
    let Signals { mut term, mut int, mut hup } = signals;
    loop {
        let name = tokio::select! {
            _ = term.recv() => "SIGTERM",
            _ = int.recv() => "SIGINT",
            _ = hup.recv() => {
                flush_on_hangup(&server);
                continue;
            }
        };
        if server.is_stopping() {
            tracing::warn!("{name} again: exiting at once");
            std::process::exit(1);
        }
        server.stop(name);
    }
}

/// SIGHUP means FLUSH LOGS, as log rotation scripts expect.
fn flush_on_hangup(server: &Arc<Server>) {
    let server = server.clone();
    tokio::task::spawn_blocking(move || {
        crate::error_log::reopen();
        server.query_log.reopen_all(&server.globals);
        if let Err(error) = server.log.rotate() {
            tracing::error!(%error, "SIGHUP: the log could not be rotated");
        }
    });
}

fn say_ready(server: &Server, listeners: &Listeners, announce: bool) {
    let port = listeners.tcp.first().and_then(|l| l.local_addr().ok()).map_or(0, |a| a.port());
    server.globals.set_named("port", VarValue::UInt(u64::from(port)));
    let socket = if listeners.unix.is_some() { server.globals.named("socket").text() } else { String::new() };
    let line = format!(
        "ready for connections. Version: '{}'  socket: '{socket}'  port: {port}  Omnibus",
        server.globals.named("version").as_str()
    );
    tracing::info!("{line}");
    server.supervisor.notify(&format!("READY=1\nSTATUS={line}\nMAINPID={}", std::process::id()));
    if announce && !(tracing::enabled!(tracing::Level::INFO) && is_where_the_log_is(server)) {
        let mut out = std::io::stdout();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}

/// Returns whether standard output is where the log's messages go: one line is enough there.
fn is_where_the_log_is(server: &Server) -> bool {
    let identity =
        |path: &str| std::fs::metadata(path).map(|file| (file.dev(), file.ino(), file.rdev())).ok();
    let log = server.globals.named("log_error");
    let log = if log.as_str().is_empty() || log.as_str() == "stderr" { "/dev/stderr" } else { log.as_str() };
    identity(log).is_some_and(|log| identity("/dev/stdout") == Some(log))
}

/// Each connection is a file handle: asks for as many as the system allows.
fn raise_file_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a live, properly typed local.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0 && limit.rlim_cur < limit.rlim_max
    {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: as above; the call only reads.
        let _ = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    }
}
