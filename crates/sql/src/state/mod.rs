//! The state of a session between statements, as far as expressions and statements read it.
//! The open transaction is not here ([`crate::store::Trx`]).

mod handlers;
mod named_locks;
mod programs;

pub use handlers::{Handlers, Held};
pub(crate) use handlers::{LockedNames, Place};
pub use named_locks::NamedLocks;
pub(crate) use programs::{
    DefinerRole, Inside, Locals, ProgramState, Programs, Signalled, Signature, TriggerRows, local_memory,
    may_use_row,
};

use crate::api::{Budget, NoHost, SessionHost, SessionSettings};
use crate::error::{Diagnostics, SqlError, SqlResult};
use crate::memory::{Account, ConditionAccount, MemoryLimits, SessionMemory, memory_of};
use crate::store::StatementInfo;
use omnibus_parser::ast::ObjectName;
use omnibus_value::temporal::Zone;
use omnibus_value::{ColumnType, Value};
use std::collections::HashMap;
use std::sync::Arc;

/// @variables. Shared with the checkpoint of the running statement, so taking one copies nothing.
pub type UserVariables = HashMap<String, (Value, ColumnType)>;

/// Everything here that a statement may change by running, as it was before: a statement that gives its first try up, for a
/// lock or to run elsewhere, leaves no trace of it. What a statement does beyond this memory and its transaction (locks by
/// name, files, waiting) it does where it may block, which is never given up.
pub(crate) struct Checkpoint {
    user_variables: Arc<UserVariables>,
    diagnostics: Diagnostics,
    last_insert_id: u64,
    new_insert_id: NewInsertId,
    last_insert_id_set: Option<u64>,
    row_count: i64,
    found_rows: u64,
    rand: (u64, u64),
}

/// Session state, minus the transaction.
pub struct SessionState {
    /// The variables execution reads; the server keeps them up to date.
    pub settings: SessionSettings,
    /// The current database.
    pub database: Option<Arc<str>>,
    /// @variables, by lower-case name, with the type they were last given.
    pub user_variables: Arc<UserVariables>,
    /// Counts the times that a variable got a value of another type: a plan is for the types it was made with.
    pub variable_types: u64,
    /// SHOW WARNINGS of the last statement, and what the running one adds.
    pub diagnostics: Diagnostics,
    /// While a statement runs: how many conditions the one before left, and how many of them are errors.
    pub conditions_before: Option<(u64, u64)>,
    /// LAST_INSERT_ID().
    pub last_insert_id: u64,
    /// Whether `sql_auto_is_null` gives it.
    pub new_insert_id: NewInsertId,
    /// LAST_INSERT_ID(expr) in the running statement.
    pub last_insert_id_set: Option<u64>,
    /// ROW_COUNT() of the last statement; -1 after a result set or an error.
    pub row_count: i64,
    /// FOUND_ROWS() of the last SELECT.
    pub found_rows: u64,
    /// LASTVAL(), by the id of the sequence.
    pub sequence_values: HashMap<u64, i64>,
    /// The number of the connection. What statements see of it is `thread_id`.
    pub connection_id: u32,
    /// USER(): the name the client gave.
    pub user: String,
    /// The host it came from.
    pub host_name: String,
    /// CURRENT_USER(): the account it was matched to, "name@host".
    pub account: String,
    /// The running statement's start, microseconds since the epoch (SET TIMESTAMP respected).
    pub now_us: i64,
    /// State of RAND() without a seed.
    pub rand: (u64, u64),
    /// The attributes of the running statement: names and values, text in utf8mb4.
    pub query_attributes: Vec<(String, Value)>,
    /// The text of the running statement.
    pub statement: bytes::Bytes,
    /// The catalog that SHOW COLUMNS of a temporary table reads instead of the real one.
    pub described: Option<Arc<crate::catalog::Catalog>>,
    /// The budget of the running statement.
    pub budget: Arc<Budget>,
    /// System variables, status and processes.
    pub host: Arc<dyn SessionHost>,
    /// The memory of its statements.
    pub memory: Arc<SessionMemory>,
    /// The memory of the running command: of its text, tree, plan and parameters.
    pub(crate) command: Account,
    /// The memory of functions until their results are there.
    pub(crate) working: Account,
    /// The memory of `user_variables`.
    pub(crate) variables_memory: Account,
    /// Locks by name and open tables.
    pub held: Held,
    /// The programs that it runs.
    pub(crate) programs: ProgramState,
}

/// Under `sql_auto_is_null` the first statement behind an insert that made a number finds its row; no later one does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NewInsertId {
    /// No number was made since one was asked for.
    #[default]
    None,
    /// A number was made that no statement has asked for.
    Fresh,
    /// The running statement has asked for it.
    Asked,
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
    state.now_us = state.settings.timestamp_us.unwrap_or_else(|| omnibus_commit::now_us() as i64);
}

impl SessionState {
    /// CURRENT_ROLE().
    pub(crate) fn current_role(&self) -> Option<String> {
        match &self.programs.role {
            DefinerRole::Of(role) if self.settings.mariadb => role.as_ref().map(|role| role.to_string()),
            _ => self.host.current_role(),
        }
    }

