//! SHOW ENGINE INNODB STATUS: what is true of this server, in the sections and lines that monitoring programs look for.

use super::locks::LockPlaces;
use super::rows::{lock_structs, operation, tables_locked};
use super::{OpenTrx, open};
use crate::clock::utc_text;
use crate::old_versions::{OldestSnapshot, oldest};
use crate::server::Server;
use omnibus_disk::{Figures, Request};
use omnibus_locks::LockTarget;
use omnibus_sql::catalog::Uses;
use std::fmt::Write;
use std::sync::atomic::Ordering;

/// Transactions that are listed.
const LISTED: usize = 1000;

/// InnoDB's page, in which programs count.
const PAGE: u64 = 16 << 10;

/// The whole text.
pub(crate) fn text(server: &Server) -> String {
    let now = crate::clock::now_us();
    let uptime = (now - server.counters.started_us.load(Ordering::Relaxed)).max(0) / 1_000_000;
    let line = "=====================================";
    let mut out = format!("\n{line}\n{} 0 INNODB MONITOR OUTPUT\n{line}\n", utc_text(now));
    let _ = writeln!(out, "Per second averages calculated from the last {} seconds", uptime.max(1));
    if let Some(error) = server.deadlocks.foreign_key_error() {
        section(&mut out, "LATEST FOREIGN KEY ERROR");
        out.push_str(&error);
    }
    if let Some(deadlock) = server.deadlocks.latest() {
        section(&mut out, "LATEST DETECTED DEADLOCK");
        out.push_str(&deadlock);
    }
    section(&mut out, "TRANSACTIONS");
    transactions(server, now, &mut out);
    section(&mut out, "FILE I/O");
    file_io(server, uptime.max(1), &mut out);
    section(&mut out, "LOG");
    log(server, &mut out);
    section(&mut out, "BUFFER POOL AND MEMORY");
    memory(server, &mut out);
    section(&mut out, "ROW OPERATIONS");
    row_operations(server, uptime.max(1), &mut out);
    out.push_str(
        "----------------------------\nEND OF INNODB MONITOR OUTPUT\n============================\n",
    );
    out
}

fn section(out: &mut String, title: &str) {
    let line = "-".repeat(title.len());
    let _ = writeln!(out, "{line}\n{title}\n{line}");
}

fn transactions(server: &Server, now: i64, out: &mut String) {
    let snapshot = oldest(&server.processes, &*server.log);
    if let Some(coordinator) = server.log.coordinator() {
        let next = coordinator.numbered().0 + 1;
        let _ = writeln!(out, "Trx id counter {next}");
        let purged = snapshot.as_ref().map_or(next, |oldest| oldest.number + 1);
        let _ = writeln!(out, "Purge done for trx's n:o < {purged} undo n:o < 0 state: running");
    }
    let behind = snapshot.as_ref().map_or(0, |oldest| oldest.behind);
    let _ = writeln!(out, "History list length {behind}");
    if let Some(OldestSnapshot { connection, seconds, behind, kept, .. }) = snapshot {
        let whose = match connection {
            0 => "the server itself".to_owned(),
            id => format!("{} thread id {id}, for {seconds} sec", product(server)),
        };
        let _ = writeln!(out, "Oldest read view: {whose}; {behind} transactions committed since");
        let _ = writeln!(out, "Kept for it: about {} bytes, {} files", kept.bytes, kept.files);
    }
    out.push_str("LIST OF TRANSACTIONS FOR EACH SESSION:\n");
    let open = open(server);
    let places = LockPlaces::of(&server.database);
    // The newest first, as InnoDB has them.
    for trx in open.iter().rev().take(LISTED) {
        out.push_str("---");
        transaction(server, trx, now, out);
        if let Some(wait) = trx.seen.waits_for_row() {
            let seconds = wait.waited.as_secs();
            let _ = writeln!(out, "------- TRX HAS BEEN WAITING {seconds} SEC FOR THIS LOCK TO BE GRANTED:");
            lock(trx.seen.id, (&wait.target, wait.mode, true), &places, out);
            out.push_str("------------------\n");
        }
        if let Some((number, _)) = trx.seen.snapshot {
            let next = number.0 + 1;
            let _ = writeln!(out, "Trx read view will not see trx with id >= {next}, sees < {next}");
        }
    }
    if open.len() > LISTED {
        let _ = writeln!(out, "... and {} more", open.len() - LISTED);
    }
}

