//! Counts by account since the start: connections, statements, the time these took. Of open connections they are in their counters; of
//! those that are gone it is summed up here.

use crate::process::{Process, Processes};
use crate::status::Counter;
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Accounts and hosts that are kept apart; what comes from others, once its connection is gone, is forgotten.
const KEPT: usize = 10_000;

/// Sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Use {
    /// Connections that are open.
    pub current: u64,
    /// Connections.
    pub connections: u64,
    /// Statements.
    pub statements: u64,
    /// Their time, microseconds.
    pub took_us: u64,
    /// Those that read a whole table or index.
    pub unindexed: u64,
}

impl Use {
    fn of(process: &Process, current: u64) -> Use {
        let get = |counter| process.counters.get(counter);
        Use {
            current,
            connections: 1,
            statements: get(Counter::Questions),
            took_us: get(Counter::StatementTime),
            unindexed: get(Counter::Unindexed),
        }
    }

    pub(crate) fn add(&mut self, other: Use) {
        self.current += other.current;
        self.connections += other.connections;
        self.statements += other.statements;
        self.took_us += other.took_us;
        self.unindexed += other.unindexed;
    }
}

/// User and host.
pub(crate) type Who = (String, String);

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ByAccount(Mutex<BTreeMap<Who, Use>>);

fn who(process: &Process) -> Option<Who> {
    let identity = process.identity.lock();
    let host = identity.host.rsplit_once(':').map_or(&*identity.host, |(host, _)| host);
    // Nobody has logged in yet.
    (!identity.account.is_empty()).then(|| (identity.user.clone(), host.to_owned()))
}

impl ByAccount {
    /// A connection is gone.
    pub(crate) fn retire(&self, process: &Process) {
        let Some(who) = who(process) else { return };
        let mut kept = self.0.lock();
        if kept.len() < KEPT || kept.contains_key(&who) {
            kept.entry(who).or_default().add(Use::of(process, 0));
        }
    }

    /// All of it.
    pub(crate) fn all(&self, processes: &Processes) -> BTreeMap<Who, Use> {
        let mut all = self.0.lock().clone();
        for process in processes.clients() {
            if let Some(who) = who(&process) {
                all.entry(who).or_default().add(Use::of(&process, 1));
            }
        }
        all
    }
}
