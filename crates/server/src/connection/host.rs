//! The server as a running statement sees it: variables, status, the process list.
//!
//! Shared between the session's task and the SQL layer by `Arc`; its locks are never contended.

use super::acting::ActingAccount;
use super::{SessionAccess, access};
use crate::account::{self, Account, Privileges};
use crate::charset;
use crate::errors;
use crate::files::FileRule;
use crate::gtid;
use crate::net::Timeouts;
use crate::prepared_place::StatementPlace;
use crate::process::Process;
use crate::query_log::{Class, Entry, Operation, Record};
use crate::server::Server;
use crate::status::TransportStatus;
use crate::sysvars::renamed;
use crate::sysvars::{
    Change, ComputedContext, LastStatement, Registry, Scope, SessionVars, VarId, VarValue, computed,
    session_settings,
};
use bytes::Bytes;
use omnibus_engine::CommitNo;
use omnibus_format::Dialect;
use omnibus_log::LogPosition;
use omnibus_parser::ast::{HintValue, Ident, Statement};
use omnibus_sql::api::{Assignment, PreparedPlace};
use omnibus_sql::{AccessCheck, SessionHost, SessionSettings, SqlError, SqlResult, VariableScope};
use omnibus_value::{ColumnType, Value};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A session's variables and what computed ones need.
pub struct SessionShared {
    server: Arc<Server>,
    process: Arc<Process>,
    /// The session's variables.
    pub vars: Mutex<SessionVars>,
    transport: TransportStatus,
    acting: Arc<ActingAccount>,
    /// The outcome of the last statement.
    last: Mutex<LastStatement>,
    running: RunningNotes,
    max_packet: AtomicU64,
    /// The values of variables before hints set them: one list for each statement that runs with hints.
    pub(super) hinted: Mutex<Vec<Vec<(VarId, VarValue)>>>,
    /// The number of the session's last commit.
    last_commit: AtomicU64,
    /// Where the open transaction's snapshot is in the log, and the `gtid_executed` of there.
    snapshot: Mutex<Option<SnapshotPlace>>,
}

/// Notes about the running statement.
struct RunningNotes {
    /// It has waited for what it asks for: how many events went by; `u64::MAX` if it has not.
    waited: AtomicU64,
    /// A function or trigger of it has changed the session's variables.
    changed_inside: AtomicBool,
    /// Its definitions, or changes of accounts, are in the audit log.
    audited: AtomicBool,
}

/// Where a snapshot is in the log.
struct SnapshotPlace {
    /// The commit number of the last transaction in it.
    number: CommitNo,
    /// The log file's name without its folder.
    file: String,
    /// Offset behind that transaction.
    position: u64,
    /// `gtid_executed` of there.
    executed: String,
}

impl SessionShared {
    /// For a new session.
    #[must_use]
    pub fn new(
        server: Arc<Server>,
        process: Arc<Process>,
        access: &SessionAccess,
        transport: TransportStatus,
    ) -> SessionShared {
        let vars = SessionVars::new(&server.globals);
        let max_packet = vars.named("max_allowed_packet").as_u64();
        SessionShared {
            server,
            process,
            vars: Mutex::new(vars),
            transport,
            acting: Arc::new(ActingAccount::new(access)),
            last: Mutex::default(),
            max_packet: AtomicU64::new(max_packet),
            running: RunningNotes {
                waited: AtomicU64::new(u64::MAX),
                changed_inside: AtomicBool::new(false),
                audited: AtomicBool::new(false),
            },
            hinted: Mutex::new(Vec::new()),
            last_commit: AtomicU64::new(0),
            snapshot: Mutex::new(None),
        }
    }

    /// The transport of its bytes.
    #[must_use]
    pub fn transport(&self) -> &TransportStatus {
        &self.transport
    }

    /// SET NAMES as the login packet has it.
    pub fn set_login_collation(&self, id: u16) {
        let collation = charset::of_login(id);
        self.set_names(&collation);
    }

