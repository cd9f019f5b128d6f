//! Operators with hardly any memory answer as they do with plenty, from temporary files; without files they fail cleanly.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Client, database};

/// Everything that collects rows, with results whose order is given or does not matter.
const QUERIES: &[&str] = &[
    "SELECT id, pad FROM t ORDER BY pad, id DESC",
    "SELECT pad, small FROM t ORDER BY small DESC, d, id",
    "SELECT j FROM t ORDER BY j, id",
    "SELECT id FROM t ORDER BY d DESC, f, at, id LIMIT 300 OFFSET 100",
    "SELECT pad FROM t ORDER BY RPAD(pad, 300, '-'), id LIMIT 200",
    "SELECT DISTINCT small, pad FROM t",
    "SELECT DISTINCT small FROM t ORDER BY small DESC LIMIT 7 OFFSET 1",
    "SELECT DISTINCT pad, small FROM t ORDER BY small + 0, pad LIMIT 90",
    "SELECT DISTINCT pad FROM t ORDER BY pad LIMIT 20000",
    "SELECT id, COUNT(*), SUM(small), MIN(pad) FROM t GROUP BY id",
    "SELECT pad, COUNT(DISTINCT small), GROUP_CONCAT(id ORDER BY id) FROM t GROUP BY pad HAVING COUNT(*) > 1",
    "SELECT pad, COUNT(*) FROM t GROUP BY pad ORDER BY pad LIMIT 40",
    "SELECT a.id, COUNT(b.id) FROM t a LEFT JOIN t b ON b.small = a.id GROUP BY a.id ORDER BY 2 DESC, 1 LIMIT 30",
    "SELECT COUNT(DISTINCT pad), SUM(DISTINCT small), COUNT(DISTINCT id, pad) FROM t",
    "SELECT GROUP_CONCAT(DISTINCT small ORDER BY small DESC) FROM t",
    "SELECT id, pad FROM t UNION SELECT small, pad FROM t",
    "SELECT id FROM t UNION ALL SELECT small FROM t UNION SELECT 5 ORDER BY 1 DESC LIMIT 100",
    "SELECT id FROM t INTERSECT SELECT small FROM t",
    "SELECT id FROM t EXCEPT SELECT small FROM t WHERE small < 250",
    "SELECT small FROM t INTERSECT ALL SELECT small FROM t WHERE id > 200",
    "SELECT small FROM t EXCEPT ALL SELECT small FROM t WHERE id > 200",
    "SELECT COUNT(*), SUM(LENGTH(pad)) FROM (SELECT DISTINCT id, pad FROM t) d",
    "WITH c AS (SELECT id, pad FROM t) SELECT COUNT(*), MAX(a.pad) FROM c a JOIN c b ON a.id = b.id",
    "WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n WHERE x < 300) SELECT SUM(x), COUNT(*) FROM n",
    "SELECT a.id, b.pad FROM t a JOIN t b ON a.small = b.small WHERE a.id < 40",
    "SELECT COUNT(*) FROM t a LEFT JOIN t b ON a.pad = b.pad AND a.id < b.id",
];

