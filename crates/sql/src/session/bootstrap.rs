//! The system schema of a new data directory.
//!
//! Real tables, made by the same statements a user would send, but not written to the log as such:
//! a replica has its own. Accounts are the server's business; it fills `mysql.user`.

use super::{Database, SqlSession};
use crate::api::{AllowAll, KillFlag, Mode};
use crate::error::{Interrupt, SqlError, SqlResult};
use bytes::Bytes;
use std::sync::Arc;

const STATEMENTS: [&str; 3] = [
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
    ) COMMENT='Database and table privileges'",
];

/// Makes what is missing.
pub(super) fn run(database: &Arc<Database>) -> SqlResult<()> {
    let catalog = database.catalog();
    if catalog.find_table("mysql", "user").is_some() && catalog.find_table("mysql", "db").is_some() {
        return Ok(());
    }
    let mut session = SqlSession::new(database.clone(), 0, Arc::new(KillFlag::default()));
    session.state.settings.sql_log_bin = false;
    for sql in STATEMENTS {
        let text = Bytes::from_static(sql.as_bytes());
        let (statement, _) = session.parse(&text)?;
        let outcome = session.execute(&statement, &text, Mode::Blocking, &AllowAll, &mut Nowhere);
        let outcome = outcome.map_err(|interrupt| match interrupt {
            Interrupt::Error(error) => error,
            _ => SqlError::internal("the system schema could not be made"),
        })?;
        if let Some(ticket) = outcome.wait {
            ticket.wait().map_err(SqlError::error_during_commit)?;
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
