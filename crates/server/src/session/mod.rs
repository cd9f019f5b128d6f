//! One connection from its greeting to its end: a task that reads a command, runs it, replies.
//!
//! - `event`: one for an event that runs. - `observe`: what the query logs are told. - `login`: greeting, TLS, authentication. - `admission`: a place for who logged in. - `command`: what each COM_ does. - `query`: text
//!   statements. - `prepared`, `statements`: COM_STMT_. - `gtids`: which transactions are whose. - `dumping`, `sending`: the log to a replica, the async half of
//!   `omnibus_replication::source`. - `drive`: runs a statement through its waits. - `sink`: rows
//!   to packets. - `local_file`: LOAD DATA LOCAL. -
//!   `host`, `hints` and `access`: what the SQL layer asks back. - `rule`: what each statement asks of the account.
//!
//! - SESSION-1 A reply leaves only when what it tells of is durable (COMMIT-2): the commit ticket is
//!   awaited before the flush.
//! - SESSION-2 A session that ends, however it ends, rolls back and gives its locks back.

mod access;
mod admission;
mod command;
mod drive;
mod dumping;
mod event;
mod foreign_dump;
mod gtids;
mod hints;
mod host;
mod local_file;
mod login;
mod observe;
mod prepared;
pub(crate) mod query;
mod rule;
mod sending;
mod settle;
mod sink;
mod statements;
mod wait_first;

use gtids::Gtids;
use statements::Statements;

pub use access::SessionAccess;
pub use drive::Replied;
pub(crate) use event::{drop_if_over, run_event};
pub use host::SessionShared;

use crate::account::Account;
use crate::dump::RegisteredGuard;
use crate::net::Arrival;
use crate::net::ClientHost;
use crate::net::{Channel, NetError};
use crate::process::Process;
use crate::query_log::Operation;
use crate::runner::{Runner, RunnerIdentity};
use crate::server::Server;
use crate::status::{Counter, Transport};
use omnibus_sql::memory::MemoryLimits;
use omnibus_wire::{Capability, Status};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// One logged-in connection.
pub struct Session {
    pub(crate) server: Arc<Server>,
    /// In front of the channel: it goes first.
    _watched: crate::process::Watched,
    pub(crate) channel: Channel,
    pub(crate) process: Arc<Process>,
    pub(crate) identity: Identity,
    pub(crate) shared: Arc<SessionShared>,
    pub(crate) runner: Box<dyn Runner>,
    prepared: Statements,
    replies: Replies,
    pub(crate) running: Running,
    /// `GlobalVars::generation` that the settings were made from.
    generation: u64,
    /// COM_REGISTER_SLAVE: it is in SHOW REPLICAS for as long as this is here.
    pub(crate) registered: Option<RegisteredGuard>,
    pub(crate) gtids: Gtids,
}

/// Whose connection it is.
pub(crate) struct Identity {
    pub(crate) client: ClientHost,
    /// Name the client gave at login.
    pub(crate) user: String,
    pub(crate) access: SessionAccess,
    /// Given back when the session goes.
    place: admission::ConnectionPlace,
}

/// What its replies depend on, and what was sent in them.
struct Replies {
    /// What they wait for.
    floor: Option<Arc<omnibus_sql::Floor>>,
    /// Several statements in one COM_QUERY are allowed.
    multi_statements: bool,
    /// The next OK tells clients that track it of a new default database.
    schema_changed: bool,
    /// Rows that the client has got so far.
    rows_sent: u64,
    /// Rows that the last statement changed.
    rows_affected: u64,
}

/// The statement that runs.
#[derive(Default)]
pub(crate) struct Running {
    /// SET INSERT_ID holds for the next statement only.
    pub(crate) insert_id: Option<u64>,
    /// Settings of the query logs.
    watch: observe::Watch,
    /// Statements of procedures that it runs for them.
    inside: Inside,
}

/// Where a statement of a procedure runs.
#[derive(Debug, Default)]
struct Inside {
    /// How many procedures wait for the server.
    depth: u32,
    /// Rows are binary: the CALL was prepared.
    binary: bool,
    /// What the statement failed with.
    error: Option<omnibus_sql::SqlError>,
}

/// Runs a connection to its end.
pub async fn serve_connection(server: Arc<Server>, arrival: Arrival) {
    let Arrival { stream, client, port, gate, mut half_open } = arrival;
    let process = server.processes.register();
    let _cleanup = Cleanup { server: server.clone(), process: process.clone() };
    let mut channel = Channel::new(stream);
    let limit = std::time::Duration::from_secs(server.globals.named("connect_timeout").as_u64());
    let login = login::login(&server, &mut channel, &process, &client, port, gate);
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
    let mut session = match Session::open(server.clone(), channel, process, client, logged_in) {
        Ok(session) => Box::new(session),
        Err(mut refused) => {
            refused.0.refuse(&refused.1).await;
            return;
        }
    };
    let how = session.run(database).await;
    session.audit_connection(Operation::Disconnect, session.runner.state().database.clone(), 0);
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

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// COM_QUIT, KILL or shutdown.
    Properly,
    /// The peer vanished, timed out or broke the protocol.
    Aborted,
}

