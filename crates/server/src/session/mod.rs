//! One connection from its greeting to its end: a task that reads a command, runs it, replies.
//!
//! `Session` is the parts of `connection` that live as long as it, and what joins them. - `login`: greeting, TLS, authentication. - `command`: what each
//! COM_ does. - `query`: text statements. - `set_for`: SET STATEMENT. - `prepared`, `statements`: COM_STMT_. - `drive`: runs a statement through its
//! waits; `wait_first`: those before it. - `foreign_dump`: statements of dumps that are passed over. - `observe`: what the query logs are told. - `event`: one for an
//! event that runs. - `dumping`, `sending`: the log to a replica, the async half of `omnibus_replication::source`.
//!
//! - SESSION-1 A reply leaves only when what it tells of is durable (COMMIT-2): the commit ticket is
//!   awaited before the flush.
//! - SESSION-2 A session that ends, however it ends, rolls back and gives its locks back.

mod command;
mod drive;
mod dumping;
mod event;
mod foreign_dump;
mod login;
mod observe;
mod prepared;
mod query;
mod sending;
mod set_for;
mod statements;
mod wait_first;

pub(crate) use event::{drop_if_over, events, run_event};

use crate::account::Account;
use crate::admin::Admin;
use crate::connection::{Client, Ended, Login, Replied, SessionAccess, SessionShared, Settings};
use crate::digests::KeptByTexts;
use crate::net::{Arrival, ClientHost, PacketStream};
use crate::process::Process;
use crate::query_log::Operation;
use crate::server::Server;
use crate::status::TransportStatus;
use omnibus_sql::{SessionState, SqlError, SqlSession};
use omnibus_wire::Capability;
use statements::Statements;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One logged-in connection.
pub struct Session {
    server: Arc<Server>,
    client: Client,
    login: Login,
    sql: Box<SqlSession>,
    prepared: Statements,
    /// The digests that statements of texts are counted in.
    digests: KeptByTexts,
    settings: Settings,
}

