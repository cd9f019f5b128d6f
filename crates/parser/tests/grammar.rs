//! MySQL 8.4's statements and clauses, one a line of `grammar.txt`: each is read, or refused by name (1235), never a syntax error.
#![allow(clippy::unwrap_used, reason = "tests")]

use omnibus_parser::{ParseOptions, parse};

#[test]
fn nothing_of_the_grammar_is_a_syntax_error() {
    let mut wrong = Vec::new();
    for sql in include_str!("grammar.txt").lines() {
        if let Err(error) = parse(sql.as_bytes(), &ParseOptions::default())
            && error.code() != 1235
        {
            wrong.push(format!("{sql}: {error}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_refused_while_it_is_read_has_a_name() {
    for (sql, name) in [
        ("SELECT CAST(a AS POINT)", "spatial types"),
        ("ALTER TABLE t SECONDARY_LOAD", "secondary engines"),
        ("ALTER USER u ADD 2 FACTOR IDENTIFIED BY 'x'", "several authentication factors"),
    ] {
        let error = parse(sql.as_bytes(), &ParseOptions::default()).unwrap_err();
        let wanted = format!("This version of Omnibus doesn't yet support '{name}'");
        assert_eq!((error.code(), error.to_string()), (1235, wanted), "{sql}");
    }
}
