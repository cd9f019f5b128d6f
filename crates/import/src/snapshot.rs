//! One moment of the source, seen by several sessions, and its place in the source's log.
//!
//! Writers stop for that moment, under FLUSH TABLES WITH READ LOCK, or where the account may not do that, under LOCK TABLES
//! of all chosen tables. Without a lock, sessions and place could be of different moments: a transaction is in the log
//! before snapshots see it.

use crate::error::ImportError;
use crate::facts::{self, Position};
use crate::selection::TableName;
use crate::session::{Server, Session};
use std::time::{Duration, Instant};

/// Attempts to get the lock, each of which may hold writers up for the lock's timeout.
const ATTEMPTS: u32 = 5;
/// The rest between them, in which the writers go on.
const REST: Duration = Duration::from_secs(5);

/// Sessions with one and the same snapshot.
pub(crate) struct Snapshot {
    pub sessions: Vec<Session>,
    pub at: Position,
    /// The time for which writers were stopped.
    pub stopped: Duration,
}

/// Takes a snapshot in `count` sessions. A lock that does not come within `lock_wait_s` seconds is given up, so that
/// nobody waits behind it, and tried again later.
pub(crate) fn take(
    server: &Server,
    count: usize,
    tables: &[TableName],
    lock_wait_s: u32,
) -> Result<Snapshot, ImportError> {
    let mut locker = server.session()?;
    locker.optional(&format!("SET SESSION lock_wait_timeout = {lock_wait_s}"))?;
    let mut sessions = Vec::new();
    for _ in 0..count {
        let mut session = server.session()?;
        session.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
        sessions.push(session);
    }
    let begun = lock(&mut locker, tables)?;
    for session in &mut sessions {
        session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
    }
    let at = facts::position(server, &mut locker)?;
    locker.run("UNLOCK TABLES")?;
    Ok(Snapshot { sessions, at, stopped: begun.elapsed() })
}

/// Stops the writers. Returns when they began to wait.
fn lock(session: &mut Session, tables: &[TableName]) -> Result<Instant, ImportError> {
    for attempt in 1.. {
        let begun = Instant::now();
        match stop_writers(session, tables) {
            Ok(()) => return Ok(begun),
            Err(error) if error.code() != Some(1205) => return Err(error),
            Err(_) if attempt == ATTEMPTS => break,
            Err(_) => std::thread::sleep(REST),
        }
    }
    let running = session.texts(
        "SELECT ID, USER, TIME, LEFT(INFO, 80) FROM information_schema.PROCESSLIST \
         WHERE COMMAND = 'Query' AND ID <> CONNECTION_ID() ORDER BY TIME DESC LIMIT 3",
    )?;
    let shown: Vec<String> = running.into_iter().map(|row| row.join(" ")).collect();
    Err(ImportError::Refused(format!(
        "the lock for the moment of the snapshot did not come in {ATTEMPTS} attempts, because statements hold tables open. \
         The longest (id, user, seconds, text): {}. Wait for them or KILL them, or give --lock-wait a larger number of seconds \
         (writers wait as long)",
        shown.join("; ")
    )))
}

fn stop_writers(session: &mut Session, tables: &[TableName]) -> Result<(), ImportError> {
    match session.run("FLUSH TABLES WITH READ LOCK") {
        Ok(_) => return Ok(()),
        Err(error) if matches!(error.code(), Some(1044 | 1045 | 1227)) => {}
        Err(error) => return Err(error),
    }
    if tables.is_empty() {
        return Ok(());
    }
    let list: Vec<String> = tables.iter().map(|table| format!("{} READ", table.quoted())).collect();
    match session.run(&format!("LOCK TABLES {}", list.join(", "))) {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.code(), Some(1044 | 1045 | 1142 | 1227)) => Err(ImportError::Refused(
            "the account may neither FLUSH TABLES WITH READ LOCK nor LOCK TABLES, so that no moment can be fixed: \
             GRANT RELOAD ON *.* (or LOCK TABLES) to it"
                .into(),
        )),
        Err(error) => Err(error),
    }
}
