//! System tables in a dump of another server: what the dump says of them is passed over.
//!
//! MySQL's and MariaDB's dumps of all databases carry tables of the `mysql` schema: accounts, time zones, help, statistics; `--system` of
//! MariaDB's program has servers and proxies as statements, and rights on such tables. Here these
//! are other tables, computed, or not there, and accounts are never written as rows (ACCESS-1). So their statements do nothing but
//! warn, and the rest of the dump loads. Only inside what looks like a dump: its head switches `foreign_key_checks` and
//! `unique_checks` off, and one without a head (`--compact`) keeps something in `@saved_cs_client`. Anybody else is told with an error.

use crate::account::{Account, Privileges};
use crate::errors;
use omnibus_parser::ast::{GrantTarget, GrantWhat, ObjectName, Statement};
use omnibus_sql::SqlSession;

/// The system tables of MySQL 5.7 to 9 and MariaDB 10 to 12 that dumps have.
const SYSTEM_TABLES: [&str; 52] = [
    "audit_log_filter",
    "audit_log_user",
    "column_stats",
    "columns_priv",
    "component",
    "db",
    "default_roles",
    "engine_cost",
    "event",
    "firewall_group_allowlist",
    "firewall_groups",
    "firewall_membership",
    "firewall_users",
    "firewall_whitelist",
    "func",
    "general_log",
    "global_grants",
    "global_priv",
    "gtid_executed",
    "gtid_slave_pos",
    "help_category",
    "help_keyword",
    "help_relation",
    "help_topic",
    "host",
    "index_stats",
    "innodb_index_stats",
    "innodb_table_stats",
    "ndb_binlog_index",
    "password_history",
    "plugin",
    "proc",
    "procs_priv",
    "proxies_priv",
    "replication_asynchronous_connection_failover",
    "replication_asynchronous_connection_failover_managed",
    "replication_group_configuration_version",
    "replication_group_member_actions",
    "role_edges",
    "roles_mapping",
    "server_cost",
    "servers",
    "slave_master_info",
    "slave_relay_log_info",
    "slave_worker_info",
    "slow_log",
    "table_stats",
    "tables_priv",
    "transaction_registry",
    "user",
    "time_zone",
    "replica_channel",
];

fn is_system_table(name: &str) -> bool {
    SYSTEM_TABLES.iter().any(|own| name.eq_ignore_ascii_case(own)) || name.starts_with("time_zone_")
}

/// The tables of a dump's statement, and the privilege that it would take. `None`: no such statement.
fn targets(statement: &Statement) -> Option<(Vec<&ObjectName>, Privileges)> {
    Some(match statement {
        Statement::CreateTable(tree) if !tree.temporary => (vec![&tree.name], Privileges::CREATE),
        Statement::DropTable(tree) if !tree.temporary => (tree.tables.iter().collect(), Privileges::DROP),
        // MariaDB's `user` is a view.
        Statement::CreateView(tree) => (vec![&tree.name], Privileges::CREATE),
        Statement::DropView(tree) => (tree.tables.iter().collect(), Privileges::DROP),
        Statement::AlterTable(tree) => (vec![&tree.table], Privileges::ALTER),
        Statement::Truncate(name) => (vec![name], Privileges::DROP),
        Statement::Insert(tree) => (vec![&tree.table], Privileges::INSERT),
        Statement::LockTables(locks) => {
            (locks.iter().map(|lock| &lock.table).collect(), Privileges::LOCK_TABLES)
        }
        // The accounts of a MariaDB have rights on tables of its own.
        Statement::Grant(grant) => match &grant.what {
            GrantWhat::Privileges { target: GrantTarget::Table(table), .. } => {
                (vec![table], Privileges::GRANT_OPTION)
            }
            _ => return None,
        },
        _ => return None,
    })
}

/// Whether a statement is passed over, because it is a dump's and about system tables. Leaves the warnings.
pub(super) fn passes_over(account: &Account, sql: &mut SqlSession, statement: &Statement) -> bool {
    let state = &sql.state;
    let head = !state.settings.foreign_key_checks && !state.settings.unique_checks;
    // Both programs keep the client's character set there around each definition, with `--compact`, too.
    if !head && state.values.get("saved_cs_client").is_none() {
        return false;
    }
    let in_mysql = state.database.as_deref().is_some_and(|db| db.eq_ignore_ascii_case("mysql"));
    let (names, needed): (Vec<String>, _) = match statement {
        Statement::DropDatabase { name, .. } if name.eq_ignore_ascii_case("mysql") => {
            (vec!["mysql".into()], Privileges::DROP)
        }
        Statement::Unsupported(what) if what.kind == "create_server" => {
            (vec!["mysql.servers".into()], Privileges::INSERT)
        }
        other => {
            let Some((tables, needed)) = targets(other) else { return false };
            let system = |table: &&ObjectName| {
                table.schema.as_ref().map_or(in_mysql, |db| db.eq_ignore_ascii_case("mysql"))
                    && is_system_table(&table.name)
            };
            if tables.is_empty() || !tables.iter().all(system) {
                return false;
            }
            (tables.iter().map(|table| format!("mysql.{}", table.name.as_str())).collect(), needed)
        }
    };
    if !account.rights().on_database("mysql").has(needed) || can_be_granted(sql, statement) {
        return false;
    }
    let diagnostics = &mut sql.state.diagnostics;
    diagnostics.clear();
    names.iter().for_each(|name| diagnostics.warn(errors::no_system_table_access(name)));
    true
}

/// Whether it is a GRANT on a system table that is here, too.
fn can_be_granted(sql: &mut SqlSession, statement: &Statement) -> bool {
    let Statement::Grant(grant) = statement else { return false };
    let GrantWhat::Privileges { privileges, target } = &grant.what else { return false };
    sql.check_grant_target(target, privileges).is_ok()
}
