//! The state that all connections share.

use crate::account::{AccessTable, Accounts, Privileges, RoleRules, Usage};
use crate::auth::{Authenticator, FastCache, RsaKey};
use crate::by_account::ByAccount;
use crate::deadlocks::Deadlocks;
use crate::digests::Digests;
use crate::dump::{Dumps, SemiSyncSettings};
use crate::gtid::ModeContext;
use crate::log_admin::LogAdmin;
use crate::net::{Doors, Driver};
use crate::process::Processes;
use crate::query_log::{QueryLog, ROTATE_NOW, default_name};
use crate::refusals::Refusals;
use crate::replica::{Parts, Replicas};
use crate::status::{ServerCounters, SessionCounters, StatusSources, TransportStatus, render};
use crate::supervisor::Supervisor;
use crate::sysvars::persisted::Persisted;
use crate::sysvars::{GlobalVars, Registry, VarId, VarValue, in_other_unit};
use omnibus_disk::FileUses;
use omnibus_format::Dialect;
use omnibus_replication::limit::EventLimit;
use omnibus_sql::{Database, SqlResult};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

/// The server's shared state.
pub struct Server {
    /// Global variables.
    pub globals: Arc<GlobalVars>,
    /// Connections.
    pub processes: Arc<Processes>,
    /// Counters.
    pub counters: ServerCounters,
    /// Accounts.
    pub accounts: Arc<Accounts>,
    /// Passwords that were checked in full.
    pub fast_cache: FastCache,
    /// The key for passwords over plain TCP.
    pub rsa: RsaKey,
    /// TLS, if there is a certificate.
    pub tls: Option<Arc<TlsAcceptor>>,
    /// The log's administration.
    pub log: Arc<dyn LogAdmin>,
    /// The state that the SQL layer's sessions share.
    pub database: Arc<Database>,
    /// The receivers of the log.
    pub dumps: Dumps,
    /// This server as a replica; there once it is put together.
    pub replicas: std::sync::OnceLock<Arc<Replicas>>,
    /// The general and the slow query log.
    pub query_log: Arc<crate::query_log::QueryLog>,
    /// The cost of each kind of statement.
    pub(crate) digests: Digests,
    /// The counts of file operations; empty where they are not counted.
    pub(crate) file_uses: Arc<FileUses>,
    /// The counts by account.
    pub(crate) by_account: ByAccount,
    /// The use of resources by account.
    pub usage: Arc<Usage>,
    /// Refused logins, for the log.
    pub refusals: Refusals,
    /// --skip-grant-tables, until FLUSH PRIVILEGES.
    skip_grants: AtomicBool,
    /// How clients come in.
    pub doors: Doors,
    /// `replica_max_allowed_packet`.
    pub event_limit: EventLimit,
    /// The values that SET PERSIST has kept.
    pub(crate) persisted: Persisted,
    /// The supervisor that is told of its start and end.
    pub(crate) supervisor: Supervisor,
    /// The last deadlock.
    pub(crate) deadlocks: Deadlocks,
    ending: Ending,
}

/// The state of the server's end.
#[derive(Default)]
struct Ending {
    stopping: AtomicBool,
    restarting: AtomicBool,
    stop: Notify,
    /// Signalled when a connection ends, for the wait at shutdown.
    closed: Notify,
}

impl Server {
    /// Puts the parts together.
    #[must_use]
    pub fn new(
        globals: GlobalVars,
        accounts: Accounts,
        rsa: RsaKey,
        tls: Option<Arc<TlsAcceptor>>,
        log: Arc<dyn LogAdmin>,
        database: Arc<Database>,
        network: Arc<Driver>,
    ) -> Server {
        let server = Server {
            globals: Arc::new(globals),
            processes: Arc::default(),
            counters: ServerCounters::default(),
            accounts: Arc::new(accounts),
            fast_cache: FastCache::default(),
            rsa,
            tls,
            log,
            database,
            dumps: Dumps::default(),
            replicas: std::sync::OnceLock::new(),
            query_log: Arc::default(),
            digests: Digests::default(),
            file_uses: Arc::default(),
            by_account: ByAccount::default(),
            usage: Arc::default(),
            refusals: Refusals::default(),
            skip_grants: AtomicBool::new(false),
            doors: Doors { driver: network, ..Doors::default() },
            event_limit: EventLimit::default(),
            persisted: Persisted::default(),
            supervisor: Supervisor::default(),
            deadlocks: Deadlocks::default(),
            ending: Ending::default(),
        };
        server.counters.started_us.store(crate::clock::now_us(), Ordering::Relaxed);
        if let Some(log) = server.log.handle() {
            server.processes.set_full_disk(log.full_disk().clone());
        }
        server.cache_settings();
        let kinds = server.globals.named("performance_schema_digests_size").as_u64();
        server.digests.start(
            server.globals.named("performance_schema").as_bool(),
            usize::try_from(kinds).unwrap_or(usize::MAX),
        );
        let skips = server.globals.named("skip_grant_tables").as_bool();
        server.skip_grants.store(skips, Ordering::Relaxed);
        server
    }

