//! Assignments of system variables: the checks, and those that the SQL layer makes within a statement.

use super::host::SessionShared;
use crate::charset::{self, Collation};
use crate::errors;
use crate::sysvars::persisted;
use crate::sysvars::{
    Change, Given, Kind, Registry, Scope, SessionVars, VarDef, VarId, VarValue, coerce, collation_of_utf8mb4,
};
use omnibus_format::Dialect;
use omnibus_parser::ast::VarScope;
use omnibus_sql::api::Assignment as Assigned;
use omnibus_sql::{AccessCheck, SessionSettings, SqlError, SqlResult};

/// The part of SET PERSIST beside setting the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// SET GLOBAL and SET SESSION.
    No,
    /// PERSIST.
    Too,
    /// PERSIST_ONLY: the running server goes on with what it has.
    Only,
}

impl Keep {
    pub(crate) fn of(scope: Option<VarScope>) -> Keep {
        match scope {
            Some(VarScope::Persist) => Keep::Too,
            Some(VarScope::PersistOnly) => Keep::Only,
            _ => Keep::No,
        }
    }
}

/// A checked system variable assignment.
pub(crate) struct Assignment {
    pub(crate) id: VarId,
    pub(crate) global: bool,
    pub(crate) keep: Keep,
    pub(crate) value: VarValue,
    pub(crate) warning: Option<SqlError>,
}

/// Whether setting this variable is more than keeping its value.
pub(crate) fn is_special(name: &str) -> bool {
    matches!(name, "gtid_purged" | "gtid_binlog_state" | "gtid_next")
}

/// The variable, and whether the server's value is meant; or why it may not be set.
pub(crate) fn check_target(
    scope: Option<VarScope>,
    name: &str,
    dialect: Dialect,
    access: &dyn AccessCheck,
) -> SqlResult<(VarId, bool)> {
    let registry = Registry::get();
    let id = registry.find_in(name, dialect).ok_or_else(|| SqlError::unknown_system_variable(name))?;
    let def = registry.def(id);
    let keep = Keep::of(scope);
    if keep != Keep::No {
        persisted::check(def)?;
    }
    if def.change == Change::Computed || def.change == Change::ReadOnly && keep != Keep::Only {
        return Err(errors::incorrect_scope(name, "read only"));
    }
    let global = match scope {
        Some(VarScope::Global | VarScope::Persist | VarScope::PersistOnly) => true,
        Some(VarScope::Session) | None => false,
    };
    if def.name == "server_id" && !global && dialect == Dialect::Mysql {
        return Err(errors::global_variable(name));
    }
    if matches!(def.name, "max_allowed_packet" | "net_buffer_length") && !global {
        return Err(errors::read_only_in_session(def.name));
    }
    match (global, def.scope) {
        (false, Scope::Global) => return Err(errors::global_variable(name)),
        (true, Scope::Session) => return Err(errors::local_variable(name)),
        _ => {}
    }
    access.check_variable(def.name, scope, dialect)?;
    Ok((id, global))
}

/// The collation that a character set has where none is named: that of utf8mb4 is a variable's.
pub(crate) fn default_collation(vars: &SessionVars, charset: &str) -> Option<Collation> {
    match charset {
        "utf8mb4" => charset::by_name(collation_of_utf8mb4(vars)),
        charset => charset::of_charset(charset),
    }
}

impl SessionShared {
    /// Sets a variable; a character set brings its default collation along and a collation its
    /// character set.
    pub(crate) fn set_with_companions(&self, id: VarId, def: &VarDef, value: VarValue) {
        let mut vars = self.vars.lock();
        if let Some(suffix) = def.name.strip_prefix("collation_") {
            if let Some(collation) = charset::by_name(value.as_str()) {
                vars.put_named(&format!("character_set_{suffix}"), VarValue::Str(collation.charset.into()));
            }
        } else if let Some(suffix @ ("connection" | "server" | "database")) =
            def.name.strip_prefix("character_set_")
            && let Some(collation) = default_collation(&vars, value.as_str())
        {
            vars.put_named(&format!("collation_{suffix}"), VarValue::Str(collation.name.into()));
        } else if def.name == "max_join_size" {
            // Who sets a bound wants it to act.
            vars.put_named("sql_big_selects", VarValue::Bool(value.as_u64() == u64::MAX));
        }
        vars.set(id, value);
    }

