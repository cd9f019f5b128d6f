//! What a source's statements ask of the server that applies them: system variables, as the server has them.
//!
//! What a statement's own context says is the SQL layer's and comes first. There is no client, so no status and no
//! process to show. On the workers' threads.

use crate::server::Server;
use crate::sysvars::Registry;
use omnibus_sql::{SessionHost, SqlError, SqlResult, VariableScope};
use omnibus_value::{ColumnType, Value};
use std::sync::Weak;

/// See the module's text.
pub(super) struct ApplierHost(pub(super) Weak<Server>);

impl SessionHost for ApplierHost {
    fn variable(&self, _: VariableScope, name: &str) -> SqlResult<(Value, ColumnType)> {
        let unknown = || SqlError::unknown_system_variable(name);
        let server = self.0.upgrade().ok_or_else(unknown)?;
        let id = Registry::get().find_in(name, server.log.dialect()).ok_or_else(unknown)?;
        Ok(server.globals.get(id).to_sql())
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
