//! How a session executes statements.

use super::def::{Fixed::*, Kind, Scope, VarDef as V};
use omnibus_format::Dialect;

const MAX: u64 = u64::MAX;
const LEVELS: Kind = Kind::Enum(&["READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"]);

/// `sql_mode` of MySQL 8.4.
pub const SQL_MODE: &str = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,\
    ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

/// The family.
pub static VARS: &[V] = &[
    V::both("sql_mode", Kind::SqlMode, S(SQL_MODE)),
    V::both("autocommit", Kind::Bool, B(true)),
    V::both("transaction_isolation", LEVELS, S("REPEATABLE-READ")),
    V::both("transaction_read_only", Kind::Bool, B(false)),
    V::both("completion_type", Kind::Enum(&["NO_CHAIN", "CHAIN", "RELEASE"]), S("NO_CHAIN")),
    V::both("auto_increment_increment", Kind::UInt(1, 65_535, 1), U(1)),
    V::both("auto_increment_offset", Kind::UInt(1, 65_535, 1), U(1)),
    V::both("foreign_key_checks", Kind::Bool, B(true)),
    V::both("unique_checks", Kind::Bool, B(true)),
    V::both("sql_select_limit", Kind::UInt(0, MAX, 1), U(MAX)),
    V::both("sql_safe_updates", Kind::Bool, B(false)),
    V::both("sql_big_selects", Kind::Bool, B(true)),
    V::both("sql_buffer_result", Kind::Bool, B(false)),
    V::both("sql_auto_is_null", Kind::Bool, B(false)),
    V::both("sql_quote_show_create", Kind::Bool, B(true)),
    V::both("sql_notes", Kind::Bool, B(true)),
    V::both("sql_warnings", Kind::Bool, B(false)),
    V::session("sql_log_off", Kind::Bool, B(false)),
    V::both("sql_require_primary_key", Kind::Bool, B(false)),
    V::both("sql_generate_invisible_primary_key", Kind::Bool, B(false)),
    V::both("big_tables", Kind::Bool, B(false)),
    V::both("max_join_size", Kind::UInt(1, MAX, 1), U(MAX)),
    V::both("max_error_count", Kind::UInt(0, 65_535, 1), U(1024)),
    V::both("max_execution_time", Kind::UInt(0, u32::MAX as u64, 1), U(0)),
    V::both("max_length_for_sort_data", Kind::UInt(4, 8 << 20, 1), U(4096)),
    V::both("max_sort_length", Kind::UInt(4, 8 << 20, 1), U(1024)),
    V::both("max_sp_recursion_depth", Kind::UInt(0, 255, 1), U(0)),
    V::both("max_points_in_geometry", Kind::UInt(3, 1 << 20, 1), U(65_536)),
    V::both("group_concat_max_len", Kind::UInt(4, MAX, 1), U(1024)),
    V::both("div_precision_increment", Kind::UInt(0, 30, 1), U(4)),
    V::both("explicit_defaults_for_timestamp", Kind::Bool, B(true)),
    V::both("show_create_table_skip_secondary_engine", Kind::Bool, B(false)),
    V::both("show_create_table_verbosity", Kind::Bool, B(false)),
    V::both("show_gipk_in_create_table_and_information_schema", Kind::Bool, B(true)),
    V::both("information_schema_stats_expiry", Kind::UInt(0, 31_536_000, 1), U(86_400)),
    V::both("lock_wait_timeout", Kind::UInt(1, 31_536_000, 1), U(31_536_000)),
    V::both("low_priority_updates", Kind::Bool, B(false)),
    V::both("updatable_views_with_limit", Kind::Enum(&["NO", "YES"]), S("YES")),
    V::both("old_alter_table", Kind::Bool, B(false)),
    V::both("print_identified_with_as_hex", Kind::Bool, B(false)),
    V::both("restrict_fk_on_non_standard_key", Kind::Bool, B(true)),
    V::both("optimizer_switch", Kind::Text, S("index_merge=off,mrr=off")),
    V::both("optimizer_trace", Kind::Text, S("enabled=off,one_line=off")),
    V::both("optimizer_search_depth", Kind::UInt(0, 62, 1), U(62)),
    V::both("optimizer_prune_level", Kind::UInt(0, 1, 1), U(1)),
    V::both("eq_range_index_dive_limit", Kind::UInt(0, u32::MAX as u64, 1), U(200)),
    V::both("range_optimizer_max_mem_size", Kind::UInt(0, MAX, 1), U(8 << 20)),
    V::both("cte_max_recursion_depth", Kind::UInt(0, u32::MAX as u64, 1), U(1000)),
    V::both("windowing_use_high_precision", Kind::Bool, B(true)),
    V::both("explain_format", Kind::Enum(&["TRADITIONAL", "JSON", "TREE"]), S("TRADITIONAL"))
        .only(Dialect::Mysql),
    V::both("end_markers_in_json", Kind::Bool, B(false)),
    V::both("profiling", Kind::Bool, B(false)),
    V::both("profiling_history_size", Kind::UInt(0, 100, 1), U(15)),
    V::both("session_track_schema", Kind::Bool, B(true)),
    V::both("session_track_state_change", Kind::Bool, B(false)),
    V::both("session_track_transaction_info", Kind::Enum(&["OFF", "STATE", "CHARACTERISTICS"]), S("OFF")),
    V::both(
        "session_track_system_variables",
        Kind::Text,
        S("time_zone,autocommit,character_set_client,character_set_results,character_set_connection"),
    ),
    V::both("resultset_metadata", Kind::Enum(&["NONE", "FULL"]), S("FULL")),
    V::both("use_secondary_engine", Kind::Enum(&["OFF", "ON", "FORCED"]), S("ON")),
    V::session("timestamp", Kind::Double(0.0, 4_294_967_295.0), D(0.0)),
    V::session("insert_id", Kind::UInt(0, MAX, 1), U(0)),
    V::session("last_insert_id", Kind::UInt(0, MAX, 1), U(0)),
    V::session("rand_seed1", Kind::UInt(0, u32::MAX as u64, 1), U(0)),
    V::session("rand_seed2", Kind::UInt(0, u32::MAX as u64, 1), U(0)),
    V::computed("warning_count", Scope::Session, Kind::UInt(0, MAX, 1), U(0)),
    V::computed("error_count", Scope::Session, Kind::UInt(0, MAX, 1), U(0)),
    V::session("transaction_allow_batching", Kind::Bool, B(false)),
    V::computed("proxy_user", Scope::Session, Kind::NullableText, Null),
    V::computed("external_user", Scope::Session, Kind::NullableText, Null),
];
