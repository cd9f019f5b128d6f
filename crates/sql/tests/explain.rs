//! EXPLAIN ANALYZE and MariaDB's ANALYZE: what they count. The forms of plans are in `testdata/explain_forms.test`.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Client, database};

fn client() -> Client {
    let (_, database) = database();
    let mut client = Client::new(&database);
    client.ok("CREATE DATABASE test");
    client.ok("CREATE TABLE t (id INT PRIMARY KEY, a INT, KEY (a))");
    client.ok("CREATE TABLE u (id INT PRIMARY KEY, t INT)");
    let rows: Vec<String> = (1..=30).map(|n| format!("({n}, {})", n % 3)).collect();
    client.ok(&format!("INSERT INTO t VALUES {}", rows.join(",")));
    client.ok("INSERT INTO u SELECT id, id * 2 FROM t");
    client
}

/// The tree without its times, one operator a line.
fn analyzed(client: &mut Client, sql: &str) -> Vec<String> {
    let rows = client.rows(&format!("EXPLAIN ANALYZE {sql}"));
    let lines = rows[0][0].lines().map(|line| {
        let (operator, rest) = line.split_once("  (cost=").unwrap_or((line, ""));
        let actual = if rest.is_empty() { line } else { rest };
        let actual = actual.split_once(" (actual time=").map_or("", |(_, actual)| actual);
        let counts = actual.split_once(" rows=").map_or("", |(_, counts)| counts.trim_end_matches(')'));
        let operator = operator.split(" (actual").next().unwrap();
        let never = if line.ends_with("(never executed)") { " never" } else { "" };
        format!("{} [{counts}{never}]", operator.trim_end_matches(" (never executed)"))
    });
    lines.collect()
}

#[test]
fn rows_and_loops_are_those_of_the_run() {
    let mut client = client();
    assert_eq!(
        analyzed(&mut client, "SELECT * FROM t FORCE INDEX (a) WHERE a = 1 AND id > 15"),
        [
            "-> Filter: (t.id > 15) [5 loops=1]",
            "    -> Covering index lookup on t using a (a=1) [10 loops=1]"
        ]
    );
    assert_eq!(
        analyzed(
            &mut client,
            "SELECT STRAIGHT_JOIN * FROM t IGNORE INDEX (a) JOIN u ON u.id = t.id WHERE t.a = 2 AND u.t > 30"
        ),
        [
            "-> Nested loop inner join [5 loops=1]",
            "    -> Filter: (t.a = 2) [10 loops=1]",
            "        -> Table scan on t [30 loops=1]",
            "    -> Filter: (u.t > 30) [0.5 loops=10]",
            "        -> Single-row index lookup on u using PRIMARY (id=t.id) [1 loops=10]",
        ]
    );
    let grouped = analyzed(&mut client, "SELECT a, COUNT(*) FROM t GROUP BY a ORDER BY COUNT(*), a LIMIT 2");
    assert!(
        grouped[0].starts_with("-> Limit: 2 row(s)") && grouped[0].ends_with("[2 loops=1]"),
        "{grouped:?}"
    );
    assert!(
        grouped.iter().any(|line| line.contains("count(0)") && line.ends_with("[3 loops=1]")),
        "{grouped:?}"
    );
}

#[test]
fn what_never_runs_is_told() {
    let mut client = client();
    let lines = analyzed(&mut client, "SELECT STRAIGHT_JOIN * FROM t JOIN u ON u.id = t.id WHERE t.id = 99");
    assert!(lines[0].ends_with("[0 loops=1]"), "{lines:?}");
    assert!(lines.iter().any(|line| line.contains("on u ") && line.ends_with("[ never]")), "{lines:?}");
    let lines =
        analyzed(&mut client, "SELECT id, (SELECT MAX(u.t) FROM u WHERE u.id <= t.id) FROM t WHERE id < 4");
    assert!(
        lines.iter().any(|line| line.contains("Select #2 (subquery in projection; dependent)")),
        "{lines:?}"
    );
    assert!(lines.iter().any(|line| line.contains("on u ") && line.ends_with("loops=3]")), "{lines:?}");
    assert_eq!(client.rows("SELECT COUNT(*) FROM t"), [["30"]], "its rows go nowhere");
}

#[test]
fn mariadb_analyzes_in_a_table_and_in_json() {
    let mut client = client();
    client.session.state.settings.mariadb = true;
    let rows = client.rows("ANALYZE SELECT * FROM t FORCE INDEX (a) WHERE a = 1 AND id > 15");
    // id, select_type, table, type, possible_keys, key, key_len, ref, rows, r_rows, filtered, r_filtered, Extra
    assert_eq!((rows[0].len(), rows[0][3].as_str(), rows[0][5].as_str()), (13, "ref", "a"));
    assert_eq!((rows[0][9].as_str(), rows[0][11].as_str()), ("10.00", "50.00"));
    let json = &client.rows("ANALYZE FORMAT=JSON SELECT * FROM t IGNORE INDEX (a) WHERE a = 1")[0][0];
    for part in [
        "\"r_loops\": 1",
        "\"r_rows\": 30.00",
        "\"r_filtered\": 33.33",
        "\"attached_condition\": \"(t.a = 1)\"",
    ] {
        assert!(json.contains(part), "{part}: {json}");
    }
    assert_eq!(client.error("EXPLAIN FORMAT=TREE SELECT 1").0, 1791);
    assert_eq!(client.error("ANALYZE DELETE FROM t").0, 1235);
}

/// Each names the one before twice: 2^40 ways lead to the first.
#[test]
fn common_tables_that_name_each_other_are_described_once() {
    let mut client = client();
    let with = |last: usize| {
        let each =
            (1..=last).map(|n| format!(", c{n} AS (SELECT a.x FROM c{} a JOIN c{0} b USING (x))", n - 1));
        format!("WITH c0 AS (SELECT 1 AS x){}", each.collect::<String>())
    };
    let tree = client.rows(&format!("EXPLAIN FORMAT=TREE {} SELECT * FROM c1", with(1)));
    assert_eq!(tree[0][0].matches("Materialize\n").count(), 2, "{}", tree[0][0]);
    assert_eq!(tree[0][0].matches("(query plan printed elsewhere)").count(), 1, "{}", tree[0][0]);
    let query = format!("{} SELECT * FROM c40", with(40));
    assert_eq!(client.rows(&format!("EXPLAIN {query}")).len(), 82);
    for form in ["FORMAT=TREE", "FORMAT=JSON", "ANALYZE"] {
        let text = client.rows(&format!("EXPLAIN {form} {query}"));
        assert!(text[0][0].len() < 1_000_000, "{form}: {}", text[0][0].len());
    }
    let json = client.rows(&format!("EXPLAIN FORMAT=JSON {query}"));
    assert_eq!(json[0][0].matches("sharing_temporary_table_with").count(), 40);
    // What it costs is asked when EXISTS may become a set.
    let exists = "SELECT 1 FROM (SELECT 1 AS y) q WHERE EXISTS (";
    assert_eq!(client.rows(&format!("{exists}{} SELECT 1 FROM c40 WHERE c40.x = q.y)", with(40))).len(), 1);
}
