//! Expressions: what binds tighter, by the fully parenthesised print.
#![allow(clippy::unwrap_used, reason = "tests")]

use omnibus_parser::print;
use omnibus_parser::{ParseOptions, parse_expr};

fn with(sql: &str, options: &ParseOptions) -> String {
    match parse_expr(sql.as_bytes(), options) {
        Ok(expr) => String::from_utf8(print::sql(&expr)).unwrap().replace('`', ""),
        Err(e) => panic!("{sql}: {e}"),
    }
}

fn p(sql: &str) -> String {
    with(sql, &ParseOptions::default())
}

#[test]
fn operators_bind_as_in_mysql() {
    for (sql, printed) in [
        ("2*3^1", "(2 * (3 ^ 1))"),
        ("1+2*3", "(1 + (2 * 3))"),
        ("1-2-3", "((1 - 2) - 3)"),
        ("a DIV b % c MOD d", "(((a DIV b) % c) % d)"),
        ("a | b & c << d + e", "(a | (b & (c << (d + e))))"),
        ("a = b XOR c", "((a = b) xor c)"),
        ("a XOR b AND c", "(a xor (b and c))"),
        ("a OR b XOR c", "(a or (b xor c))"),
        ("a || b && c", "(a or (b and c))"),
        ("@a := b OR c", "(@a := (b or c))"),
        ("1 + @a := 2 OR 3", "(1 + (@a := (2 or 3)))"),
        ("a LIKE b = c", "((a like b) = c)"),
        ("a = b LIKE c", "(a = (b like c))"),
        ("a REGEXP b = c", "((a regexp b) = c)"),
        ("a RLIKE b", "(a regexp b)"),
        ("a NOT LIKE b ESCAPE '|'", "(a not like b escape '|')"),
        ("BINARY 'a' = 'A'", "((binary 'a') = 'A')"),
        ("BINARY a + b", "((binary a) + b)"),
        ("NOT a = b", "(not (a = b))"),
        ("NOT a AND b", "((not a) and b)"),
        ("NOT a BETWEEN 1 AND 2", "(not (a between 1 and 2))"),
        ("!a = b", "((not a) = b)"),
        ("! a + b", "((not a) + b)"),
        ("-a ^ b", "((-(a)) ^ b)"),
        ("~a & b", "((~a) & b)"),
        ("- - 1", "(-(-1))"),
        ("-a COLLATE utf8mb4_bin", "(-((a collate utf8mb4_bin)))"),
        ("a = b = c", "((a = b) = c)"),
        ("a <=> b <> c", "((a <=> b) <> c)"),
        ("a IS NULL = b", "((a is null) = b)"),
        ("a = b IS NOT NULL", "((a = b) is not null)"),
        ("NOT a IS TRUE", "(not (a is true))"),
        ("a IS NOT UNKNOWN", "(a is not unknown)"),
        ("a BETWEEN b AND c AND d", "((a between b and c) and d)"),
        ("a BETWEEN 1+1 AND 2 OR c", "((a between (1 + 1) and 2) or c)"),
        ("a NOT BETWEEN b AND c IN (1)", "(a not between b and (c in (1)))"),
        ("a IN (1,2) = b", "((a in (1,2)) = b)"),
        ("a NOT IN (1)", "(a not in (1))"),
        ("a + INTERVAL 1 DAY - b", "((a + interval 1 DAY) - b)"),
        ("INTERVAL 1 DAY + a", "(a + interval 1 DAY)"),
        ("a - INTERVAL '1:1' MINUTE_SECOND > b", "((a - interval '1:1' MINUTE_SECOND) > b)"),
        ("INTERVAL(a,b,c) + 1", "(interval(a,b,c) + 1)"),
        ("a + INTERVAL(1,2) * 3", "(a + (interval(1,2) * 3))"),
        ("a + INTERVAL (1)+2 DAY", "(a + interval (1 + 2) DAY)"),
        ("a + INTERVAL (b) HOUR", "(a + interval b HOUR)"),
        ("a SOUNDS LIKE b", "(a sounds like b)"),
        ("a MEMBER OF ('[1]')", "(a member of ('[1]'))"),
        ("j->'$.a' = j->>'$.b'", "((j -> '$.a') = (j ->> '$.b'))"),
        ("(a,b) = ROW(1,2)", "(row(a,b) = row(1,2))"),
        ("CASE a WHEN 1 THEN 2 ELSE 3 END + 1", "((case a when 1 then 2 else 3 end) + 1)"),
        ("a >= ANY (SELECT 1)", "(a >= any (...))"),
        ("EXISTS(SELECT 1) AND a", "(exists(...) and a)"),
        ("a IN (SELECT 1)", "(a in (...))"),
        ("((SELECT 1) UNION (SELECT 2)) + 1", "((...) + 1)"),
        ("((1))", "1"),
    ] {
        assert_eq!(p(sql), printed, "{sql}");
    }
}