    /// Connection attributes as far as they are kept.
    pub(crate) fn kept_attributes(&self, given: &[(Vec<u8>, Vec<u8>)]) -> crate::process::Attributes {
        let most = self.globals.named("performance_schema_session_connect_attrs_size").as_u64();
        crate::process::kept_attributes(given, usize::try_from(most).unwrap_or(usize::MAX))
    }

    /// The parts that replication works with.
    pub(crate) fn parts(&self) -> Parts {
        Parts {
            globals: self.globals.clone(),
            processes: self.processes.clone(),
            accounts: self.accounts.clone(),
            log: self.log.clone(),
            event_limit: self.event_limit.clone(),
        }
    }

    /// Whether everybody who gets in may do everything: only this machine's unix socket is open then.
    #[must_use]
    pub fn skips_grants(&self) -> bool {
        self.skip_grants.load(Ordering::Relaxed)
    }

    /// Whether it is MariaDB's, whose clients do not expect what MySQL alone has.
    #[must_use]
    pub fn is_mariadb(&self) -> bool {
        self.log.dialect() == Dialect::Mariadb
    }

    /// FLUSH PRIVILEGES. Blocks.
    pub fn reload_accounts(&self) -> SqlResult<()> {
        self.fast_cache.clear();
        self.usage.begin_all_anew(true);
        self.accounts.reload()?;
        self.skip_grants.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// `offline_mode` is on now: only administrators stay.
    fn let_go_for_offline(&self) {
        let table = self.accounts.table();
        let admin = Privileges::SUPER.with(Privileges::CONNECTION_ADMIN);
        for process in self.processes.clients() {
            let name = process.identity.lock().account.clone();
            if table.by_plain_name(&name).is_some_and(|account| !account.grants.privileges.any(admin)) {
                process.kill_connection();
            }
        }
    }

    fn cache_settings(&self) {
        let activate_all = self.globals.named("activate_all_roles_on_login").as_bool();
        let partial_revokes = self.globals.named("partial_revokes").as_bool();
        let rules = RoleRules::new(self.globals.named("mandatory_roles").as_str(), activate_all);
        self.accounts.set_rules(RoleRules { partial_revokes, ..rules });
        self.event_limit.set(self.globals.named("replica_max_allowed_packet").as_u64());
    }

    /// SET GLOBAL of a checked value: asks those who act upon it, then shows it.
    pub fn set_global(&self, id: VarId, mut value: VarValue) -> SqlResult<()> {
        let def = Registry::get().def(id);
        if def.name == "partial_revokes" && !value.as_bool() && self.accounts.table().has_restrictions() {
            return Err(crate::errors::partial_revokes_exist());
        }
        if def.name == "default_table_encryption" && value.as_bool() != self.globals.get(id).as_bool() {
            // The engines' files are opened with what the start said.
            return Err(crate::errors::incorrect_scope(def.name, "read only"));
        }
        if QueryLog::has_variable(def.name) {
            if let ("", Some(name)) =
                (value.as_str(), default_name(def.name, self.globals.named("hostname").as_str()))
            {
                value = VarValue::Str(name.into());
            }
            crate::net::blocking(|| self.query_log.change(&self.globals, def.name, &value))?;
            if def.name == ROTATE_NOW {
                return Ok(());
            }
        }
        if let ("gtid_slave_pos", Some(replicas)) = (def.name, self.replicas.get()) {
            return crate::net::blocking(|| replicas.set_gtid_slave_pos(value.as_str()));
        }
        let modes = ModeContext {
            globals: &self.globals,
            coordinator: self.log.coordinator().map(|coordinator| &**coordinator),
            replicas: self.replicas.get().map(|replicas| &**replicas),
        };
        modes.before_set(def.name, &value)?;
        if let ("sql_replica_skip_counter", Some(replicas)) = (def.name, self.replicas.get()) {
            replicas.check_skip_counter()?;
        }
        if def.name == "event_scheduler" {
            self.check_scheduler(&value)?;
        }
        self.log.set_variable(def.name, &value)?;
        if let Some((other, same)) = in_other_unit(def.name, &value) {
            self.log.set_variable(other, &same)?;
            self.globals.set_named(other, same);
        }
        if def.name == "super_read_only" && value.as_bool() {
            self.globals.set_named("read_only", VarValue::Bool(true));
        }
        if def.name == "read_only" && !value.as_bool() {
            self.globals.set_named("super_read_only", VarValue::Bool(false));
        }
        let goes_offline = def.name == "offline_mode" && value.as_bool();
        self.globals.set(id, value);
        self.cache_settings();
        if goes_offline {
            self.let_go_for_offline();
        }
        if def.name.starts_with("rpl_semi_sync_source_") {
            self.configure_semi_sync();
        }
        Ok(())
    }

    /// A scheduler that is DISABLED at the start stays so, and no other becomes it.
    fn check_scheduler(&self, value: &VarValue) -> SqlResult<()> {
        if self.globals.named("event_scheduler").as_str() == "DISABLED" || self.skips_grants() {
            let option = "--event-scheduler=DISABLED or --skip-grant-tables";
            return Err(omnibus_sql::SqlError::option_prevents_statement(option));
        }
        match value.as_str() {
            "DISABLED" => Err(omnibus_sql::SqlError::wrong_value_for_var("event_scheduler", "DISABLED")),
            _ => Ok(()),
        }
    }

    /// Makes the values of `rpl_semi_sync_source_…` act.
    pub(crate) fn configure_semi_sync(&self) {
        let Some(coordinator) = self.log.coordinator() else { return };
        let value = |name: &str| self.globals.named(&format!("rpl_semi_sync_source_{name}"));
        let settings = SemiSyncSettings {
            enabled: value("enabled").as_bool(),
            after_sync: value("wait_point").as_str() == "AFTER_SYNC",
            timeout: Duration::from_millis(value("timeout").as_u64()),
            replicas: usize::try_from(value("wait_for_replica_count").as_u64()).unwrap_or(1),
            wait_without: value("wait_no_replica").as_bool(),
        };
        self.dumps.semi_sync.configure(coordinator, settings);
    }

    /// The lines of SHOW STATUS: the server's, or those of one session. Blocks for no statement.
    pub(crate) fn status_lines(
        &self,
        own: Option<&SessionCounters>,
        transport: &TransportStatus,
    ) -> Vec<(String, String)> {
        let processes = self.processes.clients();
        let coordinator = self.log.coordinator().map(|coordinator| &**coordinator);
        let sides: &[[&str; 2]] = match self.log.dialect() {
            Dialect::Mysql => &[["source", "replica"]],
            Dialect::Mariadb => &[["source", "replica"], ["master", "slave"]],
        };
        let sources: Vec<&str> = sides.iter().map(|[source, _]| *source).collect();
        let mut semi_sync = self.dumps.semi_sync.status(coordinator, &sources);
        let follows = self.replicas.get().is_some_and(|replicas| replicas.is_semi_sync());
        let on = if follows { "ON" } else { "OFF" };
        semi_sync
            .extend(sides.iter().map(|[_, side]| (format!("Rpl_semi_sync_{side}_status"), on.to_owned())));
        let parts = [
            crate::held_locks::counters(&self.database),
            self.dumps.status(),
            semi_sync,
            self.query_log.status(),
            self.digests.status(),
            self.doors.driver.status(),
            crate::old_versions::counters(&self.processes, &*self.log),
        ];
        render(&StatusSources {
            server: &self.counters,
            sessions: processes.iter().map(|p| &p.counters).collect(),
            own,
            running: processes.iter().filter(|p| p.is_running()).count(),
            log: self.log.as_ref(),
            sql: parts.concat(),
            transport,
        })
    }

    /// The authenticator of a login.
    pub(crate) fn authenticator<'a>(&'a self, table: &'a AccessTable, plugin: &'a str) -> Authenticator<'a> {
        let (cache, rsa, usage) = (&self.fast_cache, &self.rsa, &*self.usage);
        let proxies = ["check_proxy_users", "mysql_native_password_proxy_users"];
        let proxies = proxies.iter().all(|name| self.globals.named(name).as_bool());
        Authenticator { table, cache, rsa, usage, default_plugin: plugin, proxies }
    }

    /// The plugin of the greeting and of new accounts.
    #[must_use]
    pub fn default_plugin(&self) -> String {
        self.globals.named("default_authentication_plugin").as_str().to_owned()
    }

    /// Whether plain TCP is refused.
    #[must_use]
    pub fn requires_secure_transport(&self) -> bool {
        self.globals.named("require_secure_transport").as_bool()
    }

    /// The default collation, as far as the greeting's one byte can say it.
    #[must_use]
    pub fn greeting_collation(&self) -> u8 {
        let name = self.globals.named("collation_server");
        let id = crate::charset::by_name(name.as_str()).map_or(crate::charset::DEFAULT_ID, |c| c.id);
        u8::try_from(id).unwrap_or(45)
    }

    /// Begins the shutdown; returns at once.
    pub fn stop(&self, why: &str) {
        if !self.ending.stopping.swap(true, Ordering::AcqRel) {
            tracing::info!("shutting down: {why}");
            self.supervisor.notify("STOPPING=1");
            // Who waits for space would wait longer than the shutdown may take.
            if let Some(log) = self.log.handle() {
                log.stop_waiting_for_space();
            }
            self.ending.stop.notify_one();
        }
    }

    /// RESTART: ends as `stop` does, for whoever starts it again.
    pub(crate) fn restart(&self) {
        self.ending.restarting.store(true, Ordering::Release);
        self.stop("RESTART");
    }

    /// Whether RESTART ended it.
    pub(crate) fn is_to_restart(&self) -> bool {
        self.ending.restarting.load(Ordering::Acquire)
    }

    /// Whether a shutdown has begun.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.ending.stopping.load(Ordering::Acquire)
    }

    /// Until a shutdown begins.
    pub(crate) async fn stopped(&self) {
        self.ending.stop.notified().await;
    }

    /// Until a connection ends, at most so long.
    pub(crate) async fn one_closes_within(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.ending.closed.notified()).await;
    }

    /// Called by a connection that ends.
    pub fn connection_closed(&self) {
        self.ending.closed.notify_one();
    }
}
