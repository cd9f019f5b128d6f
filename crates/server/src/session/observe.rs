//! Reports of a statement when it is over: the slow query log, the audit log, `Slow_queries`, its digest's figures; and of a command when it comes: the
//! general query log.

use super::Session;
use crate::connection::{Client, Login, Settings};
use crate::digests::{Cost, Kept};
use crate::parsed::Parsed;
use crate::process::Activity;
use crate::query_log::{Class, Entry, Operation, Record, Slow};
use crate::server::Server;
use crate::status::{COM_NAMES, Counter};
use bytes::Bytes;
use omnibus_sql::api::{RowWork, Tallied};
use omnibus_sql::{Level, SqlError, SqlSession};
use std::sync::Arc;

/// Statements that are no queries: logged as slow under `log_slow_admin_statements` only.
const ADMIN: [&str; 7] =
    ["alter_table", "analyze", "check", "create_index", "drop_index", "optimize", "repair"];

/// ER_UNKNOWN_ERROR.
const UNKNOWN_ERROR: u16 = 1105;

/// ER_ROW_IS_REFERENCED_2 and ER_NO_REFERENCED_ROW_2.
const FOREIGN_KEYS: [u16; 2] = [1451, 1452];

/// The counter of each step of work on rows.
const HANDLER: [(RowWork, Counter); 12] = [
    (RowWork::Committed, Counter::HandlerCommit),
    (RowWork::Deleted, Counter::HandlerDelete),
    (RowWork::First, Counter::HandlerReadFirst),
    (RowWork::Key, Counter::HandlerReadKey),
    (RowWork::Last, Counter::HandlerReadLast),
    (RowWork::Forward, Counter::HandlerReadNext),
    (RowWork::Backward, Counter::HandlerReadPrev),
    (RowWork::Scanned, Counter::HandlerReadRndNext),
    (RowWork::End, Counter::HandlerReadRndNext),
    (RowWork::RolledBack, Counter::HandlerRollback),
    (RowWork::Updated, Counter::HandlerUpdate),
    (RowWork::Written, Counter::HandlerWrite),
];

/// How things were when a statement began.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    at_us: i64,
    tally: Tallied,
    rows_sent: u64,
}

/// A statement that ended.
pub(super) struct Statement<'a> {
    /// It.
    pub parsed: &'a Parsed,
    /// Its text with its values, made when it is needed.
    pub text: &'a dyn Fn() -> Bytes,
    /// It has given an error.
    pub failed: bool,
    /// A prepared statement's row among the digests.
    pub kept: Option<&'a mut Option<Kept>>,
}

/// The work that ended.
pub(super) enum Observed<'a> {
    /// A statement.
    Statement(Statement<'a>),
    /// A command without one.
    Command(Activity),
}

/// The facts that observers log of a session.
pub(super) struct Observer<'a> {
    server: &'a Server,
    client: &'a Client,
    login: &'a Login,
    settings: &'a Settings,
    sql: &'a SqlSession,
}

impl Session {
    /// Of this session.
    pub(super) fn observer(&self) -> Observer<'_> {
        Observer {
            server: &self.server,
            client: &self.client,
            login: &self.login,
            settings: &self.settings,
            sql: &self.sql,
        }
    }

    /// A statement begins.
    pub(super) fn begin_observed(&mut self, at_us: i64) -> Begun {
        self.client.replies.rows_affected = 0;
        self.settings.shared.begin_audit();
        Begun { at_us, tally: self.sql.state.budget.tally.read(), rows_sent: self.client.replies.rows_sent }
    }
}

