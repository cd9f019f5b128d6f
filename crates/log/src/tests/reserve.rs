//! The reserve for a full disk.

use super::*;

const SIZE: u64 = 8 << 20;

fn reserved(dir: &Path, size: u64, full: &Arc<FullDisk>) -> LogHandle {
    start(
        dir,
        LogConfig {
            room: Room { reserve: size, full_disk: Arc::clone(full) },
            ..config(FlushMethod::Fdatasync)
        },
    )
    .handle()
}

#[test]
fn the_reserve_is_made_given_back_in_two_steps_and_made_anew() {
    let (dir, full) = (tempfile::tempdir().unwrap(), Arc::new(FullDisk::patient()));
    let log = reserved(dir.path(), SIZE, &full);
    assert_eq!(log.reserve_bytes(), 0);
    log.keep_reserve();
    assert_eq!(log.reserve_bytes(), SIZE);
    // SPACE-2: nothing is made while somebody makes room, or waits for it.
    let making = full.make_room();
    assert!(log.give_back_room().unwrap());
    log.keep_reserve();
    assert_eq!(log.reserve_bytes(), 4 << 20, "what starts are to have is left");
    log.restore_reserve();
    assert_eq!(log.reserve_bytes(), SIZE, "who makes room has it again before others");
    assert!(log.give_back_room().unwrap());
    drop(making);
    full.waits("somebody", &"can not write: no room");
    log.keep_reserve();
    assert!(log.give_back_room().unwrap() && !log.give_back_room().unwrap());
    full.goes_on("somebody", true);
    assert_eq!(log.reserve_bytes(), 0);
    log.keep_reserve();
    assert_eq!(log.reserve_bytes(), SIZE);
    drop(log);
    // Another size, and a crash between its two steps.
    let log = reserved(dir.path(), SIZE / 2, &full);
    log.keep_reserve();
    assert_eq!(log.reserve_bytes(), SIZE / 2);
}

#[test]
fn no_commit_takes_what_somebody_makes_room_with() {
    // SPACE-2
    let (dir, full, faults) =
        (tempfile::tempdir().unwrap(), Arc::new(FullDisk::patient()), Faults::default());
    let settings = LogConfig {
        faults: faults.clone(),
        room: Room { reserve: 0, full_disk: Arc::clone(&full) },
        ..config(FlushMethod::Fdatasync)
    };
    let mut writer = start(dir.path(), settings);
    faults.plant(Point::JobWrite, Action::Fail(DISK_FULL));
    append(&mut writer, 1, 10);
    let job = writer.seal();
    let running = std::thread::spawn(move || job.run());
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !full.is_full() && std::time::Instant::now() < deadline {
        std::thread::yield_now();
    }
    let making = full.make_room();
    faults.clear();
    std::thread::sleep(std::time::Duration::from_millis(1200));
    assert!(!running.is_finished(), "it waits until room was made");
    drop(making);
    running.join().unwrap().unwrap();
    assert!(!full.is_full() && full.times() == 1);
}
