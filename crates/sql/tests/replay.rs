//! RECOVER-2: replaying the events of every transaction gives the engine's contents again.
#![allow(clippy::unwrap_used)]

mod common;

use common::engine::{MemEngine, install};
use common::{Client, TestPort};
use omnibus_commit::Replay;
use omnibus_engine::{CommitNo, Engine, WriteSet};
use omnibus_sql::recover::Replayer;
use omnibus_sql::{Database, RowImage};
use std::sync::Arc;

const STATEMENTS: &[&str] = &[
    "CREATE DATABASE test",
    "CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, k int, c varchar(20), b blob, KEY (k), UNIQUE KEY (c))",
    "INSERT INTO t (k, c, b) VALUES (1, 'a', 'blob'), (2, 'b', NULL), (3, NULL, ''), (4, 'd', 'x')",
    "UPDATE t SET k = k + 1 WHERE id > 1",
    "UPDATE t SET id = id + 100, c = 'A' WHERE id = 1",
    "DELETE FROM t WHERE id = 4",
    "CREATE TABLE h (a int, b varchar(10), KEY (a))",
    "INSERT INTO h VALUES (1, 'x'), (1, 'x'), (2, NULL)",
    "UPDATE h SET a = a + 1 WHERE b = 'x' LIMIT 1",
    "DELETE FROM h WHERE a = 1",
    "BEGIN",
    "INSERT INTO t (k) VALUES (9)",
    "SAVEPOINT s",
    "INSERT INTO h VALUES (99, 'gone')",
    "ROLLBACK TO s",
    "INSERT INTO h VALUES (3, 'stays')",
    "COMMIT",
    "CREATE INDEX kc ON t (k, c)",
    "REPLACE INTO t (id, k, c) VALUES (2, 7, 'z')",
    "ALTER TABLE t DROP KEY k, ADD COLUMN n int NOT NULL DEFAULT 3",
    "UPDATE t SET n = 4 WHERE k = 7",
    "RENAME TABLE h TO hh",
    "INSERT INTO hh VALUES (5, 'e')",
    "TRUNCATE TABLE hh",
    "INSERT INTO hh VALUES (6, 'f')",
    "ALTER TABLE hh ADD PRIMARY KEY (a)",
    "DROP TABLE IF EXISTS hh",
    "CREATE DATABASE two",
    "DROP DATABASE two",
];

/// Each transaction at once, or as if it were too large for that: by the event, its writes in files, and begun before
/// as one that a crash cut off.
fn replayed(port: &TestPort, large: bool, left: WriteSet) -> Arc<MemEngine> {
    let engine = Arc::new(MemEngine::default());
    engine.prepare_ordered(CommitNo(0), left);
    let mut replayer = Replayer::new(engine.clone(), &omnibus_temporary::TempFolder::default()).unwrap();
    if large {
        replayer.keep_in_memory(100);
    }
    for (no, _, events) in port.log.lock().iter() {
        let failed = |error: String| panic!("transaction {no}: {error}");
        let mut rest = &events[..];
        if large && let Some((last, before)) = events.split_last() {
            before.iter().for_each(|event| {
                replayer.part(*no, std::slice::from_ref(event)).unwrap_or_else(failed);
            });
            replayer.forget();
            before.iter().for_each(|event| {
                replayer.part(*no, std::slice::from_ref(event)).unwrap_or_else(failed);
            });
            rest = std::slice::from_ref(last);
        }
        let writes =
            replayer.transaction(*no, rest).unwrap_or_else(|error| panic!("transaction {no}: {error}"));
        install(&*engine, *no, writes);
        engine.commit_ordered(*no);
    }
    engine
}

/// Writes that an engine may have of an index that was built beside writers when it comes to the statement again.
fn half_built(database: &Database) -> WriteSet {
    let catalog = database.catalog();
    let index = catalog.table("test", "t").unwrap().index_named("kc").unwrap();
    let space = catalog.table("test", "t").unwrap().indexes()[index].space.prefix();
    let mut writes = WriteSet::default();
    writes.put([&space[..], b"of a row that is gone"].concat().into(), "x".into());
    writes
}

fn check(image: RowImage, log_bin: bool) {
    let original = Arc::new(MemEngine::default());
    let port = TestPort::over(original.clone(), 0);
    let database = Database::open(port.clone()).unwrap();
    let mut client = Client::new(&database);
    client.session.state.settings.binlog_row_image = image;
    client.session.state.settings.sql_log_bin = log_bin;
    for sql in STATEMENTS {
        client.ok(sql);
    }
    for large in [false, true] {
        let again = replayed(&port, large, half_built(&database));
        // Dropped spaces are reclaimed here at once and there when the database opens.
        let reopened = TestPort::over(again.clone(), port.last.load(std::sync::atomic::Ordering::Acquire));
        let database = Database::open(reopened).unwrap();
        let (left, right) = (original.contents(), again.contents());
        for (key, value) in &left {
            assert_eq!(right.get(key), Some(value), "{image:?}: key {key:?}");
        }
        for key in right.keys() {
            assert!(left.contains_key(key), "{image:?}: extra key {key:?}");
        }
        let mut client = Client::new(&database);
        assert_eq!(client.rows("SELECT id, k, c, n FROM t ORDER BY id").len(), 4);
        // A deleted AUTO_INCREMENT value does not come again.
        client.ok("DELETE FROM t WHERE id > 101");
        let next = client.ok("INSERT INTO t (k) VALUES (1)").last_insert_id;
        assert!(next > 102, "{next}");
    }
}

#[test]
fn full_images() {
    check(RowImage::Full, true);
}

#[test]
fn minimal_images() {
    check(RowImage::Minimal, true);
}

#[test]
fn noblob_images() {
    check(RowImage::NoBlob, true);
}

#[test]
fn without_a_binary_log() {
    check(RowImage::Full, false);
}

#[test]
fn a_transaction_is_begin_rows_xid_and_a_definition_ends_with_query() {
    use omnibus_format::EventType as T;
    let port = TestPort::new();
    let database = Database::open(port.clone()).unwrap();
    let mut client = Client::new(&database);
    let before = port.log.lock().len();
    for sql in &STATEMENTS[..3] {
        client.ok(sql);
    }
    let log = port.log.lock();
    let types: Vec<Vec<T>> = log[before..]
        .iter()
        .map(|(_, _, events)| events.iter().map(|event| event.event_type).collect())
        .collect();
    assert_eq!(types[0], [T::IGNORABLE, T::QUERY]);
    assert_eq!(types[1], [T::IGNORABLE, T::QUERY]);
    assert_eq!(types[2], [T::QUERY, T::TABLE_MAP, T::WRITE_ROWS, T::XID]);
    assert!(log.iter().all(|(no, _, _)| *no > CommitNo::ZERO));
}
