//! Errors, spans, several statements, parameters, and that no input is dangerous.
#![allow(clippy::unwrap_used, reason = "tests")]

use omnibus_parser::ast::{Expr, QueryBody, SelectItem, Statement};
use omnibus_parser::{ParseError, ParseOptions, parse, parse_first, parse_first_asking, redact};

fn error(sql: &str) -> ParseError {
    parse(sql.as_bytes(), &ParseOptions::default()).expect_err(sql)
}

#[test]
fn syntax_errors_say_where() {
    let start = "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use near ";
    for (sql, near, line) in [
        ("SELEC 1", "SELEC 1", 1),
        ("SELECT * FROM", "", 1),
        ("SELECT * FROM t\nWHERE a = = 1", "= 1", 2),
        ("SELECT 'abc", "'abc", 1),
        ("SELECT 1 /* x", "/* x", 1),
        ("SELECT * FROM t LOCK", "LOCK", 1),
        ("INSERT INTO t VALUES (1", "", 1),
        ("CREATE TABLE t (a)", ")", 1),
        ("SELECT a FROM t WHERE a IN ()", ")", 1),
        ("UPDATE t SET", "", 1),
        ("SELECT x'4'", "x'4'", 1),
        ("SELECT 1 1", "1", 1),
        ("DROP TABLE select", "select", 1),
        ("SELECT 1; SELECT 2 3", "3", 1),
        ("SELECT a b c", "c", 1),
        ("foo", "foo", 1),
        ("SELECT @@", "", 1),
        ("SELECT 1 = NOT 2", "NOT 2", 1),
    ] {
        let e = error(sql);
        assert_eq!((e.code(), e.state()), (1064, "42000"), "{sql}");
        assert_eq!(e.to_string(), format!("{start}'{near}' at line {line}"), "{sql}");
    }
    let long = format!("SELECT * FROM t WHERE + {}", "x ".repeat(200));
    let ParseError::Syntax { near, .. } = error(&long) else { panic!() };
    assert_eq!(near.chars().count(), 80);
}

#[test]
fn nothing_is_an_empty_query() {
    for sql in ["", "  ", ";", "/* x */", "-- x", "# y\n ;", "/*!99999 SELECT 1 */"] {
        let e = error(sql);
        assert_eq!((e.code(), e.to_string().as_str()), (1065, "Query was empty"), "{sql}");
    }
}

#[test]
fn statements_have_their_spans_and_parameters() {
    let sql = b" SELECT ?, ? ;; -- x\n INSERT INTO t VALUES (?) ; /*!40101 SET @a=1 */ ;\n";
    let options = ParseOptions { markers: true, ..ParseOptions::default() };
    assert!(parse(sql, &ParseOptions::default()).is_err(), "a text that runs at once has no parameters");
    let list = parse(sql, &options).unwrap();
    let texts: Vec<_> = list.iter().map(|s| String::from_utf8_lossy(s.span.of(sql)).into_owned()).collect();
    assert_eq!(texts, ["SELECT ?, ?", "-- x\n INSERT INTO t VALUES (?)", "/*!40101 SET @a=1 */"]);
    assert_eq!(list.iter().map(|s| s.params).collect::<Vec<_>>(), [2, 1, 0]);
}

#[test]
fn the_first_statement_stands_alone() {
    let options = ParseOptions::default();
    let sql = b"SELECT 1; garbage";
    let (first, rest) = parse_first(sql, &options).unwrap();
    assert_eq!(first.node.kind(), "select");
    assert_eq!(first.span.of(sql), b"SELECT 1");
    assert_eq!(&sql[rest.unwrap()..], b"garbage");
    assert_eq!(ParseError::at(sql, rest.unwrap()), error("SELECT 1; garbage"));
    assert_eq!(parse_first(b"SELECT 1 ; ", &options).unwrap().1, None);
    assert_eq!(parse_first(b"SELECT 1;", &options).unwrap().1, None);
}

#[test]
fn select_items_keep_their_text() {
    let list = parse(b"SELECT  a+ 1 , count( * ) x, t.b, 'it''s'", &ParseOptions::default()).unwrap();
    let Statement::Select(query) = &list[0].node else { panic!() };
    let QueryBody::Select(select) = &query.body else { panic!() };
    let texts: Vec<_> = select
        .items
        .iter()
        .map(|i| match i {
            SelectItem::Expr { text, expr, .. } => (text.to_vec(), matches!(expr, Expr::Column(_))),
            _ => panic!(),
        })
        .collect();
    assert_eq!(texts[0], (b"a+ 1".to_vec(), false));
    assert_eq!(texts[1], (b"count( * )".to_vec(), false));
    assert_eq!(texts[2], (Vec::new(), true));
    assert_eq!(texts[3], (b"'it''s'".to_vec(), false));
}