/// The product's name, as programs look for it.
fn product(server: &Server) -> &'static str {
    if server.is_mariadb() { "MariaDB" } else { "MySQL" }
}

/// A transaction's own lines.
pub(super) fn transaction(server: &Server, trx: &OpenTrx, now: i64, out: &mut String) {
    let (seen, waits) = (&trx.seen, trx.seen.waits_for_row().is_some());
    let prepared = if trx.line.is_none() { " (PREPARED)" } else { "" };
    let _ = write!(out, "TRANSACTION {}, ACTIVE{prepared} {} sec", seen.id, trx.seconds(now));
    if waits {
        let _ = write!(out, " {}", operation(trx));
    }
    out.push('\n');
    if trx.running {
        let _ =
            writeln!(out, "mysql tables in use {}, locked {}", seen.held.tables.max(1), tables_locked(trx));
    }
    let wait = if waits { "LOCK WAIT " } else { "" };
    let (structs, bytes, rows) = (lock_structs(trx), seen.lock_bytes, seen.held.rows);
    let _ = write!(out, "{wait}{structs} lock struct(s), heap size {bytes}, {rows} row lock(s)");
    if seen.rows_changed > 0 {
        let _ = write!(out, ", undo log entries {}", seen.rows_changed);
    }
    out.push('\n');
    let Some(line) = &trx.line else { return };
    let host = line.identity.host.rsplit_once(':').map_or(&*line.identity.host, |(host, _)| host);
    let state = if trx.running { line.state } else { "" };
    let (product, id, user) = (product(server), line.id, &line.identity.user);
    let told = format!("{product} thread id {id}, OS thread handle 0, query id 0 {host} {user} {state}");
    let _ = writeln!(out, "{}", told.trim_end());
    if let Some(query) = trx.query() {
        let _ = writeln!(out, "{query}");
    }
}

/// A lock's own lines.
pub(super) fn lock(trx: u64, what: (&LockTarget, &str, bool), places: &LockPlaces, out: &mut String) {
    let (target, mode, waits) = what;
    let waiting = if waits { " waiting" } else { "" };
    let (space, key) = match target {
        LockTarget::Record { space, key } => (*space, Some(key)),
        LockTarget::Range { space } => (*space, None),
        LockTarget::Table { .. } | LockTarget::Gate => {
            let name = places.table_of(target).unwrap_or_else(|| "all tables".to_owned());
            let _ = writeln!(out, "TABLE LOCK table {name} trx id {trx} lock mode {mode}{waiting}");
            return;
        }
    };
    let (table, index) = match places.index(space) {
        Some((table, index)) => (format!("`{}`.`{}`", table.def.db, table.def.name), index),
        None => ("?".to_owned(), "?"),
    };
    let how = match mode {
        "X,GAP" => "lock_mode X locks gap before rec",
        "X,INSERT_INTENTION" if waits => "lock_mode X insert intention",
        "S" => "lock mode S locks rec but not gap",
        _ => "lock_mode X locks rec but not gap",
    };
    let _ = writeln!(
        out,
        "RECORD LOCKS space id {space} page no 0 n bits 0 index {index} of table {table} trx id {trx} {how}{waiting}"
    );
    if let Some(text) = key.and_then(|key| places.key(space, key)) {
        let _ = writeln!(out, "Record lock, key {text}");
    }
}

/// Requests of the server's own files (`performance_schema.file_summary_by_event_name`), and syncs of the log.
fn file_io(server: &Server, uptime: i64, out: &mut String) {
    let sum = |request| {
        let files = server.file_uses.all().into_iter();
        files.map(|(_, uses)| uses.of(request)).fold(Figures::default(), Figures::with)
    };
    let (read, written) = (sum(Request::Read), sum(Request::Write));
    let syncs = server.log.coordinator().map_or(0, |log| log.stats().syncs.load(Ordering::Relaxed));
    let (reads, writes) = (read.count, written.count);
    let _ = writeln!(out, "{reads} OS file reads, {writes} OS file writes, {syncs} OS fsyncs");
    let each = read.bytes / reads.max(1);
    let [reads, writes, syncs] = [reads, writes, syncs].map(|count| per_second(count, uptime));
    let _ = writeln!(out, "{reads} reads/s, {each} avg bytes/read, {writes} writes/s, {syncs} fsyncs/s");
}

