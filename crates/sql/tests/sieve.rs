//! Conditions that a scan asks of rows before it takes them say what they say anywhere else.

#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use common::{Client, database};

/// Conditions on one row of `t`, of which most can be asked where it lies. Some warn, some must be evaluated.
const CONDITIONS: &[&str] = &[
    "i = 7",
    "7 < i",
    "i <> 3",
    "i <=> NULL",
    "i <= u",
    "u > 9223372036854775807",
    "u >= 18446744073709551610",
    "i = 3.0",
    "i > 2.5",
    "d > 1.5",
    "d <= i",
    "d = NULL",
    "d BETWEEN 1 AND i",
    "d NOT BETWEEN 0.5 AND 2.25",
    "d BETWEEN NULL AND 1",
    "d BETWEEN -0.5 AND 1.25",
    "2 > d",
    "d = 0.001",
    "d < 99999999999",
    "i BETWEEN 2 AND 5 AND i <> 3",
    "u < -1",
    "u BETWEEN 3 AND 18446744073709551612",
    "i > 99999999999",
    "day >= DATE '2024-01-05' AND day < DATE '2024-01-01' + INTERVAL 1 MONTH AND d < 2",
    "DATE '2024-02-10' >= day",
    "d IN (0.50, 1, 2.75)",
    "d NOT IN (1, NULL)",
    "i IN (1, 2, 3, NULL)",
    "i IN (1, 2.5, '3')",
    "day < '2024-02-01'",
    "day < at",
    "day = '2024-01-10'",
    "day BETWEEN '2024-01-05' AND '2024-03-01'",
    "day > 20240110",
    "at >= TIMESTAMP '2024-01-10 10:00:00.5'",
    "at < day + INTERVAL 3 DAY",
    "ts > '2024-01-10 00:00:00'",
    "c = 'ab'",
    "c = 'AB '",
    "c < v",
    "c IN ('ab', 'c', NULL)",
    "c LIKE 'a%'",
    "c NOT LIKE '_b'",
    "v LIKE '%é%'",
    "v LIKE NULL",
    "v = 'Ä'",
    "v IN ('é', 'straße')",
    "v NOT IN ('é', 'x')",
    "v BETWEEN 'a' AND 'm'",
    "v > 5",
    "v = 0",
    "SUBSTRING(v, 1, 2) = 'st'",
    "SUBSTRING(v, -1, 1) IN ('e', 'é')",
    "LEFT(c, 1) < 'b'",
    "b = 'ab'",
    "b LIKE 'A%'",
    "e = 'two'",
    "e > 1",
    "f < 0.5",
    "y = 2024",
    "i",
    "d + 1 > 2",
    "1 / i > 0.1",
    "v IS NULL",
    "i IS NOT NULL",
    "i > (SELECT MIN(i) + 2 FROM t)",
    "EXISTS (SELECT 1 FROM t s WHERE s.i = t.i + 1)",
];

fn fill(client: &mut Client) {
    client.ok("CREATE DATABASE IF NOT EXISTS test");
    client.ok(
        "CREATE TABLE t (id INT PRIMARY KEY, i INT, u BIGINT UNSIGNED, d DECIMAL(10,2), day DATE, at DATETIME(3), ts TIMESTAMP NULL, \
         c CHAR(5), v VARCHAR(30), b VARBINARY(5), e ENUM('one', 'two', 'three'), f DOUBLE, y YEAR)",
    );
    let rows: Vec<String> = (0..240u64)
        .map(|n| {
            let or_null = |step: u64, value: String| if n % step == 0 { "NULL".to_owned() } else { value };
            let values = [
                n.to_string(),
                or_null(11, (n % 13).to_string()),
                or_null(7, if n % 5 == 0 { u64::MAX - n % 9 } else { n % 10 }.to_string()),
                or_null(6, format!("{}.{}", n % 4, 25 * (n % 3))),
                or_null(9, format!("'2024-01-01' + INTERVAL {} DAY", n % 80)),
                or_null(8, format!("'2024-01-01' + INTERVAL {} MINUTE", n * 97)),
                or_null(10, format!("'2024-01-01 00:00:00' + INTERVAL {} HOUR", n)),
                or_null(5, format!("'{}'", ["ab", "AB", "c", "", "a"][(n % 5) as usize])),
                or_null(
                    12,
                    format!("'{}'", ["é", "Ä", "straße", "7 apples", "x", "ab", ""][(n % 7) as usize]),
                ),
                or_null(13, format!("'{}'", ["ab", "AB", "a"][(n % 3) as usize])),
                or_null(14, (n % 3 + 1).to_string()),
                or_null(15, format!("{}e-1", n % 11)),
                or_null(16, format!("{}", 2020 + n % 6)),
            ];
            format!("({})", values.join(", "))
        })
        .collect();
    client.ok(&format!("INSERT INTO t VALUES {}", rows.join(", ")));
    client.ok("ANALYZE TABLE t");
}

