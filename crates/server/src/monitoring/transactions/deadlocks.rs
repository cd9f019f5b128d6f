//! Deadlocks as texts. One is made when the deadlock is found, before anybody goes on: by then all of its statements wait. `innodb_print_all_deadlocks`
//! has each in the server's log as well, which is written elsewhere: nobody's wait can begin meanwhile.

use super::locks::LockPlaces;
use super::status::{lock, transaction};
use super::{Holder, OpenTrx};
use crate::clock::{now_us, utc_text};
use crate::server::Server;
use omnibus_locks::{Deadlock, Deadlocked, LockTarget};
use std::fmt::Write;
use std::sync::Arc;

/// Transactions of a deadlock that are described.
const DESCRIBED: usize = 8;

/// From now on deadlocks are noted. In the context of the runtime.
pub(crate) fn watch(server: &Arc<Server>) {
    let (whom, runtime) = (Arc::downgrade(server), tokio::runtime::Handle::current());
    server.database.locks().observe_deadlocks(Box::new(move |deadlock| {
        let row = |member: &Deadlocked| {
            matches!(member.target, Some(LockTarget::Record { .. } | LockTarget::Range { .. }))
        };
        let Some(server) = whom.upgrade().filter(|_| deadlock.members.iter().any(row)) else { return };
        let text = describe(&server, deadlock);
        server.deadlocks.keep(&text);
        if server.globals.named("innodb_print_all_deadlocks").as_bool() {
            runtime.spawn_blocking(move || {
                tracing::warn!("transactions deadlock detected, dumping detailed information");
                text.lines().filter(|line| !line.is_empty()).for_each(|line| tracing::warn!("{line}"));
            });
        }
    }));
}

/// A member's transaction.
fn trx_of(server: &Server, member: &Deadlocked, now: i64) -> Option<OpenTrx> {
    let process = server.processes.get(member.owner)?;
    let watch = process.transaction()?.clone();
    let line = Some(process.line(now));
    Some(OpenTrx { seen: watch.look(), line, running: process.is_running(), held: Holder::Session(watch) })
}

fn describe(server: &Server, deadlock: &Deadlock) -> String {
    let now = now_us();
    let mut out = format!("{} 0\n", utc_text(now));
    let spaces = |member: &Deadlocked| match &member.target {
        Some(LockTarget::Record { space, .. } | LockTarget::Range { space }) => Some(*space),
        _ => None,
    };
    let spaces: Vec<u32> = deadlock.members.iter().filter_map(spaces).collect();
    let places = LockPlaces::of_spaces(&server.database, &spaces);
    let members = &deadlock.members;
    for (at, member) in members.iter().enumerate().take(DESCRIBED) {
        let number = at + 1;
        let before = &members[(at + members.len() - 1) % members.len()];
        let _ = writeln!(out, "*** ({number}) TRANSACTION:");
        let trx = trx_of(server, member, now);
        match &trx {
            Some(trx) => transaction(server, trx, now, &mut out),
            None => {
                let _ = writeln!(out, "TRANSACTION {}, ACTIVE 0 sec", member.owner << 32);
            }
        }
        let id = trx.map_or(member.owner << 32, |trx| trx.seen.id);
        if let Some(held) = &before.target {
            let _ = writeln!(out, "\n*** ({number}) HOLDS THE LOCK(S):");
            let mode = if before.mode == "X,INSERT_INTENTION" { "X,GAP" } else { "X" };
            lock(id, (held, mode, false), &places, &mut out);
        }
        if let Some(wanted) = &member.target {
            let _ = writeln!(out, "\n*** ({number}) WAITING FOR THIS LOCK TO BE GRANTED:");
            lock(id, (wanted, member.mode, true), &places, &mut out);
        }
        out.push('\n');
    }
    if members.len() > DESCRIBED {
        let _ = writeln!(out, "... and {} more", members.len() - DESCRIBED);
    }
    let _ = writeln!(out, "*** WE ROLL BACK TRANSACTION ({})", deadlock.victim + 1);
    out
}