    /// The state that `restore` puts back.
    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            user_variables: self.user_variables.clone(),
            diagnostics: self.diagnostics.clone(),
            last_insert_id: self.last_insert_id,
            new_insert_id: self.new_insert_id,
            last_insert_id_set: self.last_insert_id_set,
            row_count: self.row_count,
            found_rows: self.found_rows,
            rand: self.rand,
        }
    }

    /// As before the statement.
    pub(crate) fn restore(&mut self, before: Checkpoint) {
        self.set_user_variables(before.user_variables);
        self.diagnostics = before.diagnostics;
        self.last_insert_id = before.last_insert_id;
        self.new_insert_id = before.new_insert_id;
        self.last_insert_id_set = before.last_insert_id_set;
        self.row_count = before.row_count;
        self.found_rows = before.found_rows;
        self.rand = before.rand;
    }

    /// One to compute in beside it: with its settings, in its time, counted with its memory.
    pub(crate) fn aside(&self) -> SessionState {
        let mut aside = SessionState {
            settings: self.settings.clone(),
            now_us: self.now_us,
            budget: self.budget.clone(),
            ..SessionState::default()
        };
        aside.count_with(self.memory.clone());
        aside
    }

    /// Counts what it keeps in memory with this session's.
    pub(crate) fn count_with(&mut self, memory: Arc<SessionMemory>) {
        self.variables_memory = Account::new(&memory);
        self.working = Account::new(&memory);
        self.command = Account::new(&memory);
        self.diagnostics.count_with(ConditionAccount::new(&memory));
        self.memory = memory;
    }

    /// Asks for what the running command takes. It has that until it is over.
    ///
    /// # Errors
    /// 3170: a limit says no.
    pub fn ask(&mut self, bytes: usize) -> SqlResult<()> {
        self.command.grow_exactly(bytes, MemoryLimits::of(&self.settings))
    }

    /// The client's command is over, and what it was made of is gone.
    pub fn command_over(&mut self) {
        self.working.clear();
        self.command.clear();
        self.statement = bytes::Bytes::new();
        if !self.query_attributes.is_empty() {
            self.query_attributes = Vec::new();
        }
    }

    /// Gives a variable a value.
    ///
    /// # Errors
    /// 3170: there is no memory for it.
    pub fn set_user_variable(&mut self, name: String, value: (Value, ColumnType)) -> SqlResult<()> {
        let more = variable_memory(&name, &value.0);
        let less = self.user_variables.get(&name).map_or(0, |(value, _)| variable_memory(&name, value));
        if more > less {
            self.variables_memory.grow(more - less, &self.settings)?;
        } else {
            self.variables_memory.shrink(less - more);
        }
        let like = |before: &(Value, ColumnType)| {
            same_type(&before.0, &value.0) && before.1.collation == value.1.collation
        };
        if !self.user_variables.get(&name).is_some_and(like) {
            self.variable_types += 1;
        }
        Arc::make_mut(&mut self.user_variables).insert(name, value);
        Ok(())
    }

    /// Replaces all variables by some that were counted before, or that one statement brings along.
    pub(crate) fn set_user_variables(&mut self, variables: Arc<UserVariables>) {
        if !Arc::ptr_eq(&self.user_variables, &variables) {
            let memory = variables.iter().map(|(name, (value, _))| variable_memory(name, value)).sum();
            // What was there once may be there again.
            let _ = self.variables_memory.resize(memory, MemoryLimits::of(&self.settings));
            self.user_variables = variables;
            self.variable_types += 1;
        }
    }

    /// CONNECTION_ID(), and whose the log says that statements are: `pseudo_thread_id`, if it was set.
    #[must_use]
    pub fn thread_id(&self) -> u32 {
        self.settings.pseudo_thread_id.unwrap_or(self.connection_id)
    }

    /// The facts of a statement of this session that begins now, for the log.
    pub(crate) fn info<'a>(&'a self, sql: &'a [u8]) -> StatementInfo<'a> {
        StatementInfo {
            settings: &self.settings,
            database: self.database.as_deref().unwrap_or_default(),
            sql,
            timestamp: (self.now_us / 1_000_000) as u32,
            now_us: self.now_us,
            connection_id: self.thread_id(),
        }
    }

    /// The session's time zone.
    pub(crate) fn zone(&self) -> Zone {
        self.settings.zone
    }
}

fn variable_memory(name: &str, value: &Value) -> usize {
    // Its type and its place in the map.
    name.len() + memory_of(std::slice::from_ref(value)) + 128
}

impl Default for SessionState {
    fn default() -> Self {
        let memory = Arc::default();
        SessionState {
            settings: SessionSettings::default(),
            database: None,
            user_variables: Arc::default(),
            variable_types: 0,
            diagnostics: Diagnostics::default(),
            conditions_before: None,
            last_insert_id: 0,
            new_insert_id: NewInsertId::None,
            last_insert_id_set: None,
            row_count: 0,
            found_rows: 0,
            sequence_values: HashMap::new(),
            connection_id: 0,
            user: String::new(),
            host_name: "localhost".into(),
            account: String::new(),
            now_us: 0,
            rand: (0x1234_5678, 0x9abc_def0),
            query_attributes: Vec::new(),
            statement: bytes::Bytes::new(),
            described: None,
            budget: Arc::default(),
            host: Arc::new(NoHost),
            variables_memory: Account::new(&memory),
            working: Account::new(&memory),
            command: Account::new(&memory),
            memory,
            held: Held::default(),
            programs: ProgramState::default(),
        }
    }
}

/// Whether two values have the same type where they stand for a parameter or a variable; the length of text does not count.
#[must_use]
pub fn same_type(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Decimal(a), Value::Decimal(b)) => {
            (a.precision(), a.shown_scale()) == (b.precision(), b.shown_scale())
        }
        (Value::DateTime(a), Value::DateTime(b)) => (a.micros() == 0) == (b.micros() == 0),
        (Value::Time(a), Value::Time(b)) => (a.micros() == 0) == (b.micros() == 0),
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    }
}
