//! Variables whose value is made when it is read.

use super::{VarDef, VarValue};
use omnibus_sql::SqlSession;

/// Outcome of a statement, for variables that tell of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LastStatement {
    /// Its conditions.
    pub warnings: u64,
    /// Errors among them.
    pub errors: u64,
    /// LAST_INSERT_ID().
    pub insert_id: u64,
    /// Whether a transaction was open when it ended.
    pub in_transaction: bool,
}

impl LastStatement {
    /// Outcome of the session's last statement.
    #[must_use]
    pub fn of(sql: &SqlSession) -> LastStatement {
        let (warnings, errors) = sql.state.diagnostics.counts();
        let insert_id = sql.state.results.last_insert_id;
        LastStatement { warnings, errors, insert_id, in_transaction: sql.in_transaction() }
    }
}

/// The sources of computed variables.
pub struct ComputedContext<'a> {
    /// `gtid_executed`.
    pub gtid_executed: &'a dyn Fn() -> String,
    /// Outcome of the session's last statement.
    pub last: LastStatement,
    /// How many statements the session has run.
    pub statements: u64,
}

/// The value.
#[must_use]
pub fn computed(def: &VarDef, context: &ComputedContext<'_>) -> VarValue {
    match def.name {
        "gtid_executed" => VarValue::Str((context.gtid_executed)().into()),
        "warning_count" => VarValue::UInt(context.last.warnings),
        "error_count" => VarValue::UInt(context.last.errors),
        "in_transaction" => VarValue::UInt(u64::from(context.last.in_transaction)),
        "statement_id" => VarValue::UInt(context.statements),
        "system_time_zone" => VarValue::Str(omnibus_value::temporal::Zone::system_name().into()),
        _ => def.default.value(),
    }
}
