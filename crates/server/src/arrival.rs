//! The life of a server with its connections: accepted, counted as half-open until they have logged in, turned away where there are
//! too many, and given some time at the end.

use crate::errors;
use crate::net::{Arrival, ClientHost, Gate, HalfOpen, Listeners, NotLetIn, PacketStream, Stream};
use crate::scheduler;
use crate::server::Server;
use crate::session::serve_connection;
use omnibus_sql::SqlError;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// How often connections are looked at: a statement whose client has gone ends within a second.
const CLOCK: Duration = Duration::from_millis(400);
/// How long connections get to finish their statements at shutdown.
const DRAIN: Duration = Duration::from_secs(10);

impl Server {
    /// Accepts connections until `stop`, then lets them finish. Connections still there after the
    /// grace time are left to the runtime's end.
    pub async fn run(self: &Arc<Self>, listeners: Listeners) {
        let mut tasks = self.accept_all(listeners);
        self.configure_semi_sync();
        if let Some(coordinator) = self.log.coordinator().cloned() {
            let semi_sync = self.dumps.semi_sync.clone();
            tasks.push(tokio::spawn(async move { semi_sync.clock(&coordinator).await }));
        }
        tasks.push(tokio::spawn(scheduler::run(self.clone())));
        let clock = tokio::spawn(self.clone().tick());
        self.stopped().await;
        clock.abort();
        for task in &tasks {
            task.abort();
        }
        for task in tasks {
            let _ = task.await;
        }
        self.drain().await;
    }

    /// Now and then: connections that were silent for too long, and statements whose clients have gone.
    async fn tick(self: Arc<Self>) {
        let mut every = tokio::time::interval(CLOCK);
        loop {
            every.tick().await;
            let now = crate::clock::now_us();
            for process in self.processes.all() {
                process.check_idle(now);
                process.check_client(now);
            }
        }
    }

    async fn drain(&self) {
        if let Some(coordinator) = self.log.coordinator() {
            self.dumps.semi_sync.shut_down(coordinator);
        }
        // Threads of replication end when their last transaction is safe, after this.
        for process in self.processes.clients() {
            process.kill_connection();
        }
        let all_gone = async {
            while !self.processes.clients().is_empty() {
                self.one_closes_within(Duration::from_millis(100)).await;
            }
        };
        if tokio::time::timeout(DRAIN, all_gone).await.is_err() {
            tracing::warn!(connections = self.processes.clients().len(), "connections did not end in time");
        }
    }

    /// One task for each address. The listeners go with the last of them.
    pub(crate) fn accept_all(self: &Arc<Self>, listeners: Listeners) -> Vec<JoinHandle<()>> {
        let listeners = Arc::new(listeners);
        let mut tasks = Vec::new();
        let public = (0..listeners.tcp.len()).map(|at| (Some(at), Gate::Public));
        for (at, gate) in public.chain(listeners.admin.iter().map(|_| (None, Gate::Admin))) {
            let (server, listeners) = (self.clone(), listeners.clone());
            tasks.push(tokio::spawn(async move {
                let listener = at.map_or(listeners.admin.as_ref(), |at| listeners.tcp.get(at));
                if let Some(listener) = listener {
                    server.accept_tcp(listener, gate).await;
                }
            }));
        }
        let server = self.clone();
        tasks.push(tokio::spawn(async move {
            while let Some(unix) = &listeners.unix {
                match unix.accept().await {
                    Ok((stream, _)) => {
                        server.arrived(Stream::from(stream), ClientHost::local(), 0, Gate::Public);
                    }
                    Err(error) => pause_after(&error).await,
                }
            }
        }));
        tasks
    }

    async fn accept_tcp(self: &Arc<Self>, listener: &TcpListener, gate: Gate) {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    // A request and its reply are one small write each: never wait for more.
                    let _ = stream.set_nodelay(true);
                    let client = ClientHost::from_ip(peer.ip());
                    self.arrived(Stream::from(stream), client, peer.port(), gate);
                }
                Err(error) => pause_after(&error).await,
            }
        }
    }

    /// Into a task of its own, or away with an error.
    pub(crate) fn arrived(self: &Arc<Self>, stream: Stream, client: ClientHost, port: u16, gate: Gate) {
        self.counters.connections.fetch_add(1, Ordering::Relaxed);
        match self.half_open(&client, gate) {
            Ok(half_open) => {
                self.counters.threads_created.fetch_add(1, Ordering::Relaxed);
                let arrival = Arrival { stream, client, port, gate, half_open };
                tokio::spawn(serve_connection(self.clone(), arrival));
            }
            Err(goodbye) => {
                self.counters.refused_max.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(async move {
                    let mut packets = PacketStream::new(stream);
                    let _ = tokio::time::timeout(Duration::from_secs(1), packets.refuse(&goodbye)).await;
                });
            }
        }
    }

    fn half_open(&self, client: &ClientHost, gate: Gate) -> Result<HalfOpen, SqlError> {
        // With the administrator's place taken as well, nobody could be let in after a login.
        let full = self.counters.connected.load(Ordering::Relaxed) > self.max_connections();
        if full && gate == Gate::Public {
            return Err(errors::too_many_connections());
        }
        let hosts = if gate == Gate::Admin { &self.doors.admin } else { &self.doors.public };
        let limit = self.globals.named("back_log").as_u64();
        let max_errors = self.globals.named("max_connect_errors").as_u64();
        hosts.enter(client, usize::try_from(limit).unwrap_or(usize::MAX), max_errors).map_err(|why| match why
        {
            NotLetIn::TooMany => errors::too_many_connections(),
            NotLetIn::Blocked => errors::host_is_blocked(client.name()),
        })
    }

    /// `max_connections`.
    pub(crate) fn max_connections(&self) -> u64 {
        self.globals.named("max_connections").as_u64()
    }
}

/// Running out of file handles must not make accepting a busy loop.
async fn pause_after(error: &std::io::Error) {
    tracing::warn!(%error, "accept failed");
    tokio::time::sleep(Duration::from_millis(50)).await;
}
