//! Statements of a log, applied: with their context, to the end that they had, with their position (APPLY-1).
#![allow(clippy::unwrap_used)]

mod common;

use common::replica::{Replica, replica};
use omnibus_format::events::{
    IntVar, MariadbGtidEvent, OptionalMetadata, Query, Rand, StatusVars, TableMap, UserVar, UserVarValue,
    flags2, put_rows_header,
};
use omnibus_format::field::{FieldType, code};
use omnibus_format::{EventType, ServerUuid, events::Gtid};
use omnibus_sql::apply::ApplySettings;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

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
fn statements_that_read_by_programs_wait_for_commits_before_them() {
    let settings = ApplySettings::default();
    let in_flight = settings.in_flight.clone();
    let mut replica = replica(settings);
    replica.client.ok("CREATE DATABASE d");
    replica.client.ok("CREATE TABLE d.t (id int PRIMARY KEY)");
    replica.client.ok("CREATE TABLE d.log (n int)");
    replica.client.ok(
        "CREATE TRIGGER d.counts AFTER INSERT ON d.t FOR EACH ROW INSERT INTO d.log SELECT COUNT(*) FROM d.t",
    );
    let events = |id: u32| {
        let insert = format!("INSERT INTO d.t VALUES ({id})");
        ["BEGIN", &insert, "COMMIT"].map(|sql| query("d", sql, 0, &StatusVars::default()))
    };
    for (kind, body) in events(1) {
        replica.event(kind, &body).unwrap();
    }
    // Another worker's commit has no place yet. What does not wait for it is done long before.
    in_flight.store(1, Ordering::SeqCst);
    let placed = Arc::new(AtomicBool::new(false));
    let worker = std::thread::spawn({
        let placed = placed.clone();
        move || {
            std::thread::sleep(Duration::from_millis(300));
            placed.store(true, Ordering::SeqCst);
            in_flight.store(0, Ordering::SeqCst);
        }
    });
    let [begin, insert, commit] = events(2);
    replica.event(begin.0, &begin.1).unwrap();
    replica.event(insert.0, &insert.1).unwrap();
    assert!(placed.load(Ordering::SeqCst), "the trigger reads, and has not waited");
    replica.event(commit.0, &commit.1).unwrap();
    worker.join().unwrap();
    assert_eq!(replica.client.rows("SELECT n FROM d.log"), [["1"], ["2"]]);
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
