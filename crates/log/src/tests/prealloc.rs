//! Prepared files: taken by rename, never overwritten, made in the background, refused when not blank.

use super::*;
use std::ops::ControlFlow;

fn pool(path: &Path) -> std::path::PathBuf {
    let pool = path.join("pre-allocated-binlog");
    fs::create_dir_all(&pool).unwrap();
    pool
}

fn prepare(path: &Path, size: u64) -> Result<PreparedReport, PrepareError> {
    prepare_file(&Disk::default(), path, size, Preparation::ZeroFill, &mut |_| ControlFlow::Continue(()))
}

#[test]
fn a_prepared_file_is_all_zeros_of_the_wanted_size() {
    let dir = tempfile::tempdir().unwrap();
    for (size, how) in [
        (3 << 20, Preparation::ZeroFill),
        (5_000_001, Preparation::ZeroFill),
        (1 << 20, Preparation::Reserve),
    ] {
        let path = dir.path().join(format!("empty.{size}"));
        let mut last = 0;
        let report = prepare_file(&Disk::default(), &path, size, how, &mut |progress| {
            last = progress.done;
            ControlFlow::Continue(())
        })
        .unwrap();
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes.len() as u64, size);
        assert!(bytes.iter().all(|&byte| byte == 0));
        if how == Preparation::ZeroFill {
            assert_eq!((report.zero_filled, last), (size, size));
        }
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "no temporary file is left");
}

#[test]
fn an_existing_name_is_never_overwritten_and_a_stop_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("empty.000001");
    fs::write(&path, b"mine").unwrap();
    assert!(matches!(prepare(&path, 8192), Err(PrepareError::Exists(_))));
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    let other = dir.path().join("empty.000002");
    let stopped = prepare_file(&Disk::default(), &other, 4 << 20, Preparation::ZeroFill, &mut |_| {
        ControlFlow::Break(())
    });
    assert!(matches!(stopped, Err(PrepareError::Stopped(_))));
    // The name is taken while the file is being filled.
    let third = dir.path().join("empty.000003");
    let raced = prepare_file(&Disk::default(), &third, 1 << 20, Preparation::ZeroFill, &mut |_| {
        fs::write(&third, b"mine").unwrap();
        ControlFlow::Continue(())
    });
    assert!(matches!(raced, Err(PrepareError::Exists(_))));
    assert_eq!(fs::read(&third).unwrap(), b"mine");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn start_and_rotation_take_the_lowest_prepared_file() {
    let dir = tempfile::tempdir().unwrap();
    for number in [9, 10, 2] {
        prepare(&pool(dir.path()).join(format!("empty.{number:06}")), 1 << 20).unwrap();
    }
    let left = || fs::read_dir(pool(dir.path())).unwrap().count();
    let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    assert!(!pool(dir.path()).join("empty.000002").exists());
    assert_eq!((left(), file_len(dir.path(), "binlog.000001")), (2, 1 << 20));
    commit(&mut writer, 1, 10).unwrap();
    assert_eq!(file_len(dir.path(), "binlog.000001"), 1 << 20, "overwritten in place");
    let end = writer.position().offset.0 + rotate_event(0, "binlog.000002").len() as u64;
    rotate(&mut writer).unwrap();
    assert_eq!(file_len(dir.path(), "binlog.000001"), end, "spare tail cut");
    assert!(!pool(dir.path()).join("empty.000009").exists());
    commit(&mut writer, 2, 10).unwrap();
    drop(writer);
    assert_eq!(recover(dir.path()).0, [1, 2]);
}

#[test]
fn a_file_that_is_not_blank_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    // An old log under a prepared name: its events are at the right offsets and would parse (LOG-2).
    let mut old = b"\xfebin".to_vec();
    old.extend(head());
    old.extend(transaction(old.len() as u64, 77, 10));
    old.resize(8192, 0);
    fs::write(pool(dir.path()).join("empty.000001"), &old).unwrap();
    let mut end_only = vec![0; 8192];
    end_only[8191] = 1;
    fs::write(pool(dir.path()).join("empty.000002"), &end_only).unwrap();
    fs::create_dir(pool(dir.path()).join("empty.000003")).unwrap();
    // And is in the way of none that is blank.
    prepare(&pool(dir.path()).join("empty.000004"), 1 << 20).unwrap();
    let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    assert!(!pool(dir.path()).join("empty.000004").exists(), "it is taken");
    commit(&mut writer, 1, 10).unwrap();
    drop(writer);
    assert_eq!(recover(dir.path()).0, [1]);
    assert_eq!(fs::read(pool(dir.path()).join("empty.000001")).unwrap(), old);
}

