//! Tables and columns that only one dialect has: MySQL's tables and columns are those of both otherwise.

use super::computed::Def;
use omnibus_format::Dialect;

/// Tables of MariaDB's. MySQL has others in `performance_schema` that say the same.
const MARIADB: [&str; 2] = ["INNODB_LOCKS", "INNODB_LOCK_WAITS"];

/// Columns of MySQL's, by table.
const MYSQL_COLUMNS: [(&str, &[&str]); 1] =
    [("INNODB_TRX", &["trx_adaptive_hash_latched", "trx_adaptive_hash_timeout", "trx_schedule_weight"])];

/// Returns whether a dialect has a table.
pub(super) fn has_table(dialect: Dialect, def: &Def) -> bool {
    dialect == Dialect::Mariadb || !MARIADB.contains(&def.name)
}

/// Returns whether a dialect has a column of a table.
pub(super) fn has_column(dialect: Dialect, def: &Def, column: &str) -> bool {
    let without = MYSQL_COLUMNS.iter().find(|(table, _)| *table == def.name);
    dialect == Dialect::Mysql || !without.is_some_and(|(_, columns)| columns.contains(&column))
}