impl Session {
    fn open(
        server: Arc<Server>,
        channel: Channel,
        process: Arc<Process>,
        client: ClientHost,
        login: login::LoggedIn,
    ) -> Result<Session, Box<(Channel, omnibus_sql::SqlError)>> {
        let mut access =
            SessionAccess::new(login.account.clone(), &login.user, &client.name(), &server.accounts)
                .behind(login.proxy.as_deref())
                .logged_in();
        access.confine(login.must_change_password);
        process.identity.lock().attributes = login.attributes;
        let shared = Arc::new(SessionShared::new(
            server.clone(),
            process.clone(),
            &access,
            Transport { tls: channel.stream.tls_names(), compression: login.compression },
        ));
        shared.set_login_collation(login.collation);
        shared.start_idle_clock(channel.caps.has(Capability::INTERACTIVE));
        let found_rows = channel.caps.has(Capability::FOUND_ROWS);
        let mut settings = shared.settings(found_rows, access.may_write_read_only());
        settings.local_infile &= channel.caps.has(Capability::LOCAL_FILES);
        let identity = RunnerIdentity {
            connection_id: process.id,
            user: login.user.clone(),
            host_name: client.name(),
            account: login.account.plain(),
            settings,
            host: shared.clone(),
            kill: process.kill.clone(),
        };
        let runner = match server.runners.open(identity) {
            Ok(runner) => runner,
            Err(error) => return Err(Box::new((channel, error))),
        };
        process.set_kill_hook(runner.kill_hook());
        process.set_wait_probe(runner.wait_probe());
        process.set_memory(runner.state().memory.clone());
        process.set_progress(runner.state().budget.progress.clone());
        let multi_statements = channel.caps.has(Capability::MULTI_STATEMENTS);
        let generation = server.globals.generation();
        let prepared = Statements::new(server.clone());
        let mut session = Session {
            server,
            _watched: process.watch(channel.stream.socket()),
            channel,
            process,
            identity: Identity { client, user: login.user, access, place: login.place },
            shared,
            prepared,
            replies: Replies {
                floor: runner.floor(),
                multi_statements,
                schema_changed: false,
                rows_sent: 0,
                rows_affected: 0,
            },
            runner,
            running: Running::default(),
            generation,
            registered: None,
            gtids: Gtids::default(),
        };
        session.running.watch = observe::Watch::of(&session.shared.vars.lock());
        session.set_up_channel();
        Ok(session)
    }

    /// The end of the login, and all commands. `database` is the first default one.
    async fn run(&mut self, database: Option<String>) -> Ended {
        self.log_connect(database.as_deref());
        let start = self.reply_start();
        let wanted = database.as_deref().map(Arc::from);
        let entered = database.map_or(Ok(()), |name| self.use_database(&name));
        let refused = entered.as_ref().err().map(|error| error.code);
        let how = if refused.is_some() { Operation::FailedConnect } else { Operation::Connect };
        let wanted = wanted.filter(|_| refused.is_none());
        self.audit_connection(how, wanted, refused.unwrap_or(0));
        self.reply(entered);
        self.settle(start).await;
        if refused.is_some() {
            self.channel.close().await;
            return Ended::Properly;
        }
        if self.channel.flush().await.is_err() {
            return Ended::Aborted;
        }
        if let Some(compression) = self.shared.transport().compression {
            self.channel.compress(compression);
        }
        self.process.end(crate::clock::now_us());
        loop {
            if !self.channel.has_pending() {
                self.channel.shrink();
            }
            let range = match self.next_command().await {
                Ok(Some(range)) => range,
                Ok(None) => return self.killed().await,
                Err(error) => return self.broken(&error).await,
            };
            match self.command(range).await {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ended::Properly,
                Err(error) => return self.broken(&error).await,
            }
            // A client that does not read its reply holds nobody who is to go.
            let process = self.process.clone();
            let flushed = tokio::select! {
                biased;
                flushed = self.channel.flush() => flushed,
                () = process.connection_killed() => Err(NetError::Closed),
            };
            if let Err(error) = flushed {
                return self.broken(&error).await;
            }
            self.count();
        }
    }

    /// The next command, or nothing if the connection was killed while idle.
    async fn next_command(&mut self) -> Result<Option<std::ops::Range<usize>>, NetError> {
        let max = self.shared.max_allowed_packet();
        loop {
            if self.process.kill.connection_killed() {
                return Ok(None);
            }
            tokio::select! {
                biased;
                read = self.channel.read_command(max) => return read.map(Some),
                () = self.process.killed.notified() => {}
            }
        }
    }

