//! What one database logs, applied to another: the same rows, whatever the images, the keys and the column types; and
//! APPLY-1.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, TestPort};
use omnibus_commit::{Replay, ReplayEvent, Ticket};
use omnibus_engine::Engine;
use omnibus_format::events::{
    IntVar, MariadbGtidEvent, OptionalMetadata, Query, Rand, StatusVars, TableMap, UserVar, UserVarValue,
    flags2, put_rows_header,
};
use omnibus_format::field::{FieldType, code};
use omnibus_format::{EventHeader, EventType, ServerUuid, events::Gtid};
use omnibus_replication::apply::{ApplyError, ApplyTarget, EventDecoder, Position, Step};
use omnibus_sql::apply::{Applier, ApplySettings, Conversions, stored_position};
use omnibus_sql::recover::Replayer;
use omnibus_sql::{Database, KillFlag, RowImage, SqlSession};
use std::sync::Arc;

struct Replica {
    port: Arc<TestPort>,
    database: Arc<Database>,
    client: Client,
    applier: Applier,
    decoder: EventDecoder,
    fed: usize,
}

fn replica(settings: ApplySettings) -> Replica {
    let port = TestPort::new();
    let database = Database::open(port.clone()).unwrap();
    let session = SqlSession::new(database.clone(), 900, Arc::new(KillFlag::default()));
    let client = Client::new(&database);
    let applier = Applier::new(session, settings);
    Replica { port, database, client, applier, decoder: EventDecoder::default(), fed: 0 }
}

fn header(event_type: EventType) -> EventHeader {
    EventHeader { timestamp: 1_700_000_000, event_type, server_id: 77, size: 0, log_pos: 0, flags: 0 }
}

impl Replica {
    fn event(&mut self, kind: EventType, body: &[u8]) -> Result<Step<Ticket>, ApplyError> {
        let position = Position { channel: "ch".into(), state: self.fed.to_le_bytes().to_vec() };
        self.decoder.apply(&header(kind), body, &mut self.applier, Some(&position)).inspect_err(|_| {
            self.decoder.reset();
            self.applier.rollback();
        })
    }

    fn transaction(&mut self, events: &[ReplayEvent]) -> Result<(), ApplyError> {
        self.fed += 1;
        for event in events {
            if let Step::Committed(ticket) = self.event(event.event_type, &event.body)? {
                ticket.wait().unwrap();
            }
        }
        assert!(!self.decoder.in_transaction());
        Ok(())
    }

    /// Everything that `source` has logged since `from`.
    fn catch_up(&mut self, source: &TestPort, from: usize) -> Result<(), ApplyError> {
        let log: Vec<_> = source.log.lock().iter().skip(from).map(|(_, on, e)| (*on, e.clone())).collect();
        for (logged, events) in log {
            if logged {
                self.transaction(&events)?;
            }
        }
        Ok(())
    }

    fn position(&self) -> Option<usize> {
        let state = stored_position(&self.database, "ch").unwrap()?;
        Some(usize::from_le_bytes(state.try_into().unwrap()))
    }
}

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
    let mut replayer = Replayer::new(again.clone(), &std::env::temp_dir()).unwrap();
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

fn query(database: &str, sql: &str, error_code: u16, vars: &StatusVars) -> (EventType, Vec<u8>) {
    let mut status = Vec::new();
    vars.encode(&mut status);
    let mut body = Vec::new();
    Query {
        thread_id: 42,
        exec_time: 0,
        error_code,
        status: &status,
        database: database.as_bytes(),
        sql: sql.as_bytes(),
    }
    .encode(&mut body);
    (EventType::QUERY, body)
}

fn body(event_type: EventType, encode: impl FnOnce(&mut Vec<u8>)) -> (EventType, Vec<u8>) {
    let mut out = Vec::new();
    encode(&mut out);
    (event_type, out)
}

fn with_table() -> Replica {
    let mut replica = replica(ApplySettings::default());
    replica.client.ok("CREATE DATABASE d");
    replica
        .client
        .ok("CREATE TABLE d.t (id int AUTO_INCREMENT PRIMARY KEY, v varchar(100), n bigint, s varchar(100))");
    replica
}

