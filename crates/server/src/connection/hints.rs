//! SET_VAR: the variables that a statement's hints may set, set and restored.

use super::SessionShared;
use crate::sysvars::{Given, Registry, VarId, VarValue, coerce, refuse_unsupported, sql_mode_bits};
use omnibus_parser::ast::{HintValue, Ident};
use omnibus_sql::{AccessCheck, SessionSettings, SqlError, SqlResult};
use omnibus_value::Value;

/// The variables that MySQL's manual allows in hints.
const HINTABLE: &[&str] = &[
    "auto_increment_increment",
    "auto_increment_offset",
    "big_tables",
    "bulk_insert_buffer_size",
    "cte_max_recursion_depth",
    "default_table_encryption",
    "default_tmp_storage_engine",
    "div_precision_increment",
    "end_markers_in_json",
    "eq_range_index_dive_limit",
    "foreign_key_checks",
    "group_concat_max_len",
    "insert_id",
    "internal_tmp_mem_storage_engine",
    "join_buffer_size",
    "lock_wait_timeout",
    "max_error_count",
    "max_execution_time",
    "max_heap_table_size",
    "max_join_size",
    "max_length_for_sort_data",
    "max_points_in_geometry",
    "max_seeks_for_key",
    "max_sort_length",
    "optimizer_max_subgraph_pairs",
    "optimizer_prune_level",
    "optimizer_search_depth",
    "optimizer_switch",
    "print_identified_with_as_hex",
    "range_alloc_block_size",
    "range_optimizer_max_mem_size",
    "read_buffer_size",
    "read_rnd_buffer_size",
    "secondary_engine_cost_threshold",
    "select_into_buffer_size",
    "select_into_disk_sync",
    "select_into_disk_sync_delay",
    "show_create_table_skip_secondary_engine",
    "sort_buffer_size",
    "sql_auto_is_null",
    "sql_big_selects",
    "sql_buffer_result",
    "sql_mode",
    "sql_require_primary_key",
    "sql_safe_updates",
    "sql_select_limit",
    "time_zone",
    "timestamp",
    "tmp_table_size",
    "unique_checks",
    "updatable_views_with_limit",
    "use_secondary_engine",
    "windowing_use_high_precision",
];

/// A value, and what was changed of it.
type Checked = (VarValue, Option<SqlError>);

impl SessionShared {
    /// Sets variables until `restore_hinted`: the settings with them, and a warning of each that is not as the hint has it.
    pub(crate) fn set_hinted(
        &self,
        hints: &[(&Ident, &HintValue)],
        access: &dyn AccessCheck,
        now: &SessionSettings,
    ) -> (SessionSettings, Vec<SqlError>) {
        let registry = Registry::get();
        let (mut warnings, mut known) = (Vec::new(), Vec::new());
        for (name, value) in hints {
            match self.hintable(name) {
                Ok(id) => known.push((id, value)),
                Err(error) => warnings.push(error),
            }
        }
        let (mut before, mut settings) = (Vec::new(), now.clone());
        for (id, value) in known {
            let def = registry.def(id);
            let (value, adjusted) = match self.hinted_value(id, value, access) {
                Ok(checked) => checked,
                Err(error) => {
                    warnings.push(error);
                    continue;
                }
            };
            warnings.extend(adjusted);
            match def.name {
                "sql_mode" => settings.sql_mode = sql_mode_bits(value.as_str()).unwrap_or(now.sql_mode),
                "insert_id" => settings.insert_id = Some(value.as_u64()).filter(|number| *number != 0),
                _ => {}
            }
            let mut vars = self.vars.lock();
            before.push((id, vars.get(id).clone()));
            vars.put(id, value);
        }
        self.hinted.lock().push(before);
        (self.settings_again(&settings), warnings)
    }

    /// Ends what the last `set_hinted` began.
    pub(crate) fn restore_hinted(&self, before: &SessionSettings) -> SessionSettings {
        let values = self.hinted.lock().pop().unwrap_or_default();
        let mut vars = self.vars.lock();
        for (id, value) in values {
            vars.put(id, value);
        }
        drop(vars);
        self.settings_again(before)
    }

    fn hintable(&self, name: &str) -> SqlResult<VarId> {
        let registry = Registry::get();
        let Some(id) = registry.find_in(name, self.server().log.dialect()) else {
            let message = format!("Unresolved name '{name}' for SET_VAR hint");
            return Err(SqlError { code: 3128, state: *b"HY000", message });
        };
        let known_as = registry.def(id).name;
        if HINTABLE.contains(&known_as) {
            return Ok(id);
        }
        let message = format!("Variable '{known_as}' cannot be set using SET_VAR hint.");
        Err(SqlError { code: 3637, state: *b"HY000", message })
    }

    fn hinted_value(&self, id: VarId, value: &HintValue, access: &dyn AccessCheck) -> SqlResult<Checked> {
        let def = Registry::get().def(id);
        access.check_variable(def.name, None, self.server().log.dialect())?;
        let given = match value {
            HintValue::Int(number) => Given::Value(Value::UInt(*number)),
            HintValue::Real(number) => Given::Value(Value::Double(number.parse().unwrap_or_default())),
            HintValue::Text(text) => Given::Value(Value::Bytes(text.clone().into())),
        };
        let (value, adjusted) = coerce(def, &given)?;
        refuse_unsupported(def, &value)?;
        Ok((value, adjusted))
    }
}
