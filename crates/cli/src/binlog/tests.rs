//! The command against files of a real MariaDB server, whole and damaged.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::{BinlogArgs, dump};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../testdata/binlog").join(name)
}

/// A file with these bytes, deleted when dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn new(bytes: &[u8]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("omnibus-binlog-test-{}-{n}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The command's output and its error, if any.
fn print(path: &Path, change: impl FnOnce(&mut BinlogArgs)) -> (String, Option<String>) {
    let mut args = BinlogArgs { files: vec![path.to_owned()], ..BinlogArgs::default() };
    change(&mut args);
    let mut out = Vec::new();
    let error = dump::files(&args, &mut out).err().map(|failure| failure.to_string());
    (String::from_utf8(out).unwrap(), error)
}

#[test]
fn every_event_is_one_line_with_position_type_server_and_end() {
    let (out, error) = print(&fixture("mariadb-crc32.binlog"), |_| {});
    assert_eq!(error, None);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 36);
    let mut position = "4".to_owned();
    for line in &lines[1..] {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!((words[0], words[2]), (position.as_str(), "3"), "{line}");
        position = words[3].to_owned();
    }
    for part in [
        "server 10.11.19-MariaDB-0+deb12u1-log, binlog v4, checksums CRC32",
        "BEGIN GTID 0-3-3",
        "`shop`.`kinds`, 2 rows, statement end",
        "INSERT_ID=1",
        "@`word`=\"hello\"",
        "to binlog.000002 at 4",
    ] {
        assert!(out.contains(part), "{part}");
    }
}

#[test]
fn verbose_shows_rows_with_names_and_labels() {
    let (out, error) = print(&fixture("mariadb-crc32.binlog"), |args| args.verbose = 1);
    assert_eq!(error, None);
    let insert = "### INSERT INTO `shop`.`kinds`\n### SET\n###   `id`=1\n###   `t`=-128\n###   `s`=65535\n";
    assert!(out.contains(insert));
    for part in [
        "`b`=18446744073709551615\n",
        "`n`=-12345678901.250\n",
        "`bi`=b'1101010111100'\n",
        "`ti`='-838:59:58.5'\n",
        "`dt`='2024-02-29 23:59:58.123456'\n",
        "`c`='chär'\n",
        "`v`='v''q'\n",
        "`bn`=X'61620000'\n",
        "`e`='y'\n",
        "`st`='a,c'\n",
        "### UPDATE `shop`.`kinds`\n### WHERE\n###   `id`=1\n### SET\n###   `nu`=9\n",
    ] {
        assert!(out.contains(part), "{part}");
    }
}

#[test]
fn json_has_one_object_a_line_with_rows() {
    let (out, error) = print(&fixture("mariadb-crc32.binlog"), |args| args.json = true);
    assert_eq!(error, None);
    let objects: Vec<serde_json::Value> =
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let rows = objects.iter().find(|o| o["type"] == "rows").unwrap();
    assert_eq!((rows["table"].as_str(), rows["rows"].as_array().unwrap().len()), (Some("kinds"), 2));
    let row = &rows["rows"][0]["after"];
    assert_eq!(row["b"], serde_json::json!(u64::MAX));
    assert_eq!(row["st"], 5);
    assert_eq!(row["nu"], serde_json::Value::Null);
    let ddl = objects.iter().find(|o| o["type"] == "statement").unwrap();
    assert_eq!(ddl["sql"], "CREATE DATABASE shop CHARACTER SET utf8mb4");
    let (other, _) = print(&fixture("mariadb-crc32.binlog"), |args| {
        args.json = true;
        args.database = Some("other".into());
    });
    assert!(other.contains("\"begin\"") && !other.contains("\"rows\"") && !other.contains("\"statement\""));
}