fn per_second(count: u64, seconds: i64) -> String {
    format!("{:.2}", count as f64 / seconds as f64)
}

/// The engines' caches and what they have not written out yet, in InnoDB's pages; and what statements and definitions take.
fn memory(server: &Server, out: &mut String) {
    let bytes = |name| server.globals.named(name).as_u64();
    let caches = bytes("lsm_block_cache_size") + bytes("btree_cache_size");
    let unwritten = server.log.coordinator().map_or(0, |log| log.engine().stats().memtable_bytes);
    let (memory, limit) = (server.database.memory(), bytes("global_connection_memory_limit"));
    let _ = writeln!(out, "Total large memory allocated {}", caches + unwritten + memory.used());
    let _ = writeln!(out, "Dictionary memory allocated {}", memory.definitions());
    let _ = writeln!(out, "Buffer pool size   {}", caches / PAGE);
    let _ = writeln!(out, "Buffer pool size, bytes {caches}");
    let _ = writeln!(out, "Modified db pages  {}", unwritten.div_ceil(PAGE));
    let _ = writeln!(out, "Memory of statements {} bytes, of at most {limit}", memory.used());
}

fn log(server: &Server, out: &mut String) {
    if let Some(log) = server.log.handle() {
        let (file, position) = (log.names(), server.log.coordinator().map(|c| c.published().place().1));
        if let Some(position) = position {
            let (name, offset) = (file.log(position.file), position.offset.0);
            let _ = writeln!(out, "Log file              {name}, position {offset}");
        }
    }
    if let Some(coordinator) = server.log.coordinator() {
        let published = coordinator.published().number().0;
        // All three are commit numbers, because programs take them from one another.
        let _ = writeln!(out, "Log sequence number   {}", coordinator.numbered().0);
        let _ = writeln!(out, "Log flushed up to     {published}");
        let _ = writeln!(out, "Last checkpoint at    {}", coordinator.engine().persisted());
    }
}

/// Rows inserted, updated, deleted and read of the tables that there are, since the start or their last definition.
fn rows_by_kind(server: &Server) -> [u64; 4] {
    let (catalog, mut sums) = (server.database.catalog(), [0; 4]);
    for table in catalog.tables() {
        let Uses { inserted, updated, deleted, fetched } = table.usage.all();
        sums.iter_mut().zip([inserted, updated, deleted, fetched]).for_each(|(sum, more)| *sum += more);
    }
    sums
}

fn row_operations(server: &Server, uptime: i64, out: &mut String) {
    let clients = server.processes.clients();
    let running = clients.iter().filter(|process| process.is_running()).count();
    let views = server.processes.all();
    let views = views.iter().filter_map(|process| process.transaction()?.snapshot()).count();
    let _ = writeln!(out, "{running} queries inside InnoDB, 0 queries in queue");
    let _ = writeln!(out, "{views} read views open inside InnoDB");
    let _ = writeln!(out, "Process ID={}, Main thread ID=0, state: sleeping", std::process::id());
    let rows = rows_by_kind(server);
    let [inserted, updated, deleted, read] = rows;
    let _ = writeln!(
        out,
        "Number of rows inserted {inserted}, updated {updated}, deleted {deleted}, read {read}"
    );
    let [inserts, updates, deletes, reads] = rows.map(|count| per_second(count, uptime));
    let _ = writeln!(out, "{inserts} inserts/s, {updates} updates/s, {deletes} deletes/s, {reads} reads/s");
    let stats = server.database.locks().stats();
    let (waits, now, deadlocks) = (stats.waits, stats.current_waits, stats.deadlocks);
    let _ = writeln!(out, "Row lock waits {waits}, now {now}, {} ms together", stats.wait_us_total / 1000);
    let _ = writeln!(out, "Deadlocks {deadlocks}, lock wait timeouts {}", stats.timeouts);
    let _ = writeln!(out, "Up {uptime} sec");
}