#[test]
fn literals_keep_their_kind() {
    for (sql, printed) in [
        ("1", "1"),
        ("1.50", "1.50"),
        (".5", ".5"),
        ("5.", "5."),
        ("1e5", "1e5"),
        ("1.e5", "1e5"),
        ("1E-2", "1e-2"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "18446744073709551616"),
        ("0x4a", "x'4a'"),
        ("x'4A4b'", "x'4a4b'"),
        ("0b101", "b'00000101'"),
        ("b'101'", "b'00000101'"),
        ("'a' 'b' \"c\"", "'abc'"),
        ("'it''s' 'x\\ty'", "'it\\'sx\ty'"),
        ("_utf8mb4'x'", "_utf8mb4'x'"),
        ("_binary x'00'", "_binary x'00'"),
        ("N'x'", "N'x'"),
        ("DATE '2020-01-01'", "DATE'2020-01-01'"),
        ("{ts '2020-01-01 00:00:00'}", "TIMESTAMP'2020-01-01 00:00:00'"),
        ("TIMESTAMP('2020-01-01')", "timestamp('2020-01-01')"),
        ("true", "true"),
        ("NULL", "NULL"),
        ("@a", "@a"),
        ("@`a b`", "@a b"),
        ("@'a'", "@a"),
        ("@a.b$c", "@a.b$c"),
        ("@@global.sql_mode", "@@global.sql_mode"),
        ("@@LOCAL.x", "@@session.x"),
        ("@@x", "@@x"),
        ("@@mycache.key_buffer_size", "@@mycache.key_buffer_size"),
        ("1--1", "(1 - -1)"),
        ("1 -- 1\n", "1"),
        ("1 # x\n+2 /* y */ + 3", "((1 + 2) + 3)"),
        ("1 /*! + 2 */ + 3", "((1 + 2) + 3)"),
        ("1 /*!80000 + 2 */", "(1 + 2)"),
        ("1 /*!99999 + 2 */", "1"),
        ("1 /*!99999 + /* 3 */ 2 */", "1"),
        ("1 /*M! + 2 */", "1"),
        ("db.t.c + t.select + .c", "((db.t.c + t.select) + c)"),
        ("2a.1b", "2a.1b"),
    ] {
        assert_eq!(p(sql), printed, "{sql}");
    }
}