#[test]
fn sql_has_statements_with_their_context_and_rows_as_events() {
    let (out, error) = print(&fixture("mariadb-crc32.binlog"), |args| args.sql = true);
    assert_eq!(error, None);
    for part in [
        "DELIMITER /*!*/;\n",
        "BEGIN\n/*!*/;\n",
        "SET INSERT_ID=1\n/*!*/;\n",
        "SET @`word`:=_utf8mb4 X'68656C6C6F' COLLATE `utf8mb4_",
        "/*!100001 SET @@session.gtid_seq_no=3 */",
        "BINLOG '\n",
        "COMMIT\n/*!*/;\n",
    ] {
        assert!(out.contains(part), "{part}\n{out}");
    }
    // A database is named where it is needed, and not again before it changes.
    let words: Vec<&str> = out.lines().filter(|line| line.starts_with("use ")).collect();
    assert_eq!(words, ["use `shop`"]);
    let (out, _) = print(&fixture("mariadb-crc32.binlog"), |args| {
        args.sql = true;
        args.how.skip_gtids = true;
    });
    assert!(!out.contains("gtid_seq_no"));
}

#[test]
fn transactions_are_chosen_by_gtid_and_time() {
    let gtids = |text: &str| {
        use clap::Parser;
        #[derive(Parser)]
        struct Command {
            #[command(flatten)]
            args: BinlogArgs,
        }
        let path = fixture("mariadb-crc32.binlog");
        let words = ["binlog", path.to_str().unwrap()].into_iter().chain(text.split(' '));
        let words: Vec<String> = words.map(|word| word.replace('_', " ")).collect();
        let args = Command::try_parse_from(words).unwrap().args;
        let mut out = Vec::new();
        dump::files(&args, &mut out).unwrap();
        String::from_utf8(out).unwrap().matches("BEGIN GTID").count()
    };
    let all = gtids("--start-datetime 2000-01-01_00:00:00");
    assert!(all > 2);
    assert_eq!(gtids("--include-gtids 0-3-3"), 1);
    assert_eq!(gtids("--exclude-gtids 0-3-3"), all - 1);
    assert_eq!(gtids("--stop-datetime 2000-01-01_00:00:00"), 0);
    assert_eq!(gtids("--server-id 7"), 0);
}

#[test]
fn positions_limit_what_is_printed() {
    let (out, error) = print(&fixture("mariadb-crc32.binlog"), |args| {
        args.start_position = Some(3887);
        args.stop_position = Some(3960);
    });
    assert_eq!(error, None);
    let types: Vec<&str> = out.lines().skip(1).map(|l| l.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(types, ["Xid", "Gtid"]);
}

#[test]
fn damage_is_reported_with_its_offset_after_every_good_event() {
    let mut bytes = std::fs::read(fixture("mariadb-crc32.binlog")).unwrap();
    let torn = Temporary::new(&bytes[..3000]);
    let (out, error) = print(&torn.0, |_| {});
    assert_eq!(out.lines().count(), 16);
    let error = error.unwrap();
    assert!(error.ends_with("offset 2603: torn event: 903 bytes needed, 397 there"), "{error}");

    bytes[1500] ^= 0xff;
    let flipped = Temporary::new(&bytes);
    let (out, error) = print(&flipped.0, |_| {});
    assert_eq!(out.lines().last().unwrap().split_whitespace().next(), Some("1059"));
    assert!(error.unwrap().contains("is damaged at offset 1494:"));
}

#[test]
fn preallocated_space_is_a_clean_end_and_a_hole_is_not() {
    let mut bytes = std::fs::read(fixture("mariadb-none.binlog")).unwrap();
    let end = bytes.len();
    bytes.resize(end + (1 << 20), 0);
    let (out, error) = print(&Temporary::new(&bytes).0, |_| {});
    assert_eq!((out.lines().last(), error), (Some("# preallocated space from offset 649"), None));
    bytes.push(1);
    let (_, error) = print(&Temporary::new(&bytes).0, |_| {});
    let error = error.unwrap();
    assert!(error.contains("at offset 649: zeros, but other bytes again"), "{error}");
}

#[test]
fn other_files_and_no_files_are_named_in_the_message() {
    let text = Temporary::new(b"root:x:0:0:root:/root:/bin/bash\n");
    let (_, error) = print(&text.0, |_| {});
    assert!(error.unwrap().ends_with("offset 0: not a binary log: bad magic number"));
    let (_, error) = print(Path::new("/nowhere/binlog.000001"), |_| {});
    assert_eq!(error.unwrap(), "/nowhere/binlog.000001 does not exist");
}
