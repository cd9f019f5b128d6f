//! The server as expressions and SHOW see it: variables, counters, the process list, its files.
//!
//! Asked on the session's thread, while a statement runs.

use super::{AccessCheck, SessionSettings};
use crate::error::{SqlError, SqlResult};
use bytes::Bytes;
use omnibus_parser::ast::{HintValue, Ident, Statement, VarScope};
use omnibus_value::{ColumnType, Value};
use std::sync::Arc;

/// The scope that `@@name` reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VariableScope {
    /// `@@name`: session if there is one, else global.
    Either,
    /// `@@session.name`.
    Session,
    /// `@@global.name`.
    Global,
}

/// SET of a system variable in a function or trigger.
pub struct Assignment<'a> {
    /// GLOBAL, SESSION.
    pub scope: Option<VarScope>,
    /// The variable's name.
    pub name: &'a str,
    /// Its value; `None` is DEFAULT.
    pub value: Option<Value>,
    /// In whose name it is set.
    pub access: &'a dyn AccessCheck,
    /// Under which the statement runs.
    pub settings: &'a SessionSettings,
}

/// Returns whether the server was started with encrypted tables (`default_table_encryption`).
pub fn tables_are_encrypted(host: &dyn SessionHost) -> bool {
    let switch = host.variable(VariableScope::Global, "default_table_encryption");
    matches!(switch, Ok((Value::Int(1) | Value::UInt(1), _)))
}

/// A place among the prepared statements that the server takes; it is free again when this goes.
pub type PreparedPlace = Box<dyn std::any::Any + Send + Sync>;

/// The server as expressions see it. Implemented by the server; [`NoHost`] for tests.
pub trait SessionHost: Send + Sync {
    /// The value and type of a system variable, or error 1193.
    fn variable(&self, scope: VariableScope, name: &str) -> SqlResult<(Value, ColumnType)>;
    /// The same for a statement that runs under these settings, which need not be those of the host's session.
    fn variable_under(
        &self,
        _settings: &SessionSettings,
        scope: VariableScope,
        name: &str,
    ) -> SqlResult<(Value, ColumnType)> {
        self.variable(scope, name)
    }
    /// Sets a system variable. The settings of the session from now on, and a warning.
    ///
    /// # Errors
    /// As SET.
    fn assign(&self, assignment: &Assignment<'_>) -> SqlResult<(SessionSettings, Option<SqlError>)> {
        Err(SqlError::unknown_system_variable(assignment.name))
    }
    /// Sets system variables for one statement, until `unhint`: the settings under which it runs, and what was wrong with hints.
    fn hint(
        &self,
        _hints: &[(&Ident, &HintValue)],
        _access: &dyn AccessCheck,
        settings: &SessionSettings,
    ) -> (SessionSettings, Vec<SqlError>) {
        (settings.clone(), Vec::new())
    }
    /// The statement of the last `hint` is over. The session's settings, which were `before` when it began.
    fn unhint(&self, before: &SessionSettings) -> SessionSettings {
        before.clone()
    }
    /// All variables (SHOW VARIABLES), name and value as text.
    fn variables(&self, scope: VariableScope) -> Vec<(String, String)>;
    /// All status counters (SHOW STATUS).
    fn status(&self, scope: VariableScope) -> Vec<(String, String)>;
    /// A variable that SHOW VARIABLES does not list, asked for by a name of other versions: the name and its value as text.
    fn unlisted_variable(&self, _scope: VariableScope, _name: &str) -> Option<(String, String)> {
        None
    }
    /// The same of SHOW STATUS.
    fn unlisted_status(&self, _scope: VariableScope, _name: &str) -> Option<(String, String)> {
        None
    }
    /// The rows of `information_schema.USER_ATTRIBUTES` that the account may see.
    fn user_attributes(&self) -> Vec<[Value; 3]> {
        Vec::new()
    }
    /// Rows of PROCESSLIST: id, user, host, db, command, seconds, state, info.
    fn processlist(&self) -> Vec<[Value; 8]>;
    /// Rows of one of `performance_schema`'s tables of replication.
    fn replication(&self, _table: &str) -> SqlResult<Vec<Vec<Value>>> {
        Ok(Vec::new())
    }
    /// Rows of one of `performance_schema`'s tables that the server makes: the columns that it has something to say of.
    fn monitoring(&self, _table: &str) -> SqlResult<Vec<Vec<(&'static str, Value)>>> {
        Ok(Vec::new())
    }
    /// A place for a statement that PREPARE makes.
    ///
    /// # Errors
    /// 1461: there is none.
    fn prepared_place(&self) -> SqlResult<PreparedPlace> {
        Ok(Box::new(()))
    }
    /// The text of SHOW ENGINE INNODB STATUS.
    fn engine_status(&self) -> String {
        String::new()
    }
    /// A function that the server implements (locks by name, replication). `None`: no such function.
    fn call(&self, _connection_id: u32, _name: &str, _args: &[Value]) -> Option<SqlResult<Value>> {
        None
    }
    /// A definition was carried out, or failed with this code, wherever it stood. The text has its secrets.
    fn defined(&self, _statement: &Statement, _text: &Bytes, _code: u16) {}
    /// Opens a file of the server for LOAD DATA (`create`: makes a new one for INTO OUTFILE), if it may be
    /// read and written by statements: error 1290 if not. Blocks.
    fn open_file(&self, _path: &[u8], _create: bool) -> SqlResult<std::fs::File> {
        Err(SqlError::option_prevents_statement("--secure-file-priv"))
    }
    /// Removes a file that `open_file` has just made.
    fn remove_file(&self, _path: &[u8]) {}
    /// The rows of one of information_schema's tables of privileges that the account may see.
    fn privileges(&self, _table: &str) -> Vec<Vec<Value>> {
        Vec::new()
    }
    /// CURRENT_ROLE().
    fn current_role(&self) -> Option<String> {
        None
    }
    /// The rows of a table of `mysql` about accounts, as the dialect has it.
    ///
    /// # Errors
    /// 1142.
    fn system_table(&self, _table: &str) -> SqlResult<Vec<Vec<Value>>> {
        Ok(Vec::new())
    }
    /// Whether the account has a privilege on a table.
    fn may(&self, _db: &str, _table: &str, _privilege: super::Priv) -> bool {
        true
    }
    /// The rights of the session's own account. `None`: it may do anything.
    fn own_access(&self) -> Option<Arc<dyn AccessCheck>> {
        None
    }
    /// The names of the bits of a `sql_mode`.
    fn sql_mode_text(&self, bits: u64) -> String {
        bits.to_string()
    }
    /// The rights that the account has on a column, as `information_schema` lists them; empty if it may not know of the column.
    fn column_rights(&self, _db: &str, _table: &str, _column: &str) -> String {
        "select,insert,update,references".to_owned()
    }
    /// Whether the account may know that a schema, or a table of it, exists.
    fn may_see(&self, _db: &str, _table: Option<&str>) -> bool {
        true
    }
}

/// A host that knows nothing.
#[derive(Debug, Default)]
pub struct NoHost;

impl SessionHost for NoHost {
    fn variable(&self, _: VariableScope, name: &str) -> SqlResult<(Value, ColumnType)> {
        Err(SqlError::unknown_system_variable(name))
    }
    fn variables(&self, _: VariableScope) -> Vec<(String, String)> {
        Vec::new()
    }
    fn status(&self, _: VariableScope) -> Vec<(String, String)> {
        Vec::new()
    }
    fn processlist(&self) -> Vec<[Value; 8]> {
        Vec::new()
    }
}
