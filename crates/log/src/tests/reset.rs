//! RESET BINARY LOGS: what is left, what readers see, and a kill at every step of it.

use super::*;

/// Transactions 1 and 2 in two files, then a rotation and a reset to `first`, then transaction 3.
fn life(path: &Path, faults: &Faults, first: u32) -> Result<(), Box<dyn std::error::Error>> {
    let settings = LogConfig { faults: faults.clone(), ..config(FlushMethod::ODirectDsync) };
    let mut writer = LogWriter::start(LogDir::open(path, settings)?, &head())?;
    let log = writer.handle();
    commit(&mut writer, 1, 1000)?;
    rotate(&mut writer)?;
    commit(&mut writer, 2, 1000)?;
    writer.can_restart_at(FileSeq(first))?;
    rotate_alone(&mut writer)?;
    let position = writer.restart_at(FileSeq(first), &head())?;
    assert_eq!(position.file, FileSeq(first));
    assert_eq!(log.durable_end().get(), position, "readers start where the new log does");
    let names: Vec<u32> = log.list().iter().map(|file| file.file.0).collect();
    assert_eq!(names, [first]);
    commit(&mut writer, 3, 1000)?;
    close(&mut writer)?;
    log.wait_for_background();
    Ok(())
}

#[test]
fn only_what_came_after_the_reset_is_left() {
    for first in [1, 2, 3, 77] {
        let dir = tempfile::tempdir().unwrap();
        life(dir.path(), &Faults::default(), first).unwrap();
        let mut names: Vec<String> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, [format!("binlog.{first:06}"), "binlog.index".to_owned()]);
        assert_eq!(recover(dir.path()).0, [3], "reset to {first}");
        let writer = start(dir.path(), config(FlushMethod::ODirectDsync));
        assert_eq!(writer.position().file, FileSeq(first + 1));
    }
}

#[test]
fn a_kill_at_any_step_leaves_the_old_log_or_the_new_one() {
    for first in [1, 3, 77] {
        let steps = {
            let dir = tempfile::tempdir().unwrap();
            let faults = Faults::default();
            life(dir.path(), &faults, first).unwrap();
            faults.passed().len()
        };
        assert!(steps > 20);
        at_once(steps, |step| {
            let dir = tempfile::tempdir().unwrap();
            let faults = Faults::default();
            faults.crash_at_step(step);
            let _ = life(dir.path(), &faults, first);
            let (found, _) = recover(dir.path());
            let whole: &[&[u64]] = &[&[], &[1], &[1, 2], &[3]];
            assert!(whole.contains(&found.as_slice()), "to {first}, step {step}: {found:?}");
            // The third file's head says that nothing was executed: it stands behind no other.
            let index = fs::read_to_string(dir.path().join("binlog.index")).unwrap_or_default();
            let alone = index.lines().count() <= 1;
            assert!(alone || index == "./binlog.000001\n./binlog.000002\n", "step {step}: {index}");
            // The next start works, and another reset is not stopped by what this one left.
            let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
            writer.can_restart_at(FileSeq(1)).unwrap();
            rotate_alone(&mut writer).unwrap();
            writer.restart_at(FileSeq(1), &head()).unwrap();
            commit(&mut writer, 4, 10).unwrap();
            close(&mut writer).unwrap();
            writer.handle().wait_for_background();
            drop(writer);
            assert_eq!(recover(dir.path()).0, [4], "to {first}, step {step}");
        });
    }
}

#[test]
fn a_reader_of_the_old_log_is_told_so_and_holds_nothing_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    let log = writer.handle();
    commit(&mut writer, 1, 1000).unwrap();
    let mut old = TailReader::open(&log, LogPosition::new(FileSeq(1), 4)).unwrap();
    assert!(matches!(old.next().unwrap(), TailNext::Event(_)));
    rotate_alone(&mut writer).unwrap();
    writer.restart_at(FileSeq(1), &head()).unwrap();
    commit(&mut writer, 2, 100_000).unwrap();
    assert!(matches!(old.next(), Err(ReadError::NoSuchFile(FileSeq(1)))));
    let new = TailReader::open(&log, LogPosition::new(FileSeq(1), 4)).unwrap();
    drop(old);
    rotate(&mut writer).unwrap();
    let purged = log.purge_to(FileSeq(2), || Ok(FileSeq(2))).unwrap();
    assert_eq!(purged.limit, Some(PurgeLimit::Reader(FileSeq(1))), "the new reader's pin is its own");
    drop(new);
    assert_eq!(log.purge_to(FileSeq(2), || Ok(FileSeq(2))).unwrap().files, [FileSeq(1)]);
}

