//! Variables whose value is made when it is read.

use super::{VarDef, VarValue};

/// What they are made from.
pub struct ComputedContext<'a> {
    /// `gtid_executed`.
    pub gtid_executed: &'a dyn Fn() -> String,
    /// Conditions of the session's last statement.
    pub warnings: u64,
    /// Errors among them.
    pub errors: u64,
}

/// The value.
#[must_use]
pub fn computed(def: &VarDef, context: &ComputedContext<'_>) -> VarValue {
    match def.name {
        "gtid_executed" => VarValue::Str((context.gtid_executed)().into()),
        "warning_count" => VarValue::UInt(context.warnings),
        "error_count" => VarValue::UInt(context.errors),
        "system_time_zone" => VarValue::Str(omnibus_value::temporal::Zone::system_name().into()),
        _ => def.default.value(),
    }
}
