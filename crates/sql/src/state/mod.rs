//! The state of a session between statements, as far as expressions and statements read it.
//! The open transaction is not here ([`crate::store::Trx`]).

mod connection;
mod handlers;
mod named_locks;
mod programs;
mod statement;
mod values;

pub use connection::{ClientConnection, ClientLogin};
pub use handlers::{Handlers, Held};
pub(crate) use handlers::{LockedNames, Place};
pub use named_locks::NamedLocks;
pub(crate) use programs::{
    DefinerRole, Inside, Locals, ProgramState, Programs, Signalled, Signature, TriggerRows, local_memory,
    may_use_row,
};
pub use statement::{ClientCommand, NewInsertId, StatementResults, StatementState};
pub use values::{UserValues, same_type};

use values::UserVariables;

use crate::api::{Budget, SessionSettings};
use crate::error::{Diagnostics, SqlError, SqlResult};
use crate::memory::{ConditionAccount, MemoryLimits};
use crate::store::StatementInfo;
use omnibus_parser::ast::ObjectName;
use omnibus_value::temporal::Zone;
use omnibus_value::{ColumnType, Value};
use std::sync::Arc;

/// Everything here that a statement may change by running, as it was before: a statement that gives its first try up, for a
/// lock or to run elsewhere, leaves no trace of it. What a statement does beyond this memory and its transaction (locks by
/// name, files, waiting) it does where it may block, which is never given up.
pub(crate) struct Checkpoint {
    variables: Arc<UserVariables>,
    diagnostics: Diagnostics,
    results: StatementResults,
    rand: (u64, u64),
}

/// Session state, minus the transaction: a part for each lifetime, which ends whole.
pub struct SessionState {
    /// The variables execution reads; the server keeps them up to date.
    pub settings: SessionSettings,
    /// The current database.
    pub database: Option<Arc<str>>,
    /// Until the client is gone.
    pub connection: ClientConnection,
    /// Until the client logs in anew.
    pub login: ClientLogin,
    /// Until the session is reset.
    pub values: UserValues,
    /// Until another statement has run, or the session is reset.
    pub results: StatementResults,
    /// SHOW WARNINGS of the last statement, and what the running one adds.
    pub diagnostics: Diagnostics,
    /// Until the client's command is over.
    pub command: ClientCommand,
    /// Until the statement is over.
    pub statement: StatementState,
    /// The budget of the running statement.
    pub budget: Arc<Budget>,
    /// Locks by name and open tables.
    pub held: Held,
    /// The programs that it runs.
    pub(crate) programs: ProgramState,
}

/// The schema of a name, or the session's default one.
///
/// # Errors
/// 1046.
pub(crate) fn schema_of(state: &SessionState, name: &ObjectName) -> SqlResult<String> {
    let schema = name.schema.as_deref().or(state.database.as_deref());
    schema.map(str::to_owned).ok_or_else(SqlError::no_db)
}

/// NOW() is this moment from here on, or what SET TIMESTAMP says.
pub(crate) fn start_clock(state: &mut SessionState) {
    state.statement.now_us = state.settings.timestamp_us.unwrap_or_else(|| omnibus_commit::now_us() as i64);
}

impl SessionState {
    /// CURRENT_ROLE().
    pub(crate) fn current_role(&self) -> Option<String> {
        match &self.programs.role {
            DefinerRole::Of(role) if self.settings.mariadb => role.as_ref().map(|role| role.to_string()),
            _ => self.connection.host.current_role(),
        }
    }

    /// Of a connection, whose statements have this budget.
    pub(crate) fn new(connection: ClientConnection, budget: Arc<Budget>) -> SessionState {
        let memory = &connection.memory;
        let mut diagnostics = Diagnostics::default();
        diagnostics.count_with(ConditionAccount::new(memory));
        SessionState {
            settings: SessionSettings::default(),
            database: None,
            login: ClientLogin::default(),
            values: UserValues::new(memory),
            results: StatementResults::default(),
            diagnostics,
            command: ClientCommand::new(memory),
            statement: StatementState::default(),
            budget,
            held: Held::default(),
            programs: ProgramState::default(),
            connection,
        }
    }

    /// COM_RESET_CONNECTION and COM_CHANGE_USER: what statements left behind goes.
    pub(crate) fn reset(&mut self) {
        self.values = UserValues::new(&self.connection.memory);
        self.results = StatementResults::default();
        self.diagnostics.clear();
    }

    /// The state that `restore` puts back.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            variables: self.values.variables(),
            diagnostics: self.diagnostics.clone(),
            results: self.results,
            rand: self.connection.rand,
        }
    }

    /// As before the statement.
    pub(crate) fn restore(&mut self, before: Checkpoint) {
        self.values.replace(before.variables, &self.settings);
        self.diagnostics = before.diagnostics;
        self.results = before.results;
        self.connection.rand = before.rand;
    }

    /// One to compute in beside it: with its settings, in its time, counted with its memory.
    pub(crate) fn aside(&self) -> SessionState {
        let connection = ClientConnection::new(0, self.connection.memory.clone());
        let mut aside = SessionState::new(connection, self.budget.clone());
        aside.settings = self.settings.clone();
        aside.statement.now_us = self.statement.now_us;
        aside
    }

    /// Asks for what the running command takes. It has that until it is over.
    ///
    /// # Errors
    /// 3170: a limit says no.
    pub fn ask(&mut self, bytes: usize) -> SqlResult<()> {
        self.command.account.grow_exactly(bytes, MemoryLimits::of(&self.settings))
    }

    /// Gives a variable a value.
    ///
    /// # Errors
    /// 3170: there is no memory for it.
    pub fn set_user_variable(&mut self, name: String, value: (Value, ColumnType)) -> SqlResult<()> {
        self.values.set(name, value, &self.settings)
    }

    /// CONNECTION_ID(), and whose the log says that statements are: `pseudo_thread_id`, if it was set.
    #[must_use]
    pub fn thread_id(&self) -> u32 {
        self.settings.pseudo_thread_id.unwrap_or(self.connection.id)
    }

    /// The facts of a statement of this session that begins now, for the log.
    pub(crate) fn info<'a>(&'a self, sql: &'a [u8]) -> StatementInfo<'a> {
        StatementInfo {
            settings: &self.settings,
            database: self.database.as_deref().unwrap_or_default(),
            sql,
            timestamp: (self.statement.now_us / 1_000_000) as u32,
            now_us: self.statement.now_us,
            connection_id: self.thread_id(),
        }
    }

    /// The session's time zone.
    pub(crate) fn zone(&self) -> Zone {
        self.settings.zone
    }
}

impl Default for SessionState {
    fn default() -> Self {
        SessionState::new(ClientConnection::default(), Arc::default())
    }
}
