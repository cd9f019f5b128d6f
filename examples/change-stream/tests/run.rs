//! The program on files of a real server, and on a log that grows.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

fn fixture() -> PathBuf {
    PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap())
        .join("../../testdata/binlog/mariadb-crc32.binlog")
}

#[test]
fn rows_of_one_table_and_where_to_go_on() {
    let run = |words: &[&str]| {
        let out = Command::new(std::env::var_os("CARGO_BIN_EXE_change-stream").unwrap())
            .args(words)
            .output()
            .unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap()
    };
    let fixture = fixture();
    let file = fixture.to_str().unwrap();
    let kinds = run(&["shop.kinds", file]);
    assert!(kinds.contains("write after {id=1, t=-128, s=65535"), "{kinds}");
    assert!(kinds.contains("n=-12345678901.250"), "{kinds}");
    let place = kinds.lines().find_map(|line| line.strip_prefix("commit 0-3-3 up to ")).unwrap();
    let rest = run(&["shop.kinds", file, "--from", place]);
    assert!(kinds.ends_with(&rest) && rest.len() < kinds.len() && rest.contains("0-3-4"), "{rest}");
    let words = run(&["shop.words", file]);
    assert!(words.contains("statement INSERT INTO words"), "{words}");
    assert_eq!(run(&["other.kinds", file]), "");
}

#[test]
fn a_log_that_grows_is_followed() {
    let bytes = std::fs::read(fixture()).unwrap();
    let folder = std::env::temp_dir().join(format!("change-stream-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // Half of it, then zeros: a file that is being written.
    let mut half = bytes[..2286].to_vec();
    half.resize(64 << 10, 0);
    std::fs::write(folder.join("binlog.000001"), &half).unwrap();
    std::fs::write(folder.join("binlog.index"), "./binlog.000001\n").unwrap();
    let mut child = Command::new(std::env::var_os("CARGO_BIN_EXE_change-stream").unwrap())
        .args(["shop.kinds", "--follow", folder.to_str().unwrap()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut until = |part: &str| lines.find(|line| line.contains(part)).unwrap();
    until("commit 0-3-3 up to binlog.000001:2286");
    std::fs::write(folder.join("binlog.000001"), &bytes).unwrap();
    std::fs::write(folder.join("binlog.000002"), &bytes).unwrap();
    std::fs::write(folder.join("binlog.index"), "./binlog.000001\n./binlog.000002\n").unwrap();
    until("commit 0-3-4 up to binlog.000001:");
    until("commit 0-3-3 up to binlog.000002:2286");
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