    /// Tells the client why it is let go, where the protocol lets it read that.
    async fn killed(&mut self) -> Ended {
        if self.process.idle_ended() {
            self.channel.refuse(&crate::errors::inactivity_timeout()).await;
            return Ended::Aborted;
        }
        if self.server.is_stopping() {
            // Without a word, as MySQL: a pool takes a connection that closes for one to open again, while an error that
            // it reads as the answer to its next statement is the statement's failure.
            let _ = self.channel.flush().await;
            return Ended::Properly;
        }
        let error =
            omnibus_sql::SqlError { code: 1927, state: *b"70100", message: "Connection was killed".into() };
        // It answers no command, which is what its number says.
        self.channel.out.set_seq(0);
        self.channel.refuse(&error).await;
        Ended::Properly
    }

    async fn broken(&mut self, error: &NetError) -> Ended {
        match error {
            NetError::Frame(omnibus_wire::FrameError::TooBig) => {
                self.channel.refuse(&crate::errors::packet_too_large()).await;
            }
            NetError::Frame(_) => self.channel.refuse(&crate::errors::packets_out_of_order()).await,
            NetError::Io(error) => {
                if let Some(answer) = crate::net::broken_frame(error) {
                    self.channel.refuse(&answer).await;
                }
            }
            NetError::NoMemory(error) => self.channel.refuse(error).await,
            NetError::Closed => {}
        }
        tracing::debug!(id = self.process.id, %error, "connection ended");
        Ended::Aborted
    }

    fn count(&self) {
        let counters = &self.process.counters;
        counters.set(Counter::BytesReceived, self.channel.received);
        counters.set(Counter::BytesSent, self.channel.sent);
    }

    /// SESSION-2.
    fn close(&mut self) {
        self.prepared.close_all();
        tokio::task::block_in_place(|| self.runner.reset());
    }

    /// The status flags of a reply.
    pub(crate) fn status(&self) -> Status {
        let trx = self.runner.trx();
        let settings = &self.runner.state().settings;
        let mut status = Status::default();
        if trx.open {
            status = status.with(Status::IN_TRANS);
            if trx.read_only {
                status = status.with(Status::IN_TRANS_READONLY);
            }
        }
        if settings.autocommit {
            status = status.with(Status::AUTOCOMMIT);
        }
        if settings.sql_mode & omnibus_sql::api::sql_mode::NO_BACKSLASH_ESCAPES != 0 {
            status = status.with(Status::NO_BACKSLASH_ESCAPES);
        }
        status
    }

    /// The account, as it is in the present table; a dropped one keeps nothing.
    pub(crate) fn account(&self) -> &Arc<Account> {
        self.identity.access.account()
    }

    /// Follows changes of global variables and accounts made by other sessions.
    pub(crate) fn refresh(&mut self) {
        let generation = self.server.globals.generation();
        if generation != self.generation {
            self.generation = generation;
            self.apply_settings();
        }
        if self.identity.access.refresh(&self.server.accounts) {
            self.shared.set_account(&self.identity.access);
        }
    }

    /// SET ROLE.
    pub(crate) fn set_role(&mut self, set: &omnibus_parser::ast::RoleSet) -> omnibus_sql::SqlResult<()> {
        self.identity.access.set_role(set, self.is_mariadb())?;
        self.shared.set_account(&self.identity.access);
        self.apply_settings();
        Ok(())
    }

    /// Rebuilds the settings that execution reads, after a SET.
    pub(crate) fn apply_settings(&mut self) {
        let found_rows = self.channel.caps.has(Capability::FOUND_ROWS);
        let mut settings = self.shared.settings(found_rows, self.identity.access.may_write_read_only());
        settings.local_infile &= self.channel.caps.has(Capability::LOCAL_FILES);
        self.running.watch = observe::Watch::of(&self.shared.vars.lock());
        self.gtids.track(self.shared.vars.lock().named("session_track_gtids").as_str());
        let state = self.runner.state_mut();
        state.settings = settings;
        state.settings.insert_id = self.running.insert_id;
        self.set_up_channel();
    }

    /// Follows settings that packets depend on; what they take is the session's.
    fn set_up_channel(&mut self) {
        self.channel.write_timeout = self.shared.write_timeout();
        self.channel.read_timeout = self.shared.read_timeout();
        let state = self.runner.state();
        self.channel.messages = state.settings.collation_results;
        self.channel.count_with(&state.memory, MemoryLimits::of(&state.settings));
    }

    /// After a statement: SET INSERT_ID is used up.
    fn end_of_insert_id(&mut self) {
        if self.running.insert_id.take().is_some() {
            self.runner.state_mut().settings.insert_id = None;
        }
    }
}
