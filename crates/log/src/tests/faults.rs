//! A failure at each step, and a kill before and after each step, of a rotation, a purge and a start (INDEX-1, INDEX-2).

use super::*;

/// Starts, commits, rotates twice, purges, closes; stops at the first error. Gives the number acknowledged last.
fn life(path: &Path, faults: &Faults, prepared: bool) -> u64 {
    if prepared {
        let pool = path.join("pre-allocated-binlog");
        fs::create_dir_all(&pool).unwrap();
        fs::write(pool.join("empty.000001"), vec![0; 1 << 20]).unwrap();
        fs::write(pool.join("empty.000002"), vec![0; 1 << 20]).unwrap();
    }
    // With prepared files the spare tails are long enough to be cut in the background.
    let cut_later = if prepared { 1 << 18 } else { 4 << 20 };
    let config = LogConfig { faults: faults.clone(), cut_later, ..config(FlushMethod::ODirectDsync) };
    let mut acknowledged = 0;
    let mut log = None;
    let run = || -> Result<(), Box<dyn std::error::Error>> {
        let mut writer = LogWriter::start(LogDir::open(path, config)?, &head())?;
        log = Some(writer.handle());
        for gno in 1..=9 {
            commit(&mut writer, gno, 500)?;
            acknowledged = gno;
            if gno % 3 == 0 && gno < 9 {
                rotate(&mut writer)?;
            }
        }
        let log = writer.handle();
        log.purge_to(FileSeq(2), || Ok(FileSeq(2)))?;
        log.wait_for_background();
        close(&mut writer)?;
        Ok(())
    };
    let _ = run();
    if let Some(log) = log {
        log.wait_for_background();
    }
    acknowledged
}

/// Checks the state after any crash: a purge of the first file (1 to 3) may have happened; otherwise everything
/// acknowledged is there, at most one unacknowledged transaction, too, and the directory has no stray files.
fn check(path: &Path, acknowledged: u64, what: &str) {
    let (found, _) = recover(path);
    let last = found.last().copied().unwrap_or(0);
    assert!(last == acknowledged || last == acknowledged + 1, "{what}: {found:?} after {acknowledged}");
    let first = found.first().copied().unwrap_or(1);
    assert!(first == 1 || (first == 4 && acknowledged == 9), "{what}: {found:?}");
    assert_eq!(found, (first..=last).collect::<Vec<_>>(), "{what}: no gap");
    // A second life continues, and leaves index and directory in agreement.
    let mut writer = start(path, config(FlushMethod::ODirectDsync));
    commit(&mut writer, last + 1, 10).unwrap();
    writer.handle().wait_for_background();
    close(&mut writer).unwrap();
    drop(writer);
    let (again, tail) = recover(path);
    assert_eq!(again, (first..=last + 1).collect::<Vec<_>>(), "{what}: second life");
    assert!(!tail.unwrap().needs_truncation(), "{what}");
    let mut names: Vec<String> = fs::read_dir(path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "pre-allocated-binlog" && !name.ends_with(".tmp"))
        .collect();
    names.sort();
    let index = fs::read_to_string(path.join("binlog.index")).unwrap();
    let mut expected: Vec<String> =
        index.lines().map(|line| line.trim_start_matches("./").to_owned()).collect();
    expected.push("binlog.index".to_owned());
    assert_eq!(names, expected, "{what}: index and directory agree");
}

#[test]
fn a_kill_before_or_after_any_step_loses_nothing_and_leaves_no_orphan() {
    let mut reached = std::collections::BTreeSet::new();
    for &point in Point::ALL {
        for action in [Action::CrashBefore, Action::CrashAfter] {
            for prepared in [false, true] {
                let dir = tempfile::tempdir().unwrap();
                let faults = Faults::default();
                faults.plant(point, action);
                let acknowledged = life(dir.path(), &faults, prepared);
                reached.extend(faults.passed());
                check(
                    dir.path(),
                    acknowledged,
                    &format!("{action:?} at {} prepared {prepared}", point.name()),
                );
            }
        }
    }
    // Removing an orphan is a step of the next start; it has its own test below. So have promoted files, elsewhere. A write-through method never syncs.
    let missing: Vec<_> = Point::ALL.iter().filter(|point| !reached.contains(point)).collect();
    let elsewhere = [
        Point::JobSync,
        Point::FileExtendSync,
        Point::PromoteRename,
        Point::FinishCopyRename,
        Point::OrphanRemove,
    ];
    assert!(missing.into_iter().eq(&elsewhere));
}

