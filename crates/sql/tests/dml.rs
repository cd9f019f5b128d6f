//! Rows: what INSERT, REPLACE, UPDATE and DELETE change, count, warn about and refuse.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, database};
use omnibus_sql::AllowAll;
use omnibus_value::temporal::Zone;

fn client() -> Client {
    let (_, database) = database();
    let mut client = Client::new(&database);
    client.ok("CREATE DATABASE test");
    client
}

#[test]
fn inserted_rows_are_found_by_every_key() {
    let mut c = client();
    c.ok("CREATE TABLE t (id int PRIMARY KEY, k int, u varchar(10), KEY (k), UNIQUE KEY (u))");
    let outcome = c.ok("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 20, NULL), (4, NULL, NULL)");
    assert_eq!(
        (outcome.affected, outcome.info.to_string().as_str()),
        (4, "Records: 4  Duplicates: 0  Warnings: 0")
    );
    assert_eq!(c.rows("SELECT * FROM t WHERE id = 2"), [["2", "20", "b"]]);
    assert_eq!(c.rows("SELECT id FROM t WHERE k = 20"), [["2"], ["3"]]);
    assert_eq!(c.rows("SELECT id FROM t WHERE u = 'B'"), [["2"]]);
    assert_eq!(c.rows("SELECT id FROM t WHERE u IS NULL"), [["3"], ["4"]]);
    assert_eq!(c.rows("SELECT id FROM t ORDER BY id DESC LIMIT 2"), [["4"], ["3"]]);
}

#[test]
fn updates_move_index_entries() {
    let mut c = client();
    c.ok("CREATE TABLE t (id int PRIMARY KEY, k int, KEY (k))");
    c.ok("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)");
    let outcome = c.ok("UPDATE t SET k = k + 1 WHERE id = 1");
    assert_eq!(
        (outcome.affected, outcome.info.to_string().as_str()),
        (1, "Rows matched: 1  Changed: 1  Warnings: 0")
    );
    assert_eq!(c.rows("SELECT id FROM t WHERE k = 11"), [["1"]]);
    assert!(c.rows("SELECT id FROM t WHERE k = 10").is_empty());
    let outcome = c.ok("UPDATE t SET k = 20 WHERE k >= 20");
    assert_eq!(
        (outcome.affected, outcome.info.to_string().as_str()),
        (1, "Rows matched: 2  Changed: 1  Warnings: 0")
    );
    c.ok("UPDATE t SET id = id + 10 ORDER BY id DESC LIMIT 1");
    assert_eq!(c.rows("SELECT id, k FROM t ORDER BY k, id"), [["1", "11"], ["2", "20"], ["13", "20"]]);
    assert_eq!(c.rows("SELECT id FROM t WHERE k = 20"), [["2"], ["13"]]);
    // Assignments see the ones before them.
    c.ok("UPDATE t SET k = id, id = k + 100 WHERE id = 1");
    assert_eq!(c.rows("SELECT id, k FROM t WHERE k = 1"), [["101", "1"]]);
    c.ok("UPDATE t SET k = k + 1");
    assert_eq!(c.rows("SELECT k FROM t ORDER BY k"), [["2"], ["21"], ["21"]]);
}

#[test]
fn deletes_leave_nothing_behind() {
    let mut c = client();
    c.ok("CREATE TABLE t (id int PRIMARY KEY, k int, KEY (k))");
    c.ok("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4)");
    assert_eq!(c.ok("DELETE FROM t WHERE k BETWEEN 2 AND 3").affected, 2);
    assert_eq!(c.ok("DELETE FROM t ORDER BY id DESC LIMIT 1").affected, 1);
    assert_eq!(c.rows("SELECT id FROM t"), [["1"]]);
    assert_eq!(c.ok("DELETE FROM t").affected, 1);
    assert!(c.rows("SELECT id FROM t WHERE k > 0").is_empty());
    c.ok("INSERT INTO t VALUES (1, 1)");
}