impl Observer<'_> {
    /// It is over, and its reply may leave. Returns the time, for who goes on from there.
    pub(super) fn end(&self, begun: Begun, mut what: Observed<'_>) -> i64 {
        let now = crate::clock::now_us();
        let took_us = now.saturating_sub(begun.at_us) as u64;
        let slow = took_us >= self.settings.watch.long_us;
        if slow {
            self.client.process.counters.add(Counter::SlowQueries, 1);
        }
        let done = self.sql.state.budget.tally.read().since(begun.tally);
        self.count_work(&done);
        if self.server.query_log.logs_slow() {
            self.log_slow(begun, now, slow, &what);
        }
        if let Observed::Statement(statement) = &what
            && self.server.query_log.audit.is_on()
        {
            self.audit_statement(statement);
        }
        if let Observed::Statement(statement) = &what
            && statement.failed
        {
            self.note_refusal(statement);
        }
        if let Observed::Statement(statement) = &mut what
            && self.server.digests.is_on()
        {
            self.client.process.counters.add(Counter::StatementTime, took_us);
            self.count_digest(begun, now, statement);
        }
        now
    }

    /// Adds what a statement did with rows to the session's counters.
    fn count_work(&self, done: &Tallied) {
        let counters = &self.client.process.counters;
        if done.reprepared > 0 {
            counters.add(Counter::StmtReprepare, done.reprepared);
        }
        for (step, counter) in HANDLER {
            match done.times(step) {
                0 => {}
                times => counters.add(counter, times),
            }
        }
    }

    /// Keeps the last refusal by a foreign key, for SHOW ENGINE INNODB STATUS.
    fn note_refusal(&self, statement: &Statement<'_>) {
        let conditions = self.sql.state.diagnostics.conditions();
        let refused = |(level, error): &&(Level, SqlError)| {
            *level == Level::Error && FOREIGN_KEYS.contains(&error.code)
        };
        if let Some((_, error)) = conditions.iter().rev().find(refused) {
            let (id, text) = (self.client.process.id, (statement.text)());
            let product = if self.server.is_mariadb() { "MariaDB" } else { "MySQL" };
            self.server.deadlocks.refused(product, id, &text, &error.message);
        }
    }

    fn count_digest(&self, begun: Begun, now: i64, statement: &mut Statement<'_>) {
        let state = &self.sql.state;
        let done = state.budget.tally.read().since(begun.tally);
        let cost = Cost {
            ended_us: now,
            took_us: u64::try_from(now - begun.at_us).unwrap_or(0),
            lock_us: done.waited_us,
            failed: statement.failed,
            warnings: u64::from(state.diagnostics.own_count()),
            affected: self.client.replies.rows_affected,
            sent: self.client.replies.rows_sent - begun.rows_sent,
            examined: done.examined(),
            unindexed: done.whole > 0,
        };
        if cost.unindexed {
            self.client.process.counters.add(Counter::Unindexed, 1);
        }
        let kept = statement.kept.as_deref_mut();
        self.server.digests.count(statement.parsed, state.database.as_ref(), &cost, kept);
    }

    fn audit_statement(&self, statement: &Statement<'_>) {
        let class = Class::of(&statement.parsed.statement.node);
        let told = class.is_told_inside() && self.settings.shared.is_audited();
        if told || !self.server.query_log.audit.has(class, &self.login.user) {
            return;
        }
        let conditions = self.sql.state.diagnostics.conditions();
        let code = conditions.iter().rev().find(|(level, _)| *level == Level::Error).map(|(_, e)| e.code);
        let code = if statement.failed { code.unwrap_or(UNKNOWN_ERROR) } else { 0 };
        self.audit(Operation::Query, self.sql.state.database.clone(), (statement.text)(), code);
    }

    /// A text that is no statement.
    pub(super) fn audit_unparsed(&self, text: &Bytes, code: u16) {
        let audit = &self.server.query_log.audit;
        if audit.is_on() && audit.has(Class::Other, &self.login.user) {
            self.audit(Operation::Query, self.sql.state.database.clone(), text.clone(), code);
        }
    }

    /// A connection begins, ends or changes hands.
    pub(super) fn audit_connection(&self, operation: Operation, database: Option<Arc<str>>, code: u16) {
        if self.server.query_log.audit.has_connects() {
            self.audit(operation, database, Bytes::new(), code);
        }
    }

    fn audit(&self, operation: Operation, database: Option<Arc<str>>, text: Bytes, code: u16) {
        let log = &self.server.query_log;
        let query = if operation == Operation::Query { log.audit.next_statement() } else { 0 };
        log.put(Entry::Audit(Box::new(Record {
            at_us: crate::clock::now_us(),
            user: self.login.user.as_str().into(),
            host: self.login.host.name().into(),
            id: self.client.process.id,
            query,
            operation,
            database,
            text,
            code,
        })));
    }

    fn log_slow(&self, begun: Begun, now: i64, slow: bool, what: &Observed<'_>) {
        let log = &self.server.query_log;
        let done = self.sql.state.budget.tally.read().since(begun.tally);
        let unindexed = done.whole > 0 && log.logs_unindexed();
        let (text, command) = match what {
            Observed::Statement(Statement { parsed, text, .. }) => {
                if ADMIN.contains(&COM_NAMES[parsed.kind]) && !log.logs_admin() {
                    return;
                }
                (Some(text), Activity::Query)
            }
            Observed::Command(activity) => (None, *activity),
        };
        if !(slow || unindexed) || done.examined() < self.settings.watch.least_rows {
            return;
        }
        log.put(Entry::Slow(Box::new(Slow {
            begun_us: begun.at_us,
            ended_us: now,
            who: self.who(),
            id: self.client.process.id,
            lock_us: done.waited_us,
            rows_sent: self.client.replies.rows_sent - begun.rows_sent,
            rows_examined: done.examined(),
            rows_affected: self.client.replies.rows_affected,
            database: self.sql.state.database.clone(),
            last_insert_id: self.sql.state.results.last_insert_id_set.unwrap_or(0),
            text: text.map(|text| text()).unwrap_or_default(),
            command: command.text(),
        })));
    }

    /// Whether commands of this session are in the general log.
    pub(super) fn logs_commands(&self) -> bool {
        self.server.query_log.logs_all() && !self.settings.watch.unlogged
    }

    /// A command has come.
    pub(super) fn log_command(&self, activity: Activity, text: Bytes) {
        if self.logs_commands() {
            let (id, at_us) = (self.client.process.id, crate::clock::now_us());
            let command = activity.text();
            self.server.query_log.put(Entry::General { at_us, who: self.who(), id, command, text });
        }
    }

    /// Somebody has logged in.
    pub(super) fn log_connect(&self, database: Option<&str>) {
        if !self.logs_commands() {
            return;
        }
        let how = match (&self.client.packets.stream, self.client.packets.stream.tls_names()) {
            (_, Some(_)) => "SSL/TLS",
            _ if self.login.host.ip.is_none() => "Socket",
            _ => "TCP/IP",
        };
        let (user, host, db) = (&self.login.user, self.login.host.name(), database.unwrap_or_default());
        let text = format!("{user}@{host} on {db} using {how}");
        self.log_command(Activity::Connect, text.into());
    }

    /// `user[user] @ host [address]`.
    fn who(&self) -> Arc<str> {
        let address = self.login.host.ip.map(|ip| ip.to_string()).unwrap_or_default();
        let host = if self.login.host.is_local() { "localhost" } else { "" };
        format!("{}[{}] @ {host} [{address}]", self.login.account().user, self.login.user).into()
    }
}
