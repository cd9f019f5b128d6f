//! Locks of rows and tables, who has them and who wants them: `data_locks`, `data_lock_waits`, and MariaDB's INNODB_LOCKS and INNODB_LOCK_WAITS.

use super::{Holder, LISTED, OpenTrx, open};
use crate::held_locks::{TableLocked, table_locks};
use crate::monitoring::{Row, text, text_or_null};
use crate::server::Server;
use bytes::Bytes;
use omnibus_engine::Snapshot;
use omnibus_locks::{HeldLock, LockTarget, WaitInfo};
use omnibus_sql::Database;
use omnibus_sql::catalog::{Catalog, Table};
use omnibus_value::Value;
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

/// The engine's name in these tables, as programs look for it.
const ENGINE: &str = "INNODB";
/// The shown part of a key.
const KEY: usize = 256;

/// A lock's name: the transaction and the object, the same whoever names them. Keys may be long, so it has a digest of them.
pub(crate) fn lock_id(trx: u64, target: &LockTarget) -> String {
    match target {
        LockTarget::Record { space, key } => {
            let mut digest = DefaultHasher::new();
            digest.write(key);
            format!("{trx}:{space}:{:016x}", digest.finish())
        }
        LockTarget::Range { space } => format!("{trx}:{space}:gap"),
        LockTarget::Table { table } => format!("{trx}:{table}"),
        LockTarget::Gate => format!("{trx}:all"),
    }
}

/// Names of what locks are on.
pub(super) struct LockPlaces {
    catalog: Arc<Catalog>,
    spaces: HashMap<u32, (Arc<Table>, usize)>,
    latest: Box<dyn Snapshot>,
}

impl LockPlaces {
    pub(super) fn of(database: &Database) -> LockPlaces {
        LockPlaces::of_those(database, |_| true)
    }

    /// Those of few spaces.
    pub(super) fn of_spaces(database: &Database, few: &[u32]) -> LockPlaces {
        LockPlaces::of_those(database, |space| few.contains(&space))
    }

    fn of_those(database: &Database, wanted: impl Fn(u32) -> bool) -> LockPlaces {
        let catalog = database.catalog();
        let mut spaces = HashMap::new();
        for table in catalog.tables() {
            for (at, index) in table.indexes().iter().enumerate().filter(|(_, index)| wanted(index.space.0)) {
                spaces.insert(index.space.0, (table.clone(), at));
            }
        }
        LockPlaces { catalog, spaces, latest: database.port().latest() }
    }

    /// The name of the table of a table's lock.
    pub(super) fn table_of(&self, target: &LockTarget) -> Option<String> {
        let LockTarget::Table { table } = target else { return None };
        let table = self.table(omnibus_sql::locked_table(*table))?;
        Some(format!("`{}`.`{}`", table.def.db, table.def.name))
    }

    /// The table and index of a space.
    pub(super) fn index(&self, space: u32) -> Option<(&Table, &str)> {
        let (table, at) = self.spaces.get(&space)?;
        Some((table, &table.indexes().get(*at)?.name))
    }

    /// A key's columns, as far as they can be read out of it.
    pub(super) fn key(&self, space: u32, key: &[u8]) -> Option<String> {
        let (table, at) = self.spaces.get(&space)?;
        let text = omnibus_sql::catalog::codec::key_text(table, *at, key)?;
        Some(text.chars().take(KEY).collect())
    }

    /// The same; what can not be read out of a primary key is read out of the row, if that is there already. May read from a disk.
    fn key_or_row(&self, space: u32, key: &Bytes) -> Option<String> {
        let text = self.key(space, key)?;
        let (table, at) = self.spaces.get(&space)?;
        if *at != 0 || !text.contains('?') {
            return Some(text);
        }
        let row = self.latest.get(key).ok().flatten();
        let told = row.and_then(|row| omnibus_sql::catalog::codec::row_key_text(table, &row));
        Some(told.map_or(text, |told| told.chars().take(KEY).collect()))
    }

    fn table(&self, id: u64) -> Option<&Arc<Table>> {
        self.catalog.tables().find(|table| table.def.id == id)
    }
}

/// A row of `data_locks`.
struct Lock {
    id: String,
    trx: u64,
    thread: u64,
    place: Place,
    mode: &'static str,
    waits: bool,
}