    /// SET in a function or trigger: without the session, which runs the statement around.
    pub(crate) fn assign_inside(
        &self,
        assignment: &Assigned<'_>,
    ) -> SqlResult<(SessionSettings, Option<SqlError>)> {
        let Assigned { scope, name, value, access, settings: now } = assignment;
        let dialect = self.server().log.dialect();
        let (id, global) = check_target(*scope, name, dialect, *access)?;
        let def = Registry::get().def(id);
        refuse_inside(def)?;
        if Keep::of(*scope) != Keep::No {
            return Err(SqlError::not_supported_yet("SET PERSIST in a function or trigger"));
        }
        let (value, warning) = match value {
            None if global || def.scope == Scope::Session => (def.default.value(), None),
            None => (self.server().globals.get(id), None),
            Some(value) => {
                let checked = checked_value(id, global, *scope, &Given::Value(value.clone()), dialect)?;
                (checked.value, checked.warning)
            }
        };
        let mut settings = (*now).clone();
        if global {
            self.server().set_global(id, value)?;
        } else if def.name == "sql_mode" {
            // The program's own, which ends with it.
            settings.sql_mode = crate::sysvars::sql_mode_bits(value.as_str()).unwrap_or(now.sql_mode);
        } else {
            self.set_with_companions(id, def, value);
            settings = self.settings_again(now);
        }
        Ok((settings, warning))
    }
}

/// Refuses variables that a program within a statement must leave alone: how the statement is logged and committed, and the session's state.
fn refuse_inside(def: &VarDef) -> SqlResult<()> {
    let refused =
        |code: u16, message: &str| Err(SqlError { code, state: *b"HY000", message: message.into() });
    match def.name {
        "autocommit" => refused(1445, "Not allowed to set autocommit from a stored function or trigger"),
        "binlog_format" => {
            refused(1560, "Cannot change the binary logging format inside a stored function or trigger")
        }
        "sql_log_bin" => refused(1695, "Cannot change the sql_log_bin inside a stored function or trigger"),
        "gtid_domain_id" | "gtid_seq_no" | "server_id" => not_inside(def.name),
        name if is_special(name) => not_inside(name),
        name @ ("insert_id" | "last_insert_id" | "rand_seed1" | "rand_seed2") => {
            Err(SqlError::not_supported_yet(format!("SET {name} in a function or trigger")))
        }
        _ => Ok(()),
    }
}

fn not_inside(name: &str) -> SqlResult<()> {
    let message = format!("The system variable {name} cannot be set in stored functions or triggers.");
    Err(SqlError { code: 1765, state: *b"HY000", message })
}

/// The first name of `session_track_system_variables` that no variable has: it is passed over.
fn unknown_tracked(def: &VarDef, value: &VarValue) -> Option<SqlError> {
    if def.name != "session_track_system_variables" || value.as_str().trim() == "*" {
        return None;
    }
    let mut names = value.as_str().split(',').map(str::trim).filter(|name| !name.is_empty());
    let unknown = names.find(|name| Registry::get().find(name).is_none())?;
    let message = format!("{unknown} is not a valid system variable and will be ignored.");
    Some(SqlError { code: 1231, state: *b"42000", message })
}

/// The numbers of collations that only MariaDB has begin here.
const FIRST_OF_MARIADB: i128 = 2048;
/// MySQL's clock ends here.
const LAST_SECOND: f64 = 2_147_483_647.0;

/// Refuses values that MariaDB alone takes.
fn refuse_in_mysql(def: &VarDef, given: &Given) -> SqlResult<()> {
    let beyond = given.integer().is_some_and(|number| number >= FIRST_OF_MARIADB);
    match def.kind {
        Kind::Charset | Kind::NullableCharset if beyond => Err(SqlError::unknown_character_set(given.text())),
        Kind::Collation if beyond => Err(SqlError::unknown_collation(given.text())),
        _ if def.name == "timestamp" && given.number().is_some_and(|second| second > LAST_SECOND) => {
            Err(SqlError::wrong_value_for_var(def.name, given.text()))
        }
        _ => Ok(()),
    }
}

pub(crate) fn checked_value(
    id: VarId,
    global: bool,
    scope: Option<VarScope>,
    given: &Given,
    dialect: Dialect,
) -> SqlResult<Assignment> {
    let def = Registry::get().def(id);
    if dialect == Dialect::Mysql {
        refuse_in_mysql(def, given)?;
    }
    let (value, warning) = coerce(def, given)?;
    crate::sysvars::refuse_unsupported(def, &value)?;
    let warning = warning.or_else(|| unknown_tracked(def, &value));
    Ok(Assignment { id, global, keep: Keep::of(scope), value, warning })
}