#[test]
fn statements_have_the_whole_context_and_leave_none() {
    let mut replica = with_table();
    let vars = StatusVars {
        flags2: Some(flags2::NOT_AUTOCOMMIT),
        sql_mode: Some(1 << 1),
        auto_increment: Some((10, 5)),
        charset: Some([8, 8, 8]),
        time_zone: Some(b"+02:00".to_vec()),
        microseconds: Some(250_000),
        ..StatusVars::default()
    };
    let name = UserVar { name: b"V", value: UserVarValue::Int { bits: 9, unsigned: false }, collation: 63 };
    let events = [
        query("", "BEGIN", 0, &StatusVars::default()),
        body(EventType::INTVAR, |out| IntVar { kind: 1, value: 33 }.encode(out)),
        body(EventType::INTVAR, |out| IntVar { kind: 2, value: 115 }.encode(out)),
        body(EventType::RAND, |out| Rand(17, 18).encode(out)),
        body(EventType::USER_VAR, |out| name.encode(out)),
        query(
            "d",
            "INSERT INTO t (v, n, s) VALUES (NOW(6), LAST_INSERT_ID() + @v, 'a' || CONNECTION_ID()), (UTC_TIMESTAMP(), 2, \
             RAND() = RAND())",
            0,
            &vars,
        ),
        query(
            "d",
            "INSERT INTO t (v, n, s) VALUES (LAST_INSERT_ID(), @v, 1 || 0)",
            0,
            &StatusVars::default(),
        ),
        query("", "COMMIT", 0, &StatusVars::default()),
    ];
    for (kind, body) in &events {
        replica.event(*kind, body).unwrap();
    }
    let rows = replica.client.rows("SELECT * FROM d.t");
    assert_eq!(rows[0], ["115", "2023-11-15 00:13:20.250000", "42", "a42"]);
    assert_eq!(rows[1][..2], ["125", "2023-11-14 22:13:20"]);
    assert_eq!(rows[2][1..3], ["0", "NULL"], "LAST_INSERT_ID and @v are not left behind");
    assert_eq!(rows[2][3], "1", "|| is OR again");
}

#[test]
fn statements_must_end_as_they_did() {
    let mut replica = with_table();
    replica.client.ok("INSERT INTO d.t VALUES (1, 'a', 1, 's')");
    let vars = StatusVars::default();
    let mut run = |sql: &str, code: u16| {
        let (kind, body) = query("d", sql, code, &vars);
        replica.event(kind, &body).map(|_| ()).map_err(|error| error.code)
    };
    let duplicate = "INSERT INTO t (id) VALUES (5), (1)";
    assert_eq!(run(duplicate, 1062), Ok(()), "the same error is what is expected");
    assert_eq!(run(duplicate, 0), Err(1062));
    assert_eq!(run(duplicate, 1406), Err(3002));
    assert_eq!(run("INSERT INTO t (id) VALUES (6)", 1062), Err(3002), "success where the source failed");
    assert_eq!(run("DROP TABLE t, missing", 1051), Ok(()), "a definition that failed on both");
    assert_eq!(run("CREATE TABLE shape (p POINT)", 0), Err(1235));
    assert_eq!(run("FLUSH TABLES", 0), Ok(()));
}

