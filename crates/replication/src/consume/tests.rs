//! Files of a real server and events of our own, as lines.
#![allow(clippy::unwrap_used)]

use super::*;
use omnibus_format::{EventIter, ScanRules};

fn lines_of(bytes: &[u8]) -> Vec<String> {
    let mut feed = Feed::new(JsonLines::new(Vec::new()));
    for event in EventIter::of_file(bytes, ScanRules::default()).unwrap() {
        feed.event(&event.unwrap(), Some("binlog.000001")).unwrap();
    }
    let text = String::from_utf8(feed.into_consumer().into_inner()).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn fixture() -> Vec<u8> {
    let path = std::path::PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap())
        .join("../../testdata/binlog/mariadb-crc32.binlog");
    std::fs::read(path).unwrap()
}

#[test]
fn a_mariadb_log_becomes_lines() {
    let lines = lines_of(&fixture());
    let begins =
        lines.iter().filter(|line| line.starts_with(r#"{"type":"begin","file":"binlog.000001","position":"#));
    let ends = lines.iter().filter(|line| line.starts_with(r#"{"type":"commit","#));
    assert_eq!(begins.count(), ends.count());
    let find = |part: &str| lines.iter().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part}"));
    assert!(find("0-3-3").contains(r#""server_id":3"#));
    let rows = find(r#""table":"kinds""#);
    for part in [
        r#""kind":"insert""#,
        r#""n":"-12345678901.250""#,
        r#""b":18446744073709551615"#,
        r#""bi":6844"#,
        r#""dt":"2024-02-29 23:59:58.123456""#,
        r#""c":"chär""#,
        r#""v":"v'q""#,
        r#""bn":{"base64":"YWIAAA=="}"#,
        r#""e":2"#,
        r#""st":5"#,
        r#""nu":null"#,
    ] {
        assert!(rows.contains(part), "{part} in {rows}");
    }
    let statement = find(r#""insert_id":1"#);
    assert!(
        statement.contains(r#""user_variables":[{"name":"word","type":"string","value":"hello""#),
        "{statement}"
    );
}

/// A consumer that takes a given number of calls.
struct Stops(usize);

impl Consumer for Stops {
    type Error = &'static str;
    fn begin(&mut self, _: &TrxHeader, _: Option<FilePosition<'_>>) -> Result<(), &'static str> {
        self.0 = self.0.checked_sub(1).ok_or("enough")?;
        Ok(())
    }
    fn statement(&mut self, _: &dyn StatementView) -> Result<(), &'static str> {
        Ok(())
    }
    fn rows(&mut self, _: &dyn RowsView) -> Result<(), &'static str> {
        Ok(())
    }
    fn end(&mut self, _: End<'_>, _: Option<FilePosition<'_>>) -> Result<(), &'static str> {
        Ok(())
    }
}

#[test]
fn a_consumer_s_error_comes_back_as_it_is() {
    let bytes = fixture();
    let mut feed = Feed::new(Stops(2));
    let mut events = EventIter::of_file(&bytes, ScanRules::default()).unwrap();
    let error = events.find_map(|event| feed.event(&event.unwrap(), None).err());
    assert!(matches!(error, Some(ConsumeError::Consumer("enough"))));
    assert!(!feed.in_transaction(), "it may go on with the next transaction");
}

/// A log of MySQL 4.0 with a LOAD DATA in three events.
fn version_3() -> Vec<u8> {
    let mut out = omnibus_format::MAGIC.to_vec();
    let mut event = |kind: u8, body: &[u8]| {
        let at = out.len() as u32;
        out.extend_from_slice(&[0, 0, 0, 1, kind, 7, 0, 0, 0]);
        out.extend_from_slice(&(19 + body.len() as u32).to_le_bytes());
        out.extend_from_slice(&at.to_le_bytes());
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(body);
    };
    let mut start = vec![3, 0];
    start.extend_from_slice(&[0; 54]);
    event(1, &start);
    event(2, b"\x05\0\0\0\0\0\0\0\x04\0\0shop\0DELETE FROM t");
    let mut create = b"\x05\0\0\0\0\0\0\0\0\0\0\0\x01\x04\0\0\0\0\x03\0\0\0".to_vec();
    create.extend_from_slice(b"\x01,\0\x01\n\0\x01\\\0t\0shop\0f\0");
    create.extend_from_slice(b"1\n");
    event(8, &create);
    event(9, b"\x03\0\0\x002\n");
    event(10, b"\x03\0\0\0");
    out
}

#[test]
fn a_log_of_mysql_4_becomes_lines_with_its_file() {
    let lines = lines_of(&version_3());
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert!(lines[1].contains(r#""sql":"DELETE FROM t","database":"shop","thread_id":5"#), "{}", lines[1]);
    let load = r#""sql":"LOAD DATA INFILE 'f' INTO TABLE `t` FIELDS"#;
    assert!(lines[4].contains(load), "{}", lines[4]);
    assert!(
        lines[4].contains(r#""file":{"name_span":[10,25],"duplicates":0,"data":{"base64":"MQoyCg=="}}"#),
        "{}",
        lines[4]
    );
}
