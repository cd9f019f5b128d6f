//! Trees that are written back parse again, and to the same tree: a definition that is stored is read at the next start.
#![allow(clippy::unwrap_used, reason = "tests")]

use omnibus_parser::ast::{Expr, Query, QueryBody, SelectItem, Statement};
use omnibus_parser::print;
use omnibus_parser::{ParseOptions, Stored, ViewText, parse, parse_expr};
use std::collections::BTreeSet;

/// Expressions that a definition of a table may have, with every operator and every call that has a grammar of its own.
const STORED: &[&str] = &[
    "NULL",
    "TRUE",
    "FALSE",
    "0",
    "18446744073709551615",
    "18446744073709551616",
    "1.50",
    ".5",
    "1e3",
    "1.5E-300",
    "-1",
    "- -1",
    "-(-(a))",
    "-9223372036854775808",
    "'a''b\\\\c\\0\\n\\r\\Z\"`%\\_'",
    "''",
    "'caf\u{e9}'",
    "x'41'",
    "0x41",
    "x''",
    "b'101'",
    "b''",
    "0b1",
    "DATE '2024-01-02'",
    "TIME '10:00:00.5'",
    "TIMESTAMP '2024-01-02 03:04:05'",
    "{d '2024-01-02'}",
    "{ts '2024-01-02 03:04:05'}",
    "_latin1'abc'",
    "_latin1 x'e9'",
    "_binary b'1'",
    "_utf8mb4'caf\u{e9}'",
    "a",
    "t.a",
    "d.t.a",
    "`a``b c`",
    "+a",
    "~a",
    "NOT a",
    "! a",
    "BINARY a",
    "a OR b",
    "a XOR b",
    "a AND b",
    "a = b",
    "a <=> b",
    "a <> b",
    "a < b",
    "a <= b",
    "a > b",
    "a >= b",
    "a | b",
    "a & b",
    "a << b",
    "a >> b",
    "a + b",
    "a - b",
    "a * b",
    "a / b",
    "a DIV b",
    "a % b",
    "a MOD b",
    "a ^ b",
    "a SOUNDS LIKE b",
    "NOT (a AND NOT (b OR c)) = d",
    "a - (b - c) - d",
    "(a, b) = (c, d)",
    "ROW(a, b, c) IN ((1, 2, 3), (4, 5, 6))",
    "a BETWEEN b AND c",
    "a NOT BETWEEN b AND c + 1",
    "a IN (b)",
    "a IN (1, 'x', NULL)",
    "a NOT IN (b, c)",
    "a LIKE b",
    "a NOT LIKE 'x|%' ESCAPE '|'",
    "a LIKE b ESCAPE ''",
    "a REGEXP b",
    "a NOT RLIKE 'x.*'",
    "a IS NULL",
    "a IS NOT NULL",
    "a IS TRUE",
    "a IS NOT FALSE",
    "a IS UNKNOWN",
    "a MEMBER OF ('[1,2]')",
    "a MEMBER OF (b)",
    "f(a, b)",
    "d.f(a)",
    "`f g`(a)",
    "now()",
    "now(3)",
    "CURRENT_TIMESTAMP",
    "LOCALTIME(2)",
    "CURRENT_DATE",
    "CURRENT_TIME(1)",
    "UTC_DATE",
    "UTC_TIME(3)",
    "UTC_TIMESTAMP",
    "IF(a, b, c)",
    "LEFT(a, 1)",
    "RIGHT(a, 1)",
    "REPLACE(a, b, c)",
    "INSERT(a, 1, 2, b)",
    "REPEAT(a, 2)",
    "MOD(a, b)",
    "DATABASE()",
    "SCHEMA()",
    "CURRENT_USER",
    "SESSION_USER()",
    "CHAR(65, a)",
    "CHAR(65 USING latin1)",
    "CASE a WHEN 1 THEN b ELSE c END",
    "CASE WHEN a THEN b WHEN c THEN d END",
    "CAST(a AS SIGNED)",
    "CAST(a AS UNSIGNED INTEGER)",
    "CAST(a AS BINARY)",
    "CAST(a AS BINARY(3))",
    "CAST(a AS CHAR)",
    "CAST(a AS CHAR(3) CHARACTER SET latin1)",
    "CAST(a AS CHAR CHARACTER SET binary)",
    "CAST(a AS NCHAR(3))",
    "CAST(a AS DATE)",
    "CAST(a AS TIME)",
    "CAST(a AS TIME(6))",
    "CAST(a AS DATETIME(3))",
    "CAST(a AS DECIMAL)",
    "CAST(a AS DECIMAL(20, 4))",
    "CAST(a AS FLOAT)",
    "CAST(a AS FLOAT(30))",
    "CAST(a AS DOUBLE)",
    "CAST(a AS REAL)",
    "CAST(a AS YEAR)",
    "CAST(a AS JSON)",
    "CONVERT(a, CHAR(4))",
    "CONVERT(a USING utf8mb4)",
    "a COLLATE utf8mb4_bin",
    "EXTRACT(DAY_MICROSECOND FROM a)",
    "EXTRACT(YEAR_MONTH FROM a)",
    "a + INTERVAL 1 DAY",
    "a - INTERVAL b + 1 WEEK",
    "a + INTERVAL '1:2' MINUTE_SECOND",
    "INTERVAL '1-2' YEAR_MONTH + a",
    "INTERVAL(a, 1, 2, 3)",
    "DATE_ADD(a, INTERVAL b QUARTER)",
    "DATE_SUB(a, INTERVAL '1 2' DAY_HOUR)",
    "ADDDATE(a, 3)",
    "SUBDATE(a, INTERVAL 3 SECOND_MICROSECOND)",
    "TIMESTAMPADD(MINUTE, 1, a)",
    "TIMESTAMPDIFF(MONTH, a, b)",
    "GET_FORMAT(DATE, 'EUR')",
    "GET_FORMAT(DATETIME, 'ISO')",
    "WEIGHT_STRING(a)",
    "WEIGHT_STRING(a AS CHAR(3))",
    "WEIGHT_STRING(a AS BINARY(3))",
    "TRIM(a)",
    "TRIM(b FROM a)",
    "TRIM(BOTH FROM a)",
    "TRIM(LEADING FROM a)",
    "TRIM(TRAILING 'x' FROM a)",
    "LTRIM(a)",
    "SUBSTRING(a FROM 2)",
    "SUBSTRING(a FROM 2 FOR 3)",
    "MID(a, 1, 2)",
    "POSITION('x' IN a)",
    "a->'$.x'",
    "a->>'$[0]'",
    "DEFAULT(a)",
    "MATCH (a, b) AGAINST ('x')",
    "MATCH (a) AGAINST ('x' IN BOOLEAN MODE)",
    "MATCH (a) AGAINST ('x' IN NATURAL LANGUAGE MODE WITH QUERY EXPANSION)",
    "VALUES(a)",
];