#[test]
fn identifiers_must_be_utf8_and_short() {
    let options = ParseOptions::default();
    let e = parse(b"SELECT * FROM t\xe9", &options).unwrap_err();
    assert_eq!(e.code(), 1300);
    assert_eq!(parse("SELECT é FROM `日本`".as_bytes(), &options).unwrap().len(), 1);
    let long = format!("DROP TABLE {}", "x".repeat(65));
    assert_eq!(error(&long).code(), 1059);
}

/// Runs on a thread with the stack that sessions have.
fn on_small_stack(f: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(f).unwrap().join().unwrap();
}

#[test]
fn deep_nesting_is_an_error_and_never_a_crash() {
    on_small_stack(|| {
        let n = 100_000;
        let deep = |open: &str, middle: &str, close: &str| {
            format!("SELECT {}{middle}{}", open.repeat(n), close.repeat(n))
        };
        for sql in [
            deep("(", "1", ")"),
            deep("- ", "1", ""),
            deep("NOT ", "1", ""),
            deep("f(", "1", ")"),
            deep("(SELECT ", "1", ")"),
            deep("1+(", "1", ")"),
            deep("CASE WHEN ", "1", " THEN 1 END"),
            deep("1 + INTERVAL (", "1", ") DAY"),
            deep("1 BETWEEN 1 AND ", "1", ""),
            deep("@a := ", "1", ""),
            deep("a IN (", "1", ")"),
            deep("1 + ", "1", ""),
            deep("1 FROM (", "t", ")"),
            format!("SELECT 1 FROM {}t{}", "(".repeat(n), ")".repeat(n)),
            format!("SELECT 1 FROM {}", "a JOIN ".repeat(n) + "a"),
            format!("SELECT 1 {}", "UNION SELECT 1 ".repeat(n)),
            format!("SELECT a {}", "COLLATE x ".repeat(n)),
            format!("{}SELECT 1", "EXPLAIN ".repeat(n)),
            format!("SELECT 1 FROM {}SELECT 1{}", "(".repeat(n), ")".repeat(n)),
            "((((((((((".repeat(n),
            "SELECT 1 FROM ((((((((((".repeat(n),
        ] {
            let error = parse(sql.as_bytes(), &ParseOptions::default()).expect_err(&sql[..60]);
            assert!(matches!(error.code(), 1436 | 1064), "{error}");
        }
        // What people write is not deep.
        for sql in [
            format!("SELECT {}1{}", "(".repeat(100), ")".repeat(100)),
            format!("SELECT 1 WHERE {}", vec!["a = 1"; 20_000].join(" OR ")),
            format!("SELECT 1 WHERE {}", vec!["(a = 1 AND b = 2)"; 20_000].join(" OR ")),
            format!("SELECT 1 WHERE a IN ({})", vec!["1"; 50_000].join(",")),
            format!("SELECT {}", vec!["1"; 500].join(" + ")),
        ] {
            let parsed = parse(sql.as_bytes(), &ParseOptions::default());
            assert!(parsed.is_ok(), "{}: {parsed:?}", &sql[..40]);
        }
    });
}

/// A small generator, so that a failure repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

