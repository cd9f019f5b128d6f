//! Purge, its limits (PURGE-1), and listing.

use super::*;
use std::time::{Duration, SystemTime};

fn five_files(path: &Path) -> LogWriter {
    let mut writer = start(path, config(FlushMethod::ODirectDsync));
    for gno in 1..=4 {
        commit(&mut writer, gno, 1000).unwrap();
        rotate(&mut writer).unwrap();
    }
    commit(&mut writer, 5, 1000).unwrap();
    writer
}

fn seqs(log: &LogHandle) -> Vec<u32> {
    log.list().iter().map(|file| file.file.0).collect()
}

#[test]
fn the_list_shows_sizes_without_the_space_prepared_behind_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let writer = five_files(dir.path());
    let list = writer.handle().list();
    assert_eq!(list.len(), 5);
    for file in &list[..4] {
        assert_eq!(file.size, file_len(dir.path(), &file.name));
        assert!(!file.active);
    }
    assert!(list[4].active);
    assert_eq!(list[4].size, writer.position().offset.0);
    assert!(file_len(dir.path(), "binlog.000005") > list[4].size);
}

#[test]
fn purge_stops_at_what_recovery_a_reader_or_the_writer_needs() {
    let dir = tempfile::tempdir().unwrap();
    let writer = five_files(dir.path());
    let log = writer.handle();
    let none = log.purge_to(FileSeq(1), || Ok(FileSeq(5))).unwrap();
    assert_eq!(none, Purged::default());
    let purged = log.purge_to(FileSeq(4), || Ok(FileSeq(2))).unwrap();
    assert_eq!(purged, Purged { files: vec![FileSeq(1)], limit: Some(PurgeLimit::Recovery(FileSeq(2))) });
    let reader = TailReader::open(&log, LogPosition::new(FileSeq(3), 4)).unwrap();
    let purged = log.purge_to(FileSeq(5), || Ok(FileSeq(5))).unwrap();
    assert_eq!(purged, Purged { files: vec![FileSeq(2)], limit: Some(PurgeLimit::Reader(FileSeq(3))) });
    drop(reader);
    let future = SystemTime::now() + Duration::from_secs(60);
    let purged = log.purge_before(future, || Ok(FileSeq(99))).unwrap();
    assert_eq!(purged.files, [FileSeq(3), FileSeq(4)]);
    assert!(seqs(&log) == [5]);
    assert!(matches!(log.purge_to(FileSeq(3), || Ok(FileSeq(5))), Err(PurgeError::NoSuchFile(FileSeq(3)))));
    log.wait_for_background();
    for gone in 1..=4 {
        assert!(!dir.path().join(format!("binlog.00000{gone}")).exists());
    }
    assert!(!dir.path().join("binlog.purge").exists());
    assert_eq!(fs::read_to_string(dir.path().join("binlog.index")).unwrap(), "./binlog.000005\n");
}

#[test]
fn purge_by_size_takes_the_oldest_until_the_rest_fits() {
    let dir = tempfile::tempdir().unwrap();
    let writer = five_files(dir.path());
    let log = writer.handle();
    let keep: u64 = log.list()[3..].iter().map(|file| file.size).sum();
    assert_eq!(log.purge_to_total(keep, || Ok(FileSeq(5))).unwrap().files.len(), 3);
    assert_eq!(seqs(&log), [4, 5]);
    assert!(log.purge_to_total(keep, || Ok(FileSeq(5))).unwrap().files.is_empty());
}

#[test]
fn numbers_go_on_after_a_purge_and_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = five_files(dir.path());
    writer.handle().purge_to(FileSeq(5), || Ok(FileSeq(5))).unwrap();
    writer.handle().wait_for_background();
    close(&mut writer).unwrap();
    drop(writer);
    let writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    assert_eq!(seqs(&writer.handle()), [5, 6]);
}

/// With the list gone and a deletion not durable a file would be left that nothing names.
#[test]
fn the_list_of_files_to_delete_goes_when_the_deletions_are_durable() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let mut writer =
        start(dir.path(), LogConfig { faults: faults.clone(), ..config(FlushMethod::ODirectDsync) });
    rotate(&mut writer).unwrap();
    faults.clear();
    writer.handle().purge_to(FileSeq(2), || Ok(FileSeq(2))).unwrap();
    writer.handle().wait_for_background();
    let passed = faults.passed();
    let from = passed.iter().position(|point| *point == Point::PurgeRemove).unwrap();
    assert_eq!(passed[from..], [Point::PurgeRemove, Point::PurgeDirSync, Point::PurgeListRemove]);
}

/// A purge is what makes room: a prepared file's is taken for what it has to write. Without one it fails, and nothing has happened.
#[test]
fn a_purge_on_a_full_disk_takes_the_room_of_a_prepared_file_or_changes_nothing() {
    for point in [Point::PurgeListWrite, Point::IndexWrite] {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let mut writer =
            start(dir.path(), LogConfig { faults: faults.clone(), ..config(FlushMethod::ODirectDsync) });
        commit(&mut writer, 1, 10).unwrap();
        rotate(&mut writer).unwrap();
        let log = writer.handle();
        faults.plant(point, Action::Fail(DISK_FULL));
        let failed = log.purge_to(FileSeq(2), || Ok(FileSeq(2))).unwrap_err();
        assert!(matches!(failed, PurgeError::Io(_)), "{failed}");
        assert_eq!(seqs(&log), [1, 2]);
        let pool = dir.path().join("pre-allocated-binlog");
        fs::create_dir_all(&pool).unwrap();
        let (prepared, whose) = (pool.join("empty.000001"), pool.join("empty.000002"));
        fs::write(&prepared, vec![0; 8192]).unwrap();
        fs::write(&whose, b"somebody's").unwrap();
        // There is room once it is gone.
        faults.plant(point, Action::Fail(DISK_FULL));
        let (prepared_now, room) = (prepared.clone(), faults.clone());
        std::thread::scope(|scope| {
            let deadline = std::time::Instant::now() + Duration::from_secs(30);
            scope.spawn(move || {
                while prepared_now.exists() && std::time::Instant::now() < deadline {
                    std::thread::yield_now();
                }
                room.clear();
            });
            // That thread may come late to say that there is.
            while log.purge_to(FileSeq(2), || Ok(FileSeq(2))).is_err() {
                assert!(std::time::Instant::now() < deadline && !prepared.exists(), "it is in the way");
                std::thread::yield_now();
            }
        });
        assert_eq!(seqs(&log), [2], "{point:?}");
        assert!(!prepared.exists() && whose.exists());
    }
}
