//! A real log as lines, read back and written again: the same lines, so the same values.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::consume::{Consumer, End, Feed, JsonLines};
use crate::model::{RowsView, StatementView};
use omnibus_format::{EventIter, ScanRules};

/// A target that writes the changes as lines again.
struct Lines(JsonLines<Vec<u8>>);

impl Lines {
    fn new() -> Lines {
        Lines(JsonLines::new(Vec::new()))
    }

    fn text(self) -> String {
        String::from_utf8(self.0.into_inner()).unwrap()
    }
}

impl ApplyTarget for Lines {
    type Ticket = ();

    fn begin(&mut self, trx: &TrxHeader) -> Result<(), ApplyError> {
        self.0.begin(trx, None).unwrap();
        Ok(())
    }
    fn statement(&mut self, statement: &dyn StatementView) -> Result<(), ApplyError> {
        self.0.statement(statement).unwrap();
        Ok(())
    }
    fn rows(&mut self, rows: &dyn RowsView) -> Result<(), ApplyError> {
        self.0.rows(rows).unwrap();
        Ok(())
    }
    fn commit(&mut self, _: Option<&Position>) -> Result<(), ApplyError> {
        self.0.end(End::Commit, None).unwrap();
        Ok(())
    }
    fn prepare(&mut self, xid: &XaPrepare<'_>, _: Option<&Position>) -> Result<(), ApplyError> {
        self.0.end(End::Prepare(xid), None).unwrap();
        Ok(())
    }
    fn rollback(&mut self) {
        self.0.undo().unwrap();
    }
}

fn replayed(lines: &str) -> Result<String, ApplyError> {
    let (mut replay, mut target) = (JsonReplay::default(), Lines::new());
    for line in lines.lines() {
        replay.line(line, &mut target, None)?;
    }
    assert!(!replay.in_transaction());
    Ok(target.text())
}

#[test]
fn a_real_log_comes_back() {
    let path = std::path::PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap())
        .join("../../testdata/binlog/mariadb-crc32.binlog");
    let bytes = std::fs::read(path).unwrap();
    let mut feed = Feed::new(JsonLines::new(Vec::new()));
    for event in EventIter::of_file(&bytes, ScanRules::default()).unwrap() {
        feed.event(&event.unwrap(), None).unwrap();
    }
    let lines = String::from_utf8(feed.into_consumer().into_inner()).unwrap();
    assert!(lines.lines().count() > 10);
    let again = replayed(&lines).unwrap();
    for (line, back) in lines.lines().zip(again.lines()) {
        assert_eq!(back, line);
    }
    assert_eq!(again, lines);
}

fn rows(columns: &str, rows: &str) -> String {
    format!(
        "{{\"type\":\"begin\",\"gtid\":null}}\n{{\"type\":\"rows\",\"kind\":\"insert\",\"database\":\"d\",\"table\":\"t\",\
         \"columns\":[{columns}],\"rows\":[{rows}]}}\n{{\"type\":\"commit\"}}"
    )
}

#[test]
fn values_at_the_edges_are_exact() {
    let columns = r#"{"name":"u","code":8,"meta":0,"unsigned":true},{"name":"i","code":8,"meta":0,"unsigned":false},
        {"name":"d","code":5,"meta":8},{"name":"f","code":4,"meta":4},{"name":"n","code":246,"meta":16670},
        {"name":"t","code":19,"meta":6},{"name":"s","code":17,"meta":3},{"name":"l","code":15,"meta":40,"collation":8},
        {"name":"j","code":245,"meta":4},{"name":"b","code":252,"meta":2,"collation":63},{"name":"z","code":18,"meta":0}"#
        .replace('\n', "");
    let row = r#"{"after":{"u":18446744073709551615,"i":-9223372036854775808,"d":5e-324,"f":1.1754944e-38,"n":"-12345678901234567890123456789012345.678901234567890123456789012345","t":"-838:59:58.000001","s":"2038-01-19 03:14:07.999","l":"äöü","j":{"json":{"a": [1, 2.5, "ü", null]}},"b":{"base64":"AP8="},"z":"0000-00-00 00:00:00"}}"#;
    let text = replayed(&rows(&columns, row)).unwrap();
    for part in row.trim_start_matches(r#"{"after":{"#).trim_end_matches("}}").split(",\"") {
        assert!(text.contains(part), "{part} in {text}");
    }
    // Columns by number, in any order, and not all of them: two runs of rows.
    let text = replayed(&rows(
        r#"{"code":3,"meta":0},{"code":3,"meta":0}"#,
        r#"{"after":{"@2":1,"@1":null}},{"after":{"@2":7}}"#,
    ));
    let text = text.unwrap();
    assert!(
        text.contains(r#"{"after":{"@1":null,"@2":1}}"#) && text.contains(r#"{"after":{"@2":7}}"#),
        "{text}"
    );
}

#[test]
fn wrong_lines_are_named_and_undone() {
    let begin = r#"{"type":"begin","gtid":"0-1-2"}"#;
    for (bad, what) in [
        ("[", "no JSON"),
        ("{}", "type"),
        (begin, "out of place"),
        (r#"{"type":"odd"}"#, "unknown type"),
        (r#"{"type":"statement"}"#, "sql"),
        (r#"{"type":"statement","sql":"x","collations":[1]}"#, "collations"),
        (
            r#"{"type":"rows","kind":"insert","database":"d","table":"t","columns":[{"code":1,"meta":0}],"rows":[{"after":{"@1":300}}]}"#,
            "column 1",
        ),
        (
            r#"{"type":"rows","kind":"insert","database":"d","table":"t","columns":[{"code":1,"meta":0}],"rows":[{"after":{"@2":3}}]}"#,
            "@2",
        ),
        (
            r#"{"type":"rows","kind":"delete","database":"d","table":"t","columns":[{"code":1,"meta":0}],"rows":[{}]}"#,
            "before",
        ),
    ] {
        let (mut replay, mut target) = (JsonReplay::default(), Lines::new());
        replay.line(begin, &mut target, None).unwrap();
        let error = replay.line(bad, &mut target, None).unwrap_err();
        assert!(error.message.contains(what), "{bad}: {error}");
        assert!(target.text().ends_with("{\"type\":\"rollback\"}\n"), "{bad}");
    }
    assert!(JsonReplay::default().line(r#"{"type":"commit"}"#, &mut Lines::new(), None).is_err());
}