/// A number is given up twice: with the old files, and with the one that was active alone in between.
#[test]
fn a_pin_taken_during_a_reset_is_of_a_log_that_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let settings = LogConfig { faults: faults.clone(), ..config(FlushMethod::ODirectDsync) };
    let mut writer = start(dir.path(), settings);
    let log = writer.handle();
    rotate_alone(&mut writer).unwrap();
    let (pinned, pin) = std::sync::mpsc::channel();
    let pinning = log.clone();
    faults.when(Point::PurgeListWrite, move || {
        pinned.send(FilePin::new(&pinning, FileSeq(2)).unwrap()).unwrap();
    });
    writer.restart_at(FileSeq(1), &head()).unwrap();
    let pin = pin.recv().unwrap();
    assert!(pin.is_stale(), "file 2 is gone");
    rotate(&mut writer).unwrap();
    let own = FilePin::new(&log, FileSeq(2)).unwrap();
    drop(pin);
    rotate(&mut writer).unwrap();
    let purged = log.purge_to(FileSeq(3), || Ok(FileSeq(3))).unwrap();
    assert_eq!(purged.limit, Some(PurgeLimit::Reader(FileSeq(2))), "PURGE-1: another's pin stays");
    drop(own);
}

/// One file, a reset to 1 and rotations over the names that were just given up; killed at every step.
#[test]
fn names_that_a_reset_gave_up_can_be_used_at_once() {
    let life = |path: &Path, faults: &Faults| -> Result<(), Box<dyn std::error::Error>> {
        let settings = LogConfig { faults: faults.clone(), ..config(FlushMethod::ODirectDsync) };
        let mut writer = LogWriter::start(LogDir::open(path, settings)?, &head())?;
        commit(&mut writer, 1, 10)?;
        for gno in 2..4 {
            rotate_alone(&mut writer)?;
            writer.restart_at(FileSeq(1), &head())?;
            commit(&mut writer, gno, 10)?;
        }
        rotate(&mut writer)?;
        commit(&mut writer, 4, 10)?;
        Ok(())
    };
    let steps = {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        life(dir.path(), &faults).unwrap();
        assert_eq!(recover(dir.path()).0, [3, 4]);
        faults.passed().len()
    };
    at_once(steps, |step| {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        faults.crash_at_step(step);
        let _ = life(dir.path(), &faults);
        let (found, _) = recover(dir.path());
        assert!([&[][..], &[1], &[2], &[3], &[3, 4]].contains(&found.as_slice()), "step {step}: {found:?}");
        let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
        rotate(&mut writer).unwrap();
        rotate(&mut writer).unwrap();
    });
}

#[test]
fn a_foreign_file_in_the_way_is_found_before_anything_changes() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    commit(&mut writer, 1, 10).unwrap();
    fs::copy(dir.path().join("binlog.000001"), dir.path().join("binlog.000009")).unwrap();
    assert!(matches!(writer.can_restart_at(FileSeq(9)), Err(ResetError::InTheWay(_))));
    assert!(matches!(writer.can_restart_at(FileSeq(0)), Err(ResetError::BadNumber(_))));
    assert!(dir.path().join("binlog.000009").exists());
    writer.can_restart_at(FileSeq(1)).unwrap();
}

#[test]
fn a_reset_that_finds_the_disk_full_waits_for_space() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let settings = LogConfig { faults: faults.clone(), room: patient(), ..config(FlushMethod::Fdatasync) };
    let mut writer = start(dir.path(), settings);
    commit(&mut writer, 1, 10).unwrap();
    faults.clear();
    faults.plant(Point::IndexWrite, Action::Fail(DISK_FULL));
    std::thread::scope(|scope| {
        let rotating = scope.spawn(|| rotate_alone(&mut writer).unwrap());
        let attempts = || faults.passed().iter().filter(|&&passed| passed == Point::IndexWrite).count();
        while attempts() < 2 && !rotating.is_finished() {
            std::thread::yield_now();
        }
        faults.clear();
        rotating.join().unwrap();
    });
    writer.restart_at(FileSeq(1), &head()).unwrap();
    commit(&mut writer, 2, 10).unwrap();
    drop(writer);
    assert_eq!(recover(dir.path()).0, [2]);
}
