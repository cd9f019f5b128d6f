//! The log of one database, applied to another: the same rows, whatever the images, the keys and the column types; and
//! APPLY-1.
#![allow(clippy::unwrap_used)]

mod common;

use common::replica::{Replica, replica};
use common::{Client, TestPort};
use omnibus_commit::Replay;
use omnibus_engine::Engine;
use omnibus_replication::changes::ApplyError;
use omnibus_sql::apply::{ApplySettings, Conversions, stored_position};
use omnibus_sql::recover::Replayer;
use omnibus_sql::{Database, RowImage};
use std::sync::Arc;

fn source() -> (Arc<TestPort>, Client, usize) {
    let port = TestPort::new();
    let database = Database::open(port.clone()).unwrap();
    let began = port.log.lock().len();
    (port, Client::new(&database), began)
}

const WORK: &[&str] = &[
    "CREATE DATABASE d",
    "CREATE TABLE d.t (id int AUTO_INCREMENT PRIMARY KEY, k int, c varchar(20), b blob, KEY (k), UNIQUE KEY (c))",
    "INSERT INTO d.t (k, c, b) VALUES (1, 'a', 'blob'), (2, 'b', NULL), (3, NULL, ''), (4, 'd', 'x')",
    "UPDATE d.t SET k = k + 1 WHERE id > 1",
    "UPDATE d.t SET id = id + 100, c = 'A' WHERE id = 1",
    "DELETE FROM d.t WHERE id = 4",
    "CREATE TABLE d.h (a int, b varchar(10), f double, KEY (a))",
    "INSERT INTO d.h VALUES (1, 'x', 0.5), (1, 'x', 0.5), (2, NULL, NULL), (1, 'y', 3)",
    "UPDATE d.h SET a = a + 1 WHERE b = 'x' LIMIT 1",
    "DELETE FROM d.h WHERE b = 'x' LIMIT 1",
    "CREATE TABLE d.n (a int, b varchar(10), j json, ts timestamp(3) NULL)",
    "INSERT INTO d.n VALUES (1, 'x', '[1]', '2020-01-01 00:00:00.5'), (1, 'x', '[1]', NULL), (2, NULL, NULL, NULL)",
    "UPDATE d.n SET a = 5 WHERE a = 1 LIMIT 1",
    "DELETE FROM d.n WHERE a = 1",
    "UPDATE d.n SET a = a + 1",
    "CREATE TABLE d.u (a int NOT NULL, b varchar(10), c int, UNIQUE KEY (b), UNIQUE KEY (a, c))",
    "INSERT INTO d.u VALUES (1, 'x', 1), (2, NULL, 2), (3, NULL, NULL), (3, NULL, NULL)",
    "UPDATE d.u SET c = 9 WHERE a = 2",
    "DELETE FROM d.u WHERE a = 3 LIMIT 1",
    "BEGIN",
    "INSERT INTO d.t (k) VALUES (9)",
    "SAVEPOINT s",
    "INSERT INTO d.h VALUES (99, 'gone', 1)",
    "ROLLBACK TO s",
    "INSERT INTO d.h VALUES (3, 'stays', 1)",
    "COMMIT",
    "CREATE INDEX kc ON d.t (k, c)",
    "REPLACE INTO d.t (id, k, c) VALUES (2, 7, 'z')",
    "ALTER TABLE d.t DROP KEY k, ADD COLUMN n int NOT NULL DEFAULT 3",
    "UPDATE d.t SET n = 4 WHERE k = 7",
    "CREATE TABLE d.copy AS SELECT * FROM d.t",
    "XA START 'x'",
    "INSERT INTO d.t (k) VALUES (10)",
    "XA END 'x'",
    "XA PREPARE 'x'",
    "XA COMMIT 'x'",
];

const TABLES: [&str; 5] = ["t", "h", "n", "u", "copy"];

fn contents(client: &mut Client) -> Vec<Vec<Vec<String>>> {
    let rows = |table: &&str| {
        let mut rows = client.rows(&format!("SELECT * FROM d.{table}"));
        rows.sort();
        rows
    };
    TABLES.iter().map(rows).collect()
}

fn check(image: RowImage, settings: ApplySettings) {
    let (port, mut client, began) = source();
    client.session.state.settings.binlog_row_image = image;
    let mut replica = replica(settings.clone());
    for sql in WORK {
        client.ok(sql);
    }
    replica.catch_up(&port, began).unwrap();
    assert_eq!(contents(&mut replica.client), contents(&mut client));
    assert_eq!(replica.position(), Some(replica.fed));
    let enrolled = |port: &TestPort| port.enrolled.load(std::sync::atomic::Ordering::Relaxed);
    assert!(enrolled(&port) == 0 && enrolled(&replica.port) > 0, "an applier waits for no device");
    // Its own log tells the same, position and all, or nothing where it is not to.
    let again: Arc<dyn Engine> = Arc::new(common::engine::MemEngine::default());
    let mut replayer = Replayer::new(again.clone(), &omnibus_temporary::TempFolder::default()).unwrap();
    for (no, _, events) in replica.port.log.lock().iter() {
        common::engine::install(&*again, *no, replayer.transaction(*no, events).unwrap());
        again.commit_ordered(*no);
    }
    let last = replica.port.last.clone();
    let rebuilt =
        Database::open(TestPort::over(again, last.load(std::sync::atomic::Ordering::Acquire))).unwrap();
    assert_eq!(contents(&mut Client::new(&rebuilt)), contents(&mut client));
    let state = stored_position(&rebuilt, "ch").unwrap().unwrap();
    assert_eq!(state, replica.fed.to_le_bytes());
    let logged = replica.port.log.lock().iter().filter(|(_, logged, _)| *logged).count();
    assert_eq!(logged > 0, settings.log_updates);
}

