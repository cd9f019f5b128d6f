//! Many sessions at once on the real log and engine: nothing is lost, nothing is seen half done,
//! and every session gets on.
#![allow(clippy::unwrap_used)]

mod common;

use common::server::start;
use common::{Client, error_of};
use omnibus_sql::{Database, Mode};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const ACCOUNTS: u64 = 8;
const TRANSFERS: u64 = 60;

/// Runs one statement, waiting in place; whether the transaction must begin again.
fn step(client: &mut Client, sql: &str) -> bool {
    match client.run_mode(sql, Mode::Blocking).map_err(error_of) {
        Ok(_) => true,
        Err(error) if error.code == 1213 => false,
        Err(error) => panic!("{sql}: {error}"),
    }
}

fn transfer(client: &mut Client, from: u64, to: u64) {
    loop {
        client.ok("BEGIN");
        let take = format!("UPDATE acc SET v = v - 1 WHERE id = {from}");
        let give = format!("UPDATE acc SET v = v + 1 WHERE id = {to}");
        if step(client, &take) && step(client, &give) {
            client.ok("COMMIT");
            return;
        }
    }
}

fn total(client: &mut Client, sql: &str) -> String {
    client.run_mode(sql, Mode::Blocking).map_err(error_of).unwrap().1.text()[0][0].clone()
}

#[test]
fn money_is_neither_made_nor_lost() {
    let dir = tempfile::tempdir().unwrap();
    money(&start(dir.path()).database);
}

#[test]
fn nor_in_memory() {
    money(&common::database().1);
}

fn money(database: &Arc<Database>) {
    let mut setup = Client::new(database);
    setup.ok("CREATE DATABASE test");
    setup.ok("CREATE TABLE acc (id int PRIMARY KEY, v int, KEY (v))");
    for id in 0..ACCOUNTS {
        setup.ok(&format!("INSERT INTO acc VALUES ({id}, 100)"));
    }
    let done = AtomicBool::new(false);
    let looked = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..6)
            .map(|seed| {
                let database = database.clone();
                scope.spawn(move || transfers(&database, seed))
            })
            .collect();
        let reader = scope.spawn(|| {
            let mut client = Client::new(database);
            while !done.load(Ordering::Relaxed) {
                assert_eq!(total(&mut client, "SELECT SUM(v) FROM acc"), "800", "by primary key");
                assert_eq!(total(&mut client, "SELECT SUM(v) FROM acc WHERE v > -1000"), "800", "by index");
                looked.fetch_add(1, Ordering::Relaxed);
            }
        });
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
    });
    assert!(looked.load(Ordering::Relaxed) > 0);
    assert_eq!(total(&mut setup, "SELECT SUM(v) FROM acc FOR SHARE"), "800");
}

fn transfers(database: &Arc<Database>, seed: u64) {
    let mut client = Client::new(database);
    let mut state = seed + 1;
    for _ in 0..TRANSFERS {
        // Xorshift: the order of accounts must differ, or nothing would ever deadlock.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        transfer(&mut client, state % ACCOUNTS, (state >> 8) % ACCOUNTS);
    }
}

#[test]
fn generated_ids_are_unique_and_unique_keys_hold() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let mut setup = Client::new(&server.database);
    setup.ok("CREATE DATABASE test");
    setup.ok("CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, u int UNIQUE, n int)");
    setup.ok("CREATE TABLE h (a int)");
    std::thread::scope(|scope| {
        for seed in 0..6_u64 {
            let database = server.database.clone();
            scope.spawn(move || {
                let mut client = Client::new(&database);
                for n in 0..40 {
                    // The same forty values from everybody: one wins, the others count.
                    let sql =
                        format!("INSERT INTO t (u, n) VALUES ({n}, 1) ON DUPLICATE KEY UPDATE n = n + 1");
                    while !step(&mut client, &sql) {}
                    while !step(&mut client, &format!("INSERT INTO h VALUES ({seed}), ({n})")) {}
                }
            });
        }
    });
    assert_eq!(total(&mut setup, "SELECT COUNT(*) FROM t"), "40");
    assert_eq!(total(&mut setup, "SELECT SUM(n) FROM t"), "240");
    assert_eq!(total(&mut setup, "SELECT COUNT(DISTINCT u) FROM t"), "40");
    assert_eq!(total(&mut setup, "SELECT COUNT(*) FROM h"), "480");
}

