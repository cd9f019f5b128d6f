//! An independent decoder reads what this crate wrote (LOG-1). Needs `mariadb-binlog` or `mysqlbinlog`; without one the
//! test says so and passes.

use super::*;
use std::process::Command;

fn decode(args: &[&str], file: &Path) -> Option<(bool, String)> {
    let tool = ["mariadb-binlog", "mysqlbinlog"]
        .into_iter()
        .find(|tool| Command::new(tool).arg("-V").output().is_ok());
    let Some(tool) = tool else {
        eprintln!("no mariadb-binlog or mysqlbinlog here");
        return None;
    };
    let output = Command::new(tool).arg("--verify-binlog-checksum").args(args).arg(file).output().unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Some((output.status.success(), text))
}

#[test]
fn finished_and_recovered_files_and_the_active_one_up_to_its_end_are_read_by_standard_tools() {
    for method in METHODS {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = start(dir.path(), config(method));
        for gno in 1..=3 {
            commit(&mut writer, gno, 5000).unwrap();
        }
        rotate(&mut writer).unwrap();
        let end = commit(&mut writer, 4, 50).unwrap().offset.0;
        let file = |seq: u32| dir.path().join(FileNames::new("binlog").log(FileSeq(seq)));
        let Some((read, text)) = decode(&[], &file(1)) else { return };
        assert!(
            read && text.matches("Xid = ").count() == 3 && text.contains("Rotate to binlog.000002"),
            "{text}"
        );
        assert!(!text.contains("not closed properly"), "{text}");
        let (read, text) = decode(&[&format!("--stop-position={end}")], &file(2)).unwrap();
        assert!(read && text.contains("Xid = 4"), "{text}");
        append(&mut writer, 5, 50);
        drop(writer);
        recover(dir.path());
        let (read, text) = decode(&[], &file(2)).unwrap();
        assert!(read && text.matches("Xid = ").count() == 1, "{text}");
    }
}

#[test]
fn every_way_of_writing_can_be_measured() {
    let dir = tempfile::tempdir().unwrap();
    for space in [Allocation::Append, Allocation::Reserved, Allocation::ZeroFilled] {
        for method in METHODS {
            assert_eq!(measure_sync(dir.path(), space, SyncCall::Method(method), 700, 5).unwrap().len(), 5);
        }
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing is left behind");
}