#[test]
fn full_images() {
    check(RowImage::Full, ApplySettings::default());
}

#[test]
fn minimal_images() {
    check(RowImage::Minimal, ApplySettings::default());
}

#[test]
fn noblob_images_without_a_log_of_their_own() {
    check(RowImage::NoBlob, ApplySettings { log_updates: false, ..ApplySettings::default() });
}

/// Makes `here` on the source and `there` on the replica, and applies what `work` does at the source.
fn differing(
    here: &str,
    there: &str,
    work: &[&str],
    settings: ApplySettings,
) -> (Replica, Result<(), ApplyError>) {
    let (port, mut client, _) = source();
    let mut replica = replica(settings);
    for (client, table) in [(&mut client, here), (&mut replica.client, there)] {
        client.ok("CREATE DATABASE d");
        client.ok(table);
    }
    let from = port.log.lock().len();
    work.iter().for_each(|sql| drop(client.ok(sql)));
    let result = replica.catch_up(&port, from);
    (replica, result)
}

#[test]
fn columns_may_be_wider_more_or_fewer() {
    let (mut replica, result) = differing(
        "CREATE TABLE d.t (a tinyint PRIMARY KEY, b varchar(5), c decimal(5,2), d float, e datetime, f tinyblob, x int)",
        "CREATE TABLE d.t (a bigint PRIMARY KEY, b varchar(300), c decimal(10,4), d double, e datetime(6), f longblob)",
        &[
            "INSERT INTO d.t VALUES (-3, 'abc', -1.25, 0.5, '2020-02-03 04:05:06', 'x', 9), (4, NULL, 1, 1, NULL, NULL, 1)",
            "UPDATE d.t SET b = 'new' WHERE a = -3",
            "DELETE FROM d.t WHERE a = 4",
        ],
        ApplySettings::default(),
    );
    result.unwrap();
    assert_eq!(
        replica.client.rows("SELECT * FROM d.t"),
        [["-3", "new", "-1.2500", "0.5", "2020-02-03 04:05:06.000000", "x"]]
    );
    let (mut replica, result) = differing(
        "CREATE TABLE d.t (a int, b int)",
        "CREATE TABLE d.t (a int, b int, c int DEFAULT 7, n int, i int AUTO_INCREMENT PRIMARY KEY)",
        &["INSERT INTO d.t VALUES (1, 2), (3, 4)", "UPDATE d.t SET b = 5 WHERE a = 3"],
        ApplySettings::default(),
    );
    result.unwrap();
    assert_eq!(
        replica.client.rows("SELECT * FROM d.t"),
        [["1", "2", "7", "NULL", "1"], ["3", "5", "7", "NULL", "2"]]
    );
    let (_, result) = differing(
        "CREATE TABLE d.t (a int)",
        "CREATE TABLE d.t (a int, b int NOT NULL)",
        &["INSERT INTO d.t VALUES (1)"],
        ApplySettings::default(),
    );
    assert_eq!(result.unwrap_err().code, 1364);
}

#[test]
fn what_would_lose_something_must_be_allowed() {
    let tables = ("CREATE TABLE d.t (a int, b varchar(20))", "CREATE TABLE d.t (a tinyint, b varchar(3))");
    let work = ["INSERT INTO d.t VALUES (1000, 'abcdef')"];
    let (_, result) = differing(tables.0, tables.1, &work, ApplySettings::default());
    let error = result.unwrap_err();
    assert_eq!(error.code, 1677);
    assert!(
        error.message.starts_with("Column 0 of table 'd.t' cannot be converted from type 'int'"),
        "{error}"
    );
    let conversions = Conversions::parse("ALL_LOSSY,ALL_NON_LOSSY");
    let lossy = ApplySettings { conversions, ..ApplySettings::default() };
    let (mut replica, result) = differing(tables.0, tables.1, &work, lossy.clone());
    result.unwrap();
    assert_eq!(replica.client.rows("SELECT * FROM d.t"), [["127", "abc"]]);
    let (_, result) = differing(
        "CREATE TABLE d.t (a int)",
        "CREATE TABLE d.t (a date)",
        &["INSERT INTO d.t VALUES (1)"],
        lossy,
    );
    assert_eq!(result.unwrap_err().code, 1677, "nothing makes a number a date");
}

