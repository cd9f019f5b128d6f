//! The cost of a statement between the parser and the commit pipeline: no log, no network, the LSM
//! engine in a temporary directory. `cargo run --release -p omnibus-sql --example statement_cost`.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../tests/common/mod.rs"]
mod common;

use bytes::Bytes;
use common::{Client, Rows, TestPort};
use omnibus_sql::{AllowAll, Database, Mode, Prepared};
use omnibus_value::Value;
use std::sync::Arc;

const ROWS: i64 = 100_000;

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let config = omnibus_engine_lsm::LsmConfig::new(dir.path());
    let engine = omnibus_engine_lsm::LsmEngine::open(config).unwrap();
    let port = TestPort::quiet(Arc::new(engine));
    let database = Database::open(port).unwrap();
    let mut client = Client::new(&database);
    client.ok("CREATE DATABASE test");
    client.ok("CREATE TABLE sbtest1 (id int NOT NULL AUTO_INCREMENT, k int NOT NULL DEFAULT 0, c char(120) NOT NULL DEFAULT '', pad char(60) NOT NULL DEFAULT '', PRIMARY KEY (id), KEY k_1 (k))");
    for chunk in 0..ROWS / 1000 {
        let rows: Vec<String> = (0..1000)
            .map(|n| format!("({}, '{}', '{}')", chunk * 1000 + n, "c".repeat(119), "p".repeat(59)))
            .collect();
        client.ok(&format!("INSERT INTO sbtest1 (k, c, pad) VALUES {}", rows.join(",")));
    }
    prepared(&mut client, "UPDATE sbtest1 SET k=k+1 WHERE id=?", |n| vec![Value::Int(n)]);
    prepared(&mut client, "UPDATE sbtest1 SET c=? WHERE id=?", |n| {
        vec![Value::Bytes(Bytes::from(format!("{n:0119}"))), Value::Int(n)]
    });
    prepared(&mut client, "SELECT c FROM sbtest1 WHERE id=?", |n| vec![Value::Int(n)]);
    prepared(&mut client, "SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?", |n| {
        vec![Value::Int(n), Value::Int(n + 99)]
    });
    prepared(&mut client, "SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN ? AND ?", |n| {
        vec![Value::Int(n), Value::Int(n + 99)]
    });
    prepared(&mut client, "SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c", |n| {
        vec![Value::Int(n), Value::Int(n + 99)]
    });
    prepared(&mut client, "DELETE FROM sbtest1 WHERE id=?", |n| vec![Value::Int(n)]);
    prepared(&mut client, "INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?)", |n| {
        let text = |length: usize| Value::Bytes(Bytes::from("x".repeat(length)));
        vec![Value::Int(n), Value::Int(n), text(119), text(59)]
    });
    let start = cpu_ns();
    for n in 0..20_000 {
        client
            .run_mode(&format!("UPDATE sbtest1 SET k=k+1 WHERE id={}", 1 + n % ROWS), Mode::Inline)
            .unwrap();
    }
    report("text: UPDATE sbtest1 SET k=k+1 WHERE id=...", start, 20_000);
}

fn prepared(client: &mut Client, sql: &str, params: impl Fn(i64) -> Vec<Value>) {
    // An argument picks statements, and runs them longer.
    let wanted = std::env::args().nth(1);
    if wanted.as_ref().is_some_and(|wanted| !sql.contains(wanted.as_str())) {
        return;
    }
    let text = Bytes::copy_from_slice(sql.as_bytes());
    let mut statement = client.session.prepare(&text, &AllowAll).unwrap();
    let count = if wanted.is_some() { 500_000 } else { 20_000 };
    let params: Vec<_> = (0..count).map(|n| params(1 + (n * 7919) % (ROWS - 200))).collect();
    let start = cpu_ns();
    for params in &params {
        execute(client, &mut statement, params);
    }
    report(sql, start, count);
}

fn execute(client: &mut Client, statement: &mut Prepared, params: &[Value]) {
    let mut rows = Rows::default();
    client.session.execute_prepared(statement, params, Mode::Inline, &AllowAll, &mut rows).unwrap();
}

fn report(what: &str, start: u64, count: i64) {
    println!("{:8.2} us  {what}", (cpu_ns() - start) as f64 / 1e3 / count as f64);
}

/// This thread's CPU time so far, nanoseconds: the machine may have other work.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(0)
}