/// The object of a lock.
#[derive(Default)]
struct Place {
    db: String,
    table: String,
    index: Option<String>,
    space: u32,
    data: Option<String>,
}

impl Place {
    fn of(places: &LockPlaces, target: &LockTarget) -> Place {
        let (space, key) = match target {
            LockTarget::Record { space, key } => (*space, Some(key)),
            LockTarget::Range { space } => (*space, None),
            LockTarget::Table { table } => return Place::of_table(places, omnibus_sql::locked_table(*table)),
            LockTarget::Gate => return Place::default(),
        };
        let Some((table, index)) = places.index(space) else { return Place { space, ..Place::default() } };
        Place {
            db: table.def.db.to_string(),
            table: table.def.name.to_string(),
            index: Some(index.to_owned()),
            space,
            data: key.and_then(|key| places.key_or_row(space, key)),
        }
    }

    fn of_table(places: &LockPlaces, id: u64) -> Place {
        let Some(table) = places.table(id) else { return Place::default() };
        Place { db: table.def.db.to_string(), table: table.def.name.to_string(), ..Place::default() }
    }
}

/// A record's lock in MySQL's words: it never has the gap before it, which is locked by itself.
fn record_mode(mode: &'static str) -> &'static str {
    match mode {
        "X" | "X,INSERT_INTENTION" => "X,REC_NOT_GAP",
        "S" => "S,REC_NOT_GAP",
        other => other,
    }
}

/// The same in a table that the transaction may only read.
fn shared_mode(mode: &'static str) -> &'static str {
    if mode == "X,GAP" { "S,GAP" } else { "S,REC_NOT_GAP" }
}

/// Tables by name.
#[derive(Default)]
struct Tables(HashSet<(String, String)>);

impl Tables {
    /// Those for whose rows a session has no more than an intention to share them.
    fn only_read(locks: &[TableLocked], owner: u64) -> Tables {
        let own = locks.iter().filter(|lock| lock.owner == owner && lock.mode == "IS");
        Tables(own.filter_map(|lock| lock.table.clone()).collect())
    }

    fn has(&self, db: &str, table: &str) -> bool {
        self.0.iter().any(|(own, name)| own == db && name == table)
    }
}

fn target_of(lock: &HeldLock) -> LockTarget {
    match &lock.key {
        Some(key) => LockTarget::Record { space: lock.space, key: key.clone() },
        None => LockTarget::Range { space: lock.space },
    }
}

impl OpenTrx {
    /// The locks that it holds in spaces.
    pub(super) fn held_in_spaces(&self) -> Vec<HeldLock> {
        match &self.held {
            Holder::Session(watch) => watch.held_in_spaces(LISTED),
            Holder::Branch(branch) => branch.locks.clone(),
        }
    }
}

/// Transactions by what locks say of their owners.
struct Owners<'a>(&'a [OpenTrx]);

impl Owners<'_> {
    /// The transaction that has a lock by that owner's number: the session's, or the branch that the session has prepared.
    fn find(&self, owner: u64, target: &LockTarget) -> Option<&OpenTrx> {
        let holds = |trx: &&OpenTrx| match &trx.held {
            Holder::Branch(branch) => {
                trx.seen.id >> 32 == owner && branch.locks.iter().any(|lock| target_of(lock) == *target)
            }
            Holder::Session(_) => false,
        };
        let session = || self.0.iter().find(|trx| trx.line.is_some() && trx.seen.session == owner);
        self.0.iter().find(holds).or_else(session)
    }

    /// Its transaction's number; a session that is between statements of none has only its own.
    fn trx(&self, owner: u64, target: &LockTarget) -> u64 {
        self.find(owner, target).map_or(owner << 32, |trx| trx.seen.id)
    }
}

/// Waits for rows and for gaps: those for tables are in `metadata_locks`.
fn row_waits(database: &Database) -> Vec<WaitInfo> {
    let row = |wait: &WaitInfo| matches!(wait.target, LockTarget::Record { .. } | LockTarget::Range { .. });
    database.locks().waits().into_iter().filter(row).collect()
}

