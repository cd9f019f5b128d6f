//! The session's variables as they act: on execution, on packets, on the query logs, on the next transaction's id.

use super::access::SessionAccess;
use super::client::Client;
use super::host::SessionShared;
use crate::sysvars::{GlobalVars, LastStatement, SessionVars, VarValue};
use omnibus_commit::AnonymousGuard;
use omnibus_format::events::MariadbGtid;
use omnibus_format::{AnyGtid, Origin};
use omnibus_sql::{GivenGtid, SessionSettings, SqlResult, SqlSession};
use omnibus_wire::Capability;
use std::sync::Arc;

/// The session's own settings of the logs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Watch {
    /// `long_query_time`, in microseconds.
    pub(crate) long_us: u64,
    /// `min_examined_row_limit`.
    pub(crate) least_rows: u64,
    /// `sql_log_off`.
    pub(crate) unlogged: bool,
}

impl Watch {
    /// From the session's variables.
    fn of(vars: &SessionVars) -> Watch {
        let seconds = match vars.named("long_query_time") {
            VarValue::Double(seconds) => *seconds,
            _ => 10.0,
        };
        Watch {
            long_us: (seconds * 1e6).round() as u64,
            least_rows: vars.named("min_examined_row_limit").as_u64(),
            unlogged: vars.named("sql_log_off").as_bool(),
        }
    }
}

/// See the module.
pub(crate) struct Settings {
    pub(crate) shared: Arc<SessionShared>,
    /// `GlobalVars::generation` that the settings were made from.
    generation: u64,
    /// Settings of the query logs.
    pub(crate) watch: Watch,
    /// SET INSERT_ID holds until an INSERT has made use of it.
    pub(crate) insert_id: Option<u64>,
    /// `gtid_next` is ANONYMOUS.
    pub(crate) anonymous: Option<AnonymousGuard>,
    /// `gtid_seq_no` may have been set.
    pub(crate) sequence_given: bool,
    /// COMMIT or ROLLBACK RELEASE: the session ends behind its reply.
    pub(crate) leaves: bool,
}

impl Settings {
    /// Of a new session.
    pub(crate) fn new(shared: Arc<SessionShared>, globals: &GlobalVars) -> Settings {
        let watch = Watch::of(&shared.vars.lock());
        Settings {
            shared,
            generation: globals.generation(),
            watch,
            insert_id: None,
            anonymous: None,
            sequence_given: false,
            leaves: false,
        }
    }

    /// The settings that execution reads.
    pub(crate) fn of_execution(
        shared: &SessionShared,
        caps: Capability,
        access: &SessionAccess,
    ) -> SessionSettings {
        let found_rows = caps.has(Capability::FOUND_ROWS);
        let mut settings = shared.settings(found_rows, access.may_write_read_only());
        settings.local_infile &= caps.has(Capability::LOCAL_FILES);
        settings
    }

    /// Whether another session has changed global variables since the last time.
    pub(crate) fn are_outdated(&mut self, globals: &GlobalVars) -> bool {
        let generation = globals.generation();
        std::mem::replace(&mut self.generation, generation) != generation
    }

    /// Rebuilds the settings that execution reads, after a SET.
    pub(crate) fn apply(&mut self, client: &mut Client, access: &SessionAccess, sql: &mut SqlSession) {
        let settings = Settings::of_execution(&self.shared, client.packets.caps, access);
        self.watch = Watch::of(&self.shared.vars.lock());
        client.told.follow(&mut self.shared.vars.lock());
        let state = &mut sql.state;
        state.diagnostics.keep_only(settings.conditions);
        state.settings = settings;
        state.settings.insert_id = self.insert_id;
        client.set_up(&self.shared, state);
    }

    /// As those of a new session, once they are applied.
    pub(crate) fn begin_anew(&mut self, globals: &Arc<GlobalVars>) {
        *self.shared.vars.lock() = SessionVars::new(globals);
        self.anonymous = None;
    }

    /// Notes the conditions of the statement before, for `@@warning_count`.
    pub(crate) fn note_conditions(&self, sql: &SqlSession) {
        self.shared.statement_ended(LastStatement::of(sql));
    }

    /// After a statement: what holds for one is used up.
    pub(crate) fn statement_is_over(&mut self, sql: &mut SqlSession) {
        if sql.state.settings.insert_id.is_none() && self.insert_id.take().is_some() {
            self.shared.vars.lock().put_named("insert_id", VarValue::UInt(0));
        }
        // `gtid_seq_no` is for one transaction.
        if self.sequence_given && !sql.gtid_next().waits() {
            self.sequence_given = false;
            self.shared.vars.lock().put_named("gtid_seq_no", VarValue::UInt(0));
        }
    }

    /// `gtid_seq_no`, `gtid_domain_id` or `server_id` was set for the session: the next transaction's id, if a number was given.
    pub(crate) fn give_sequence(&mut self, sql: &mut SqlSession) -> SqlResult<()> {
        self.sequence_given = true;
        let (sequence, domain) = {
            let vars = self.shared.vars.lock();
            (vars.named("gtid_seq_no").as_u64(), vars.named("gtid_domain_id").as_u64())
        };
        let server = sql.state.settings.server_id;
        let gtid = MariadbGtid { domain: u32::try_from(domain).unwrap_or(u32::MAX), server, sequence };
        let given = match sequence {
            0 => GivenGtid::Automatic,
            _ => GivenGtid::Once(Origin {
                gtid: Some(AnyGtid::Mariadb(gtid)),
                server_id: server,
                ..Origin::default()
            }),
        };
        sql.gtid_next().give(given)
    }
}