/// Runs a connection to its end.
pub async fn serve_connection(server: Arc<Server>, arrival: Arrival) {
    let Arrival { stream, client, port, gate, mut half_open } = arrival;
    let process = server.processes.register();
    let _cleanup = Cleanup { server: server.clone(), process: process.clone() };
    let mut packets = PacketStream::new(stream);
    let limit = std::time::Duration::from_secs(server.globals.named("connect_timeout").as_u64());
    let login = login::login(&server, &mut packets, &process, &client, port, gate);
    let mut logged_in = match tokio::time::timeout(limit, login).await {
        Ok(Ok(logged_in)) => {
            drop(half_open);
            logged_in
        }
        failed => {
            if matches!(failed, Err(_) | Ok(Err(login::Failed::BrokenOff))) {
                half_open.broke_off();
            }
            server.counters.aborted_connects.fetch_add(1, Ordering::Relaxed);
            return;
        }
    };
    let (database, logged_in) = (logged_in.database.take(), logged_in);
    let mut session = Box::new(Session::open(server.clone(), packets, process, client, logged_in));
    let how = session.run(database).await;
    session.observer().audit_connection(Operation::Disconnect, session.sql.state.database.clone(), 0);
    session.close();
    if how == Ended::Aborted {
        server.counters.aborted_clients.fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes the connection off the books however its task ends (SESSION-2).
struct Cleanup {
    server: Arc<Server>,
    process: Arc<Process>,
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        self.server.counters.retire(&self.process.counters);
        self.server.by_account.retire(&self.process);
        self.server.processes.remove(self.process.id);
        self.server.connection_closed();
    }
}

impl Session {
    fn open(
        server: Arc<Server>,
        packets: PacketStream,
        process: Arc<Process>,
        host: ClientHost,
        login: login::LoggedIn,
    ) -> Session {
        let mut access =
            SessionAccess::new(login.account.clone(), &login.user, &host.name(), &server.accounts)
                .behind(login.proxy.as_deref())
                .logged_in();
        access.confine(login.must_change_password);
        process.identity.lock().attributes = login.attributes;
        let shared = Arc::new(SessionShared::new(
            server.clone(),
            process.clone(),
            &access,
            TransportStatus { tls: packets.stream.tls_names(), compression: login.compression },
        ));
        shared.set_login_collation(login.collation);
        shared.start_idle_clock(packets.caps.has(Capability::INTERACTIVE));
        let mut sql = Box::new(SqlSession::new(server.database.clone(), process.id, process.kill.clone()));
        fill_in(&mut sql.state, (&login.user, &login.account), host.name(), shared.clone());
        sql.state.settings = Settings::of_execution(&shared, packets.caps, &access);
        sql.state.diagnostics.keep_only(sql.state.settings.conditions);
        let waiter = sql.watch();
        process.set_kill_hook(Box::new(move || waiter.kill()));
        process.set_transaction(sql.watch());
        process.set_counted(sql.state.connection.memory.clone(), sql.state.budget.progress.clone());
        let mut client = Client::new(server.clone(), packets, process, sql.trx().floor().clone());
        client.set_up(&shared, &sql.state);
        client.told.begin(&mut shared.vars.lock());
        Session {
            client,
            login: Login { host, user: login.user, access, place: login.place },
            sql,
            prepared: Statements::new(server.clone()),
            digests: KeptByTexts::default(),
            settings: Settings::new(shared, &server.globals),
            server,
        }
    }

    /// The end of the login, and all commands. `database` is the first default one.
    async fn run(&mut self, database: Option<String>) -> Ended {
        self.observer().log_connect(database.as_deref());
        let start = self.client.reply_start();
        let wanted = database.as_deref().map(Arc::from);
        let entered = database.map_or(Ok(()), |name| self.use_database(&name));
        let refused = entered.as_ref().err().map(|error| error.code);
        let how = if refused.is_some() { Operation::FailedConnect } else { Operation::Connect };
        let wanted = wanted.filter(|_| refused.is_none());
        self.observer().audit_connection(how, wanted, refused.unwrap_or(0));
        self.client.reply(&mut self.sql, entered);
        self.client.settle(&mut self.sql, start).await;
        if refused.is_some() {
            self.client.packets.close().await;
            return Ended::Properly;
        }
        if self.client.packets.flush().await.is_err() {
            return Ended::Aborted;
        }
        if let Some(compression) = self.settings.shared.transport().compression {
            self.client.packets.compress(compression);
        }
        self.client.process.end(crate::clock::now_us());
        loop {
            if !self.client.packets.has_pending() {
                self.client.packets.shrink();
            }
            let range = match self.client.next_command(self.settings.shared.max_allowed_packet()).await {
                Ok(Some(range)) => range,
                Ok(None) => return self.client.killed().await,
                Err(error) => return self.client.broken(&error).await,
            };
            match self.command(range).await {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ended::Properly,
                Err(error) => return self.client.broken(&error).await,
            }
            if let Err(error) = self.client.flush().await {
                return self.client.broken(&error).await;
            }
            self.client.count();
        }
    }

    /// SESSION-2.
    fn close(&mut self) {
        self.prepared.close_all();
        crate::net::blocking(|| self.sql.reset());
    }

    /// The context of a statement of the server's.
    fn admin(&mut self) -> Admin<'_> {
        Admin {
            server: &self.server,
            client: &mut self.client,
            login: &mut self.login,
            settings: &mut self.settings,
            sql: &mut self.sql,
        }
    }

    /// Adds OK to the reply.
    fn ok(&mut self) {
        self.client.ok(&self.sql, false);
    }

    /// Adds an error to the reply, and notes it for SHOW WARNINGS.
    fn failed(&mut self, error: SqlError) -> Replied {
        self.client.failed(&mut self.sql, error)
    }

    /// Follows changes of global variables and accounts made by other sessions.
    fn refresh(&mut self) {
        if self.settings.are_outdated(&self.server.globals) {
            self.admin().apply_settings();
        }
        if self.login.access.refresh(&self.server.accounts) {
            self.settings.shared.set_account(&self.login.access);
        }
    }
}

/// Tells a new session of the SQL layer whose it is.
fn fill_in(
    state: &mut SessionState,
    (user, account): (&str, &Account),
    host_name: String,
    host: Arc<SessionShared>,
) {
    state.login.user = user.to_owned();
    state.login.host_name = host_name;
    state.login.account = account.plain();
    state.connection.host = host;
    let mut seed = [0; 16];
    crate::random::random_bytes(&mut seed);
    let n = u128::from_le_bytes(seed);
    state.connection.rand = ((n as u32).into(), ((n >> 64) as u32).into());
}