/// MySQL's alone: MariaDB's is a function.
const MYSQL: &[&str] = &[
    "JSON_VALUE(a, '$.x')",
    "JSON_VALUE(a, '$.\"x''y\"' RETURNING DECIMAL(5, 2) DEFAULT -1.5 ON EMPTY ERROR ON ERROR)",
    "JSON_VALUE(a, '$.x' RETURNING CHAR(5) NULL ON EMPTY DEFAULT 'caf\u{e9}' ON ERROR)",
    "JSON_VALUE(a, '$.x' RETURNING DATE DEFAULT DATE '2024-01-01' ON EMPTY)",
];

/// Expressions that only a query may have.
const IN_QUERIES: &[&str] = &[
    "N'abc'",
    "ROW(a, b)",
    "@v",
    "@`v w`",
    "@v := a + 1",
    "@@autocommit",
    "@@global.sort_buffer_size",
    "@@session.sql_mode",
    "(SELECT 1)",
    "EXISTS (SELECT a FROM t)",
    "NOT EXISTS (SELECT 1 FROM t WHERE t.a = u.a)",
    "a IN (SELECT b FROM t)",
    "(a, b) NOT IN (SELECT c, d FROM t)",
    "a = ANY (SELECT b FROM t)",
    "a >= SOME (SELECT b FROM t)",
    "a <> ALL (SELECT b FROM t)",
    "COUNT(*)",
    "COUNT(a)",
    "COUNT(DISTINCT a, b)",
    "SUM(DISTINCT a)",
    "AVG(a)",
    "MIN(a)",
    "MAX(a)",
    "BIT_AND(a)",
    "BIT_OR(a)",
    "BIT_XOR(a)",
    "STD(a)",
    "STDDEV_SAMP(a)",
    "VARIANCE(a)",
    "VAR_SAMP(a)",
    "GROUP_CONCAT(a)",
    "GROUP_CONCAT(DISTINCT a, b ORDER BY c DESC, d SEPARATOR '; ')",
    "GROUP_CONCAT(a SEPARATOR '')",
    "GROUP_CONCAT(a ORDER BY a SEPARATOR '\\n' LIMIT 2)",
    "GROUP_CONCAT(a LIMIT 1, 2)",
    "JSON_ARRAYAGG(a)",
    "JSON_OBJECTAGG(a, b)",
    "ANY_VALUE(a)",
    "GROUPING(a)",
    "GROUPING(a, b)",
    "ROW_NUMBER() OVER ()",
    "RANK() OVER w",
    "DENSE_RANK() OVER (w)",
    "PERCENT_RANK() OVER (ORDER BY a)",
    "CUME_DIST() OVER (PARTITION BY a, b ORDER BY c DESC)",
    "NTILE(4) OVER (w ORDER BY a)",
    "LAG(a, 2, 'x') OVER w",
    "LEAD(a) RESPECT NULLS OVER w",
    "FIRST_VALUE(a) OVER (ORDER BY b ROWS UNBOUNDED PRECEDING)",
    "LAST_VALUE(a) OVER (ORDER BY b ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
    "NTH_VALUE(a, 2) FROM FIRST OVER (ORDER BY b RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING)",
    "SUM(a) OVER (ORDER BY b RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND INTERVAL '1:30' MINUTE_SECOND FOLLOWING)",
    "COUNT(*) OVER (ORDER BY b RANGE INTERVAL '1 2' DAY_HOUR PRECEDING)",
    "MAX(a) OVER (ROWS CURRENT ROW)",
];