#[test]
fn unique_keys_refuse_duplicates() {
    let mut c = client();
    c.ok("CREATE TABLE t (id int PRIMARY KEY, a int, b varchar(5), UNIQUE KEY ab (a, b))");
    c.ok("INSERT INTO t VALUES (1, 1, 'x'), (2, 2, 'y')");
    assert_eq!(
        c.error("INSERT INTO t VALUES (1, 9, 'z')"),
        (1062, "Duplicate entry '1' for key 't.PRIMARY'".into())
    );
    assert_eq!(
        c.error("INSERT INTO t VALUES (3, 1, 'X')"),
        (1062, "Duplicate entry '1-X' for key 't.ab'".into())
    );
    assert_eq!(c.error("UPDATE t SET a = 1, b = 'x' WHERE id = 2").0, 1062);
    assert_eq!(c.error("UPDATE t SET id = 1 WHERE id = 2").0, 1062);
    // A statement that fails leaves none of its rows.
    assert_eq!(c.error("INSERT INTO t VALUES (5, 5, 'n'), (6, 2, 'y')").0, 1062);
    assert_eq!(c.rows("SELECT id FROM t"), [["1"], ["2"]]);
    // NULL is no duplicate of NULL.
    c.ok("INSERT INTO t VALUES (3, NULL, 'x'), (4, NULL, 'x')");
    // Changing only the case of a unique value is no duplicate of itself.
    c.ok("UPDATE t SET b = 'X' WHERE id = 1");
    assert_eq!(c.rows("SELECT b FROM t WHERE id = 1"), [["X"]]);
    let outcome = c.ok("INSERT IGNORE INTO t VALUES (1, 0, 'q'), (7, 7, 'q')");
    assert_eq!(
        (outcome.affected, outcome.info.to_string().as_str()),
        (1, "Records: 2  Duplicates: 1  Warnings: 1")
    );
    assert_eq!(c.rows("SHOW WARNINGS"), [["Warning", "1062", "Duplicate entry '1' for key 't.PRIMARY'"]]);
}

#[test]
fn replace_and_on_duplicate_key_update() {
    let mut c = client();
    c.ok("CREATE TABLE t (id int PRIMARY KEY, u int UNIQUE, n int DEFAULT 7)");
    c.ok("INSERT INTO t VALUES (1, 1, 1), (2, 2, 2)");
    assert_eq!(c.ok("REPLACE INTO t (id, u) VALUES (1, 2)").affected, 3);
    assert_eq!(c.rows("SELECT * FROM t"), [["1", "2", "7"]]);
    let update = "INSERT INTO t (id, u, n) VALUES (1, 5, 3) ON DUPLICATE KEY UPDATE n = n + VALUES(n), u = 9";
    assert_eq!(c.ok(update).affected, 2);
    assert_eq!(c.rows("SELECT * FROM t"), [["1", "9", "10"]]);
    let same = "INSERT INTO t VALUES (1, 5, 3) AS new ON DUPLICATE KEY UPDATE u = 9, n = new.n + 7";
    assert_eq!(c.ok(same).affected, 0);
    assert_eq!(c.ok("INSERT INTO t VALUES (3, 3, 3) ON DUPLICATE KEY UPDATE n = 0").affected, 1);
}