/// The same, but the n-th time that a point is passed: the first passes of a point are those of the start.
#[test]
fn a_kill_at_any_step_of_the_second_rotation_is_safe() {
    for prepared in [false, true] {
        let steps = {
            let dir = tempfile::tempdir().unwrap();
            let faults = Faults::default();
            life(dir.path(), &faults, prepared);
            faults.passed().len()
        };
        assert!(steps > 40);
        at_once(steps, |step| {
            let dir = tempfile::tempdir().unwrap();
            let faults = Faults::default();
            faults.crash_at_step(step);
            let acknowledged = life(dir.path(), &faults, prepared);
            check(dir.path(), acknowledged, &format!("step {step} prepared {prepared}"));
        });
    }
}

#[test]
fn a_long_spare_tail_is_cut_after_the_rotation_or_by_the_next_start() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    let pool = dir.path().join("pre-allocated-binlog");
    fs::create_dir_all(&pool).unwrap();
    for number in 1..=2 {
        fs::write(pool.join(format!("empty.00000{number}")), vec![0; 1 << 20]).unwrap();
    }
    let settings =
        LogConfig { faults: faults.clone(), cut_later: 1 << 18, ..config(FlushMethod::ODirectDsync) };
    let mut writer = start(dir.path(), settings);
    let log = writer.handle();
    commit(&mut writer, 1, 10).unwrap();
    rotate(&mut writer).unwrap();
    log.wait_for_background();
    assert_eq!(file_len(dir.path(), "binlog.000001"), log.list()[0].size);
    faults.plant(Point::FinishTruncate, Action::Fail(IO_ERROR));
    commit(&mut writer, 2, 10).unwrap();
    let before = TailReader::open(&log, LogPosition::new(FileSeq(2), 4)).unwrap();
    rotate(&mut writer).unwrap();
    commit(&mut writer, 3, 10).unwrap();
    log.wait_for_background();
    assert_eq!(file_len(dir.path(), "binlog.000002"), 1 << 20, "the cut failed; nothing else did");
    // A reader goes by the recorded end of the file.
    let mut reader = before;
    while !matches!(reader.next().unwrap(), TailNext::CaughtUp) {}
    assert_eq!(reader.position(), writer.position());
    let size = log.list()[1].size;
    drop(writer);
    assert_eq!(recover(dir.path()).0, [1, 2, 3]);
    assert_eq!(file_len(dir.path(), "binlog.000002"), size);
}

#[test]
fn a_kill_while_an_orphan_is_removed_is_safe() {
    for action in [Action::CrashBefore, Action::CrashAfter] {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        faults.plant(Point::FileNameSync, Action::CrashBefore);
        life(dir.path(), &faults, false);
        assert!(dir.path().join("binlog.000001").exists());
        faults.clear();
        faults.plant(Point::OrphanRemove, action);
        life(dir.path(), &faults, false);
        check(dir.path(), 0, "orphan");
    }
}

#[test]
fn a_failed_write_or_sync_poisons_the_log_for_good() {
    let cases = [
        (FlushMethod::ODirectDsync, Point::JobWrite, Action::Fail(IO_ERROR)),
        (FlushMethod::ODsync, Point::JobWrite, Action::Fail(DISK_FULL)),
        (FlushMethod::Fdatasync, Point::JobSync, Action::Fail(IO_ERROR)),
        (FlushMethod::Fdatasync, Point::JobWrite, Action::Short(10)),
    ];
    for (method, point, action) in cases {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let mut writer = start(dir.path(), LogConfig { faults: faults.clone(), ..config(method) });
        commit(&mut writer, 1, 10).unwrap();
        faults.plant(point, action);
        let first = commit(&mut writer, 2, 10).unwrap_err();
        assert!(first.to_string().contains("binlog.000001"), "{first}");
        faults.clear();
        // The device is fine again; the log is not.
        append(&mut writer, 3, 10);
        for error in [
            writer.seal().run().unwrap_err(),
            writer.seal().run_without_sync().unwrap_err(),
            writer.seal().sync_only().unwrap_err(),
            writer.handle().check().unwrap_err(),
        ] {
            assert_eq!(error.to_string(), first.to_string());
        }
        assert!(matches!(rotate(&mut writer), Err(RotateError::Write(_))));
        assert!(matches!(close(&mut writer), Err(RotateError::Write(_))));
        drop(writer);
        assert_eq!(recover(dir.path()).0[0], 1);
    }
}

#[test]
fn a_write_that_finds_the_disk_full_waits_for_space_or_until_nobody_wants_to_wait() {
    for (method, action) in
        [(FlushMethod::ODirectDsync, Action::Fail(DISK_FULL)), (FlushMethod::Fdatasync, Action::Short(10))]
    {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let settings = LogConfig { faults: faults.clone(), room: patient(), ..config(method) };
        let mut writer = start(dir.path(), settings);
        commit(&mut writer, 1, 10).unwrap();
        let attempts = || faults.passed().iter().filter(|&&point| point == Point::JobWrite).count();
        let mut waiting = |gno: u64| {
            faults.clear();
            faults.plant(Point::JobWrite, action);
            append(&mut writer, gno, 10);
            let job = writer.seal();
            let running = std::thread::spawn(move || job.run());
            let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
            while attempts() < 2 && std::time::Instant::now() < deadline {
                std::thread::yield_now();
            }
            assert!(attempts() >= 2 && !running.is_finished(), "{method}: it waits and tries again");
            running
        };
        let there_is_space_again = waiting(2);
        faults.clear();
        there_is_space_again.join().unwrap().unwrap();
        let given_up = waiting(3);
        writer.handle().stop_waiting_for_space();
        assert!(given_up.join().unwrap().is_err());
        drop(writer);
        assert_eq!(recover(dir.path()).0[..2], [1, 2]);
    }
}