/// Expressions that only MariaDB's dialect has.
const MARIADB: &[&str] = &[
    "JSON_VALUE(a, '$.y')",
    "JSON_VALUE(a, b)",
    "NEXT VALUE FOR s",
    "NEXT VALUE FOR d.s",
    "PREVIOUS VALUE FOR s",
    "NEXTVAL(s)",
    "LASTVAL(d.s)",
    "CAST(a AS UUID)",
    "CAST(a AS INET4)",
    "CAST(a AS INET6)",
    "CURRENT_ROLE",
];

const QUERIES: &[&str] = &[
    "SELECT 1",
    "SELECT *",
    "SELECT t.*, d.t.*, a AS x, b y FROM t",
    "SELECT DISTINCT HIGH_PRIORITY STRAIGHT_JOIN SQL_SMALL_RESULT SQL_BUFFER_RESULT SQL_CALC_FOUND_ROWS a FROM t",
    "SELECT SQL_BIG_RESULT a FROM d.t",
    "SELECT a FROM t WHERE b GROUP BY c, d HAVING e ORDER BY f DESC, g LIMIT 5",
    "SELECT a FROM t GROUP BY a WITH ROLLUP",
    "SELECT a FROM t LIMIT 5 OFFSET 6",
    "SELECT a FROM t LIMIT 7, 8",
    "SELECT RANK() OVER w FROM t WINDOW w AS (PARTITION BY a), v AS (w ORDER BY b)",
    "SELECT a FROM t FOR UPDATE",
    "SELECT a FROM t, u FOR SHARE OF t SKIP LOCKED FOR UPDATE OF u NOWAIT",
    "SELECT a FROM t LOCK IN SHARE MODE",
    "SELECT a FROM t PARTITION (p, q) AS x",
    "SELECT a FROM t USE INDEX (i, j) IGNORE INDEX FOR ORDER BY (k) FORCE INDEX FOR GROUP BY (PRIMARY)",
    "SELECT a FROM t USE INDEX ()",
    "SELECT a FROM t USE INDEX FOR JOIN (i)",
    "SELECT a FROM (SELECT 1) AS d",
    "SELECT a FROM (SELECT 1, 2) AS d (a, b)",
    "SELECT a FROM t, LATERAL (SELECT t.a) AS l",
    "SELECT a FROM t JOIN u ON t.a = u.a",
    "SELECT a FROM t LEFT JOIN u ON t.a = u.a",
    "SELECT a FROM t STRAIGHT_JOIN u ON t.a = u.a",
    "SELECT a FROM t CROSS JOIN u",
    "SELECT a FROM t LEFT JOIN (u JOIN v ON u.a = v.a) ON t.a = u.a",
    "SELECT 1 UNION SELECT 2",
    "SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3",
    "SELECT 1 EXCEPT SELECT 2 ORDER BY 1 LIMIT 1",
    "(SELECT 1 ORDER BY 1 LIMIT 1) UNION (SELECT 2 LIMIT 2)",
    "SELECT 1 INTERSECT ALL SELECT 2 EXCEPT ALL SELECT 3",
    "(SELECT 1 UNION SELECT 2) INTERSECT SELECT 3",
    "SELECT 1 UNION (SELECT 2 EXCEPT SELECT 3)",
    "((SELECT 1 LIMIT 1) LIMIT 2)",
    "VALUES ROW(1, 'x'), ROW(NULL, b)",
    "VALUES ROW(1), ROW(2) ORDER BY 1 LIMIT 1",
    "TABLE t",
    "TABLE d.t ORDER BY a LIMIT 3",
    "WITH x AS (SELECT 1) SELECT * FROM x",
    "WITH RECURSIVE x (a, b) AS (SELECT 1, 2 UNION ALL SELECT a + 1, b FROM x WHERE a < 5), y AS (TABLE x) SELECT * FROM y",
    "SELECT a FROM (WITH x AS (SELECT 1 AS a) SELECT a FROM x) AS d WHERE a IN (WITH y AS (SELECT 2) TABLE y)",
    "SELECT a FROM JSON_TABLE('[1]', '$[*]' COLUMNS (n FOR ORDINALITY, a INT PATH '$.a', e INT EXISTS PATH '$.e')) AS j",
    "SELECT a FROM JSON_TABLE(b, '$.\"x''\\\\y\"' COLUMNS (a VARCHAR(5) CHARACTER SET latin1 COLLATE latin1_bin PATH '$' DEFAULT '1' ON EMPTY ERROR ON ERROR)) j",
    "SELECT a FROM JSON_TABLE(b, '$' COLUMNS (a JSON PATH '$' ERROR ON EMPTY DEFAULT '\"caf\u{e9}\"' ON ERROR, NESTED PATH '$.b' COLUMNS (c DECIMAL(5,2) UNSIGNED PATH '$.c', NESTED '$.d' COLUMNS (d ENUM('x','y') PATH '$')))) j",
    "SELECT a FROM JSON_TABLE(b, '$' COLUMNS (a DATETIME(3) PATH '$' NULL ON EMPTY NULL ON ERROR)) j",
];