#[test]
fn nor_on_the_engine_alone() {
    let dir = tempfile::tempdir().unwrap();
    let config = omnibus_engine_lsm::LsmConfig::new(dir.path());
    let engine = Arc::new(omnibus_engine_lsm::LsmEngine::open(config).unwrap());
    money(&Database::open(common::TestPort::over(engine, 0)).unwrap());
}

#[test]
fn indexes_agree_with_their_rows() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let mut setup = Client::new(&server.database);
    setup.ok("CREATE DATABASE test");
    setup.ok("CREATE TABLE s (id int AUTO_INCREMENT PRIMARY KEY, k int NOT NULL, c char(20), KEY k_1 (k))");
    for n in 0..10_u64 {
        setup.ok(&format!("INSERT INTO s (k, c) VALUES ({n}, 'a'), ({n}, 'b'), ({n}, 'c')"));
    }
    std::thread::scope(|scope| {
        for seed in 1..7_u64 {
            let database = server.database.clone();
            scope.spawn(move || {
                let mut client = Client::new(&database);
                let mut state = seed;
                for _ in 0..80 {
                    while !read_write(&mut client, &mut state) {}
                }
            });
        }
    });
    let by_key = setup.rows("SELECT id, k, c FROM s ORDER BY id");
    let mut by_index = setup.rows("SELECT id, k, c FROM s FORCE INDEX (k_1) WHERE k > -1000000");
    by_index.sort_by_key(|row| row[0].parse::<u64>().unwrap());
    assert_eq!(by_key, by_index);
    assert_eq!(by_key.len(), 30);
}

/// One transaction as sysbench makes them; whether it was committed.
fn read_write(client: &mut Client, state: &mut u64) -> bool {
    let mut next = |limit: u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % limit
    };
    let (a, b, c) = (next(30) + 1, next(30) + 1, next(30) + 1);
    let k = next(50);
    client.ok("BEGIN");
    let statements = [
        format!("UPDATE s SET k = k + 1 WHERE id = {a}"),
        format!("UPDATE s SET c = 'x{k}' WHERE id = {b}"),
        format!("DELETE FROM s WHERE id = {c}"),
        format!("INSERT INTO s (id, k, c) VALUES ({c}, {k}, 'new')"),
    ];
    for sql in &statements {
        if !step(client, sql) {
            return false;
        }
    }
    client.ok("COMMIT");
    true
}

/// A branch has its name from XA START until it is ended: also in the moment in which a session hands it over, prepared.
#[test]
fn the_name_of_a_branch_is_not_free_while_it_is_prepared() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let database = &server.database;
    let mut preparing = Client::new(database);
    preparing.ok("CREATE DATABASE test");
    preparing.ok("CREATE TABLE t (id int PRIMARY KEY)");
    let (current, tried) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut other = Client::new(database);
            loop {
                match current.load(Ordering::SeqCst) {
                    0 => {}
                    u64::MAX => return,
                    name => {
                        let started = other.run_mode(&format!("XA START 'b{name}'"), Mode::Blocking);
                        assert_eq!(started.err().map(|e| error_of(e).code), Some(1440), "XA START 'b{name}'");
                        tried.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
        for name in 1..=300 {
            preparing.ok(&format!("XA START 'b{name}'"));
            current.store(name, Ordering::SeqCst);
            preparing.ok(&format!("INSERT INTO t VALUES ({name})"));
            preparing.ok(&format!("XA END 'b{name}'"));
            step(&mut preparing, &format!("XA PREPARE 'b{name}'"));
            if other.is_finished() {
                break;
            }
        }
        current.store(u64::MAX, Ordering::SeqCst);
        other.join().unwrap();
    });
    assert!(tried.load(Ordering::Relaxed) > 300);
}
