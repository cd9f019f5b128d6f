//! The variables that ask for more than a session: those whose effect reaches beyond it, as MySQL and MariaDB restrict them.

use crate::account::Privileges;
use omnibus_format::Dialect;
use omnibus_parser::ast::VarScope;

/// The privileges for SET GLOBAL, one of which it needs.
const GLOBAL: Privileges = Privileges::SUPER.with(Privileges::SYSTEM_VARIABLES_ADMIN);
const SESSION: Privileges = GLOBAL.with(Privileges::SESSION_VARIABLES_ADMIN);

/// Restricted in both dialects.
const EVERYWHERE: &[&str] = &[
    "binlog_direct_non_transactional_updates",
    "binlog_format",
    "binlog_row_image",
    "binlog_rows_query_log_events",
    "connection_memory_limit",
    "global_connection_memory_tracking",
    "gtid_domain_id",
    "gtid_next",
    "gtid_seq_no",
    "max_allowed_packet",
    "pseudo_thread_id",
    "server_id",
    "sql_log_bin",
    "sql_log_off",
];
/// Restricted as MySQL does.
const IN_MYSQL: &[&str] = &[
    "binlog_row_value_options",
    "binlog_transaction_compression",
    "binlog_transaction_compression_level_zstd",
    "bulk_insert_buffer_size",
    "character_set_database",
    "character_set_filesystem",
    "collation_database",
    "default_table_encryption",
    "explicit_defaults_for_timestamp",
    "immediate_server_version",
    "internal_tmp_mem_storage_engine",
    "original_commit_timestamp",
    "original_server_version",
    "pseudo_replica_mode",
    "pseudo_slave_mode",
    "rbr_exec_mode",
    "sql_generate_invisible_primary_key",
    "sql_require_primary_key",
    "xa_detach_on_prepare",
];
/// Restricted as MariaDB does.
const IN_MARIADB: &[&str] =
    &["enforce_storage_engine", "innodb_tmpdir", "log_disabled_statements", "wsrep_on"];
/// The variables that a printed log sets: who may replay one may set them.
const OF_LOGS: &[&str] = &[
    "gtid_domain_id",
    "gtid_next",
    "gtid_seq_no",
    "immediate_server_version",
    "original_commit_timestamp",
    "original_server_version",
    "pseudo_replica_mode",
    "pseudo_slave_mode",
    "server_id",
];

/// The rights that setting a variable asks for: of each of these sets one.
pub(crate) fn of_setting(name: &str, scope: Option<VarScope>, dialect: Dialect) -> Vec<Privileges> {
    let mut needed = match scope {
        None | Some(VarScope::Session) => return of_session(name, dialect).into_iter().collect(),
        Some(_) => vec![GLOBAL],
    };
    // MariaDB has no rights on variables as such.
    if dialect == Dialect::Mysql {
        needed.extend(match name {
            "binlog_encryption" => Some(Privileges::BINLOG_ENCRYPTION_ADMIN),
            "default_table_encryption" => Some(Privileges::TABLE_ENCRYPTION_ADMIN),
            name if name.starts_with(super::AUDIT_PREFIX) => Some(Privileges::AUDIT_ADMIN),
            "mandatory_roles" => Some(Privileges::ROLE_ADMIN),
            "offline_mode" => Some(Privileges::CONNECTION_ADMIN),
            _ => None,
        });
        needed
            .extend((scope == Some(VarScope::PersistOnly)).then_some(Privileges::PERSIST_RO_VARIABLES_ADMIN));
    }
    needed
}

fn of_session(name: &str, dialect: Dialect) -> Option<Privileges> {
    let own = match dialect {
        Dialect::Mysql => IN_MYSQL,
        Dialect::Mariadb => IN_MARIADB,
    };
    if !EVERYWHERE.contains(&name) && !own.contains(&name) {
        return None;
    }
    Some(match dialect {
        _ if OF_LOGS.contains(&name) => SESSION.with(Privileges::REPLICATION_APPLIER),
        Dialect::Mariadb if name == "innodb_tmpdir" => Privileges::FILE,
        Dialect::Mariadb if name == "pseudo_thread_id" => SESSION.with(Privileges::REPLICATION_APPLIER),
        Dialect::Mariadb if name.contains("bin") => SESSION.with(Privileges::BINLOG_ADMIN),
        _ => SESSION,
    })
}

#[cfg(test)]
mod tests {
    use super::super::Registry;
    use super::*;

    #[test]
    fn all_of_these_variables_exist() {
        for name in [EVERYWHERE, IN_MYSQL, IN_MARIADB, OF_LOGS].concat() {
            assert!(Registry::get().find(name).is_some(), "{name}");
        }
    }
}