#[test]
fn the_background_thread_keeps_files_ready_and_extends_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let settings = LogConfig {
        preallocate: true,
        preallocate_files: 2,
        max_size: 3 << 20,
        extend_ahead: 2 << 20,
        ..config(FlushMethod::ODirectDsync)
    };
    let until = |what: &str, done: &dyn Fn() -> bool| {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(120);
        while !done() {
            assert!(std::time::Instant::now() < deadline, "{what}");
            std::thread::yield_now();
        }
    };
    let stale = pool(dir.path()).join(".empty.000007-1.tmp");
    fs::write(&stale, b"left by a process that is gone").unwrap();
    let mut writer = start(dir.path(), settings);
    until("extended", &|| file_len(dir.path(), "binlog.000001") >= 2 << 20);
    let ready = || {
        let names = fs::read_dir(pool(dir.path())).unwrap();
        names
            .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with("empty."))
            .count()
    };
    until("two ready", &|| ready() == 2);
    assert!(!stale.exists());
    for gno in 1..=400 {
        commit(&mut writer, gno, 20_000).unwrap();
        if writer.needs_rotation() {
            rotate(&mut writer).unwrap();
        }
    }
    until("two ready again", &|| ready() == 2);
    close(&mut writer).unwrap();
    drop(writer);
    assert_eq!(recover(dir.path()).0, (1..=400).collect::<Vec<_>>());
}

/// SPACE-2: work that is called for while somebody makes room is done when that is over.
#[test]
fn a_rotation_while_room_is_made_gets_its_prepared_file_later() {
    let (dir, full) = (tempfile::tempdir().unwrap(), Arc::new(FullDisk::patient()));
    let settings = LogConfig {
        preallocate: true,
        preallocate_files: 1,
        room: Room { reserve: 0, full_disk: Arc::clone(&full) },
        ..config(FlushMethod::Fdatasync)
    };
    // From the start, so that no look of the thread's from before is under way.
    let making = full.make_room();
    let mut writer = start(dir.path(), settings);
    let ready = || {
        let names = fs::read_dir(pool(dir.path())).into_iter().flatten();
        let names = names.map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_str().unwrap().starts_with("empty.")).count()
    };
    let until = |count: usize| {
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while ready() != count && std::time::Instant::now() < deadline {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        ready()
    };
    commit(&mut writer, 1, 10).unwrap();
    rotate(&mut writer).unwrap();
    // Long enough for the thread to have seen the call, were it to lose it.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(ready(), 0, "what room there is is for others");
    drop(making);
    assert_eq!(until(1), 1);
}

#[test]
fn an_ended_file_is_not_made_longer_by_the_background_thread() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = start(dir.path(), config(FlushMethod::ODirectDsync));
    commit(&mut writer, 1, 1000).unwrap();
    let first = writer.current();
    rotate(&mut writer).unwrap();
    let second = writer.current();
    close(&mut writer).unwrap();
    let lengths = || ["binlog.000001", "binlog.000002"].map(|name| file_len(dir.path(), name));
    let before = lengths();
    // What the thread does when it looked at the file just before the rotation.
    for file in [first, second] {
        file.extend_to(8 << 20, 0).unwrap();
    }
    assert_eq!(lengths(), before, "zeros behind the end would disturb other readers of the file");
}

/// The rename was lost with the power, the head that was written after it was not.
#[test]
fn a_prepared_file_that_had_been_taken_makes_room_for_another() {
    let dir = tempfile::tempdir().unwrap();
    let pool = dir.path().join("pre-allocated-binlog");
    fs::create_dir_all(&pool).unwrap();
    let taken = pool.join("empty.000001");
    let mut bytes = [&b"\xfebin"[..], &head()].concat();
    bytes.resize(1 << 20, 0);
    fs::write(&taken, &bytes).unwrap();
    // Somebody's log, on the other hand, stays, and keeps no other from being prepared.
    let whole = [&b"\xfebin"[..], &head(), &transaction(4 + head().len() as u64, 1, 10)].concat();
    fs::write(pool.join("empty.000002"), &whole).unwrap();
    let settings = LogConfig { preallocate: true, ..config(FlushMethod::ODirectDsync) };
    let writer = start(dir.path(), settings);
    assert!(fs::read(&taken).map_or(true, |now| now != bytes), "it is gone, or made anew");
    let prepared = || {
        let names = fs::read_dir(&pool).unwrap().map(|entry| entry.unwrap().path());
        names.filter(|path| fs::read(path).is_ok_and(|bytes| bytes.len() == 1 << 20 && bytes[0] == 0)).count()
    };
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while prepared() == 0 {
        assert!(std::time::Instant::now() < deadline, "another one is prepared");
        std::thread::yield_now();
    }
    drop(writer);
    assert_eq!(fs::read(pool.join("empty.000002")).unwrap(), whole);
}
