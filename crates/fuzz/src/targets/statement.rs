//! The parser: statements, expressions and the tools that read a statement's text without its tree.

use omnibus_parser::print;
use omnibus_parser::{
    ParseOptions, fill_params, load_file_span, parse, parse_expr, parse_first, redact, set_engines_aside,
};

/// The first byte is the `sql_mode`, as far as the parser knows of one.
fn split(input: &[u8]) -> Option<(ParseOptions, &[u8])> {
    let (how, sql) = input.split_first()?;
    let is = |bit: u8| how & (1 << bit) != 0;
    let options = ParseOptions {
        ansi_quotes: is(0),
        pipes_as_concat: is(1),
        no_backslash_escapes: is(2),
        high_not_precedence: is(3),
        ignore_space: is(4),
        mariadb: is(5),
        markers: !is(6),
        ..ParseOptions::default()
    };
    Some((options, sql))
}

pub(super) fn text(input: &[u8]) {
    let Some((options, sql)) = split(input) else { return };
    let all = parse(sql, &options);
    let first = parse_first(sql, &options);
    if let Ok(all) = &all {
        let (statement, rest) = first.expect("the first of several that parse");
        assert_eq!(format!("{:?}", all.first()), format!("{:?}", Some(&statement)));
        assert!(rest.is_none_or(|rest| rest <= sql.len()));
    }
    let _ = redact(sql);
    let _ = set_engines_aside(sql, &options, |name| name.len() % 2 == 0);
    assert_eq!(set_engines_aside(sql, &options, |_| false), sql, "other servers' engines stay");
    if let Some((from, to)) = load_file_span(sql, &options) {
        assert!(from <= to && to as usize <= sql.len());
    }
    let mut count = 0;
    let filled = fill_params(sql, &options, |at, out| {
        assert_eq!(at, count);
        count += 1;
        out.push(b'?');
    });
    assert_eq!(filled, sql, "a parameter in its own place");
}

/// Printed and parsed again an expression is the same: what CREATE TABLE stores.
pub(super) fn expression(input: &[u8]) {
    let Some((options, sql)) = split(input) else { return };
    let Ok(tree) = parse_expr(sql, &options) else { return };
    let printed = print::sql(&tree);
    // Where expressions are stored there are no subqueries; they print as this.
    if printed.windows(5).any(|word| word == b"(...)") {
        return;
    }
    let again = parse_expr(&printed, &ParseOptions::default());
    let again = again.unwrap_or_else(|e| {
        let text = String::from_utf8_lossy;
        panic!("{} printed as {}: {e:?}", text(sql), text(&printed))
    });
    let text = |sql: &[u8]| String::from_utf8_lossy(sql).into_owned();
    // A long chain of AND and OR may be grouped otherwise: brackets do not count.
    let bare = |sql: &[u8]| text(sql).replace(['(', ')'], "");
    assert_eq!(bare(&print::sql(&again)), bare(&printed));
}