fn fill(client: &mut Client) {
    client.ok("CREATE DATABASE IF NOT EXISTS test");
    client.ok(
        "CREATE TABLE t (id INT PRIMARY KEY, small INT, pad VARCHAR(200), d DECIMAL(12,3), f DOUBLE, at DATETIME, j JSON)",
    );
    for from in (0..600).step_by(100) {
        let rows: Vec<String> = (from..from + 100)
            .map(|n| {
                let mixed = n * 7919 % 599;
                format!(
                    "({n}, {}, REPEAT('{}', {}), {}.{:03}, {}, '2024-01-01' + INTERVAL {} HOUR, '{{\"a\": [{}, \"{}\"]}}')",
                    if n % 50 == 3 { "NULL".to_owned() } else { (mixed % 300).to_string() },
                    ["ab", "Ab", "c "][n % 3],
                    mixed % 90,
                    mixed % 11,
                    mixed % 1000,
                    f64::from(mixed as u32) / -3.0,
                    mixed % 300,
                    mixed % 5,
                    mixed % 3,
                )
            })
            .collect();
        client.ok(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    }
}

fn answer(client: &mut Client, sql: &str) -> Vec<Vec<String>> {
    let mut rows = client.rows(sql);
    if !sql.contains("ORDER BY") || sql.contains("GROUP_CONCAT(id") {
        rows.sort();
    }
    rows
}

fn starve(client: &mut Client, bytes: u64) {
    let settings = &mut client.session.state.settings;
    (settings.sort_buffer_size, settings.tmp_table_size) = (bytes, bytes);
    settings.join_buffer_size = bytes;
}

#[test]
fn little_memory_answers_as_much_does() {
    let (_port, database) = database();
    let mut client = Client::new(&database);
    fill(&mut client);
    client.session.state.settings.group_concat_max_len = 1 << 20;
    let plenty: Vec<_> = QUERIES.iter().map(|sql| answer(&mut client, sql)).collect();
    assert_eq!(counter(&database, "Created_tmp_files"), 0);
    for bytes in [0, 2_000, 40_000] {
        starve(&mut client, bytes);
        for (sql, wanted) in QUERIES.iter().zip(&plenty) {
            assert_eq!(&answer(&mut client, sql), wanted, "{bytes} bytes: {sql}");
        }
    }
    for name in ["Created_tmp_disk_tables", "Created_tmp_files", "Sort_merge_passes"] {
        assert!(counter(&database, name) > 20, "{name}");
    }
    drop(client);
    assert_eq!(database.memory().used(), 0, "every statement gave back what it took");
}

#[test]
fn statements_that_write_read_from_files() {
    let (_port, database) = database();
    let mut client = Client::new(&database);
    fill(&mut client);
    starve(&mut client, 2_000);
    client.ok("CREATE TABLE u LIKE t");
    assert_eq!(client.ok("INSERT INTO u SELECT * FROM t").affected, 600);
    assert_eq!(client.ok("INSERT INTO u SELECT id + 600, small, pad, d, f, at, j FROM u").affected, 600);
    let sum = "SELECT COUNT(*), SUM(small), SUM(LENGTH(pad)) FROM u WHERE id >= 600";
    assert_eq!(client.rows(sum), client.rows("SELECT COUNT(*), SUM(small), SUM(LENGTH(pad)) FROM t"));
    // No row is found again where it has moved to.
    let moved = client.ok("UPDATE u SET id = id + 100000 WHERE id < 600 ORDER BY id DESC").affected;
    assert_eq!((moved, client.ok("UPDATE u SET id = id + 100000 WHERE id >= 600").affected), (600, 1200));
    assert_eq!(client.rows("SELECT MIN(id), MAX(id), COUNT(*) FROM u"), [["100600", "200599", "1200"]]);
    assert_eq!(client.ok("DELETE FROM u ORDER BY pad, id LIMIT 700").affected, 700);
    let rest = "SELECT COUNT(*) FROM u JOIN t ON u.id % 100000 % 600 = t.id AND u.pad = t.pad";
    assert_eq!(client.rows(rest), [["500"]]);
    assert!(client.ok("DELETE u FROM u JOIN t ON u.small = t.small").affected > 400);
}

#[test]
fn a_transaction_has_a_bound() {
    let (_port, database) = database();
    let mut client = Client::new(&database);
    fill(&mut client);
    client.ok("CREATE TABLE u LIKE t");
    client.session.state.settings.memory_limits.connection = 656 << 10;
    client.ok("BEGIN");
    client.ok("INSERT INTO u SELECT * FROM t WHERE id < 200");
    let (code, message) = client.error(
        "INSERT INTO u SELECT id + a.n * 1000, small, RPAD(pad, 200, 'x'), d, f, at, j FROM t, \
         (SELECT 1 AS n UNION SELECT 2 UNION SELECT 3 UNION SELECT 4) a",
    );
    assert_eq!(code, 1197, "{message}");
    client.ok("COMMIT");
    assert_eq!(client.rows("SELECT COUNT(*) FROM u"), [["200"]]);
    client.ok("CREATE TEMPORARY TABLE v LIKE t");
    for n in 0.. {
        match client.run(&format!(
            "INSERT INTO v SELECT id + {n} * 1000, small, pad, d, f, at, j FROM t WHERE id < 300"
        )) {
            Ok(_) => assert!(n < 50, "a temporary table grows without end"),
            Err(error) => {
                assert_eq!(error.code, 1114, "{error}");
                break;
            }
        }
    }
    client.ok("DROP TABLE v");
    client.ok("CREATE TEMPORARY TABLE v LIKE t");
    client.ok("INSERT INTO v SELECT * FROM t WHERE id < 50");
    drop(client);
    assert_eq!(database.memory().used(), 0);
}

#[test]
fn a_temporary_directory_that_is_gone_fails_the_statement_only() {
    let (_port, database) = database();
    let mut client = Client::new(&database);
    fill(&mut client);
    starve(&mut client, 2_000);
    client.session.state.settings.tmpdir = std::path::PathBuf::from("/nonexistent/directory").into();
    for sql in QUERIES.iter().filter(|sql| !sql.contains("RECURSIVE") && !sql.contains("JOIN")) {
        if let Err(error) = client.run(sql) {
            assert_eq!(error.code, 1026, "{sql}: {error}");
        }
    }
    assert_eq!(client.error(QUERIES[0]).0, 1026);
    assert_eq!(client.rows("SELECT COUNT(*) FROM t"), [["600"]]);
}

#[test]
fn what_has_no_file_fails_at_the_limit() {
    let (_port, database) = database();
    let mut client = Client::new(&database);
    fill(&mut client);
    let wanted = client.rows("SELECT id FROM t ORDER BY pad, id");
    client.session.state.settings.memory_limits.connection = 64 << 10;
    client.session.state.settings.group_concat_max_len = 1 << 30;
    for sql in [
        "SELECT JSON_ARRAYAGG(pad) FROM t",
        "SELECT JSON_OBJECTAGG(id, pad) FROM t",
        "SELECT GROUP_CONCAT(pad ORDER BY id) FROM t",
        "SELECT small IS NULL, COUNT(DISTINCT id, pad) FROM t GROUP BY small IS NULL",
        "SELECT pad IN (SELECT CONCAT(id, pad, pad, pad) FROM t) FROM t",
        "SELECT 'x' > ALL (SELECT pad FROM t)",
        "WITH RECURSIVE n AS (SELECT 1 AS x, pad FROM t UNION SELECT x + 1, pad FROM n WHERE x < 9) SELECT COUNT(*) FROM n",
        "SELECT @long := REPEAT('x', 300000)",
    ] {
        let (code, message) = client.error(sql);
        assert_eq!(code, 3170, "{sql}: {message}");
    }
    assert_eq!(client.rows("SELECT id FROM t ORDER BY pad, id"), wanted, "a sort takes what there is");
    client.session.state.settings.group_concat_max_len = 1024;
    client.session.state.settings.memory_limits.connection = 1 << 20;
    let (_, rows) = client.run("SELECT LENGTH(GROUP_CONCAT(pad ORDER BY pad)) FROM t").unwrap();
    assert_eq!(rows.text(), [["1024"]], "only what is shown is kept");
}

/// Wherever a limit stops a statement, its trigger is over: it would be a recursion of itself in the next one.
#[test]
fn a_trigger_whose_row_does_not_fit_is_over() {
    let (_port, database) = database();
    let mut client = Client::new(&database);
    client.ok("CREATE DATABASE IF NOT EXISTS test");
    client.ok("CREATE TABLE t (id INT PRIMARY KEY, pad LONGTEXT)");
    client.ok("CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.id = NEW.id + 1");
    let plenty = client.session.state.settings.memory_limits.connection;
    let (mut refused, mut id) = (0, 0);
    for limit in (0..40).map(|n| (100 + 50 * n) << 10) {
        client.session.state.settings.memory_limits.connection = limit;
        match client.run(&format!("INSERT INTO t VALUES ({id}, REPEAT('x', 400000))")) {
            Ok(_) => {}
            Err(error) => {
                refused += 1;
                assert_eq!(error.code, 3170, "{error}");
            }
        }
        client.session.state.settings.memory_limits.connection = plenty;
        client.ok(&format!("INSERT INTO t VALUES ({}, 'y')", id + 2));
        id += 4;
    }
    assert!((1..40).contains(&refused), "{refused} statements");
}

fn counter(database: &omnibus_sql::Database, name: &str) -> u64 {
    let counters = database.memory().counters();
    counters.iter().find(|(of, _)| of == name).map_or(0, |(_, value)| value.parse().unwrap())
}