/// Agrees with MariaDB 10.11, but for the words of 1054 and 1052.
#[test]
fn on_duplicate_key_update_reads_the_tables_of_the_select() {
    let mut c = client();
    c.ok("CREATE TABLE t (a int PRIMARY KEY, b int, c varchar(10))");
    c.ok("CREATE TABLE s (x int, b int, y varchar(10), at timestamp NULL)");
    c.ok("CREATE TABLE u (x int, z int)");
    c.ok("INSERT INTO t VALUES (1, 1, 'one'), (2, 2, 'two')");
    c.ok("INSERT INTO s VALUES (1, 10, 'ten', '2024-01-01 00:00:00'), (2, 20, 'twenty', NULL), (3, 30, 'thirty', NULL)");
    c.ok("INSERT INTO u VALUES (1, 100), (2, 200), (2, 201)");
    let mut after = |sql: &str| {
        c.ok(sql);
        c.rows("SELECT b, c FROM t ORDER BY a").iter().map(|row| row.join(" ")).collect::<Vec<_>>().join(", ")
    };
    let n = "INSERT INTO t SELECT x, 0, 'n' FROM s";
    assert_eq!(after(&format!("{n} ON DUPLICATE KEY UPDATE b = x + 100, c = y")), "101 ten, 102 twenty, 0 n");
    assert_eq!(
        after(&format!("{n} ON DUPLICATE KEY UPDATE b = s.b + t.b, c = CONCAT(VALUES(c), t.c)")),
        "111 nten, 122 ntwenty, 30 nn"
    );
    assert_eq!(
        after(
            "INSERT INTO t SELECT DISTINCT x DIV 3 + 1, 0, 'n' FROM s WHERE x < 3 ON DUPLICATE KEY UPDATE c = y"
        ),
        "111 ten, 122 ntwenty, 30 nn"
    );
    assert_eq!(
        after(
            "INSERT INTO t SELECT s.x, 0, 'n' FROM s LEFT JOIN u ON u.x = s.x ORDER BY z DESC LIMIT 3
             ON DUPLICATE KEY UPDATE c = z"
        ),
        "111 100, 122 200, 30 nn"
    );
    assert_eq!(
        after("INSERT INTO t SELECT o.a, o.b, o.c FROM t o ON DUPLICATE KEY UPDATE c = CONCAT(o.c, 'x')"),
        "111 100x, 122 200x, 30 nnx"
    );
    assert_eq!(
        after(
            "INSERT INTO t (a) (SELECT q.k FROM (SELECT x k, y FROM s) q)
             ON DUPLICATE KEY UPDATE c = q.y, b = (SELECT MAX(z) FROM u WHERE u.x = q.k)"
        ),
        "100 ten, 201 twenty, NULL thirty"
    );
    c.session.state.settings.zone = Zone::Offset(7200);
    c.ok("INSERT INTO t (a) SELECT x FROM s WHERE x = 1 ON DUPLICATE KEY UPDATE c = TIME(at)");
    assert_eq!(c.rows("SELECT c FROM t WHERE a = 1"), [["02:00:00"]]);
    for (code, sql) in [
        (1052, "INSERT INTO t SELECT x, 0, 'n' FROM s ON DUPLICATE KEY UPDATE b = b + 1"),
        (1052, "INSERT INTO t SELECT a, b, c FROM t ON DUPLICATE KEY UPDATE c = t.c"),
        (1054, "INSERT INTO t SELECT MAX(x), 0, 'n' FROM s ON DUPLICATE KEY UPDATE c = y"),
        (1054, "INSERT INTO t (a) SELECT x FROM s GROUP BY x ON DUPLICATE KEY UPDATE c = y"),
        (1054, "INSERT INTO t (a) SELECT x FROM s ON DUPLICATE KEY UPDATE s.b = 1"),
        (1054, "INSERT INTO t (a) SELECT x AS w FROM s ON DUPLICATE KEY UPDATE c = w"),
        // The query knows nothing of the target.
        (1054, "INSERT INTO t (a) SELECT c FROM s"),
    ] {
        assert_eq!(c.error(sql).0, code, "{sql}");
    }
}

