//! Open transactions: who has them, since when, what they lock and wait for, and the last deadlock. Rows of INNODB_TRX, OMNIBUS_OLD_VERSIONS,
//! `events_transactions_*`, `data_locks` and their kin, and the text of SHOW ENGINE INNODB STATUS.
//!
//! A query reads the process list, and of each session what its transaction tells (`SessionWatch`), one after the other. No
//! statement and no commit waits for that; two rows may be of different moments.

mod deadlocks;
mod events;
mod locks;
mod rows;
mod status;
mod versions;

pub(crate) use deadlocks::watch;
pub(crate) use events::{current, history};
pub(crate) use locks::{mariadb_lock_waits, mariadb_locks, waits as lock_waits, with_waits as locks};
pub(crate) use rows::rows;
pub(crate) use status::text as status_text;
pub(crate) use versions::old_versions;

use crate::process::{Process, ProcessLine};
use crate::server::Server;
use omnibus_sql::xa::PreparedSeen;
use omnibus_sql::{SessionWatch, TrxSeen};
use std::sync::Arc;

/// Locks of single records that are listed of each transaction.
const LISTED: usize = 1000;
/// The shown part of a statement, as in MySQL's INNODB_TRX.
const QUERY: usize = 1024;

/// A transaction that uses tables.
pub(crate) struct OpenTrx {
    /// The transaction itself.
    pub seen: TrxSeen,
    /// Its connection; `None` for a prepared branch, which is nobody's.
    pub line: Option<ProcessLine>,
    /// A statement of it runs.
    pub running: bool,
    held: Holder,
}

/// The holder of the locks.
enum Holder {
    Session(Arc<SessionWatch>),
    Branch(Box<PreparedSeen>),
}

impl OpenTrx {
    fn of(process: &Process, now: i64) -> Option<OpenTrx> {
        let watch = process.transaction()?;
        let (seen, running) = (watch.look(), process.is_running());
        let shown = seen.uses_tables() && (seen.kind.open || running);
        shown.then(|| OpenTrx {
            seen,
            line: Some(process.line(now)),
            running,
            held: Holder::Session(watch.clone()),
        })
    }

    fn prepared(branch: PreparedSeen) -> OpenTrx {
        let seen = branch.trx.clone();
        OpenTrx { seen, line: None, running: false, held: Holder::Branch(Box::new(branch)) }
    }

    /// Its running statement, cut.
    pub fn query(&self) -> Option<String> {
        let text = self.line.as_ref().filter(|_| self.running)?.info.as_deref()?;
        Some(text.chars().take(QUERY).collect())
    }

    /// The connection's number, 0 for nobody's.
    pub fn connection(&self) -> u64 {
        self.line.as_ref().map_or(0, |line| line.id.into())
    }

    /// For how many seconds it has been using tables.
    pub fn seconds(&self, now: i64) -> u64 {
        u64::try_from(now).unwrap_or(0).saturating_sub(self.seen.began_us) / 1_000_000
    }
}

/// All transactions that use tables, oldest first. Prepared branches are among them.
pub(crate) fn open(server: &Server) -> Vec<OpenTrx> {
    let now = crate::clock::now_us();
    let sessions = server.processes.all();
    let mut found: Vec<OpenTrx> = sessions.iter().filter_map(|process| OpenTrx::of(process, now)).collect();
    found.extend(server.database.prepared(LISTED).into_iter().map(OpenTrx::prepared));
    found.sort_by_key(|trx| trx.seen.began_us);
    found
}