#[test]
fn what_is_wider_must_be_allowed_too() {
    let tables = ("CREATE TABLE d.t (a int, b varchar(3))", "CREATE TABLE d.t (a bigint, b varchar(20))");
    let work = ["INSERT INTO d.t VALUES (1000, 'abc')"];
    let with = |text: &str, there: &str| {
        let settings = ApplySettings { conversions: Conversions::parse(text), ..ApplySettings::default() };
        let (mut replica, result) = differing(tables.0, there, &work, settings);
        result.map(|()| replica.client.rows("SELECT * FROM d.t"))
    };
    for refusing in ["", "ALL_LOSSY", "ALL_SIGNED"] {
        assert_eq!(with(refusing, tables.1).unwrap_err().code, 1677, "{refusing}");
    }
    assert_eq!(with("ALL_NON_LOSSY", tables.1).unwrap(), [["1000", "abc"]]);
    assert_eq!(with("", tables.0).unwrap(), [["1000", "abc"]]);
}

#[test]
fn strict_and_idempotent() {
    let table = "CREATE TABLE d.t (a int PRIMARY KEY, b int UNIQUE, c int)";
    let run = |there: &[&str], work: &[&str], settings: ApplySettings| {
        let (port, mut client, _) = source();
        let mut replica = replica(settings);
        for client in [&mut client, &mut replica.client] {
            client.ok("CREATE DATABASE d");
            client.ok(table);
        }
        client.ok("INSERT INTO d.t VALUES (1, 1, 1), (2, 2, 2)");
        there.iter().for_each(|sql| drop(replica.client.ok(sql)));
        let from = port.log.lock().len();
        work.iter().for_each(|sql| drop(client.ok(sql)));
        let result = replica.catch_up(&port, from).map_err(|error| (error.code, error.message));
        (result, replica.client.rows("SELECT * FROM d.t"), replica.position())
    };
    let strict = ApplySettings::default();
    let idempotent = ApplySettings { idempotent: true, ..ApplySettings::default() };
    let missing = |event: &str| {
        let text = format!(
            "Could not execute {event} event on table d.t; Can't find record in 't', Error_code: 1032"
        );
        Err((1032, text))
    };
    assert_eq!(
        run(&[], &["DELETE FROM d.t WHERE a = 1"], strict.clone()),
        (missing("Delete_rows"), vec![], None)
    );
    assert_eq!(run(&[], &["UPDATE d.t SET c = 3 WHERE a = 1"], strict.clone()).0, missing("Update_rows"));
    let there = ["INSERT INTO d.t VALUES (7, 1, 70), (3, 30, 30)"];
    let work = [
        "DELETE FROM d.t WHERE a = 1",
        "UPDATE d.t SET c = 3 WHERE a = 2",
        "INSERT INTO d.t VALUES (3, 1, 5)",
    ];
    assert_eq!(run(&there, &["INSERT INTO d.t VALUES (3, 5, 5)"], strict).0.unwrap_err().0, 1062);
    let (result, rows, position) = run(&there, &work, idempotent);
    assert_eq!(result, Ok(()));
    assert_eq!(rows, [["3", "1", "5"]], "both rows in the way are gone");
    assert_eq!(position, Some(3));
}

#[test]
fn a_missing_table_is_named() {
    let (_, result) = differing(
        "CREATE TABLE d.t (a int)",
        "CREATE TABLE d.o (a int)",
        &["INSERT INTO d.t VALUES (1)"],
        ApplySettings::default(),
    );
    let error = result.unwrap_err();
    assert_eq!((error.code, &error.message[..]), (1146, "Table 'd.t' doesn't exist"));
}

#[test]
fn many_rows_without_a_key() {
    let values: Vec<String> = (0..10_000).map(|i| format!("({i}, 'row {}')", i % 100)).collect();
    let insert = format!("INSERT INTO d.t VALUES {}", values.join(","));
    let began = std::time::Instant::now();
    let (mut replica, result) = differing(
        "CREATE TABLE d.t (a int, b varchar(20))",
        "CREATE TABLE d.t (a int, b varchar(20))",
        &[&insert, "UPDATE d.t SET a = a + 1", "DELETE FROM d.t WHERE a % 2 = 0"],
        ApplySettings::default(),
    );
    result.unwrap();
    assert_eq!(replica.client.rows("SELECT COUNT(*), MIN(a), MAX(a) FROM d.t"), [["5000", "1", "9999"]]);
    assert!(began.elapsed().as_secs() < 300, "{:?}", began.elapsed());
}

#[test]
fn counters_follow_applied_values() {
    let (mut replica, result) = differing(
        "CREATE TABLE d.t (id int AUTO_INCREMENT PRIMARY KEY, b timestamp DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, c int)",
        "CREATE TABLE d.t (id int AUTO_INCREMENT PRIMARY KEY, b timestamp DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, c int)",
        &["INSERT INTO d.t VALUES (50, '2001-01-01 00:00:00', 1)", "UPDATE d.t SET c = 2, b = b"],
        ApplySettings::default(),
    );
    result.unwrap();
    replica.client.ok("INSERT INTO d.t (c) VALUES (3)");
    assert_eq!(
        replica.client.rows("SELECT id, c, b = '2001-01-01 00:00:00' FROM d.t"),
        [["50", "2", "1"], ["51", "3", "0"]]
    );
}