/// MySQL's rules: MariaDB only warns of what a DELETE meets, and finds nothing wrong with comparing a number with 'x'.
#[test]
fn strict_mode_refuses_bad_data_where_rows_are_looked_for() {
    let mut c = client();
    c.ok("CREATE TABLE t (a int PRIMARY KEY, b int, c varchar(10), d date, KEY (b))");
    c.ok("CREATE TABLE h (b int)");
    c.ok("CREATE TABLE none (a int PRIMARY KEY, b int)");
    c.ok("INSERT INTO t VALUES (1, 1, 'one', '2020-01-01'), (2, 2, '2x', '2020-01-02')");
    c.ok("INSERT INTO h VALUES (1), (2)");
    let number = "Truncated incorrect DOUBLE value: 'x'";
    for (code, message, sql) in [
        (1292, number, "UPDATE t SET d = NULL WHERE b = 'x'"),
        (1292, number, "UPDATE t SET d = NULL WHERE a = 'x'"),
        (1292, number, "DELETE FROM t WHERE a = 'x' LIMIT 1"),
        (1292, number, "DELETE FROM h WHERE b = 'x'"),
        (1292, "Truncated incorrect INTEGER value: 'x'", "DELETE FROM t WHERE CAST('x' AS SIGNED) = 5"),
        (1292, "Truncated incorrect DOUBLE value: 'one'", "UPDATE t SET b = 1 WHERE c = 0"),
        (
            1292,
            "Truncated incorrect DOUBLE value: 'one'",
            "DELETE FROM t WHERE a IN (SELECT b FROM h WHERE c = b)",
        ),
        (
            1292,
            "Truncated incorrect DOUBLE value: 'one'",
            "UPDATE t x JOIN t y ON x.a = y.a SET x.b = 4 WHERE x.c = 99",
        ),
        (1292, "Truncated incorrect DOUBLE value: 'one'", "UPDATE t SET b = 5 ORDER BY c + 0"),
        (1365, "Division by 0", "DELETE FROM t WHERE b = a / 0"),
    ] {
        assert_eq!(c.error(sql), (code, message.to_owned()), "{sql}");
    }
    // Nothing was looked at, IGNORE, and another mode.
    assert_eq!(c.ok("UPDATE none SET b = 1 WHERE b = 'x'").affected, 0);
    assert_eq!(c.ok("UPDATE IGNORE t SET b = 7 WHERE c = 9").affected, 0);
    assert_eq!(c.ok("DELETE IGNORE FROM t WHERE c = 9").affected, 0);
    assert_eq!(c.rows("SHOW WARNINGS")[0], ["Warning", "1292", "Truncated incorrect DOUBLE value: 'one'"]);
    assert_eq!(c.rows("SELECT a FROM t WHERE c = 2"), [["2"]]);
    c.session.state.settings.sql_mode = 0;
    assert_eq!(c.ok("UPDATE t SET b = 3 WHERE c = 2").affected, 1);
    assert_eq!(c.ok("DELETE FROM t WHERE b = 'x'").affected, 0);
}

#[test]
fn a_time_that_clocks_skip_becomes_the_next_one_they_show() {
    let mut c = client();
    let Some(berlin) = Zone::by_name("Europe/Berlin") else { return };
    c.session.state.settings.zone = berlin;
    c.ok("CREATE TABLE t (id int PRIMARY KEY, at timestamp(3) NULL, KEY (at))");
    let error = (1292, "Incorrect datetime value: '2024-03-31 02:30:00' for column 'at' at row 1".to_owned());
    assert_eq!(c.error("INSERT INTO t VALUES (1, '2024-03-31 02:30:00')"), error);
    c.session.state.settings.sql_mode = 0;
    c.ok("INSERT INTO t VALUES (1, '2024-03-31 02:30:00.7'), (2, '2024-10-27 02:30:00'), (3, '2024-10-27 03:00:00')");
    assert_eq!(
        c.rows("SHOW WARNINGS"),
        [["Warning", "1299", "Invalid TIMESTAMP value in column 'at' at row 1"]]
    );
    assert_eq!(
        c.rows("SELECT at, UNIX_TIMESTAMP(at) FROM t ORDER BY id"),
        [
            ["2024-03-31 03:00:00.700", "1711846800.700"],
            ["2024-10-27 02:30:00.000", "1729989000.000"],
            ["2024-10-27 03:00:00.000", "1729994400.000"]
        ]
    );
    c.session.state.settings.zone = Zone::Offset(0);
    c.ok("INSERT INTO t VALUES (4, '2024-10-27 01:10:00')");
    c.session.state.settings.zone = berlin;
    // Shown as 02:10, an hour after row 2 was at 02:10: found whichever way rows are read.
    for hint in ["FORCE INDEX (at)", "IGNORE INDEX (at)"] {
        let rows = c.rows(&format!("SELECT id FROM t {hint} WHERE at <= '2024-10-27 02:30:00' ORDER BY id"));
        assert_eq!(rows, [["1"], ["2"], ["4"]], "{hint}");
        assert!(
            c.rows(&format!("SELECT id FROM t {hint} WHERE at = '2024-03-31 02:30:00'")).is_empty(),
            "{hint}"
        );
    }
    assert_eq!(
        c.rows(
            "SELECT CONVERT_TZ('2024-03-31 02:30:00', 'Europe/Berlin', 'UTC'), CONVERT_TZ('2024-10-27 02:30:00', 'Europe/Berlin', 'UTC'),
             CONVERT_TZ('2024-07-01 12:00:00.5', '+00:00', 'europe/berlin'), CONVERT_TZ('2024-07-01', 'Nix', 'UTC'),
             CONVERT_TZ('1950-07-01 12:00', 'UTC', 'Europe/Berlin'), FROM_UNIXTIME(1729992600), UNIX_TIMESTAMP('2024-03-31 02:59:59.5')"
        ),
        [[
            "2024-03-31 01:00:00",
            "2024-10-27 00:30:00",
            "2024-07-01 14:00:00.5",
            "NULL",
            "1950-07-01 12:00:00",
            "2024-10-27 02:30:00",
            "1711846800.5"
        ]]
    );
}