    /// The three variables of SET NAMES, and the connection's collation.
    pub fn set_names(&self, collation: &charset::Collation) {
        let mut vars = self.vars.lock();
        for name in ["character_set_client", "character_set_connection", "character_set_results"] {
            vars.set_named(name, VarValue::Str(collation.charset.into()));
        }
        vars.put_named("collation_connection", VarValue::Str(collation.name.into()));
    }

    /// The settings that execution reads.
    #[must_use]
    pub fn settings(&self, found_rows: bool, may_write_read_only: bool) -> SessionSettings {
        let vars = self.vars.lock();
        self.max_packet.store(vars.named("max_allowed_packet").as_u64(), Ordering::Relaxed);
        self.process.change_idle_limit(vars.named("wait_timeout").as_u64());
        session_settings(&vars, &self.server.globals, found_rows, may_write_read_only)
    }

    /// For the audit log, if it was on: a definition, or a statement about accounts or this log, is over.
    pub(crate) fn audit_inside(&self, statement: &Statement, text: &Bytes, code: u16, was_on: bool) {
        let log = &self.server.query_log;
        if !was_on {
            return;
        }
        self.running.audited.store(true, Ordering::Relaxed);
        let identity = self.process.identity.lock().clone();
        if !log.audit.has(Class::of(statement), &identity.user) {
            return;
        }
        let host = identity.host.rsplit_once(':').map_or(&*identity.host, |(host, _)| host);
        log.put(Entry::Audit(Box::new(Record {
            at_us: crate::clock::now_us(),
            user: identity.user.as_str().into(),
            host: host.into(),
            id: self.process.id,
            query: log.audit.next_statement(),
            operation: Operation::Query,
            database: identity.db,
            text: text.clone(),
            code,
        })));
    }

    /// The server.
    #[must_use]
    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// The settings anew, while a program runs under some of its own: what belongs to the connection or to the program stays.
    /// The session follows when the statement has ended.
    pub(crate) fn settings_again(&self, now: &SessionSettings) -> SessionSettings {
        self.running.changed_inside.store(true, Ordering::Relaxed);
        SessionSettings {
            sql_mode: now.sql_mode,
            collation_client: now.collation_client,
            collation_connection: now.collation_connection,
            insert_id: now.insert_id,
            local_infile: now.local_infile,
            server_read_only: now.server_read_only,
            ..self.settings(now.found_rows, false)
        }
    }

    /// A statement begins that nothing is in the audit log of.
    pub(crate) fn begin_audit(&self) {
        self.running.audited.store(false, Ordering::Relaxed);
    }

    /// Whether the statement's definitions, or changes of accounts, are in the audit log.
    pub(crate) fn is_audited(&self) -> bool {
        self.running.audited.load(Ordering::Relaxed)
    }

    /// Whether a program has changed variables since the last time.
    pub(crate) fn take_changed_inside(&self) -> bool {
        self.running.changed_inside.swap(false, Ordering::Relaxed)
    }

    /// Starts the idle clock: `interactive_timeout` rules for interactive clients.
    pub fn start_idle_clock(&self, interactive: bool) {
        let mut vars = self.vars.lock();
        if interactive {
            let limit = vars.named("interactive_timeout").clone();
            vars.set_named("wait_timeout", limit);
        }
        self.process.start_idle_clock(vars.named("wait_timeout").as_u64());
    }

    /// How long the client may keep the server waiting.
    #[must_use]
    pub fn timeouts(&self) -> Timeouts {
        let vars = self.vars.lock();
        let seconds = |name: &str| std::time::Duration::from_secs(vars.named(name).as_u64());
        Timeouts { read: seconds("net_read_timeout"), write: seconds("net_write_timeout") }
    }

    /// `max_allowed_packet`, in bytes.
    #[must_use]
    pub fn max_allowed_packet(&self) -> usize {
        self.max_packet.load(Ordering::Relaxed) as usize
    }