#[test]
fn a_rotation_that_finds_the_disk_full_waits_for_space() {
    for point in [Point::FileCreate, Point::IndexWrite, Point::IndexRename] {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let settings =
            LogConfig { faults: faults.clone(), room: patient(), ..config(FlushMethod::Fdatasync) };
        let mut writer = start(dir.path(), settings);
        commit(&mut writer, 1, 10).unwrap();
        faults.clear();
        faults.plant(point, Action::Fail(DISK_FULL));
        std::thread::scope(|scope| {
            let rotating = scope.spawn(|| writer.rotate(&head()).unwrap());
            let attempts = || faults.passed().iter().filter(|&&passed| passed == point).count();
            while attempts() < 2 && !rotating.is_finished() {
                std::thread::yield_now();
            }
            faults.clear();
            rotating.join().unwrap_or_else(|_| panic!("{point:?}: the rotation failed"));
        });
        commit(&mut writer, 2, 10).unwrap();
        drop(writer);
        assert_eq!(recover(dir.path()).0[..2], [1, 2], "{point:?}");
    }
}

#[test]
fn a_disk_too_full_to_extend_still_takes_what_fits() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Faults::default();
    faults.plant(Point::FileExtend, Action::Short(4096));
    let mut writer = start(dir.path(), LogConfig { faults, ..config(FlushMethod::ODirectDsync) });
    for gno in 1..=20 {
        commit(&mut writer, gno, 1000).unwrap();
    }
    drop(writer);
    assert_eq!(recover(dir.path()).0, (1..=20).collect::<Vec<_>>());
}

#[test]
fn rotation_with_a_job_under_way_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    append(&mut writer, 1, 10);
    let job = writer.seal();
    let event = rotate_event(writer.position().offset.0, "binlog.000002");
    writer.buffer().extend_from_slice(&event);
    assert!(matches!(writer.rotate(&head()), Err(RotateError::JobsOutstanding(1))));
    let running = std::thread::spawn(move || job.run());
    writer.wait_idle();
    running.join().unwrap().unwrap();
    let position = writer.rotate(&head()).unwrap();
    assert_eq!(position.file, FileSeq(2));
    assert_eq!(writer.handle().durable_end().get(), position);
    commit(&mut writer, 2, 10).unwrap();
    drop(writer);
    assert_eq!(recover(dir.path()).0, [1, 2]);
}

#[test]
fn unsynced_groups_become_durable_with_the_next_synced_one() {
    for method in METHODS {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let mut writer = start(dir.path(), LogConfig { faults: faults.clone(), ..config(method) });
        append(&mut writer, 1, 10);
        writer.seal().run_without_sync().unwrap();
        let syncs = || faults.passed().iter().filter(|&&point| point == Point::JobSync).count();
        let before = syncs();
        append(&mut writer, 2, 10);
        writer.seal().run().unwrap();
        assert_eq!(
            syncs(),
            before + 1,
            "{method}: a write-through write alone leaves the first in the cache"
        );
        append(&mut writer, 3, 10);
        writer.seal().run_without_sync().unwrap();
        writer.seal().sync_only().unwrap();
        assert_eq!(syncs(), before + 2);
        drop(writer);
        assert_eq!(recover(dir.path()).0, [1, 2, 3]);
    }
}

/// COMMIT-2: the operating system tells one of two syncs of a file that a page of it is lost. Where that is the one that makes the file longer
/// ahead of time, the next job must not find nothing wrong.
#[test]
fn zeros_that_could_not_be_synced_are_a_failure_of_the_log() {
    for (method, point) in
        [(FlushMethod::Fdatasync, Point::FileExtendSync), (FlushMethod::ODsync, Point::FileExtend)]
    {
        let dir = tempfile::tempdir().unwrap();
        let faults = Faults::default();
        let mut writer = start(dir.path(), LogConfig { faults: faults.clone(), ..config(method) });
        commit(&mut writer, 1, 10).unwrap();
        let file = writer.current();
        faults.plant(point, Action::Fail(IO_ERROR));
        file.extend_to(file.allocated() + (1 << 20), 0).unwrap_err();
        faults.clear();
        commit(&mut writer, 2, 10).expect_err("it can not know whether its page was the lost one");
        assert!(writer.handle().check().is_err(), "{method}");
    }
}
