//! Statements that only MariaDB has.
#![allow(clippy::unwrap_used, reason = "tests")]

use omnibus_parser::ast::{Statement, UserName};
use omnibus_parser::{ParseOptions, parse};

/// Clauses of MariaDB's grammar that this one lacks are refused by name, wherever the grammar meets them.
#[test]
fn clauses_of_mariadb_are_refused_by_name() {
    for (what, sql) in [
        ("SYSTEM VERSIONING", "CREATE TABLE t (a INT) WITH SYSTEM VERSIONING"),
        ("SYSTEM VERSIONING", "CREATE TABLE t (a INT WITHOUT SYSTEM VERSIONING)"),
        ("SYSTEM VERSIONING", "CREATE TABLE t (a TIMESTAMP(6) GENERATED ALWAYS AS ROW START)"),
        ("SYSTEM VERSIONING", "ALTER TABLE t ADD SYSTEM VERSIONING"),
        ("SYSTEM VERSIONING", "ALTER TABLE t DROP SYSTEM VERSIONING"),
        ("FOR SYSTEM_TIME", "CREATE TABLE t (a INT, PERIOD FOR SYSTEM_TIME (b, c))"),
        ("FOR SYSTEM_TIME", "SELECT * FROM t FOR SYSTEM_TIME ALL"),
        ("FOR SYSTEM_TIME", "SELECT * FROM t FOR SYSTEM_TIME AS OF TIMESTAMP'2020-01-01' WHERE a = 1"),
        ("FOR SYSTEM_TIME", "ALTER TABLE t DROP PERIOD FOR SYSTEM_TIME"),
        ("PERIOD FOR", "CREATE TABLE t (a INT, s DATE, e DATE, PERIOD FOR p (s, e))"),
        ("PERIOD FOR", "ALTER TABLE t ADD PERIOD FOR p (s, e)"),
        ("WITHOUT OVERLAPS", "CREATE TABLE t (a INT, UNIQUE (a, p WITHOUT OVERLAPS))"),
        ("FOR PORTION OF", "DELETE FROM t FOR PORTION OF p FROM 1 TO 2"),
        ("FOR PORTION OF", "UPDATE t FOR PORTION OF p FROM 1 TO 2 SET a = 1"),
        ("DELETE HISTORY", "DELETE HISTORY FROM t"),
        ("DELETE HISTORY", "DELETE HISTORY FROM t BEFORE SYSTEM_TIME '2020-01-01'"),
        ("sequences", "SELECT NEXT VALUE FOR s"),
        ("sequences", "SELECT PREVIOUS VALUE FOR d.s"),
        ("sequences", "SHOW CREATE SEQUENCE s"),
        ("packages", "SHOW CREATE PACKAGE p"),
        ("COMPRESSED columns", "CREATE TABLE t (a TEXT COMPRESSED)"),
        ("CONVERT PARTITION", "ALTER TABLE t CONVERT PARTITION p TO TABLE u"),
        ("dynamic columns", "SELECT COLUMN_GET(a, 'b' AS INT)"),
    ] {
        let error = parse(sql.as_bytes(), &ParseOptions::default()).unwrap_err();
        assert_eq!(error.code(), 1235, "{sql}: {error}");
        assert!(error.to_string().contains(&format!("'{what}'")), "{sql}: {error}");
    }
    for sql in [
        "SELECT value FROM t WHERE next > 1 FOR UPDATE",
        "SELECT period FROM t FOR UPDATE",
        "CREATE TABLE period (period INT, history INT, next INT, value INT, compressed INT)",
        "DELETE history FROM history JOIN t",
        "DELETE history FROM t AS history",
        "SELECT previous.value FROM previous",
    ] {
        parse(sql.as_bytes(), &ParseOptions::default()).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

#[test]
fn sequences_are_of_the_mariadb_dialect() {
    let options = ParseOptions { mariadb: true, ..ParseOptions::default() };
    for sql in [
        "CREATE OR REPLACE SEQUENCE d.s START WITH 5 INCREMENT BY -1 MINVALUE = -9223372036854775807 NO MAXVALUE CACHE 3 CYCLE ENGINE=x COMMENT='y'",
        "CREATE SEQUENCE IF NOT EXISTS s NOMINVALUE MAXVALUE 9 NOCACHE NOCYCLE",
        "ALTER SEQUENCE IF EXISTS s RESTART",
        "ALTER SEQUENCE s RESTART WITH 3 INCREMENT 2",
        "DROP SEQUENCE IF EXISTS s, d.t",
        "SHOW CREATE SEQUENCE s",
        "SELECT NEXT VALUE FOR d.s, PREVIOUS VALUE FOR s, next, previous.value FROM previous",
    ] {
        parse(sql.as_bytes(), &options).unwrap_or_else(|error| panic!("{sql}: {error}"));
        if !sql.starts_with("SELECT") {
            assert_eq!(
                parse(sql.as_bytes(), &ParseOptions::default()).map_or_else(|e| e.code(), |_| 1235),
                1235,
                "{sql}"
            );
        }
    }
    for sql in [
        "ALTER SEQUENCE s",
        "CREATE SEQUENCE s MAXVALUE 9223372036854775808",
        "CREATE SEQUENCE s START",
        "SELECT NEXT VALUE FOR",
    ] {
        assert_eq!(parse(sql.as_bytes(), &options).unwrap_err().code(), 1064, "{sql}");
    }
}

#[test]
fn set_statement_keeps_the_text_behind_for() {
    let text: &[u8] = b"SET STATEMENT sql_mode = '', unique_checks = OFF, lock_wait_timeout = 1 + 1 FOR SELECT * FROM t FOR UPDATE";
    let Statement::SetStatement(tree) = parse(text, &ParseOptions::default()).unwrap().remove(0).node else {
        panic!("another statement")
    };
    assert_eq!(tree.items.len(), 3);
    assert_eq!(&tree.text[..], b"SELECT * FROM t FOR UPDATE");
    for wrong in [
        "SET STATEMENT a = 1",
        "SET STATEMENT FOR SELECT 1",
        "SET STATEMENT GLOBAL a = 1 FOR SELECT 1",
        "SET STATEMENT @a = 1 FOR SELECT 1",
    ] {
        assert!(parse(wrong.as_bytes(), &ParseOptions::default()).is_err(), "{wrong}");
    }
}

#[test]
fn current_role_stands_for_a_name_where_a_role_may() {
    let mariadb = ParseOptions { mariadb: true, ..ParseOptions::default() };
    let sql = "GRANT CURRENT_ROLE, a TO current_role ( ), `CURRENT_ROLE`, 'CURRENT_ROLE' /* CURRENT_ROLE */";
    let mut statement = parse(sql.as_bytes(), &mariadb).unwrap().remove(0).node;
    let names = omnibus_parser::accounts_and_roles(&mut statement);
    let current: Vec<_> = names.iter().map(|name| **name == UserName::CurrentRole).collect();
    assert_eq!(current, [true, false, true, false, false]);
    let named = omnibus_parser::name_current_role(sql.as_bytes(), &mariadb, "it`s");
    assert_eq!(
        String::from_utf8(named).unwrap(),
        "GRANT `it``s`, a TO `it``s`, `CURRENT_ROLE`, 'CURRENT_ROLE' /* CURRENT_ROLE */"
    );
    for refused in
        ["DROP USER CURRENT_ROLE", "SET ROLE CURRENT_ROLE", "ALTER USER CURRENT_ROLE IDENTIFIED BY 'x'"]
    {
        assert!(parse(refused.as_bytes(), &mariadb).is_err(), "{refused}");
        assert!(parse(refused.as_bytes(), &ParseOptions::default()).is_ok(), "{refused}");
    }
    let refused = "GRANT SELECT ON *.* TO CURRENT_ROLE()";
    assert!(parse(refused.as_bytes(), &ParseOptions::default()).is_err());
}
