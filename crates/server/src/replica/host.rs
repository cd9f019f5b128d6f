//! The server as a source's statements see it: system variables, as this server has them.
//!
//! A statement's own context comes first. There is no client, so no status and no
//! process to show. On the workers' threads.

use super::Parts;
use crate::charset;
use crate::sysvars::{Registry, VarValue, sql_mode_text};
use omnibus_sql::{SessionHost, SessionSettings, SqlError, SqlResult, VariableScope};
use omnibus_value::{ColumnType, Value};

/// See the module's text.
pub(super) struct ApplierHost(pub(super) Parts);

impl SessionHost for ApplierHost {
    fn variable(&self, _: VariableScope, name: &str) -> SqlResult<(Value, ColumnType)> {
        let unknown = || SqlError::unknown_system_variable(name);
        let id = Registry::get().find_in(name, self.0.log.dialect()).ok_or_else(unknown)?;
        Ok(self.0.globals.get(id).to_sql())
    }

    fn variable_under(
        &self,
        settings: &SessionSettings,
        scope: VariableScope,
        name: &str,
    ) -> SqlResult<(Value, ColumnType)> {
        let of_statement = if scope == VariableScope::Global { None } else { carried(settings, name) };
        of_statement.map_or_else(|| self.variable(scope, name), |value| Ok(value.to_sql()))
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

/// The variables that a statement's events carry.
fn carried(settings: &SessionSettings, name: &str) -> Option<VarValue> {
    let collation = |id: u16| Some(VarValue::Str(charset::by_id(id)?.name.into()));
    let set = |id: u16| Some(VarValue::Str(charset::by_id(id)?.charset.into()));
    Some(match name {
        "autocommit" => VarValue::Bool(settings.transactions.autocommit),
        "foreign_key_checks" => VarValue::Bool(settings.foreign_key_checks),
        "check_constraint_checks" => VarValue::Bool(settings.check_constraint_checks),
        "unique_checks" => VarValue::Bool(settings.unique_checks),
        "sql_auto_is_null" => VarValue::Bool(settings.sql_auto_is_null),
        "auto_increment_increment" => VarValue::UInt(settings.auto_increment_increment),
        "auto_increment_offset" => VarValue::UInt(settings.auto_increment_offset),
        "sql_mode" => VarValue::Str(sql_mode_text(settings.sql_mode).into()),
        "time_zone" => VarValue::Str(settings.time_zone.as_str().into()),
        "lc_time_names" => VarValue::Str(settings.lc_time_names.name.into()),
        "character_set_client" => set(settings.collation_client)?,
        "character_set_connection" => set(settings.collation_connection)?,
        "collation_connection" => collation(settings.collation_connection)?,
        "character_set_server" => set(settings.collation_server)?,
        "collation_server" => collation(settings.collation_server)?,
        "character_set_database" => set(settings.collation_database?)?,
        "collation_database" => collation(settings.collation_database?)?,
        "default_collation_for_utf8mb4" => collation(settings.default_collation_for_utf8mb4)?,
        _ => return None,
    })
}