#[test]
fn auto_increment_counts_on() {
    let mut c = client();
    c.ok("CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, v int)");
    assert_eq!(c.ok("INSERT INTO t (v) VALUES (1), (2), (3)").last_insert_id, 1);
    assert_eq!(c.rows("SELECT LAST_INSERT_ID()"), [["1"]]);
    c.ok("INSERT INTO t VALUES (10, 4), (NULL, 5), (0, 6)");
    assert_eq!(c.rows("SELECT id FROM t"), [["1"], ["2"], ["3"], ["10"], ["11"], ["12"]]);
    c.ok("DELETE FROM t WHERE id > 3");
    assert_eq!(c.ok("INSERT INTO t (v) VALUES (7)").last_insert_id, 13);
    c.session.state.settings.auto_increment_increment = 10;
    c.session.state.settings.auto_increment_offset = 5;
    c.ok("INSERT INTO t (v) VALUES (8), (9)");
    assert_eq!(c.rows("SELECT id FROM t WHERE v > 7"), [["15"], ["25"]]);
    c.ok("CREATE TABLE s (id tinyint AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT=127");
    c.session.state.settings.auto_increment_increment = 1;
    c.ok("INSERT INTO s VALUES ()");
    assert_eq!(c.error("INSERT INTO s VALUES (NULL)").0, 1062);
    c.ok("ALTER TABLE t AUTO_INCREMENT = 100");
    assert_eq!(c.ok("INSERT INTO t (v) VALUES (1)").last_insert_id, 100);
}

#[test]
fn strict_mode_refuses_what_lenient_mode_mends() {
    let mut c = client();
    c.ok("CREATE TABLE t (a int NOT NULL, b varchar(3) NOT NULL DEFAULT 'd', c tinyint unsigned, d date)");
    for (sql, code) in [
        ("INSERT INTO t (b) VALUES ('x')", 1364),
        ("INSERT INTO t (a) VALUES (NULL)", 1048),
        ("INSERT INTO t (a) VALUES ('abc')", 1366),
        ("INSERT INTO t (a, b) VALUES (1, 'abcd')", 1406),
        ("INSERT INTO t (a, c) VALUES (1, 256)", 1264),
        ("INSERT INTO t (a, d) VALUES (1, '2024-02-30')", 1292),
        ("INSERT INTO t (a, c) VALUES (1)", 1136),
        ("INSERT INTO t (a, a) VALUES (1, 1)", 1110),
        ("INSERT INTO t (z) VALUES (1)", 1054),
        ("UPDATE t SET z = 1", 1054),
        ("INSERT INTO nope VALUES (1)", 1146),
    ] {
        assert_eq!(c.error(sql).0, code, "{sql}");
    }
    assert!(c.rows("SELECT * FROM t").is_empty());
    c.session.state.settings.sql_mode = 0;
    c.ok("INSERT INTO t (b, c, d) VALUES ('abcd', 300, '2024-02-30')");
    let codes: Vec<String> = c.rows("SHOW WARNINGS").into_iter().map(|row| row[1].clone()).collect();
    assert_eq!(codes, ["1364", "1265", "1264", "1265"]);
    assert_eq!(c.rows("SELECT * FROM t"), [["0", "abc", "255", "0000-00-00"]]);
}

