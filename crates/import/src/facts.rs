//! Properties of a source: its log, its ids, and what its account may see.

use crate::error::ImportError;
use crate::session::{Family, Server, Session};

/// A place in a source's log, and the transactions before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    pub file: String,
    pub offset: u64,
    /// MySQL's set, or MariaDB's position; empty without GTIDs.
    pub gtids: String,
}

impl Position {
    /// The order of places in one server's log.
    fn place(&self) -> (u64, u64) {
        let number = self.file.rsplit('.').next().and_then(|n| n.parse().ok()).unwrap_or(0);
        (number, self.offset)
    }

    /// Returns whether this place is not before another one.
    pub(crate) fn reaches(&self, other: &Position) -> bool {
        self.place() >= other.place()
    }

    /// Returns whether it is the same place.
    pub(crate) fn is(&self, other: &Position) -> bool {
        self.file == other.file && self.offset == other.offset
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}

/// The properties of a source that decide whether it can be followed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// A name that no other server has.
    pub identity: String,
    pub log_bin: bool,
    pub format: String,
    pub row_image: String,
    pub gtids: bool,
    /// The time that the source keeps its log, in seconds; 0 for ever.
    pub keeps_log_s: u64,
    pub lower_case_names: String,
    /// It is a replica whose own log lacks what it applies.
    pub hides_applied: bool,
    /// The account may read all tables.
    pub sees_all: bool,
    /// The account's grants, for messages.
    pub grants: Vec<String>,
}

/// Asks a source.
pub(crate) fn look(server: &Server, session: &mut Session) -> Result<Facts, ImportError> {
    let variable = |session: &mut Session, name: &str| session.known(&format!("SELECT @@GLOBAL.{name}"));
    let identity = match variable(session, "server_uuid")? {
        Some(uuid) => uuid,
        None => {
            let parts = ["hostname", "port", "server_id"].map(|name| variable(session, name));
            let parts: Result<Vec<_>, _> = parts.into_iter().collect();
            parts?.into_iter().flatten().collect::<Vec<_>>().join("/")
        }
    };
    let keeps_log_s = match variable(session, "binlog_expire_logs_seconds")? {
        Some(seconds) => seconds.parse().unwrap_or(0),
        None => variable(session, "expire_logs_days")?
            .and_then(|d| d.parse::<f64>().ok())
            .map_or(0, |d| (d * 86_400.0) as u64),
    };
    let applied_is_logged = match variable(session, "log_replica_updates")? {
        None => variable(session, "log_slave_updates")?,
        known => known,
    };
    let hides_applied = applied_is_logged.is_some_and(|on| on == "0" || on == "OFF") && is_replica(session)?;
    let grants: Vec<String> = session.texts("SHOW GRANTS")?.into_iter().flatten().collect();
    let gtids = match server.family {
        Family::Mysql => variable(session, "gtid_mode")?.is_some_and(|mode| mode == "ON"),
        Family::Mariadb => true,
    };
    Ok(Facts {
        identity,
        log_bin: variable(session, "log_bin")?.is_some_and(|on| on == "1" || on == "ON"),
        format: variable(session, "binlog_format")?.unwrap_or_else(|| "ROW".into()),
        row_image: variable(session, "binlog_row_image")?.unwrap_or_else(|| "FULL".into()),
        gtids,
        keeps_log_s,
        lower_case_names: variable(session, "lower_case_table_names")?.unwrap_or_default(),
        hides_applied,
        sees_all: grants.iter().any(|grant| reads_all(grant)),
        grants,
    })
}

/// Returns whether the server has a source of its own; not, if the account may not ask.
fn is_replica(session: &mut Session) -> Result<bool, ImportError> {
    for sql in ["SHOW REPLICA STATUS", "SHOW SLAVE STATUS"] {
        match session.rows(sql) {
            Ok(rows) => return Ok(!rows.is_empty()),
            Err(error) if matches!(error.code(), Some(1064 | 1227)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

/// Returns whether a grant lets its account read every table.
fn reads_all(grant: &str) -> bool {
    let Some((rights, rest)) = grant.strip_prefix("GRANT ").and_then(|g| g.split_once(" ON ")) else {
        return false;
    };
    rest.starts_with("*.*")
        && rights.split(", ").any(|right| right == "SELECT" || right.starts_with("ALL PRIVILEGES"))
}

/// Returns the end of the server's log.
pub(crate) fn position(server: &Server, session: &mut Session) -> Result<Position, ImportError> {
    let row = match session.first("SHOW BINARY LOG STATUS") {
        Err(error) if error.code() == Some(1064) => session.first("SHOW MASTER STATUS")?,
        other => other?,
    };
    let row = row.ok_or_else(|| ImportError::Refused(format!("{} has no binary log", server.label)))?;
    let gtids = match server.family {
        Family::Mysql => {
            session.known("SELECT @@GLOBAL.gtid_executed")?.unwrap_or_default().replace('\n', "")
        }
        Family::Mariadb => session.known("SELECT @@GLOBAL.gtid_binlog_pos")?.unwrap_or_default(),
    };
    let [file, offset] = crate::table::take(row);
    Ok(Position { file, offset: offset.parse().unwrap_or(0), gtids })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_ordered_by_file_number_and_offset() {
        let at = |file: &str, offset| Position { file: file.into(), offset, gtids: String::new() };
        assert!(
            at("b.000010", 4).reaches(&at("b.000009", 900))
                && !at("b.000009", 900).reaches(&at("b.1000000", 4))
        );
        assert!(
            at("b.000001", 5).reaches(&at("b.000001", 5)) && !at("b.000001", 4).reaches(&at("b.000001", 5))
        );
    }

    #[test]
    fn only_global_rights_read_everything() {
        assert!(
            reads_all("GRANT SELECT, RELOAD ON *.* TO `a`@`%`")
                && reads_all("GRANT ALL PRIVILEGES ON *.* TO `a`@`%`")
        );
        assert!(
            !reads_all("GRANT RELOAD ON *.* TO `a`@`%`") && !reads_all("GRANT SELECT ON `d`.* TO `a`@`%`")
        );
    }
}
