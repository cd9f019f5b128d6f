//! Transactions: isolation, locks, rollback, savepoints, and statements that end others.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, database};
use omnibus_sql::{Database, Interrupt, Isolation, Mode};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn pair() -> (Arc<Database>, Client, Client) {
    let (_, database) = database();
    let mut a = Client::new(&database);
    a.ok("CREATE DATABASE test");
    a.ok("CREATE TABLE t (id int PRIMARY KEY, v int, u int, KEY (v), UNIQUE KEY (u))");
    a.ok("INSERT INTO t VALUES (1, 10, 1), (2, 20, 2), (3, 30, 3)");
    let b = Client::new(&database);
    (database, a, b)
}

fn waits(client: &mut Client, sql: &str) -> bool {
    match client.run_mode(sql, Mode::Inline) {
        Err(Interrupt::LockWait(_)) => true,
        Ok(_) => false,
        Err(other) => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn nothing_shows_before_commit_and_all_of_it_after() {
    let (_, mut a, mut b) = pair();
    a.ok("BEGIN");
    a.ok("UPDATE t SET v = 11 WHERE id = 1");
    a.ok("INSERT INTO t VALUES (4, 40, 4)");
    a.ok("DELETE FROM t WHERE id = 2");
    assert_eq!(a.rows("SELECT id, v FROM t WHERE v > 0"), [["1", "11"], ["3", "30"], ["4", "40"]]);
    assert_eq!(a.rows("SELECT id FROM t ORDER BY id DESC"), [["4"], ["3"], ["1"]]);
    assert_eq!(b.rows("SELECT id, v FROM t"), [["1", "10"], ["2", "20"], ["3", "30"]]);
    a.ok("COMMIT");
    assert_eq!(b.rows("SELECT id, v FROM t"), [["1", "11"], ["3", "30"], ["4", "40"]]);
}

#[test]
fn repeatable_read_keeps_its_snapshot_and_writes_the_newest() {
    let (_, mut a, mut b) = pair();
    a.ok("BEGIN");
    assert_eq!(a.rows("SELECT v FROM t WHERE id = 1"), [["10"]]);
    b.ok("UPDATE t SET v = 15 WHERE id = 1");
    assert_eq!(a.rows("SELECT v FROM t WHERE id = 1"), [["10"]]);
    assert_eq!(a.rows("SELECT v FROM t WHERE id = 1 FOR UPDATE"), [["15"]]);
    a.ok("UPDATE t SET v = v + 1 WHERE id = 1");
    assert_eq!(a.rows("SELECT v FROM t WHERE id = 1"), [["16"]]);
    a.ok("COMMIT");
    a.session.state.settings.isolation = Isolation::ReadCommitted;
    a.ok("BEGIN");
    assert_eq!(a.rows("SELECT v FROM t WHERE id = 2"), [["20"]]);
    b.ok("UPDATE t SET v = 25 WHERE id = 2");
    assert_eq!(a.rows("SELECT v FROM t WHERE id = 2"), [["25"]]);
    a.ok("COMMIT");
    b.ok("START TRANSACTION WITH CONSISTENT SNAPSHOT");
    a.ok("DELETE FROM t");
    assert_eq!(b.rows("SELECT COUNT(*) FROM t"), [["3"]]);
}

#[test]
fn rollback_savepoints_and_failed_statements_undo_exactly_their_part() {
    let (_, mut a, mut b) = pair();
    a.ok("BEGIN");
    a.ok("INSERT INTO t VALUES (4, 40, 4)");
    a.ok("SAVEPOINT s");
    a.ok("INSERT INTO t VALUES (5, 50, 5)");
    assert_eq!(a.error("INSERT INTO t VALUES (6, 60, 6), (1, 0, 0)").0, 1062);
    assert_eq!(a.rows("SELECT COUNT(*) FROM t"), [["5"]]);
    a.ok("ROLLBACK TO s");
    assert_eq!(a.rows("SELECT COUNT(*) FROM t"), [["4"]]);
    a.ok("RELEASE SAVEPOINT s");
    assert_eq!(a.error("ROLLBACK TO s").0, 1305);
    a.ok("COMMIT");
    a.ok("BEGIN");
    a.ok("DELETE FROM t");
    a.ok("ROLLBACK");
    assert_eq!(b.rows("SELECT id FROM t"), [["1"], ["2"], ["3"], ["4"]]);
}

#[test]
fn rows_ranges_and_unique_values_are_locked() {
    let (_, mut a, mut b) = pair();
    a.ok("BEGIN");
    a.ok("UPDATE t SET v = 11 WHERE id = 1");
    assert!(waits(&mut b, "UPDATE t SET v = 12 WHERE id = 1"));
    assert!(!waits(&mut b, "UPDATE t SET v = 22 WHERE id = 2"));
    assert!(waits(&mut b, "SELECT * FROM t WHERE id = 1 FOR SHARE"));
    assert_eq!(b.error("SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT").0, 3572);
    assert_eq!(b.rows("SELECT id FROM t FOR UPDATE SKIP LOCKED"), [["2"], ["3"]]);
    a.ok("ROLLBACK");
    // A range that was read for update stays as it was.
    a.ok("BEGIN");
    a.ok("SELECT * FROM t WHERE id > 2 FOR UPDATE");
    assert!(waits(&mut b, "INSERT INTO t VALUES (9, 9, 9)"));
    assert!(!waits(&mut b, "INSERT INTO t VALUES (0, 0, 0)"));
    a.ok("ROLLBACK");
    // Through a secondary index too.
    a.ok("BEGIN");
    a.ok("SELECT * FROM t WHERE v BETWEEN 25 AND 35 FOR UPDATE");
    assert!(waits(&mut b, "INSERT INTO t VALUES (9, 26, 9)"));
    assert!(waits(&mut b, "UPDATE t SET v = 27 WHERE id = 0"));
    a.ok("ROLLBACK");
    // A unique value that is going away is not free yet.
    a.ok("BEGIN");
    a.ok("DELETE FROM t WHERE id = 3");
    assert!(waits(&mut b, "INSERT INTO t VALUES (8, 8, 3)"));
    a.ok("COMMIT");
    b.ok("INSERT INTO t VALUES (8, 8, 3)");
}

#[test]
fn a_scan_that_waited_for_a_lock_changes_what_is_there_then() {
    let (database, mut a, mut b) = pair();
    a.ok("BEGIN");
    a.ok("UPDATE t SET v = 21 WHERE id = 2");
    a.ok("DELETE FROM t WHERE id = 3");
    std::thread::scope(|scope| {
        // It has read all rows when it waits for the second.
        let scan = scope.spawn(|| b.run_mode("UPDATE t SET v = v + 100", Mode::Blocking).map(drop));
        while !database.locks().anyone_waits() {
            assert!(!scan.is_finished(), "it waits");
            std::thread::yield_now();
        }
        a.ok("COMMIT");
        scan.join().unwrap().unwrap();
    });
    assert_eq!(a.rows("SELECT id, v FROM t"), [["1", "110"], ["2", "121"]]);
}

#[test]
fn a_deadlock_costs_one_transaction() {
    let (_, mut a, mut b) = pair();
    a.ok("BEGIN");
    b.ok("BEGIN");
    a.ok("UPDATE t SET v = 1 WHERE id = 1");
    b.ok("UPDATE t SET v = 2 WHERE id = 2");
    let Err(Interrupt::LockWait(wait)) = a.run_mode("UPDATE t SET v = 1 WHERE id = 2", Mode::Inline) else {
        panic!("should wait")
    };
    assert_eq!(b.error("UPDATE t SET v = 2 WHERE id = 1").0, 1213);
    assert!(!b.session.in_transaction());
    assert_eq!(wait.wait(std::time::Duration::from_secs(120)), omnibus_locks::WaitOutcome::Granted);
    a.ok("UPDATE t SET v = 1 WHERE id = 2");
    a.ok("COMMIT");
    assert_eq!(b.rows("SELECT id FROM t WHERE v = 1"), [["1"], ["2"]]);
}

#[test]
fn a_lock_wait_ends_in_time() {
    let (_, mut a, mut b) = pair();
    a.ok("BEGIN");
    a.ok("UPDATE t SET v = 11 WHERE id = 1");
    b.ok("BEGIN");
    b.ok("UPDATE t SET v = 21 WHERE id = 2");
    b.session.state.settings.lock_wait_timeout_ms = 20;
    assert_eq!(b.error("UPDATE t SET v = 12 WHERE id = 1").0, 1205);
    // Only the statement is undone.
    assert_eq!(b.rows("SELECT v FROM t WHERE id = 2"), [["21"]]);
    assert!(b.session.in_transaction());
}

#[test]
fn definitions_wait_for_transactions_and_end_their_own() {
    let (_, mut a, mut b) = pair();
    a.ok("BEGIN");
    a.rows("SELECT * FROM t");
    b.session.state.settings.metadata_lock_wait_timeout_ms = 20;
    assert_eq!(b.error("ALTER TABLE t ADD COLUMN x int").0, 1205);
    a.ok("INSERT INTO t VALUES (4, 4, 4)");
    a.ok("CREATE TABLE other (a int)");
    assert!(!a.session.in_transaction());
    assert_eq!(b.rows("SELECT id FROM t WHERE id = 4"), [["4"]]);
    b.session.state.settings.metadata_lock_wait_timeout_ms = 20_000;
    b.ok("ALTER TABLE t ADD COLUMN x int");
    a.ok("BEGIN");
    a.rows("SELECT * FROM other");
    b.ok("TRUNCATE t");
    assert_eq!(a.error("SELECT * FROM t").0, 1412);
}

#[test]
fn autocommit_off_and_read_only() {
    let (_, mut a, mut b) = pair();
    a.session.state.settings.transactions.autocommit = false;
    a.ok("UPDATE t SET v = 11 WHERE id = 1");
    assert!(a.session.in_transaction());
    assert_eq!(b.rows("SELECT v FROM t WHERE id = 1"), [["10"]]);
    a.ok("COMMIT");
    assert_eq!(b.rows("SELECT v FROM t WHERE id = 1"), [["11"]]);
    b.ok("START TRANSACTION READ ONLY");
    assert_eq!(b.error("DELETE FROM t").0, 1792);
    b.ok("COMMIT");
    a.session.set_next_transaction(Some(Isolation::Serializable), None).unwrap();
    a.ok("BEGIN");
    a.rows("SELECT * FROM t WHERE id = 2");
    assert!(waits(&mut b, "UPDATE t SET v = 0 WHERE id = 2"));
}

#[test]
fn lock_tables_locks_tables() {
    let (_, mut a, mut b) = pair();
    a.ok("LOCK TABLES t WRITE");
    assert!(waits(&mut b, "SELECT * FROM t"));
    a.ok("INSERT INTO t VALUES (4, 4, 4)");
    assert!(waits(&mut b, "SELECT * FROM t"));
    a.ok("UNLOCK TABLES");
    assert_eq!(b.rows("SELECT id FROM t WHERE id = 4"), [["4"]]);
    a.ok("LOCK TABLES t READ");
    assert_eq!(a.error("DELETE FROM t").0, 1099);
    assert!(!waits(&mut b, "SELECT * FROM t"));
}

/// COMMIT-4
#[test]
fn a_commit_that_is_taken_back_leaves_nothing_in_temporary_tables() {
    let (port, database) = database();
    let (mut client, mut other) = (Client::new(&database), Client::new(&database));
    client.ok("CREATE DATABASE test");
    client.ok("CREATE TABLE t (id int PRIMARY KEY)");
    client.ok("CREATE TEMPORARY TABLE own (id int PRIMARY KEY)");
    client.ok("INSERT INTO own VALUES (1)");
    let plain =
        ["COMMIT", "COMMIT AND CHAIN", "START TRANSACTION", "START TRANSACTION WITH CONSISTENT SNAPSHOT"];
    let plain = plain.map(|commit| ("BEGIN", "DO 0", commit));
    for (begin, end, commit) in plain.into_iter().chain([("XA START 'x'", "XA END 'x'", "XA PREPARE 'x'")]) {
        client.ok(begin);
        client.ok("INSERT INTO own VALUES (2)");
        client.ok("INSERT INTO t VALUES (2)");
        client.ok(end);
        port.refuse.store(true, Ordering::Relaxed);
        client.error(commit);
        assert!(!waits(&mut other, "SELECT id FROM t WHERE id = 2 FOR UPDATE"), "{commit} lets its locks go");
        let rows = client.rows("SELECT id FROM own");
        client.ok("ROLLBACK");
        assert_eq!(rows, [["1"]], "{commit}");
        assert_eq!(client.rows("SELECT id FROM t"), [] as [Vec<String>; 0], "{commit}");
    }
    client.ok("BEGIN");
    client.ok("INSERT INTO own VALUES (2)");
    client.ok("INSERT INTO t VALUES (2)");
    client.ok("COMMIT");
    client.ok("ROLLBACK");
    client.ok("BEGIN");
    client.ok("INSERT INTO own VALUES (3)");
    client.ok("ROLLBACK");
    assert_eq!(client.rows("SELECT id FROM own"), [["1"], ["2"]], "what was committed stays");
}

/// COMMIT-4
#[test]
fn lock_tables_has_what_a_drop_that_is_taken_back_was_to_drop() {
    let (port, database) = database();
    let (mut a, mut b) = (Client::new(&database), Client::new(&database));
    a.ok("CREATE DATABASE test");
    a.ok("CREATE TABLE t (id int PRIMARY KEY)");
    a.ok("CREATE TABLE other (id int PRIMARY KEY)");
    a.ok("LOCK TABLES t WRITE, other WRITE");
    port.refuse.store(true, Ordering::Relaxed);
    a.error("DROP TABLE t");
    a.ok("INSERT INTO t VALUES (1)");
    assert!(waits(&mut b, "SELECT id FROM t"), "it is locked as before");
    a.ok("DROP TABLE t");
    assert_eq!(a.error("SELECT id FROM t").0, 1100);
    a.ok("INSERT INTO other VALUES (1)");
    a.ok("UNLOCK TABLES");
    b.ok("CREATE TABLE t (id int PRIMARY KEY)");
    b.ok("INSERT INTO t VALUES (1)");
}

#[test]
fn system_tables_change_with_their_statement() {
    use omnibus_value::Value;
    let (port, database) = database();
    let mut a = Client::new(&database);
    let text = |text: &str| Value::Bytes(bytes::Bytes::copy_from_slice(text.as_bytes()));
    let row = |name: &str| vec![text("%"), text("shop"), text(name), text(""), text("SELECT"), Value::Int(0)];
    let log = |a: &mut Client, user: &str| {
        let sql = bytes::Bytes::from(format!("GRANT SELECT ON shop.* TO {user}"));
        let values = row(user);
        a.session.change_system_tables(&sql, Mode::Blocking, |tables| tables.put("db", &values)).unwrap()
    };
    log(&mut a, "ann");
    log(&mut a, "bob");
    log(&mut a, "ann");
    assert_eq!(database.system_rows("db").unwrap().len(), 2);
    let (_, logged, events) = port.log.lock().last().unwrap().clone();
    assert!(logged);
    let types: Vec<_> = events.iter().map(|event| event.event_type).collect();
    assert_eq!(types, [omnibus_format::EventType::IGNORABLE, omnibus_format::EventType::QUERY]);
    let values = row("bob");
    let text = bytes::Bytes::from_static(b"REVOKE");
    let gone = a.session.change_system_tables(&text, Mode::Blocking, |tables| {
        assert!(tables.delete("db", &values)?);
        Err(omnibus_sql::SqlError::unknown_error().into())
    });
    assert!(gone.is_err());
    assert_eq!(database.system_rows("db").unwrap().len(), 2);
}

#[test]
fn a_statement_run_again_takes_the_same_ids_again() {
    let (_, mut a, mut b) = pair();
    a.ok("CREATE TABLE g (id int AUTO_INCREMENT PRIMARY KEY, u int UNIQUE)");
    a.ok("BEGIN");
    a.ok("INSERT INTO g (u) VALUES (1)");
    // Waits for the unique value after it has taken its id, and is run again when that is free.
    assert!(waits(&mut b, "INSERT INTO g (u) VALUES (0), (1)"));
    a.ok("ROLLBACK");
    b.ok("INSERT INTO g (u) VALUES (0), (1)");
    assert_eq!(b.rows("SELECT id FROM g ORDER BY id"), [["2"], ["3"]]);
}