#[test]
fn tables_without_a_key_work() {
    let mut c = client();
    c.ok("CREATE TABLE t (a int, b int, KEY (a))");
    c.ok("INSERT INTO t VALUES (1, 1), (1, 1), (2, 2)");
    assert_eq!(c.ok("DELETE FROM t WHERE a = 1 LIMIT 1").affected, 1);
    assert_eq!(c.ok("UPDATE t SET a = 5 WHERE b = 2").affected, 1);
    assert_eq!(c.rows("SELECT a, b FROM t WHERE a > 0"), [["1", "1"], ["5", "2"]]);
}

#[test]
fn insert_select_reads_before_it_writes() {
    let mut c = client();
    c.ok("CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, v int)");
    c.ok("INSERT INTO t (v) VALUES (1), (2)");
    let outcome = c.ok("INSERT INTO t (v) SELECT v + 10 FROM t");
    assert_eq!(
        (outcome.affected, outcome.info.to_string().as_str()),
        (2, "Records: 2  Duplicates: 0  Warnings: 0")
    );
    assert_eq!(c.rows("SELECT v FROM t"), [["1"], ["2"], ["11"], ["12"]]);
    c.ok("CREATE TABLE copy SELECT id, v * 2 AS w FROM t WHERE v < 10");
    assert_eq!(c.rows("SELECT id, w FROM copy ORDER BY id"), [["1", "2"], ["2", "4"]]);
}

#[test]
fn timestamps_follow_their_clauses() {
    let mut c = client();
    c.ok("CREATE TABLE t (id int PRIMARY KEY, v int, made timestamp DEFAULT CURRENT_TIMESTAMP,
          seen datetime(3) DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3))");
    c.session.state.settings.timestamp_us = Some(1_700_000_000_123_456);
    c.ok("INSERT INTO t (id, v) VALUES (1, 1)");
    c.session.state.settings.timestamp_us = Some(1_700_000_001_000_000);
    c.ok("UPDATE t SET v = 1");
    assert_eq!(c.rows("SELECT made, seen FROM t"), [["2023-11-14 22:13:20", "2023-11-14 22:13:20.123"]]);
    c.ok("UPDATE t SET v = 2");
    assert_eq!(c.rows("SELECT made, seen FROM t"), [["2023-11-14 22:13:20", "2023-11-14 22:13:21.000"]]);
    c.session.state.settings.zone = Zone::Offset(3600);
    assert_eq!(c.rows("SELECT made FROM t"), [["2023-11-14 23:13:20"]]);
}

#[test]
fn altered_tables_keep_their_rows() {
    let mut c = client();
    c.ok("CREATE TABLE t (id int PRIMARY KEY, v varchar(10), n int)");
    c.ok("INSERT INTO t VALUES (1, '10', 5), (2, '20', 5), (3, '30', 6)");
    c.ok("ALTER TABLE t ADD KEY (n), ADD UNIQUE KEY uv (v)");
    assert_eq!(c.rows("SELECT id FROM t WHERE n = 5"), [["1"], ["2"]]);
    assert_eq!(c.rows("SELECT id FROM t WHERE v = '30'"), [["3"]]);
    assert_eq!(
        c.error("ALTER TABLE t ADD UNIQUE KEY (n)"),
        (1062, "Duplicate entry '5' for key 't.n_2'".into())
    );
    c.ok("ALTER TABLE t MODIFY v int NOT NULL AFTER n, ADD COLUMN w int NOT NULL DEFAULT 4 FIRST, CHANGE n m bigint");
    assert_eq!(
        c.rows("SELECT * FROM t"),
        [["4", "1", "5", "10"], ["4", "2", "5", "20"], ["4", "3", "6", "30"]]
    );
    assert_eq!(c.rows("SELECT id FROM t WHERE v = 20"), [["2"]]);
    c.ok("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)");
    c.ok("INSERT INTO t (id, v) VALUES (1, 99)");
    assert_eq!(c.rows("SELECT id FROM t WHERE v = 99"), [["1"]]);
    c.ok("ALTER TABLE t DROP COLUMN m");
    assert_eq!(c.rows("SELECT * FROM t WHERE v = 10"), [["4", "1", "10"]]);
    c.ok("DROP INDEX uv ON t");
    c.ok("INSERT INTO t (id, v) VALUES (7, 100)");
}