/// The locks of one transaction in spaces. Of gaps, and of rows in bulk, the mode is not kept: nothing conflicts by it. They are shared in
/// tables that the transaction may only read.
fn held_by(places: &LockPlaces, trx: &OpenTrx, reads: &Tables) -> Vec<Lock> {
    let lock = |held: HeldLock| {
        let target = target_of(&held);
        let place = Place::of(places, &target);
        let shared = held.key.is_none() && reads.has(&place.db, &place.table);
        let mode = if shared { shared_mode(held.mode) } else { record_mode(held.mode) };
        let id = lock_id(trx.seen.id, &target);
        Lock { id, trx: trx.seen.id, thread: trx.connection(), place, mode, waits: false }
    };
    trx.held_in_spaces().into_iter().map(lock).collect()
}

/// A table's lock of a transaction, beside its locks of rows. A consistent read's is no lock of InnoDB's.
fn of_table(trx: &OpenTrx, lock: &TableLocked, rows: &[Lock]) -> Option<Lock> {
    let (db, table) = lock.table.clone()?;
    if lock.mode == "IS" && !rows.iter().any(|row| row.place.db == db && row.place.table == table) {
        return None;
    }
    let id = format!("{}:{db}.{table}", trx.seen.id);
    let place = Place { db, table, ..Place::default() };
    Some(Lock { id, trx: trx.seen.id, thread: trx.connection(), place, mode: lock.mode, waits: false })
}

/// All locks of open transactions and those that are waited for.
fn all(server: &Server) -> Vec<Lock> {
    let (places, open) = (LockPlaces::of(&server.database), open(server));
    let mut found: Vec<Lock> = Vec::new();
    let mut tables = table_locks(&server.database);
    tables.retain(|lock| lock.granted);
    for trx in &open {
        // A branch is nobody's, and has its rows' locks alone.
        let session = trx.line.as_ref().map(|_| trx.seen.session);
        let reads = session.map_or_else(Tables::default, |owner| Tables::only_read(&tables, owner));
        let rows = held_by(&places, trx, &reads);
        let own = tables.iter().filter(|lock| session == Some(lock.owner));
        found.extend(own.filter_map(|lock| of_table(trx, lock, &rows)));
        found.extend(rows);
    }
    let owners = Owners(&open);
    let mut listed: HashSet<String> = found.iter().map(|lock| lock.id.clone()).collect();
    for wait in row_waits(&server.database) {
        let trx = owners.trx(wait.waiter, &wait.target);
        let id = lock_id(trx, &wait.target);
        listed.insert(id.clone());
        let (place, thread) = (Place::of(&places, &wait.target), wait.waiter);
        found.push(Lock { id, trx, thread, place, mode: waiting_mode(wait.mode), waits: true });
        for blocker in wait.blockers {
            // Others ahead of it in a queue, or with many locks or a gap of the space.
            let holder = owners.find(blocker, &wait.target);
            let trx = holder.map_or(blocker << 32, |trx| trx.seen.id);
            let id = lock_id(trx, &wait.target);
            if listed.insert(id.clone()) {
                let thread = holder.map_or(blocker, OpenTrx::connection);
                let place = Place::of(&places, &wait.target);
                let mode = if wait.mode == "X,INSERT_INTENTION" { "X,GAP" } else { "X,REC_NOT_GAP" };
                let shared = Tables::only_read(&tables, blocker).has(&place.db, &place.table);
                let mode = if shared { shared_mode(mode) } else { mode };
                found.push(Lock { id, trx, thread, place, mode, waits: false });
            }
        }
    }
    found
}

