//! Rows looked up by an index for each row of another table are those that comparing all pairs finds.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Client, database};

/// Columns of an index, and what a column that they are compared with has.
const KINDS: &[&str] = &[
    "TINYINT",
    "TINYINT UNSIGNED",
    "SMALLINT",
    "MEDIUMINT UNSIGNED",
    "INT",
    "BIGINT",
    "BIGINT UNSIGNED",
    "DECIMAL(20,0)",
    "YEAR",
    "VARCHAR(20)",
];
const OUTER: &[&str] = &["BIGINT", "BIGINT UNSIGNED", "SMALLINT", "INT UNSIGNED", "DECIMAL(21,1)"];
const NUMBERS: &[&str] = &[
    "NULL",
    "0",
    "-1",
    "1",
    "7",
    "127",
    "128",
    "255",
    "256",
    "2024",
    "-129",
    "65536",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
];

fn fill(client: &mut Client, table: &str, column: &str, index: &str) {
    client.ok(&format!("CREATE TABLE {table} (id INT AUTO_INCREMENT PRIMARY KEY, n {column}, m INT{index})"));
    for number in NUMBERS {
        for m in ["1", "2", "NULL"] {
            client.ok(&format!("INSERT IGNORE INTO {table} (n, m) VALUES ({number}, {m})"));
        }
    }
}

#[test]
fn lookups_find_what_comparing_all_pairs_finds() {
    let (_, database) = database();
    let mut client = Client::new(&database);
    client.ok("CREATE DATABASE test");
    client.session.state.settings.sql_mode = 0;
    for (at, column) in OUTER.iter().enumerate() {
        fill(&mut client, &format!("o{at}"), column, "");
    }
    let mut found = 0;
    for (at, column) in KINDS.iter().enumerate() {
        fill(
            &mut client,
            &format!("i{at}"),
            column,
            ", KEY one (n), KEY two (n, m), KEY down (n DESC, m DESC)",
        );
        for (o, outer) in OUTER.iter().enumerate() {
            for (index, on) in [
                ("one", "i.n = o.n"),
                ("one", "i.n <=> o.n"),
                ("two", "i.n = o.n AND i.m = o.m"),
                ("two", "i.n = o.n AND i.m <=> o.m"),
                ("down", "i.n = o.n AND i.m = o.m"),
                ("down", "i.n = o.n"),
            ] {
                for join in ["JOIN", "LEFT JOIN"] {
                    let mut ids = |hint: &str, order: &str| {
                        client.rows(&format!(
                            "SELECT STRAIGHT_JOIN o.id, i.id FROM o{o} o {join} i{at} i {hint} ON {on} ORDER BY {order}"
                        ))
                    };
                    let looked_up = ids(&format!("FORCE INDEX ({index})"), "1, 2");
                    let compared = ids("IGNORE INDEX (one, two, down)", "1, 2");
                    assert_eq!(looked_up, compared, "{outer} {column} {join} {on} by {index}");
                    found += looked_up.len();
                }
            }
        }
    }
    assert!(found > 10_000, "{found}");
}