/// The number of an expression among its kinds, and that of all kinds.
fn kind(expr: &Expr) -> (usize, usize) {
    let number = match expr {
        Expr::Literal(_) => 0,
        Expr::Introduced(_) => 1,
        Expr::Param(_) => 2,
        Expr::Local(_) => 3,
        Expr::Column(_) => 4,
        Expr::UserVar(_) => 5,
        Expr::SysVar { .. } => 6,
        Expr::AssignUserVar(_) => 7,
        Expr::Unary { .. } => 8,
        Expr::Binary { .. } => 9,
        Expr::Row(_) => 10,
        Expr::Between { .. } => 11,
        Expr::In { .. } => 12,
        Expr::InSubquery { .. } => 13,
        Expr::Exists(_) => 14,
        Expr::Subquery(_) => 15,
        Expr::Quantified { .. } => 16,
        Expr::Like(_) => 17,
        Expr::Regexp { .. } => 18,
        Expr::IsNull { .. } => 19,
        Expr::IsTruth { .. } => 20,
        Expr::MemberOf { .. } => 21,
        Expr::Function(_) => 22,
        Expr::Aggregate(_) => 23,
        Expr::Window(_) => 24,
        Expr::Case(_) => 25,
        Expr::Cast { .. } => 26,
        Expr::ConvertUsing { .. } => 27,
        Expr::Collate { .. } => 28,
        Expr::Extract { .. } => 29,
        Expr::DateArith { .. } => 30,
        Expr::JsonValue(_) => 31,
        Expr::Unit(_) => 32,
        Expr::Trim(_) => 33,
        Expr::Match(_) => 34,
        Expr::Values(_) => 35,
        Expr::Default => 36,
        Expr::DefaultOf(_) => 37,
    };
    (number, 38)
}

/// The kinds that stand for themselves in no definition: parameters, variables of programs, DEFAULT; a unit stands in calls.
const NOWHERE: [usize; 4] = [2, 3, 32, 36];

fn query(sql: &str, options: &ParseOptions) -> Result<Query, String> {
    let parsed = parse(sql.as_bytes(), options).map_err(|error| format!("{sql}: {error}"))?;
    let Some(Statement::Select(query)) = parsed.into_iter().next().map(|first| first.node) else {
        return Err(format!("{sql} is no query"));
    };
    Ok(*query)
}

fn view_text(tree: &Query) -> String {
    String::from_utf8(print::view_sql(tree, &ViewText::default()).0).unwrap()
}

/// A tree without the texts that name columns, and the ways that names of functions were written: those are of what was read.
fn shape(tree: &impl std::fmt::Debug) -> String {
    let whole = format!("{tree:?}");
    let mut parts = whole.split("written: Written { ");
    let mut all = parts.next().unwrap().to_owned();
    all.extend(parts.map(|part| part.split_once(" }, ").unwrap().1));
    let mut parts = all.split("text: b\"");
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let mut escaped = false;
        let end = part.find(|c: char| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        out.push_str(&part[end.unwrap()..]);
    }
    out
}