/// Rows, or the error.
fn answer(client: &mut Client, sql: &str) -> Result<Vec<Vec<String>>, u16> {
    client.run(sql).map(|(_, rows)| rows.text()).map_err(|error| error.code)
}

/// A scan with a condition answers as one that evaluates it for each row.
fn compare(client: &mut Client, condition: &str) {
    let asked = answer(client, &format!("SELECT id FROM t WHERE {condition} ORDER BY id"));
    let evaluated =
        format!("SELECT id FROM (SELECT id, ({condition}) AS met FROM t LIMIT 1000) q WHERE met ORDER BY id");
    assert_eq!(asked, answer(client, &evaluated), "{condition}");
}

#[test]
fn each_condition_says_the_same_wherever_it_is_asked() {
    let (_, database) = database();
    let mut client = Client::new(&database);
    fill(&mut client);
    for condition in CONDITIONS {
        compare(&mut client, condition);
        compare(&mut client, &format!("NOT ({condition})"));
    }
    // It is seen that they are no empty answers.
    let mut met = |sql: &str| client.rows(sql).len();
    let few = CONDITIONS.iter().map(|c| format!("SELECT 1 FROM t WHERE {c}")).map(|sql| met(&sql));
    assert!(few.filter(|rows| *rows > 0).count() > CONDITIONS.len() * 3 / 4);
}

#[test]
fn combinations_say_the_same_wherever_they_are_asked() {
    let (_, database) = database();
    let mut client = Client::new(&database);
    fill(&mut client);
    let mut random = 3u64;
    let mut next = |below: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    for _ in 0..600 {
        let mut condition = CONDITIONS[next(CONDITIONS.len())].to_owned();
        for _ in 0..=next(3) {
            let other = CONDITIONS[next(CONDITIONS.len())];
            condition = match next(4) {
                0 => format!("({condition}) OR ({other})"),
                1 => format!("NOT ({condition}) AND ({other})"),
                2 => format!("({other}) AND ({condition})"),
                _ => format!("({condition}) AND ({other})"),
            };
        }
        compare(&mut client, &condition);
    }
}

#[test]
fn conditions_on_other_tables_rows_are_asked_too() {
    let (_, database) = database();
    let mut client = Client::new(&database);
    fill(&mut client);
    client.ok("CREATE TABLE few (id INT PRIMARY KEY, i INT, d DECIMAL(10,2), c CHAR(5))");
    client.ok("INSERT INTO few VALUES (1, 3, 0.5, 'ab'), (2, NULL, 1.25, 'C'), (3, 9, NULL, NULL), (4, 100, 9, 'zz')");
    for on in
        ["t.i > few.i", "t.d <= few.d AND t.c = few.c", "t.i BETWEEN few.i AND few.i + 2", "t.c LIKE few.c"]
    {
        for join in ["JOIN", "LEFT JOIN"] {
            let from = format!("few {join} t IGNORE INDEX (PRIMARY) ON {on}");
            let asked = format!("SELECT STRAIGHT_JOIN few.id, t.id FROM {from} ORDER BY few.id, t.id");
            let kept = from
                .replace(" t ", " (SELECT * FROM t LIMIT 1000) t ")
                .replace("IGNORE INDEX (PRIMARY) ", "");
            let evaluated = format!("SELECT STRAIGHT_JOIN few.id, t.id FROM {kept} ORDER BY few.id, t.id");
            assert_eq!(client.rows(&asked), client.rows(&evaluated), "{join} {on}");
        }
    }
}

#[test]
fn a_condition_behind_one_that_warns_keeps_it_from_nothing() {
    let (_, database) = database();
    let mut client = Client::new(&database);
    fill(&mut client);
    let mut warnings = |condition: &str| {
        assert_eq!(client.rows(&format!("SELECT COUNT(*) FROM t WHERE {condition}")), [["0"]]);
        client.rows("SHOW COUNT(*) WARNINGS")[0][0].parse::<u32>().unwrap()
    };
    assert!(warnings("v > 5 AND i = 1000") > 100, "each text that is no number");
    assert_eq!(warnings("i = 1000 AND v > 5"), 0);
    assert!(warnings("c > '' AND v > 5 AND i = 1000") > 50);
}

#[test]
fn rows_that_are_refused_count_as_examined() {
    let (_, database) = database();
    let mut client = Client::new(&database);
    fill(&mut client);
    let before = client.session.state.budget.tally.examined();
    assert_eq!(client.rows("SELECT COUNT(*) FROM t WHERE i = 1000"), [["0"]]);
    assert_eq!(client.session.state.budget.tally.examined() - before, 240);
}

#[test]
fn padding_counts_where_the_session_sees_it() {
    let (_, database) = database();
    let mut client = Client::new(&database);
    fill(&mut client);
    client.session.state.settings.sql_mode |= omnibus_sql::api::sql_mode::PAD_CHAR_TO_FULL_LENGTH;
    compare(&mut client, "c LIKE 'ab'");
    compare(&mut client, "c LIKE 'ab   '");
    assert!(!client.rows("SELECT id FROM t WHERE c LIKE 'ab   '").is_empty());
}