#[test]
fn calls_take_their_canonical_form() {
    for (sql, printed) in [
        ("COUNT(*)", "count(*)"),
        ("count(DISTINCT a, b)", "count(distinct a,b)"),
        (
            "GROUP_CONCAT(DISTINCT a ORDER BY b DESC SEPARATOR ';')",
            "group_concat(distinct a order by b desc separator ';')",
        ),
        ("CURRENT_TIMESTAMP", "now()"),
        ("CURRENT_TIMESTAMP(6)", "now(6)"),
        ("LOCALTIME()", "now()"),
        ("CURDATE()", "curdate()"),
        ("SUBSTRING(a FROM 2 FOR 3)", "substring(a,2,3)"),
        ("MID(a,2)", "substring(a,2)"),
        ("POSITION('a' IN b)", "locate('a',b)"),
        ("TRIM(a)", "trim(a)"),
        ("TRIM(BOTH 'x' FROM a)", "trim(both 'x' from a)"),
        ("TRIM(LEADING FROM a)", "trim(leading from a)"),
        ("TRIM('x' FROM a)", "trim(both 'x' from a)"),
        ("CAST(a AS UNSIGNED INTEGER)", "cast(a as unsigned)"),
        ("CAST(a AS CHAR(5) CHARACTER SET latin1)", "cast(a as char(5) charset latin1)"),
        ("CAST(a AS DECIMAL(10,2))", "cast(a as decimal(10,2))"),
        ("CONVERT(a, DATETIME(3))", "cast(a as datetime(3))"),
        ("CONVERT(a USING utf8mb4)", "convert(a using utf8mb4)"),
        ("CHAR(65,66 USING latin1)", "convert(char(65,66) using latin1)"),
        ("DATE_ADD(a, INTERVAL 1 MONTH)", "(a + interval 1 MONTH)"),
        ("SUBDATE(a, 3)", "(a - interval 3 DAY)"),
        ("TIMESTAMPDIFF(SQL_TSI_DAY, a, b)", "timestampdiff(DAY,a,b)"),
        ("EXTRACT(YEAR_MONTH FROM a)", "extract(YEAR_MONTH from a)"),
        ("IF(a, LEFT(b,1), REPLACE(c,'x','y'))", "if(a,left(b,1),replace(c,'x','y'))"),
        ("DATABASE()", "database()"),
        ("mydb.f(1)", "mydb.f(1)"),
        ("`f x`(1)", "f x(1)"),
        ("VALUES(a) + DEFAULT(b)", "(values(a) + default(b))"),
        ("MATCH (a,b) AGAINST ('x' IN BOOLEAN MODE)", "match (a,b) against ('x' in boolean mode)"),
        (
            "ROW_NUMBER() OVER (PARTITION BY a ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
            "row_number() over (...)",
        ),
        ("SUM(a) OVER w", "sum(a) over (...)"),
        ("NULLIF(a,b)", "nullif(a,b)"),
    ] {
        assert_eq!(p(sql), printed, "{sql}");
    }
}

#[test]
fn sql_mode_changes_the_grammar() {
    let pipes = ParseOptions { pipes_as_concat: true, ..Default::default() };
    assert_eq!(with("-a || b ^ c OR d", &pipes), "((concat((-(a)),b) ^ c) or d)");
    let ansi = ParseOptions { ansi_quotes: true, ..Default::default() };
    assert_eq!(with("\"a\"\"b\" = 'x'", &ansi), "(a\"b = 'x')");
    let high_not = ParseOptions { high_not_precedence: true, ..Default::default() };
    assert_eq!(with("NOT a BETWEEN -5 AND 5", &high_not), "((not a) between -5 and 5)");
    let raw = ParseOptions { no_backslash_escapes: true, ..Default::default() };
    assert_eq!(with("'a\\'", &raw), "'a\\\\'");
    let mariadb = ParseOptions { mariadb: true, version: 110_400, ..Default::default() };
    assert_eq!(with("1 /*M!100100 + 2 */ /*!80000 + 3 */ /*!40101 + 4 */", &mariadb), "((1 + 2) + 4)");
}

#[test]
fn strings_are_bytes() {
    let options = ParseOptions::default();
    let parsed = parse_expr(b"'\xe9\xff\\0'", &options).unwrap();
    assert_eq!(print::sql(&parsed), b"'\xe9\xff\\0'");
}

#[test]
fn printed_expressions_parse_to_the_same_tree() {
    let options = ParseOptions::default();
    for sql in [
        "(a + 1) * -b DIV c",
        "NOT (a AND b) OR c XOR d",
        "CASE WHEN a IS NULL THEN 'x''y' ELSE concat(a, 0x41, 1.5e3) END",
        "a BETWEEN (b = c) AND (d IN (1,2))",
        "json_unquote(json_extract(j,'$.a'))",
        "cast(a AS CHAR(3) CHARACTER SET latin1) COLLATE latin1_bin LIKE '%\\_%' ESCAPE '!'",
        "- -1 - -a",
        "trim(LEADING '0' FROM s)",
        "date_add(d, INTERVAL -(1) YEAR)",
        "1e300 + .1 + 2.",
    ] {
        let first = parse_expr(sql.as_bytes(), &options).unwrap();
        let printed = print::sql(&first);
        let second = parse_expr(&printed, &options)
            .unwrap_or_else(|e| panic!("{}: {e}", String::from_utf8_lossy(&printed)));
        assert_eq!(first, second, "{sql}");
    }
}