/// Fails with the fault of a query that is written and read.
fn wrong_with(sql: &str, options: &ParseOptions) -> Result<(), String> {
    let tree = query(sql, options)?;
    let text = view_text(&tree);
    // A definition is read with the grammar that every session starts with, whatever the one that wrote it had.
    let again = query(&text, &mysql())?;
    if view_text(&again) != text {
        return Err(format!("{sql}\n    first  {text}\n    second {}", view_text(&again)));
    }
    // Calls stand for arrows and `||`, joins for commas, and a type for none.
    let other = ["->", "||", ", u ", ", LATERAL", "'$.x')"].iter().any(|part| sql.contains(part));
    if !other && shape(&again) != shape(&tree) {
        return Err(format!("{sql}\n    {text}\n    had {}\n    has {}", shape(&tree), shape(&again)));
    }
    Ok(())
}

fn expect_right(results: impl IntoIterator<Item = Result<(), String>>) {
    let wrong: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn mysql() -> ParseOptions {
    ParseOptions::default()
}

fn mariadb() -> ParseOptions {
    ParseOptions { mariadb: true, ..mysql() }
}

#[test]
fn every_kind_of_expression_is_in_a_list() {
    let mut seen = BTreeSet::from(NOWHERE);
    let mut count = 0;
    for sql in STORED.iter().chain(MYSQL).chain(IN_QUERIES) {
        let tree = query(&format!("SELECT {sql} FROM t"), &mysql()).unwrap();
        let QueryBody::Select(select) = &tree.body else { panic!("{sql}") };
        let SelectItem::Expr { expr, .. } = &select.items[0] else { panic!("{sql}") };
        let (number, all) = kind(expr);
        seen.insert(number);
        count = all;
    }
    assert_eq!(seen, (0..count).collect());
}

#[test]
fn every_expression_of_a_query_parses_again() {
    let both = STORED.iter().chain(IN_QUERIES);
    expect_right(both.flat_map(|sql| {
        let item = format!("SELECT {sql} FROM t");
        let operand = format!("SELECT 1 FROM t WHERE (({sql}) = 1) AND NOT {sql}");
        [wrong_with(&item, &mysql()), wrong_with(&item, &mariadb()), wrong_with(&operand, &mysql())]
    }));
    expect_right(MYSQL.iter().map(|sql| wrong_with(&format!("SELECT {sql} FROM t"), &mysql())));
    expect_right(MARIADB.iter().map(|sql| wrong_with(&format!("SELECT {sql} FROM t"), &mariadb())));
}

#[test]
fn what_modes_change_parses_again_without_them() {
    let pipes = ParseOptions { pipes_as_concat: true, ..mysql() };
    let plain = ParseOptions { no_backslash_escapes: true, ansi_quotes: true, ..mysql() };
    expect_right([
        wrong_with("SELECT a || b, a || b || 'c', a = b || c", &pipes),
        wrong_with("SELECT NOT a = b", &ParseOptions { high_not_precedence: true, ..mysql() }),
        wrong_with("SELECT 'a\\b' FROM \"t\"", &plain),
        wrong_with("SELECT count (a), now ()", &ParseOptions { ignore_space: true, ..mysql() }),
    ]);
}

#[test]
fn every_query_parses_again() {
    expect_right(QUERIES.iter().flat_map(|sql| [wrong_with(sql, &mysql()), wrong_with(sql, &mariadb())]));
}

/// Text literals of definitions have introducers, which the tree had not: only the text is compared.
fn wrong_in_table(sql: &str, bytes: bool, options: &ParseOptions) -> Result<(), String> {
    let stored = Stored { table: "t", written: &|text| text.to_vec(), shown: false, bytes };
    let print = |tree: &Expr| String::from_utf8(print::stored_sql(tree, &stored)).unwrap();
    let text = print(&parse_expr(sql.as_bytes(), options).map_err(|error| format!("{sql}: {error}"))?);
    let again = parse_expr(text.as_bytes(), &mysql()).map_err(|error| format!("{sql}: {text}: {error}"))?;
    if print(&again) == text { Ok(()) } else { Err(format!("{sql}: {text}: {}", print(&again))) }
}

#[test]
fn every_expression_of_a_table_parses_again() {
    expect_right(MYSQL.iter().map(|sql| wrong_in_table(sql, false, &mysql())));
    for options in [mysql(), mariadb()] {
        expect_right(STORED.iter().map(|sql| wrong_in_table(sql, false, &options)));
        expect_right(STORED.iter().map(|sql| wrong_in_table(sql, true, &options)));
    }
}
