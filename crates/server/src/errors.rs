//! Errors of connections, accounts and administration: MySQL's codes and messages that the SQL layer
//! does not need.

use omnibus_format::Dialect;
use omnibus_sql::SqlError;
use std::fmt::Display;

fn error(code: u16, state: &[u8; 5], message: String) -> SqlError {
    SqlError { code, state: *state, message }
}

/// 1950, or 1837's neighbour for an id that another session was quicker with.
#[must_use]
pub fn refused(refusal: &omnibus_commit::Refusal) -> SqlError {
    match refusal {
        omnibus_commit::Refusal::OutOfOrder { .. } => error(1950, b"HY000", refusal.to_string()),
        omnibus_commit::Refusal::Anonymous => error(1782, b"HY000", format!("{refusal}.")),
        _ => error(1180, b"HY000", format!("Got error 149 - '{refusal}' during COMMIT")),
    }
}

/// BACKUP TO that failed; the error log says it too.
#[must_use]
pub fn no_backup(why: &dyn Display) -> SqlError {
    tracing::warn!("BACKUP TO failed: {why}");
    SqlError::new(1105, b"HY000", format!("No backup was made: {why}"))
}
/// 1040.
#[must_use]
pub fn too_many_connections() -> SqlError {
    error(1040, b"08004", "Too many connections".into())
}
/// 1043.
#[must_use]
pub fn handshake() -> SqlError {
    error(1043, b"08S01", "Bad handshake".into())
}
/// 1045.
#[must_use]
pub fn access_denied(user: impl Display, host: impl Display, with_password: bool) -> SqlError {
    let with = if with_password { "YES" } else { "NO" };
    error(1045, b"28000", format!("Access denied for user '{user}'@'{host}' (using password: {with})"))
}
/// 1047.
#[must_use]
pub fn unknown_command() -> SqlError {
    error(1047, b"08S01", "Unknown command".into())
}
/// 1095.
#[must_use]
pub fn kill_denied(id: u64) -> SqlError {
    error(1095, b"HY000", format!("You are not owner of thread {id}"))
}
/// 1129.
#[must_use]
pub fn host_is_blocked(host: impl Display) -> SqlError {
    let unblock = "unblock with 'FLUSH HOSTS'";
    error(1129, b"HY000", format!("Host '{host}' is blocked because of many connection errors; {unblock}"))
}
/// 1130.
#[must_use]
pub fn host_not_allowed(host: impl Display) -> SqlError {
    error(1130, b"HY000", format!("Host '{host}' is not allowed to connect to this MySQL server"))
}
/// 1141.
#[must_use]
pub fn nonexisting_grant(user: impl Display, host: impl Display) -> SqlError {
    error(1141, b"42000", format!("There is no such grant defined for user '{user}' on host '{host}'"))
}
/// 1147.
#[must_use]
pub fn nonexisting_table_grant(user: impl Display, host: impl Display, table: impl Display) -> SqlError {
    let message =
        format!("There is no such grant defined for user '{user}' on host '{host}' on table '{table}'");
    error(1147, b"42000", message)
}
/// 1403.
#[must_use]
pub fn nonexisting_routine_grant(user: impl Display, host: impl Display, name: impl Display) -> SqlError {
    let message =
        format!("There is no such grant defined for user '{user}' on host '{host}' on routine '{name}'");
    error(1403, b"42000", message)
}
/// Error 1698: an account that may not log in this way.
#[must_use]
pub fn access_denied_to(user: impl Display, host: impl Display) -> SqlError {
    error(1698, b"28000", format!("Access denied for user '{user}'@'{host}'"))
}
/// 1959.
#[must_use]
pub fn invalid_role(role: impl Display) -> SqlError {
    error(1959, b"OP000", format!("Invalid role specification `{role}`"))
}
/// 1961.
#[must_use]
pub fn cannot_grant_role(role: impl Display, to: impl Display) -> SqlError {
    error(1961, b"HY000", format!("Cannot grant role '{role}' to: '{to}'"))
}
/// 1962.
#[must_use]
pub fn cannot_revoke_role(role: impl Display, from: impl Display) -> SqlError {
    error(1962, b"HY000", format!("Cannot revoke role '{role}' from: '{from}'"))
}
/// 1133.
#[must_use]
pub fn no_matching_user() -> SqlError {
    error(1133, b"28000", "Can't find any matching row in the user table".into())
}
/// 3523.
#[must_use]
pub fn unknown_authorization(user: impl Display, host: impl Display) -> SqlError {
    error(3523, b"HY000", format!("Unknown authorization ID `{user}`@`{host}`"))
}
/// 3530.
#[must_use]
pub fn role_not_granted(role: impl Display, account: impl Display) -> SqlError {
    error(3530, b"HY000", format!("{role} is not granted to {account}"))
}
/// 3628.
#[must_use]
pub fn mandatory_role(role: impl Display) -> SqlError {
    let message = format!(
        "The role {role} is a mandatory role and can't be revoked or dropped. The restriction can be lifted by excluding the role \
         identifier from the global variable mandatory_roles."
    );
    error(3628, b"HY000", message)
}
/// 3896.
#[must_use]
pub fn partial_revokes_exist() -> SqlError {
    let message = "At least one partial revoke exists on a database. The system variable '@@partial_revokes' must be set to ON.";
    error(3896, b"HY000", message.into())
}
/// 4027.
#[must_use]
pub fn role_granted_to_itself(role: impl Display, account: impl Display) -> SqlError {
    let message = format!(
        "User account {account} is directly or indirectly granted to the role {role}. The GRANT would create a loop"
    );
    error(4027, b"HY000", message)
}
/// 1144.
#[must_use]
pub fn illegal_grant_for_table() -> SqlError {
    let message =
        "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used";
    error(1144, b"42000", message.into())
}
/// 1221.
#[must_use]
pub fn incorrect_usage(one: impl Display, other: impl Display) -> SqlError {
    error(1221, b"HY000", format!("Incorrect usage of {one} and {other}"))
}
/// Error 1370: a right on a routine is missing.
#[must_use]
pub fn routine_denied(
    command: &str,
    user: impl Display,
    host: impl Display,
    db: impl Display,
    routine: impl Display,
) -> SqlError {
    let message = format!("{command} command denied to user '{user}'@'{host}' for routine '{db}.{routine}'");
    error(1370, b"42000", message)
}
/// 1449.
#[must_use]
pub fn no_such_definer(user: impl Display, host: impl Display) -> SqlError {
    error(1449, b"HY000", format!("The user specified as a definer ('{user}'@'{host}') does not exist"))
}
/// An error as a server of this dialect says it.
#[must_use]
pub fn in_dialect(mut error: SqlError, dialect: Dialect) -> SqlError {
    error.message = words_of(error.code, error.message, dialect);
    error
}