#[test]
fn random_texts_never_panic() {
    on_small_stack(|| {
        let words: Vec<&str> = "SELECT INSERT UPDATE DELETE FROM WHERE ( ) , . ; * + - / 'a' \"b\" `c` @a @@b ? 1 1.5 1e5 0x41 x'41' \
            b'1' NULL AND OR NOT IN BETWEEN LIKE IS INTERVAL DAY CASE WHEN THEN END EXISTS UNION ALL VALUES ROW SET \
            INTO CREATE TABLE INDEX KEY PRIMARY UNIQUE INT CHAR DEFAULT ALTER ADD DROP COLUMN SHOW TABLES GRANT ON TO \
            USER IDENTIFIED BY WITH AS JOIN LEFT USING GROUP ORDER LIMIT FOR LOCK := = <=> < > ! ~ ^ | & || && -> /*! */ \
            /*!40101 -- # \n t a XA START COMMIT CHANGE MASTER LOAD DATA INFILE CAST CONVERT OVER PARTITION ' ` \" \\ { } _utf8mb4 N'"
            .split(' ')
            .collect();
        let mut random = Random(7);
        for round in 0..30_000 {
            let mut sql = String::new();
            for _ in 0..random.below(25) {
                sql.push_str(words[random.below(words.len())]);
                if random.below(5) > 0 {
                    sql.push(' ');
                }
            }
            let options = ParseOptions {
                ansi_quotes: round % 3 == 0,
                no_backslash_escapes: round % 5 == 0,
                mariadb: round % 2 == 0,
                ..Default::default()
            };
            if let Ok(list) = parse(sql.as_bytes(), &options) {
                assert!(
                    list.iter().all(|s| s.span.start <= s.span.end && s.span.end as usize <= sql.len()),
                    "{sql}"
                );
            }
            let _ = parse_first(sql.as_bytes(), &options);
            let _ = redact(sql.as_bytes());
        }
        for _ in 0..30_000 {
            let bytes: Vec<u8> = (0..random.below(60)).map(|_| random.below(256) as u8).collect();
            let _ = parse(&bytes, &ParseOptions::default());
            let _ = redact(&bytes);
        }
    });
}

#[test]
fn every_prefix_and_mutation_of_a_statement_is_safe() {
    let sql = b"INSERT INTO `a`.t (x, y) SELECT CAST(_utf8mb4'x' AS CHAR(3)), -1.5e3 + @@global.z FROM (SELECT 0x4a) AS q /*!40101 JOIN u USING (k) */ WHERE a BETWEEN 1 AND 2 ON DUPLICATE KEY UPDATE x = VALUES(x)";
    assert!(parse(sql, &ParseOptions::default()).is_ok());
    for end in 0..sql.len() {
        let _ = parse(&sql[..end], &ParseOptions::default());
        for replacement in [b'\'', b'(', b'`', b'*', b'/', 0, 0xff, b'@', b'.'] {
            let mut mutated = sql.to_vec();
            mutated[end] = replacement;
            let _ = parse(&mutated, &ParseOptions::default());
        }
    }
}

#[test]
fn a_tree_is_asked_for_while_it_grows() {
    let options = ParseOptions::default();
    let sql = format!("SELECT 1 IN ({}1); SELECT 2", "1,".repeat(10_000));
    let mut told = 0;
    let (_, rest) = parse_first_asking(sql.as_bytes(), &options, &mut |words| {
        told += words;
        true
    })
    .unwrap();
    assert!(rest.is_some());
    assert!((20_000..21_000).contains(&told), "{told} words");
    for most in [0, 1000, 19_999] {
        let mut told = 0;
        let refused = parse_first_asking(sql.as_bytes(), &options, &mut |words| {
            told += words;
            told <= most
        });
        assert_eq!(refused.unwrap_err(), ParseError::NoMemory);
        assert!(told <= most + 512, "{told} words were told where {most} were allowed");
    }
}

#[test]
fn into_is_the_statements_or_refused() {
    let into = |sql: &str| match parse(sql.as_bytes(), &ParseOptions::default())
        .map(|mut list| list.remove(0).node)
    {
        Ok(Statement::Select(query)) => Ok(query.into.is_some()),
        Ok(other) => panic!("{sql}: {other:?}"),
        Err(error) => Err(error.code()),
    };
    for sql in [
        "SELECT 1 UNION SELECT 2 INTO @v",
        "SELECT 1 INTERSECT SELECT 2 EXCEPT SELECT 3 INTO @v",
        "SELECT 1 UNION SELECT 2 ORDER BY 1 LIMIT 1 INTO @v",
        "SELECT 1 UNION (SELECT 2) INTO @v",
        "(SELECT 1 INTO @v)",
        "SELECT 1 UNION SELECT 2 INTO @v FOR UPDATE",
    ] {
        assert_eq!(into(sql), Ok(true), "{sql}");
    }
    for sql in [
        "SELECT 1 INTO @v UNION SELECT 2",
        "SELECT 1 UNION SELECT 2 INTO @v UNION SELECT 3",
        "(SELECT 1 INTO @v) UNION SELECT 2",
        "SELECT (SELECT 1 INTO @v)",
        "SELECT * FROM (SELECT 1 UNION SELECT 2 INTO @v) d",
        "WITH c AS (SELECT 1 INTO @v) SELECT * FROM c",
    ] {
        assert_eq!(into(sql), Err(3954), "{sql}");
    }
    assert_eq!(into("SELECT 1 UNION SELECT 2"), Ok(false));
}
