//! Writing, closing, reopening.

use super::*;

#[test]
fn what_was_committed_is_read_back_in_every_method() {
    for method in METHODS {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = start(dir.path(), config(method));
        for gno in 1..=50 {
            commit(&mut writer, gno, 100 * gno as usize).unwrap();
        }
        close(&mut writer).unwrap();
        let end = writer.position();
        drop(writer);
        let (found, tail) = recover(dir.path());
        assert_eq!(found, (1..=50).collect::<Vec<_>>(), "{method}");
        let tail = tail.unwrap();
        assert!(!tail.needs_truncation() && tail.torn.is_none());
        assert_eq!(tail.end, end);
        assert_eq!(file_len(dir.path(), "binlog.000001"), end.offset.0);
    }
}

#[test]
fn a_kill_leaves_a_tail_of_zeros_and_the_next_start_a_new_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    for gno in 1..=3 {
        commit(&mut writer, gno, 10).unwrap();
    }
    append(&mut writer, 4, 10);
    drop(writer);
    let (found, tail) = recover(dir.path());
    assert_eq!(found, [1, 2, 3]);
    assert_eq!(tail.unwrap().torn, Some(TornReason::Preallocated));
    let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    assert_eq!(writer.file_name(), "binlog.000002");
    commit(&mut writer, 4, 10).unwrap();
    close(&mut writer).unwrap();
    assert_eq!(recover(dir.path()).0, [1, 2, 3, 4]);
    assert_eq!(
        fs::read_to_string(dir.path().join("binlog.index")).unwrap(),
        "./binlog.000001\n./binlog.000002\n"
    );
}
