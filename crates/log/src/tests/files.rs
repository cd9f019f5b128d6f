//! The index against the directory, names, and the lock.

use super::*;

fn log_with_three_files(path: &Path) {
    let mut writer = start(path, config(FlushMethod::ODirectDsync));
    commit(&mut writer, 1, 10).unwrap();
    rotate(&mut writer).unwrap();
    commit(&mut writer, 2, 10).unwrap();
    rotate(&mut writer).unwrap();
    commit(&mut writer, 3, 10).unwrap();
    close(&mut writer).unwrap();
}

#[test]
fn a_rotated_file_ends_with_its_rotate_event_and_nothing_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    log_with_three_files(dir.path());
    let opened = LogDir::open(dir.path(), LogConfig::default()).unwrap();
    for (seq, next) in [(1, "binlog.000002"), (2, "binlog.000003")] {
        let mut file = opened.read(FileSeq(seq)).unwrap();
        let mut last = None;
        let end = loop {
            match file.next().unwrap() {
                Next::Event(event) => last = Some((event.header.event_type, event.body.to_vec())),
                Next::End(end) => break end,
            }
        };
        let (kind, body) = last.unwrap();
        assert_eq!(kind, EventType::ROTATE);
        assert_eq!(Rotate::decode(&body).unwrap().file, next.as_bytes());
        let len = file_len(dir.path(), &format!("binlog.00000{seq}"));
        assert_eq!(end, ScanEnd::Clean(LogPosition::new(FileSeq(seq), len)));
        assert_eq!(fs::read(opened.path_of(FileSeq(seq))).unwrap()[4 + 17] & 1, 0, "not in use any more");
    }
}

/// RECOVER-1: a crash between two steps of a cut may leave any number of zeros, also fewer than an event's header has.
#[test]
fn however_little_of_a_spare_tail_is_left_the_next_start_cuts_it() {
    let dir = tempfile::tempdir().unwrap();
    log_with_three_files(dir.path());
    let path = dir.path().join("binlog.000001");
    let end = fs::metadata(&path).unwrap().len();
    for spare in (0..40).chain([511, 512, 513, 5000]) {
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(end + spare).unwrap();
        let opened = LogDir::open(dir.path(), LogConfig::default()).unwrap();
        assert_eq!(file_len(dir.path(), "binlog.000001"), end, "{spare} zeros behind the end");
        assert_eq!(numbers(&opened, FileSeq(1)).0, [1, 2, 3]);
    }
}

#[test]
fn a_lost_index_is_made_again_from_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    log_with_three_files(dir.path());
    fs::remove_file(dir.path().join("binlog.index")).unwrap();
    let opened = LogDir::open(dir.path(), LogConfig::default()).unwrap();
    assert_eq!(opened.files(), [FileSeq(1), FileSeq(2), FileSeq(3)]);
    assert_eq!(recover(dir.path()).0, [1, 2, 3]);
}

#[test]
fn an_index_that_contradicts_itself_or_the_directory_is_an_error_that_names_the_line() {
    let cases: [(&str, &str); 4] = [
        ("./binlog.000001\n./binlog.000003\n", "has binlog.000003 right after binlog.000001"),
        ("./binlog.000001\n../../etc/passwd\n", "line 2"),
        ("./binlog.000001\n./binlog.000002\n./binlog.000003\n./binlog.000004\n", "binlog.000004"),
        ("./binlog.000001\n./binlog.000002\n", "binlog.000003 holds transactions"),
    ];
    for (index, message) in cases {
        let dir = tempfile::tempdir().unwrap();
        log_with_three_files(dir.path());
        fs::write(dir.path().join("binlog.index"), index).unwrap();
        let error = LogDir::open(dir.path(), LogConfig::default()).unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
        assert!(dir.path().join("binlog.000003").exists());
    }
}

#[test]
fn names_are_read_as_they_are_written() {
    let names = FileNames::new("log-bin.1");
    for seq in [1, 999_999, 1_000_000, 0x7FFF_FFFF] {
        assert_eq!(names.parse(&names.log(FileSeq(seq))), Some(FileSeq(seq)));
    }
    assert_eq!(names.log(FileSeq(12)), "log-bin.1.000012");
    assert_eq!(names.parse("/var/lib/log-bin.1.000012"), Some(FileSeq(12)));
    for bad in
        ["log-bin.1.000000", "log-bin.1.12", "log-bin.1.0000012", "log-bin.1.00001x", "other.000001", "", "/"]
    {
        assert_eq!(names.parse(bad), None, "{bad}");
    }
    assert_eq!(FileSeq::MAX.next(), None);
}

#[test]
fn a_second_owner_of_the_directory_is_told_who_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let lock = DirLock::acquire(dir.path()).unwrap();
    let error = DirLock::acquire(dir.path()).unwrap_err();
    assert!(error.to_string().ends_with(&format!("is in use by process {}", std::process::id())), "{error}");
    drop(lock);
    DirLock::acquire(dir.path()).unwrap();
}

#[test]
fn positions_are_ordered_by_file_then_offset() {
    let at = |file, offset| LogPosition::new(FileSeq(file), offset);
    assert!(at(1, 900) < at(2, 4) && at(2, 4) < at(2, 5));
}