#[test]
fn prepared_statements_take_parameters_and_survive_ddl() {
    let mut c = client();
    c.ok("CREATE TABLE t (id int PRIMARY KEY, v int)");
    c.ok("PREPARE i FROM 'INSERT INTO t VALUES (?, ?)'");
    c.ok("PREPARE s FROM 'SELECT v FROM t WHERE id = ?'");
    let (a, ty) = c.session.evaluate(&expr("1"), &AllowAll).unwrap();
    c.session.state.set_user_variable("a".into(), (a, ty)).unwrap();
    c.ok("EXECUTE i USING @a, @a");
    assert_eq!(c.rows("EXECUTE s USING @a"), [["1"]]);
    c.ok("ALTER TABLE t ADD COLUMN w int FIRST");
    assert_eq!(c.error("EXECUTE i USING @a, @a").0, 1136);
    assert_eq!(c.rows("EXECUTE s USING @a"), [["1"]]);
    c.ok("DEALLOCATE PREPARE i");
    assert_eq!(c.error("EXECUTE i USING @a, @a").0, 1243);
}

fn expr(sql: &str) -> omnibus_parser::ast::Expr {
    omnibus_parser::parse_expr(sql.as_bytes(), &omnibus_parser::ParseOptions::default()).unwrap()
}

#[test]
fn several_tables_change_in_one_statement() {
    let mut c = client();
    c.ok("CREATE TABLE a (id int PRIMARY KEY, v int)");
    c.ok("CREATE TABLE b (id int PRIMARY KEY, a_id int, w int)");
    c.ok("INSERT INTO a VALUES (1, 10), (2, 20), (3, 30)");
    c.ok("INSERT INTO b VALUES (1, 1, 5), (2, 1, 6), (3, 2, 7)");
    let outcome = c.ok("UPDATE a JOIN b ON b.a_id = a.id SET a.v = a.v + 1, w = 0 WHERE a.id < 3");
    assert_eq!(
        (outcome.affected, outcome.info.to_string().as_str()),
        (5, "Rows matched: 5  Changed: 5  Warnings: 0")
    );
    assert_eq!(c.rows("SELECT v FROM a"), [["11"], ["21"], ["30"]]);
    assert_eq!(c.rows("SELECT SUM(w) FROM b"), [["0"]]);
    assert_eq!(c.ok("DELETE a FROM a LEFT JOIN b ON b.a_id = a.id WHERE b.id IS NULL").affected, 1);
    assert_eq!(c.ok("DELETE FROM x, b USING a AS x, b WHERE x.id = b.a_id AND x.id = 1").affected, 3);
    assert_eq!(c.rows("SELECT id FROM a"), [["2"]]);
    assert_eq!(c.rows("SELECT id FROM b"), [["3"]]);
    assert_eq!(c.error("DELETE z FROM a, b").0, 1109);
}

#[test]
fn bad_data_in_a_strict_write_is_an_error() {
    let (_, database) = database();
    let mut c = Client::new(&database);
    c.ok("CREATE DATABASE test");
    c.ok("CREATE TABLE t (id int PRIMARY KEY, v varchar(20))");
    c.ok("INSERT INTO t VALUES (1, '12abc')");
    for expr in [
        "CAST('12abc' AS SIGNED)",
        "'1a' + 1",
        "IF('1a', 1, 2)",
        "HOUR('zz')",
        "CAST('2020-13-01' AS DATE)",
        "-'x'",
    ] {
        assert_eq!(c.error(&format!("INSERT INTO t VALUES (2, {expr})")).0, 1292, "{expr}");
        assert_eq!(c.error(&format!("UPDATE t SET v = {expr}")).0, 1292, "{expr}");
        c.ok(&format!("INSERT IGNORE INTO t VALUES (2, {expr})"));
        c.ok("DELETE FROM t WHERE id = 2");
        c.ok(&format!("SELECT {expr}"));
    }
    assert_eq!(c.error("INSERT INTO t SELECT v + 1, v FROM t").0, 1292);
    assert_eq!(c.error("UPDATE t SET id = v + 1").0, 1292);
    c.session.state.settings.sql_mode = 0;
    c.ok("INSERT INTO t SELECT v + 1, v FROM t");
    assert_eq!(c.rows("SELECT id FROM t ORDER BY id"), [["1"], ["13"]]);
}