/// The text of an error, which may stand in another one, as a server of this dialect says it.
#[must_use]
pub fn words_of(code: u16, message: String, dialect: Dialect) -> String {
    match (dialect, code) {
        (Dialect::Mariadb, 1064 | 1130 | 1290) => message.replacen("MySQL server", "MariaDB server", 1),
        _ => message,
    }
}

/// Error 1142: a right on a table is missing.
#[must_use]
pub fn command_denied(command: &str, user: &str, host: &str, table: &str) -> SqlError {
    SqlError::tableaccess_denied(command, user, host, table)
}
/// 1153.
#[must_use]
pub fn packet_too_large() -> SqlError {
    error(1153, b"08S01", "Got a packet bigger than 'max_allowed_packet' bytes".into())
}
/// 13: a file to be read is not there.
#[must_use]
pub fn cannot_stat(path: impl Display, error: &std::io::Error) -> SqlError {
    error_of_file(13, format!("Can't get stat of '{path}'"), error)
}
/// 29: a file to be read cannot be opened.
#[must_use]
pub fn cannot_open(path: impl Display, error: &std::io::Error) -> SqlError {
    error_of_file(29, format!("File '{path}' not found"), error)
}
/// 1: a file cannot be made.
#[must_use]
pub fn cannot_create(path: impl Display, error: &std::io::Error) -> SqlError {
    error_of_file(1, format!("Can't create/write to file '{path}'"), error)
}
fn error_of_file(code: u16, message: String, cause: &std::io::Error) -> SqlError {
    let number = cause.raw_os_error().unwrap_or(0);
    let text = cause.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    error(code, b"HY000", format!("{message} (OS errno {number} - {text})"))
}
/// 3, or 1021: a temporary file failed.
#[must_use]
pub fn temporary_file(cause: std::io::Error) -> SqlError {
    if omnibus_sql::is_full(&cause) {
        return SqlError::disk_full(format_args!("tmpdir: {cause}"));
    }
    error_of_file(3, "Error writing a temporary file".into(), &cause)
}
/// 1085.
#[must_use]
pub fn no_text_file(path: impl Display) -> SqlError {
    error(
        1085,
        b"HY000",
        format!("The file '{path}' must be in the database directory or be readable by all"),
    )
}
/// 1086.
#[must_use]
pub fn file_exists(path: impl Display) -> SqlError {
    error(1086, b"HY000", format!("File '{path}' already exists"))
}
/// 1158.
#[must_use]
pub fn net_read() -> SqlError {
    error(1158, b"08S01", "Got an error reading communication packets".into())
}
/// 1156.
#[must_use]
pub fn packets_out_of_order() -> SqlError {
    error(1156, b"08S01", "Got packets out of order".into())
}
/// 1203.
#[must_use]
pub fn too_many_user_connections(user: impl Display) -> SqlError {
    let message = format!("User {user} already has more than 'max_user_connections' active connections");
    error(1203, b"42000", message)
}
/// 1226.
#[must_use]
pub fn user_limit_reached(user: impl Display, resource: &str, limit: u32) -> SqlError {
    let message = format!("User '{user}' has exceeded the '{resource}' resource (current value: {limit})");
    error(1226, b"42000", message)
}
/// 1820.
#[must_use]
pub fn must_change_password() -> SqlError {
    let message = "You must reset your password using ALTER USER statement before executing this statement.";
    error(1820, b"HY000", message.into())
}
/// 1862.
#[must_use]
pub fn password_expired() -> SqlError {
    let message = "Your password has expired. To log in you must change it using a client that supports expired passwords.";
    error(1862, b"HY000", message.into())
}
/// 3032.
#[must_use]
pub fn offline() -> SqlError {
    error(3032, b"HY000", "The server is currently in offline mode".into())
}
/// 3955: `days` of -1 never end.
#[must_use]
pub fn blocked_by_failures(user: &str, host: &str, days: i32, left: Option<i64>, failures: u16) -> SqlError {
    let text = |days: Option<i64>| days.map_or("unlimited".into(), |days| days.to_string());
    let all = text((days >= 0).then_some(days.into()));
    let message = format!(
        "Access denied for user '{user}'@'{host}'. Account is blocked for {all} day(s) ({} day(s) remaining) due to {failures} consecutive failed logins.",
        text(left)
    );
    error(3955, b"HY000", message)
}
/// 1227.
#[must_use]
pub fn specific_access_denied(privileges: impl Display) -> SqlError {
    error(
        1227,
        b"42000",
        format!("Access denied; you need (at least one of) the {privileges} privilege(s) for this operation"),
    )
}
/// 1228.
#[must_use]
pub fn local_variable(name: impl Display) -> SqlError {
    error(
        1228,
        b"HY000",
        format!("Variable '{name}' is a SESSION variable and can't be used with SET GLOBAL"),
    )
}
/// 1229.
#[must_use]
pub fn global_variable(name: impl Display) -> SqlError {
    error(1229, b"HY000", format!("Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL"))
}
/// 1621.
#[must_use]
pub fn read_only_in_session(name: impl Display) -> SqlError {
    let text = format!("SESSION variable '{name}' is read-only. Use SET GLOBAL to assign the value");
    error(1621, b"HY000", text)
}
/// 1232.
#[must_use]
pub fn wrong_type_for_var(name: impl Display) -> SqlError {
    error(1232, b"42000", format!("Incorrect argument type to variable '{name}'"))
}
/// 1238: `kind` is `read only`, `SESSION`, `GLOBAL`.
#[must_use]
pub fn incorrect_scope(name: impl Display, kind: impl Display) -> SqlError {
    error(1238, b"HY000", format!("Variable '{name}' is a {kind} variable"))
}
/// 1243.
#[must_use]
pub fn unknown_stmt_handler(id: impl Display, command: &str) -> SqlError {
    error(1243, b"HY000", format!("Unknown prepared statement handler ({id}) given to {command}"))
}
/// 1421.
#[must_use]
pub fn no_open_cursor(id: impl Display) -> SqlError {
    error(1421, b"HY000", format!("The statement ({id}) has no open cursor."))
}
/// 1253.
#[must_use]
pub fn collation_charset_mismatch(collation: impl Display, charset: impl Display) -> SqlError {
    error(1253, b"42000", format!("COLLATION '{collation}' is not valid for CHARACTER SET '{charset}'"))
}
/// 1275 and friends: the stored hash is none.
#[must_use]
pub fn bad_password_hash() -> SqlError {
    error(1827, b"HY000", "The password hash doesn't have the expected format.".into())
}
/// 1649.
#[must_use]
pub fn unknown_locale(name: impl Display) -> SqlError {
    error(1649, b"HY000", format!("Unknown locale: '{name}'"))
}
/// 1396.
#[must_use]
pub fn cannot_user(operation: &str, users: impl Display) -> SqlError {
    error(1396, b"HY000", format!("Operation {operation} failed for {users}"))
}
/// 1410.
#[must_use]
pub fn cant_create_user_with_grant() -> SqlError {
    error(1410, b"42000", "You are not allowed to create a user with GRANT".into())
}
/// 1461.
#[must_use]
pub fn max_prepared_stmts(max: u64) -> SqlError {
    error(
        1461,
        b"42000",
        format!("Can't create more than max_prepared_stmt_count statements (current value: {max})"),
    )
}
/// 1524.
#[must_use]
pub fn plugin_not_loaded(name: impl Display) -> SqlError {
    error(1524, b"HY000", format!("Plugin '{name}' is not loaded"))
}
/// 1835.
#[must_use]
pub fn malformed_packet() -> SqlError {
    error(1835, b"HY000", "Malformed communication packet.".into())
}
/// 3118.
#[must_use]
pub fn account_locked(user: impl Display, host: impl Display) -> SqlError {
    error(3118, b"HY000", format!("Access denied for user '{user}'@'{host}'. Account is locked."))
}
/// 3554: `table` with its database.
#[must_use]
pub fn no_system_table_access(table: &str) -> SqlError {
    error(3554, b"HY000", format!("Access to system table '{table}' is rejected."))
}
/// 3159.
#[must_use]
pub fn secure_transport_required() -> SqlError {
    error(
        3159,
        b"HY000",
        "Connections using insecure transport are prohibited while --require_secure_transport=ON.".into(),
    )
}
/// 1157.
#[must_use]
pub fn net_uncompress() -> SqlError {
    error(1157, b"08S01", "Couldn't uncompress communication packet".into())
}
/// 3922.
#[must_use]
pub fn wrong_compression_algorithm(name: &str) -> SqlError {
    error(3922, b"HY000", format!("Invalid compression algorithm '{name}'."))
}
/// 3923.
#[must_use]
pub fn wrong_compression_level(level: u8) -> SqlError {
    error(3923, b"HY000", format!("Invalid compression level '{level}'."))
}
/// 4031.
#[must_use]
pub fn inactivity_timeout() -> SqlError {
    error(4031, b"HY000", "The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout for configuring this behavior.".into())
}

/// 1772.
pub fn malformed_gtid_set(text: &str) -> SqlError {
    SqlError::new(1772, b"HY000", format!("Malformed GTID set specification '{text}'."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_a_dialect_names_itself_in_what_a_replica_stops_with() {
        let text = || {
            "Worker 1 failed; Error 'check the manual that corresponds to your MySQL server version'"
                .to_owned()
        };
        assert_eq!(words_of(1064, text(), Dialect::Mysql), text());
        assert!(words_of(1064, text(), Dialect::Mariadb).contains("your MariaDB server version"));
        assert_eq!(words_of(1062, text(), Dialect::Mariadb), text(), "a value that somebody stored");
    }
}
