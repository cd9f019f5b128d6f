//! The system schema of a new data directory.
//!
//! Real tables, made by the same statements a user would send, but not written to the log as such:
//! a replica has its own. Accounts are the server's business; it fills `mysql.user`.

use super::{Database, SqlSession};
use crate::api::{AllowAll, KillFlag, Mode};
use crate::error::{Interrupt, SqlError, SqlResult};
use bytes::Bytes;
use std::sync::Arc;

const STATEMENTS: [&str; 7] = [
    "CREATE DATABASE IF NOT EXISTS mysql CHARACTER SET utf8mb4",
    "CREATE TABLE IF NOT EXISTS mysql.user (
        Host varchar(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
        User varchar(32) COLLATE utf8mb4_bin NOT NULL DEFAULT '',
        Privileges varchar(4096) COLLATE utf8mb4_bin NOT NULL DEFAULT '',
        Grant_option tinyint NOT NULL DEFAULT 0,
        Is_role tinyint NOT NULL DEFAULT 0,
        Ssl_type varchar(16) COLLATE utf8mb4_bin NOT NULL DEFAULT '',
        Max_user_connections int unsigned NOT NULL DEFAULT 0,
        plugin varchar(64) COLLATE utf8mb4_bin NOT NULL DEFAULT 'caching_sha2_password',
        authentication_string text COLLATE utf8mb4_bin,
        password_expired tinyint NOT NULL DEFAULT 0,
        account_locked tinyint NOT NULL DEFAULT 0,
        Password_changed timestamp NULL DEFAULT NULL,
        Attributes text COLLATE utf8mb4_bin,
        PRIMARY KEY (Host, User)
    ) COMMENT='Users and global privileges'",
    "CREATE TABLE IF NOT EXISTS mysql.db (
        Host varchar(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
        Db varchar(64) COLLATE utf8mb4_bin NOT NULL DEFAULT '',
        User varchar(32) COLLATE utf8mb4_bin NOT NULL DEFAULT '',
        Table_name varchar(64) COLLATE utf8mb4_bin NOT NULL DEFAULT '',
        Privileges varchar(4096) COLLATE utf8mb4_bin NOT NULL DEFAULT '',
        Grant_option tinyint NOT NULL DEFAULT 0,
        PRIMARY KEY (Host, Db, User, Table_name)
    ) COMMENT='Database privileges'",
    // One row for what an account has on one table, routine or role. A role's name and host part are in Name and Db.
    "CREATE TABLE IF NOT EXISTS mysql.object_grants (
        Host varchar(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
        User varchar(32) COLLATE utf8mb4_bin NOT NULL DEFAULT '',
        Kind varchar(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '',
        Db varchar(255) COLLATE utf8mb4_bin NOT NULL DEFAULT '',
        Name varchar(64) COLLATE utf8mb4_bin NOT NULL DEFAULT '',
        Privileges varchar(4096) COLLATE utf8mb4_bin NOT NULL DEFAULT '',
        Grant_option tinyint NOT NULL DEFAULT 0,
        Columns mediumtext COLLATE utf8mb4_bin,
        PRIMARY KEY (Host, User, Kind, Db, Name)
    ) COMMENT='Privileges on tables, columns and routines, and roles'",
    "CREATE TABLE IF NOT EXISTS mysql.replica_channel (
        Channel_name varchar(64) COLLATE utf8mb4_bin NOT NULL,
        Settings mediumtext COLLATE utf8mb4_bin NOT NULL,
        PRIMARY KEY (Channel_name)
    ) COMMENT='Sources that this server replicates from'",
    // Filled under `log_output=TABLE`; mysqldump and mariadb-dump end with an error where they are missing.
    "CREATE TABLE IF NOT EXISTS mysql.general_log (
        event_time timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
        user_host mediumtext NOT NULL,
        thread_id bigint unsigned NOT NULL,
        server_id int unsigned NOT NULL,
        command_type varchar(64) NOT NULL,
        argument mediumblob NOT NULL
    ) COMMENT='General log'",
    "CREATE TABLE IF NOT EXISTS mysql.slow_log (
        start_time timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
        user_host mediumtext NOT NULL,
        query_time time(6) NOT NULL,
        lock_time time(6) NOT NULL,
        rows_sent int NOT NULL,
        rows_examined int NOT NULL,
        db varchar(512) NOT NULL,
        last_insert_id int NOT NULL,
        insert_id int NOT NULL,
        server_id int unsigned NOT NULL,
        sql_text mediumblob NOT NULL,
        thread_id bigint unsigned NOT NULL
    ) COMMENT='Slow log'",
];

/// The tables that they make.
const TABLES: [&str; 6] = ["user", "db", "object_grants", "replica_channel", "general_log", "slow_log"];

/// Makes what is missing.
pub(super) fn run(database: &Arc<Database>) -> SqlResult<()> {
    let catalog = database.catalog();
    if TABLES.iter().all(|table| catalog.find_table("mysql", table).is_some()) {
        return Ok(());
    }
    let mut session = SqlSession::new(database.clone(), 0, Arc::new(KillFlag::default()));
    session.state.settings.sql_log_bin = false;
    for sql in STATEMENTS {
        let text = Bytes::from_static(sql.as_bytes());
        let (statement, _) = session.parse(&text, false)?;
        let outcome = session.execute(&statement, &text, &[], Mode::Blocking, &AllowAll, &mut Nowhere);
        let outcome = outcome.map_err(|interrupt| match interrupt {
            Interrupt::Error(error) => error,
            _ => SqlError::internal("the system schema could not be made"),
        })?;
        if let Some(ticket) = outcome.wait {
            ticket.wait().map_err(SqlError::of_commit)?;
        }
    }
    Ok(())
}

/// Takes no rows.
pub(crate) struct Nowhere;

impl crate::api::RowSink for Nowhere {
    fn columns(&mut self, _: &[crate::api::ResultColumn]) -> SqlResult<()> {
        Ok(())
    }
    fn row(&mut self, _: &[omnibus_value::Value]) -> SqlResult<()> {
        Ok(())
    }
}