    /// Notes the outcome of a statement, for computed variables.
    pub fn statement_ended(&self, last: LastStatement) {
        *self.last.lock() = last;
    }

    /// A transaction may have begun or ended.
    pub fn follow_snapshot(&self, place: Option<(CommitNo, LogPosition)>) {
        let mut snapshot = self.snapshot.lock();
        if snapshot.as_ref().map(|place| place.number) == place.map(|(number, _)| number) {
            return;
        }
        *snapshot = place.and_then(|(number, position)| {
            let file = self.server.log.handle()?.names().log(position.file);
            let executed = self.server.log.gtid_executed_at(number.0);
            Some(SnapshotPlace { number, file, position: position.offset.0, executed })
        });
    }

    /// See `gtid::functions`.
    pub fn set_waited(&self, waited: Option<u64>) {
        self.running.waited.store(waited.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The session has committed.
    pub fn committed(&self, number: u64) {
        self.last_commit.store(number, Ordering::Relaxed);
    }

    /// `gtid_slave_pos`.
    #[must_use]
    pub fn slave_position(&self) -> String {
        Registry::get().find("gtid_slave_pos").map_or_else(String::new, |id| self.read(id, true).text())
    }

    /// The session's account, or its privileges, changed.
    pub fn set_account(&self, access: &SessionAccess) {
        self.acting.set(access);
    }

    /// The rule about files of the server that statements may touch.
    pub(crate) fn file_rule(&self) -> FileRule {
        let datadir = self.server.globals.named("datadir").as_str().into();
        let secure = match self.server.globals.named("secure_file_priv") {
            VarValue::Null => None,
            dir => Some(dir.as_str().into()),
        };
        FileRule { secure, datadir }
    }

    fn read(&self, id: VarId, global: bool) -> VarValue {
        let def = Registry::get().def(id);
        if let ("gtid_slave_pos", Some(replicas)) = (def.name, self.server.replicas.get()) {
            return VarValue::Str(replicas.gtid_slave_pos().into());
        }
        if let Some(coordinator) = self.server.log.coordinator()
            && let Some(value) = gtid::computed(
                coordinator,
                def.name,
                || self.slave_position(),
                self.last_commit.load(Ordering::Relaxed),
            )
        {
            return value;
        }
        if def.name == "proxy_user" {
            return self.acting.proxy().map_or(VarValue::Null, |name| VarValue::Str((&*name).into()));
        }
        if def.name == "gtid_purged" {
            return VarValue::Str(self.server.log.gtid_purged().into());
        }
        if def.change == Change::Computed {
            let context = ComputedContext {
                gtid_executed: &|| self.server.log.gtid_executed(),
                last: *self.last.lock(),
                statements: self.process.counters.get(crate::status::Counter::Questions),
            };
            return computed(def, &context);
        }
        if global || def.scope == Scope::Global {
            return self.server.globals.get(id);
        }
        match def.name {
            "timestamp" if self.vars.lock().get(id).as_u64() == 0 => {
                VarValue::Double(crate::clock::now_us() as f64 / 1e6)
            }
            "last_insert_id" => VarValue::UInt(self.last.lock().insert_id),
            "pseudo_thread_id" => VarValue::UInt(u64::from(self.process.id)),
            _ => self.vars.lock().get(id).clone(),
        }
    }
}

/// Names of semi-synchronous replication that MySQL's dialect lists under the new names only: Vitess takes a server that has both
/// families for one of the old plug-ins.
fn is_old_family(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("rpl_semi_sync_master_") || name.starts_with("rpl_semi_sync_slave_")
}

/// Privileges that columns may have, in the order in which they are listed.
const COLUMN_RIGHTS: [(Privileges, &str); 4] = [
    (Privileges::SELECT, "select"),
    (Privileges::INSERT, "insert"),
    (Privileges::UPDATE, "update"),
    (Privileges::REFERENCES, "references"),
];

impl SessionHost for SessionShared {
    fn own_access(&self) -> Option<Arc<dyn AccessCheck>> {
        let account = self.acting.account();
        let identity = self.process.identity.lock();
        let host = identity.host.rsplit_once(':').map_or(&*identity.host, |(host, _)| host);
        let access = SessionAccess::new(account, &identity.user, host, &self.server.accounts);
        let access = access.of_version(self.acting.version());
        Some(Arc::new(access.acting_in(&self.acting)))
    }

    fn assign(&self, assignment: &Assignment<'_>) -> SqlResult<(SessionSettings, Option<SqlError>)> {
        self.assign_inside(assignment)
    }

    fn hint(
        &self,
        hints: &[(&Ident, &HintValue)],
        access: &dyn AccessCheck,
        settings: &SessionSettings,
    ) -> (SessionSettings, Vec<SqlError>) {
        self.set_hinted(hints, access, settings)
    }

    fn unhint(&self, before: &SessionSettings) -> SessionSettings {
        self.restore_hinted(before)
    }

    fn defined(&self, statement: &Statement, text: &Bytes, code: u16) {
        self.audit_inside(statement, text, code, self.server.query_log.audit.is_on());
    }

    fn sql_mode_text(&self, bits: u64) -> String {
        crate::sysvars::sql_mode_text(bits)
    }

    fn variable(&self, scope: VariableScope, name: &str) -> SqlResult<(Value, ColumnType)> {
        let registry = Registry::get();
        let id = registry
            .find_in(name, self.server.log.dialect())
            .ok_or_else(|| SqlError::unknown_system_variable(name))?;
        if scope == VariableScope::Session
            && registry.def(id).name == "server_id"
            && self.server.log.dialect() == Dialect::Mysql
        {
            return Err(errors::incorrect_scope(name, "GLOBAL"));
        }
        match (scope, registry.def(id).scope) {
            (VariableScope::Global, Scope::Session) => Err(errors::incorrect_scope(name, "SESSION")),
            (VariableScope::Session, Scope::Global) => Err(errors::incorrect_scope(name, "GLOBAL")),
            _ => Ok(self.read(id, scope == VariableScope::Global).to_sql()),
        }
    }

    fn variable_under(
        &self,
        settings: &SessionSettings,
        scope: VariableScope,
        name: &str,
    ) -> SqlResult<(Value, ColumnType)> {
        // That of the program that runs, which is not the session's.
        if scope != VariableScope::Global && name.eq_ignore_ascii_case("sql_mode") {
            let text = crate::sysvars::sql_mode_text(settings.sql_mode);
            return Ok(VarValue::Str(text.into()).to_sql());
        }
        self.variable(scope, name)
    }

    fn variables(&self, scope: VariableScope) -> Vec<(String, String)> {
        let global = scope == VariableScope::Global;
        let dialect = self.server.log.dialect();
        let shown = Registry::get()
            .iter()
            .filter(|(_, def)| !(global && def.scope == Scope::Session) && def.is_in(dialect));
        let mut lines: Vec<_> =
            shown.map(|(id, def)| (def.name.to_owned(), self.read(id, global).text())).collect();
        for old in renamed::listed(dialect) {
            let id = Registry::get().find(old);
            let id = id.filter(|id| !(global && Registry::get().def(*id).scope == Scope::Session));
            lines.extend(id.map(|id| (old.to_owned(), self.read(id, global).text())));
        }
        lines.sort();
        lines
    }

    fn unlisted_variable(&self, scope: VariableScope, name: &str) -> Option<(String, String)> {
        if self.server.log.dialect() == Dialect::Mariadb || !is_old_family(name) {
            return None;
        }
        let id = Registry::get().find(name)?;
        Some((name.to_owned(), self.read(id, scope == VariableScope::Global).text()))
    }

    fn unlisted_status(&self, scope: VariableScope, name: &str) -> Option<(String, String)> {
        if self.server.log.dialect() == Dialect::Mariadb || !is_old_family(name) {
            return None;
        }
        let new = name.replace("_master_", "_source_").replace("_slave_", "_replica_");
        let (found, value) =
            self.status(scope).into_iter().find(|(known, _)| known.eq_ignore_ascii_case(&new))?;
        let old = found.replace("_source_", "_master_").replace("_replica_", "_slave_");
        (found != old).then_some((old, value))
    }

    fn status(&self, scope: VariableScope) -> Vec<(String, String)> {
        let own = (scope != VariableScope::Global).then_some(&self.process.counters);
        let mut lines = self.server.status_lines(own, &self.transport);
        // mysqldump --single-transaction --master-data asks for the position of its own snapshot.
        if let Some(place) = &*self.snapshot.lock() {
            for (name, value) in &mut lines {
                match name.as_str() {
                    "Binlog_snapshot_file" => value.clone_from(&place.file),
                    "Binlog_snapshot_position" => *value = place.position.to_string(),
                    "Binlog_snapshot_gtid" | "Binlog_snapshot_gtid_executed" => {
                        value.clone_from(&place.executed)
                    }
                    _ => {}
                }
            }
        }
        lines
    }

    fn open_file(&self, path: &[u8], create: bool) -> SqlResult<std::fs::File> {
        self.file_rule().open(path, create)
    }

    fn remove_file(&self, path: &[u8]) {
        self.file_rule().remove(path);
    }

    fn call(&self, _connection_id: u32, name: &str, args: &[Value]) -> Option<SqlResult<Value>> {
        let context = gtid::Context {
            coordinator: self.server.log.coordinator()?,
            slave_pos: &|| self.slave_position(),
            replicas: self.server.replicas.get().map(|replicas| &**replicas),
            kill: &self.process.kill,
            waited: Some(self.running.waited.load(Ordering::Relaxed)).filter(|events| *events != u64::MAX),
        };
        gtid::call(&context, name, args)
    }

    fn may(&self, db: &str, table: &str, privilege: omnibus_sql::Priv) -> bool {
        access::has(&self.acting.account(), db, table, privilege)
    }

    fn column_rights(&self, db: &str, table: &str, column: &str) -> String {
        let rights = self.acting.account().rights().on_column(db, table, column);
        let held = COLUMN_RIGHTS.iter().filter(|(right, _)| rights.has(*right));
        held.map(|(_, name)| *name).collect::<Vec<_>>().join(",")
    }

    fn may_see(&self, db: &str, table: Option<&str>) -> bool {
        let hidden = table.is_some_and(|table| access::is_system_table(db, table));
        let account = self.acting.account();
        !hidden && access::may_see(&account, db, table)
    }

    fn replication(&self, table: &str) -> SqlResult<Vec<Vec<Value>>> {
        let account = self.acting.account();
        let readers = Privileges::SELECT.with(Privileges::REPLICATION_CLIENT).with(Privileges::SUPER);
        let schema = if table.starts_with("gtid_") { "mysql" } else { "performance_schema" };
        if !account.rights().on_table(schema, table).any(readers) {
            return Err(SqlError::tableaccess_denied("SELECT", &account.user, account.host.as_str(), table));
        }
        if let Some(rows) = gtid::table(&*self.server.log, || self.slave_position(), table) {
            return rows;
        }
        self.server.replicas.get().map_or_else(|| Ok(Vec::new()), |replicas| replicas.table(table))
    }

    fn prepared_place(&self) -> SqlResult<PreparedPlace> {
        Ok(Box::new(StatementPlace::take(&self.server)?))
    }

    fn current_role(&self) -> Option<String> {
        let roles = self.acting.roles();
        if self.server.log.dialect() == Dialect::Mariadb {
            return roles.first().map(|(user, _)| user.clone());
        }
        let names: Vec<String> = roles.iter().map(|(user, host)| format!("`{user}`@`{host}`")).collect();
        Some(if names.is_empty() { "NONE".to_owned() } else { names.join(",") })
    }

    fn system_table(&self, table: &str) -> SqlResult<Vec<Vec<Value>>> {
        let own = self.acting.account();
        if !own.rights().on_table("mysql", table).has(Privileges::SELECT) {
            return Err(SqlError::tableaccess_denied("SELECT", &own.user, own.host.as_str(), table));
        }
        Ok(account::system_rows(&self.server.accounts.table(), table))
    }

    fn monitoring(&self, table: &str) -> SqlResult<Vec<Vec<(&'static str, Value)>>> {
        let account = self.acting.account();
        let all = account.grants.privileges.any(Privileges::PROCESS);
        let readers = Privileges::SELECT.with(Privileges::PROCESS).with(Privileges::SUPER);
        let own_account = table == "session_account_connect_attrs";
        let own_threads =
            own_account || matches!(table, "threads" | "events_statements_current" | "events_stages_current");
        // Tables of information_schema were asked for with PROCESS.
        let checked = own_threads || access::tells_of_all("information_schema", Some(table));
        if !checked && !account.rights().on_table("performance_schema", table).any(readers) {
            return Err(SqlError::tableaccess_denied("SELECT", &account.user, account.host.as_str(), table));
        }
        let own = account.plain();
        let sees = |line: &crate::process::ProcessLine| match own_account {
            true => line.identity.account == own,
            false => all || line.identity.user == account.user,
        };
        Ok(crate::monitoring::rows(&self.server, table, &sees))
    }

    fn engine_status(&self) -> String {
        crate::monitoring::transactions::status_text(&self.server)
    }

    fn privileges(&self, table: &str) -> Vec<Vec<Value>> {
        let own = self.acting.account();
        let (accounts, rules, roles) =
            (self.server.accounts.table(), self.server.accounts.rules(), self.acting.roles());
        if let Some(rows) = account::role_rows(&accounts, &own, &rules, &roles, table) {
            return rows;
        }
        let all = own.rights().on_database("mysql").has(Privileges::SELECT);
        let accounts = self.server.accounts.table().all().into_iter();
        let seen = accounts.filter(|account| all || account.is(&own.user, own.host.as_str()));
        seen.flat_map(|account| crate::account::privilege_rows(&account, table)).collect()
    }

    fn user_attributes(&self) -> Vec<[Value; 3]> {
        let own = self.acting.account();
        let readers = Privileges::SELECT.with(Privileges::UPDATE);
        let all = own.rights().on_database("mysql").any(readers)
            || own.grants.privileges.has(Privileges::CREATE_USER);
        let text = |s: &str| Value::Bytes(Bytes::copy_from_slice(s.as_bytes()));
        let accounts = self.server.accounts.table().all().into_iter();
        let seen = accounts.filter(|account| all || account.is(&own.user, own.host.as_str()));
        let attribute = |account: &Account| account.attribute.as_deref().map_or(Value::Null, text);
        seen.map(|account| [text(&account.user), text(account.host.as_str()), attribute(&account)]).collect()
    }

    fn processlist(&self) -> Vec<[Value; 8]> {
        let now = crate::clock::now_us();
        let account = self.acting.account();
        let all = account.grants.privileges.any(Privileges::PROCESS);
        let text = |s: &str| Value::Bytes(Bytes::copy_from_slice(s.as_bytes()));
        let lines = self.server.processes.all().into_iter().map(|p| p.line(now));
        let visible = lines.filter(|line| all || line.identity.user == account.user);
        visible
            .map(|line| {
                [
                    Value::UInt(u64::from(line.id)),
                    text(&line.identity.user),
                    text(&line.identity.host),
                    line.identity.db.as_deref().map_or(Value::Null, text),
                    text(line.command),
                    Value::Int(line.seconds),
                    text(&line.state_in(self.server.log.dialect())),
                    line.info.as_deref().map_or(Value::Null, text),
                ]
            })
            .collect()
    }
}
