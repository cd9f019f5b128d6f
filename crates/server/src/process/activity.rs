//! Activities of connections and threads, in the words of SHOW PROCESSLIST. Texts only.

use omnibus_format::Dialect;
use omnibus_locks::LockTarget;

/// The activity of a connection, as the Command column says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // the names are MySQL's own
pub enum Activity {
    Connect,
    Sleep,
    Query,
    Prepare,
    Execute,
    FieldList,
    Quit,
    InitDb,
    Kill,
    ChangeUser,
    ResetConnection,
    Statistics,
    BinlogDump,
    BinlogDumpGtid,
    RegisterSlave,
    CloseStmt,
    ResetStmt,
    Ping,
    Other,
}

impl Activity {
    const ALL: [(Activity, &'static str); 19] = [
        (Activity::Connect, "Connect"),
        (Activity::Sleep, "Sleep"),
        (Activity::Query, "Query"),
        (Activity::Prepare, "Prepare"),
        (Activity::Execute, "Execute"),
        (Activity::FieldList, "Field List"),
        (Activity::Quit, "Quit"),
        (Activity::InitDb, "Init DB"),
        (Activity::Kill, "Kill"),
        (Activity::ChangeUser, "Change user"),
        (Activity::ResetConnection, "Reset Connection"),
        (Activity::Statistics, "Statistics"),
        (Activity::BinlogDump, "Binlog Dump"),
        (Activity::BinlogDumpGtid, "Binlog Dump GTID"),
        (Activity::RegisterSlave, "Register Slave"),
        (Activity::CloseStmt, "Close stmt"),
        (Activity::ResetStmt, "Reset stmt"),
        (Activity::Ping, "Ping"),
        (Activity::Other, "Daemon"),
    ];

    /// Its name.
    pub(crate) fn text(self) -> &'static str {
        Activity::name(self as u8)
    }

    /// By its number.
    pub(super) fn name(n: u8) -> &'static str {
        Activity::ALL.get(usize::from(n)).map_or("", |(_, name)| name)
    }
}

/// The state of a running statement, as the State column says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // explained by the texts
pub enum Stage {
    None,
    Login,
    Executing,
    LockWait,
    TableLockWait,
    ReadLockWait,
    CommitWait,
    Sending,
    SendingEvents,
    WaitingForEvents,
    ReadingFile,
    WaitingForPosition,
    WaitingForGtid,
    DiskWait,
}

impl Stage {
    /// That of a wait for a lock.
    pub(crate) fn waiting_for(target: &LockTarget) -> Stage {
        match target {
            LockTarget::Record { .. } | LockTarget::Range { .. } => Stage::LockWait,
            LockTarget::Table { .. } => Stage::TableLockWait,
            LockTarget::Gate => Stage::ReadLockWait,
        }
    }
}

/// Their texts.
const STAGES: [&str; 14] = [
    "",
    "login",
    "executing",
    "waiting for a lock",
    // Schema changers look for these words before they let go of what they hold.
    "Waiting for table metadata lock",
    "Waiting for global read lock",
    "waiting for handler commit",
    "sending data",
    "Sending binlog event to replica",
    "Source has sent all binlog to replica; waiting for more updates",
    "reading file",
    "Waiting for the replica SQL thread to advance position",
    "Waiting for GTID to be committed",
    "waiting for disk space",
];

/// The text of a stage, by its number.
pub(super) fn stage_text(n: u8) -> &'static str {
    STAGES.get(usize::from(n)).copied().unwrap_or_default()
}

/// States of replication by the names that MariaDB's servers have for them.
const MARIADB_STATES: [(&str, &str); 11] = [
    ("Sending binlog event to replica", "Sending binlog event to slave"),
    (
        "Source has sent all binlog to replica; waiting for more updates",
        "Master has sent all binlog to slave; waiting for more updates",
    ),
    ("Waiting for source to send event", "Waiting for master to send event"),
    ("Connecting to source", "Connecting to master"),
    ("Reconnecting after a failed source event read", "Reconnecting after a failed master event read"),
    (
        "Replica has read all relay log; waiting for more updates",
        "Slave has read all relay log; waiting for more updates",
    ),
    ("Waiting for the next event", "Waiting for the next event in relay log"),
    ("Waiting for an event from Coordinator", "Waiting for work from SQL thread"),
    ("Waiting for preceding transaction to commit", "Waiting for prior transaction to commit"),
    (
        "Waiting for the replica SQL thread to advance position",
        "Waiting for the slave SQL thread to advance position",
    ),
    ("Waiting for GTID to be committed", "Waiting in MASTER_GTID_WAIT()"),
];

/// A state in the words of a dialect.
#[must_use]
pub fn state_in(dialect: Dialect, state: &'static str) -> &'static str {
    match MARIADB_STATES.iter().find(|(name, _)| *name == state) {
        Some((_, name)) if dialect == Dialect::Mariadb => name,
        _ => state,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_their_numbers() {
        for (at, (activity, name)) in Activity::ALL.iter().enumerate() {
            assert_eq!((*activity as usize, Activity::name(at as u8)), (at, *name));
        }
        assert_eq!(stage_text(Stage::WaitingForEvents as u8), STAGES[9]);
    }

    #[test]
    fn each_dialect_has_its_words() {
        let idle = "Replica has read all relay log; waiting for more updates";
        assert_eq!(state_in(Dialect::Mysql, idle), idle);
        let theirs = "Slave has read all relay log; waiting for more updates";
        assert_eq!(state_in(Dialect::Mariadb, idle), theirs);
        assert_eq!(state_in(Dialect::Mariadb, "executing"), "executing");
    }
}