#[test]
fn positions_go_with_definitions_and_with_nothing() {
    let mut replica = with_table();
    let vars = StatusVars::default();
    let gtid = |gno| {
        let event = Gtid { uuid: ServerUuid([3; 16]), gno, ..Gtid::default() };
        body(EventType::GTID, |out| event.encode(out))
    };
    let groups = [
        vec![gtid(1), query("d", "CREATE TABLE made (a int)", 0, &vars)],
        vec![
            gtid(2),
            query("", "BEGIN", 0, &vars),
            body(EventType::XID, |out| out.extend_from_slice(&[0; 8])),
        ],
        vec![gtid(3), query("d", "CREATE TABLE IF NOT EXISTS made (a int)", 0, &vars)],
        vec![gtid(4), query("d", "CREATE TABLE copied AS SELECT 1 AS one", 0, &vars)],
    ];
    for (at, group) in groups.iter().enumerate() {
        let before = replica.port.log.lock().iter().filter(|(_, logged, _)| *logged).count();
        replica.fed = at + 1;
        for (kind, body) in group {
            replica.event(*kind, body).unwrap();
        }
        assert_eq!(replica.position(), Some(at + 1), "group {at}");
        let after = replica.port.log.lock().iter().filter(|(_, logged, _)| *logged).count();
        assert!(after > before, "group {at} has its place in the log");
    }
    assert_eq!(replica.client.rows("SELECT * FROM d.copied"), [["1"]]);
    omnibus_sql::apply::forget_position(&replica.database, "ch").unwrap();
    assert_eq!(replica.position(), None);
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

fn mariadb_gtid(sequence: u64, flags: u8) -> (EventType, Vec<u8>) {
    let event = MariadbGtidEvent { domain: 0, sequence, flags, commit_id: None };
    body(EventType::MARIADB_GTID, |out| event.encode(out))
}

fn rows_event(table: &str, values: &[u8]) -> Vec<(EventType, Vec<u8>)> {
    let map = TableMap {
        table_id: 9,
        database: b"d".to_vec(),
        table: table.as_bytes().to_vec(),
        columns: vec![FieldType { code: code::TINY, meta: 0 }],
        nullable: vec![true],
        ..TableMap::default()
    };
    let rows = body(EventType::WRITE_ROWS, |out| {
        put_rows_header(out, 9, 1, 1, &[&[1]]);
        // As MariaDB writes it: the null bitmap's bits of no column are set.
        values.iter().for_each(|value| out.extend_from_slice(&[0xfe, *value]));
    });
    vec![body(EventType::TABLE_MAP, |out| map.encode(OptionalMetadata::None, out)), rows]
}

#[test]
fn a_table_made_and_filled_in_one_transaction_is_made_once() {
    let mut replica = replica(ApplySettings::default());
    replica.client.ok("CREATE DATABASE d");
    let vars = StatusVars::default();
    let mut events = vec![mariadb_gtid(7, 0), query("d", "CREATE TABLE made (a tinyint)", 0, &vars)];
    events.extend(rows_event("made", &[1, 2]));
    let mut failing = events.clone();
    failing.extend(rows_event("missing", &[1]));
    let feed = |replica: &mut Replica, events: &[(EventType, Vec<u8>)]| {
        events.iter().try_for_each(|(kind, body)| replica.event(*kind, body).map(|_| ()))
    };
    let error = feed(&mut replica, &failing).unwrap_err();
    assert_eq!((error.code, &error.message[..]), (1146, "Table 'd.missing' doesn't exist"));
    assert_eq!(replica.client.error("SELECT * FROM d.made").0, 1146, "neither the table nor its rows");
    // The same again, and this time to the end, in one commit.
    let before = replica.port.log.lock().len();
    events.push(body(EventType::XID, |out| out.extend_from_slice(&[0; 8])));
    feed(&mut replica, &events).unwrap();
    assert_eq!(replica.client.rows("SELECT * FROM d.made"), [["1"], ["2"]]);
    assert_eq!(replica.port.log.lock().len(), before + 1);
    replica.client.ok("DROP TABLE d.made");
    feed(&mut replica, &events).unwrap();
    assert_eq!(replica.client.rows("SELECT * FROM d.made"), [["1"], ["2"]]);
    assert_eq!(omnibus_sql::apply::stored_positions(&replica.database).unwrap().len(), 1);
}

#[test]
fn temporary_tables_belong_to_the_connection_that_made_them() {
    let mut replica = with_table();
    let vars = StatusVars::default();
    let run = |replica: &mut Replica, thread: u32, sql: &str| {
        let (kind, mut body) = query("d", sql, 0, &vars);
        body[..4].copy_from_slice(&thread.to_le_bytes());
        replica.event(kind, &body).map(|_| ()).map_err(|error| error.code)
    };
    for (thread, value) in [(5, "five"), (6, "six")] {
        assert_eq!(run(&mut replica, thread, "CREATE TEMPORARY TABLE tmp (v varchar(10))"), Ok(()));
        assert_eq!(run(&mut replica, thread, &format!("INSERT INTO tmp VALUES ('{value}')")), Ok(()));
    }
    assert_eq!(run(&mut replica, 7, "INSERT INTO t (v) SELECT v FROM tmp"), Err(1146));
    assert_eq!(run(&mut replica, 6, "INSERT INTO t (v) SELECT v FROM tmp"), Ok(()));
    assert_eq!(run(&mut replica, 5, "INSERT INTO t (v) SELECT v FROM tmp"), Ok(()));
    assert_eq!(run(&mut replica, 5, "DROP TEMPORARY TABLE tmp"), Ok(()));
    assert_eq!(run(&mut replica, 5, "INSERT INTO t (v) SELECT v FROM tmp"), Err(1146));
    assert_eq!(replica.client.rows("SELECT v FROM d.t ORDER BY id"), [["six"], ["five"]]);
}

#[test]
fn load_data_reads_the_file_of_its_events() {
    let mut replica = with_table();
    let (_, statement) = query(
        "d",
        "LOAD DATA LOCAL INFILE 'x' INTO TABLE t FIELDS TERMINATED BY ',' (v, n)",
        0,
        &StatusVars::default(),
    );
    let parts = Query::decode(&statement).unwrap();
    let mut execute = Vec::new();
    execute.extend_from_slice(&42u32.to_le_bytes());
    execute.extend_from_slice(&[0; 4]);
    execute.push(parts.database.len() as u8);
    execute.extend_from_slice(&[0, 0]);
    execute.extend_from_slice(&(parts.status.len() as u16).to_le_bytes());
    execute.extend_from_slice(&3u32.to_le_bytes());
    execute.extend_from_slice(&9u32.to_le_bytes());
    execute.extend_from_slice(&26u32.to_le_bytes());
    execute.push(1);
    execute.extend_from_slice(parts.status);
    execute.extend_from_slice(parts.database);
    execute.push(0);
    execute.extend_from_slice(parts.sql);
    let block = |data: &[u8]| [&3u32.to_le_bytes(), data].concat();
    let events = [
        query("", "BEGIN", 0, &StatusVars::default()),
        (EventType::BEGIN_LOAD_QUERY, block(b"one,1\nt")),
        (EventType::APPEND_BLOCK, block(b"wo,2\n")),
        (EventType::EXECUTE_LOAD_QUERY, execute),
        body(EventType::XID, |out| out.extend_from_slice(&[0; 8])),
    ];
    for (kind, body) in &events {
        replica.event(*kind, body).unwrap();
    }
    assert_eq!(replica.client.rows("SELECT v, n FROM d.t"), [["one", "1"], ["two", "2"]]);
}
