//! Names that other versions use for variables, and which dialects list them beside the new ones, as MySQL and MariaDB do.

use super::VarValue;
use omnibus_format::Dialect;

/// The dialects whose SHOW VARIABLES has an old name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listed {
    Nowhere,
    Only(Dialect),
    Everywhere,
}

const NOWHERE: Listed = Listed::Nowhere;
const EVERYWHERE: Listed = Listed::Everywhere;
const IN_MYSQL: Listed = Listed::Only(Dialect::Mysql);
const IN_MARIADB: Listed = Listed::Only(Dialect::Mariadb);

/// Old name, new name, where the old one is listed.
const RENAMED: &[(&str, &str, Listed)] = &[
    ("binlog_annotate_row_events", "binlog_rows_query_log_events", IN_MARIADB),
    ("identity", "last_insert_id", EVERYWHERE),
    ("init_slave", "init_replica", EVERYWHERE),
    ("log_slave_updates", "log_replica_updates", EVERYWHERE),
    ("log_slow_min_examined_row_limit", "min_examined_row_limit", IN_MARIADB),
    ("log_slow_query", "slow_query_log", IN_MARIADB),
    ("log_slow_query_file", "slow_query_log_file", IN_MARIADB),
    ("log_slow_query_time", "long_query_time", IN_MARIADB),
    ("log_slow_slave_statements", "log_slow_replica_statements", EVERYWHERE),
    ("master_verify_checksum", "source_verify_checksum", EVERYWHERE),
    ("max_binlog_total_size", "binlog_space_limit", IN_MARIADB),
    ("max_recursive_iterations", "cte_max_recursion_depth", IN_MARIADB),
    ("rpl_semi_sync_master_enabled", "rpl_semi_sync_source_enabled", IN_MARIADB),
    ("rpl_semi_sync_master_timeout", "rpl_semi_sync_source_timeout", IN_MARIADB),
    ("rpl_semi_sync_master_trace_level", "rpl_semi_sync_source_trace_level", IN_MARIADB),
    ("rpl_semi_sync_master_wait_for_slave_count", "rpl_semi_sync_source_wait_for_replica_count", NOWHERE),
    ("rpl_semi_sync_master_wait_no_slave", "rpl_semi_sync_source_wait_no_replica", IN_MARIADB),
    ("rpl_semi_sync_master_wait_point", "rpl_semi_sync_source_wait_point", IN_MARIADB),
    ("rpl_semi_sync_slave_enabled", "rpl_semi_sync_replica_enabled", IN_MARIADB),
    ("rpl_semi_sync_slave_trace_level", "rpl_semi_sync_replica_trace_level", IN_MARIADB),
    ("rpl_stop_slave_timeout", "rpl_stop_replica_timeout", IN_MYSQL),
    ("skip_replication_start", "skip_replica_start", NOWHERE),
    ("skip_slave_start", "skip_replica_start", IN_MYSQL),
    ("slave_allow_batching", "replica_allow_batching", IN_MYSQL),
    ("slave_checkpoint_group", "replica_checkpoint_group", IN_MYSQL),
    ("slave_checkpoint_period", "replica_checkpoint_period", IN_MYSQL),
    ("slave_compressed_protocol", "replica_compressed_protocol", EVERYWHERE),
    ("slave_exec_mode", "replica_exec_mode", EVERYWHERE),
    ("slave_load_tmpdir", "replica_load_tmpdir", EVERYWHERE),
    ("slave_max_allowed_packet", "replica_max_allowed_packet", EVERYWHERE),
    ("slave_net_timeout", "replica_net_timeout", EVERYWHERE),
    ("slave_parallel_threads", "replica_parallel_workers", IN_MARIADB),
    ("slave_parallel_type", "replica_parallel_type", NOWHERE),
    ("slave_parallel_workers", "replica_parallel_workers", EVERYWHERE),
    ("slave_pending_jobs_size_max", "replica_pending_jobs_size_max", IN_MYSQL),
    ("slave_preserve_commit_order", "replica_preserve_commit_order", IN_MYSQL),
    ("slave_skip_errors", "replica_skip_errors", EVERYWHERE),
    ("slave_sql_verify_checksum", "replica_sql_verify_checksum", EVERYWHERE),
    ("slave_transaction_retries", "replica_transaction_retries", EVERYWHERE),
    ("slave_type_conversions", "replica_type_conversions", EVERYWHERE),
    ("sql_slave_skip_counter", "sql_replica_skip_counter", EVERYWHERE),
    ("storage_engine", "default_storage_engine", IN_MARIADB),
    ("sync_master_info", "sync_source_info", EVERYWHERE),
    ("tmp_memory_table_size", "tmp_table_size", IN_MARIADB),
    ("tx_isolation", "transaction_isolation", IN_MARIADB),
    ("tx_read_only", "transaction_read_only", IN_MARIADB),
];

/// The name that the registry has for a variable.
pub(super) fn new_name(name: &str) -> &str {
    match RENAMED.binary_search_by_key(&name, |(old, _, _)| old) {
        Ok(at) => RENAMED[at].1,
        Err(_) => name,
    }
}

/// The old names that SHOW VARIABLES of a dialect lists.
pub(crate) fn listed(dialect: Dialect) -> impl Iterator<Item = &'static str> {
    let is_listed = move |listed: Listed| listed == EVERYWHERE || listed == Listed::Only(dialect);
    RENAMED.iter().filter(move |(_, _, listed)| is_listed(*listed)).map(|(old, _, _)| *old)
}

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// The variable that is the same setting in another unit, with its value.
#[must_use]
pub(crate) fn in_other_unit(name: &str, value: &VarValue) -> Option<(&'static str, VarValue)> {
    match (name, value) {
        ("expire_logs_days", VarValue::Double(days)) => {
            Some(("binlog_expire_logs_seconds", VarValue::UInt((days * DAY).round() as u64)))
        }
        ("binlog_expire_logs_seconds", VarValue::UInt(seconds)) => {
            Some(("expire_logs_days", VarValue::Double(*seconds as f64 / DAY)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Registry;
    use super::*;

    #[test]
    fn names_are_sorted_and_mean_variables() {
        assert!(RENAMED.is_sorted_by_key(|(old, _, _)| *old));
        for (old, new, _) in RENAMED {
            let id = Registry::get().find(old);
            assert_eq!(id.map(|id| Registry::get().def(id).name), Some(*new), "{old}");
        }
    }
}