fn waiting_mode(mode: &'static str) -> &'static str {
    if mode == "X,INSERT_INTENTION" { "X,GAP,INSERT_INTENTION" } else { record_mode(mode) }
}

/// `data_locks`.
pub(crate) fn with_waits(server: &Server) -> Vec<Row> {
    let row = |lock: Lock| {
        let Place { db, table, index, data, .. } = lock.place;
        let kind = if index.is_some() { "RECORD" } else { "TABLE" };
        vec![
            ("ENGINE", text(ENGINE)),
            ("ENGINE_LOCK_ID", text(lock.id)),
            ("ENGINE_TRANSACTION_ID", Value::UInt(lock.trx)),
            ("THREAD_ID", if lock.thread == 0 { Value::Null } else { Value::UInt(lock.thread) }),
            ("OBJECT_SCHEMA", text_or_null(&db)),
            ("OBJECT_NAME", text_or_null(&table)),
            ("INDEX_NAME", index.map_or(Value::Null, text)),
            ("LOCK_TYPE", text(kind)),
            ("LOCK_MODE", text(lock.mode)),
            ("LOCK_STATUS", text(if lock.waits { "WAITING" } else { "GRANTED" })),
            ("LOCK_DATA", data.map_or(Value::Null, text)),
        ]
    };
    all(server).into_iter().map(row).collect()
}

/// One who waits, and one who is in the way.
struct Pair {
    waiter: (u64, u64, String),
    blocker: (u64, u64, String),
}

fn pairs(server: &Server) -> Vec<Pair> {
    let open = open(server);
    let owners = Owners(&open);
    let mut found = Vec::new();
    for wait in row_waits(&server.database) {
        let side = |owner: u64| {
            let trx = owners.trx(owner, &wait.target);
            let thread = owners.find(owner, &wait.target).map_or(owner, OpenTrx::connection);
            (trx, thread, lock_id(trx, &wait.target))
        };
        found.extend(wait.blockers.iter().map(|b| Pair { waiter: side(wait.waiter), blocker: side(*b) }));
    }
    found
}

/// `data_lock_waits`.
pub(crate) fn waits(server: &Server) -> Vec<Row> {
    let row = |Pair { waiter, blocker }: Pair| {
        let thread = |thread: u64| if thread == 0 { Value::Null } else { Value::UInt(thread) };
        vec![
            ("ENGINE", text(ENGINE)),
            ("REQUESTING_ENGINE_LOCK_ID", text(waiter.2)),
            ("REQUESTING_ENGINE_TRANSACTION_ID", Value::UInt(waiter.0)),
            ("REQUESTING_THREAD_ID", thread(waiter.1)),
            ("BLOCKING_ENGINE_LOCK_ID", text(blocker.2)),
            ("BLOCKING_ENGINE_TRANSACTION_ID", Value::UInt(blocker.0)),
            ("BLOCKING_THREAD_ID", thread(blocker.1)),
        ]
    };
    pairs(server).into_iter().map(row).collect()
}

/// MariaDB's INNODB_LOCK_WAITS.
pub(crate) fn mariadb_lock_waits(server: &Server) -> Vec<Row> {
    let row = |Pair { waiter, blocker }: Pair| {
        vec![
            ("requesting_trx_id", Value::UInt(waiter.0)),
            ("requested_lock_id", text(waiter.2)),
            ("blocking_trx_id", Value::UInt(blocker.0)),
            ("blocking_lock_id", text(blocker.2)),
        ]
    };
    pairs(server).into_iter().map(row).collect()
}

/// MariaDB's INNODB_LOCKS: those that are waited for, and those in the way.
pub(crate) fn mariadb_locks(server: &Server) -> Vec<Row> {
    let pairs = pairs(server);
    let wanted: HashSet<&String> = pairs.iter().flat_map(|pair| [&pair.waiter.2, &pair.blocker.2]).collect();
    let row = |lock: Lock| {
        let gap = lock.mode.contains("GAP") && !lock.mode.contains("NOT_GAP");
        let mode = match (lock.mode.split(',').next().unwrap_or_default(), gap) {
            ("S", true) => "S,GAP",
            (_, true) => "X,GAP",
            ("S", false) => "S",
            _ => "X",
        };
        let Place { db, table, index, space, data } = lock.place;
        vec![
            ("lock_id", text(lock.id)),
            ("lock_trx_id", Value::UInt(lock.trx)),
            ("lock_mode", text(mode)),
            ("lock_type", text(if index.is_some() { "RECORD" } else { "TABLE" })),
            ("lock_table", text(format!("`{db}`.`{table}`"))),
            ("lock_index", index.map_or(Value::Null, text)),
            ("lock_space", Value::UInt(space.into())),
            ("lock_page", Value::Null),
            ("lock_rec", Value::Null),
            ("lock_data", data.map_or(Value::Null, text)),
        ]
    };
    all(server).into_iter().filter(|lock| wanted.contains(&lock.id)).map(row).collect()
}
