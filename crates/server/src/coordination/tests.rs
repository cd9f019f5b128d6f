//! Administration and housekeeping over real log files and an engine that is a map.
#![allow(clippy::unwrap_used)]

#[path = "../../../commit/tests/support/mod.rs"]
mod support;

use super::housekeeping::{Distance, Keeper};
use super::{CoordinatorAdmin, FailureWatch, Housekeeping, HousekeepingSettings, LogLimits};
use crate::log_admin::{LogAdmin, LogEvent};
use crate::sysvars::VarValue;
use omnibus_commit::{CommitSettings, Coordinator};
use omnibus_engine::{CommitNo, Engine};
use omnibus_log::{LogPosition, TailReader};
use omnibus_sql::SqlError;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use support::{MapEngine, open_engine, request};

struct World {
    coordinator: Arc<Coordinator>,
    engine: Arc<MapEngine>,
    admin: CoordinatorAdmin,
    limits: Arc<LogLimits>,
    failures: Arc<FailureWatch>,
    stops: mpsc::Receiver<String>,
}

fn world(path: &Path) -> World {
    let (sender, stops) = mpsc::channel();
    let failures = FailureWatch::new(Box::new(move |why| sender.send(why.to_owned()).unwrap()));
    let engine = MapEngine::lazy();
    // One write at a time whatever the device does, so that no padding stands between transactions.
    let settings = CommitSettings { fast_sync_us: u64::MAX.into(), ..CommitSettings::default() };
    let server = open_engine(path, 1 << 20, settings, engine, failures.on_log_failure());
    let coordinator = Arc::new(server.coordinator);
    let limits = Arc::new(LogLimits::default());
    let admin = CoordinatorAdmin::new(
        coordinator.clone(),
        limits.clone(),
        failures.clone(),
        omnibus_encryption::Encryption::over(omnibus_log::Disk::default(), None),
        omnibus_encryption::TableEncryption::open(omnibus_log::Disk::default(), path, None, false).unwrap(),
    );
    World { coordinator, engine: server.engine, admin, limits, failures, stops }
}

impl World {
    fn commit(&self, key: &str) {
        self.coordinator.commit(request(&self.coordinator, key, &"v".repeat(500))).wait().unwrap();
    }

    /// Files 1 to 5, one transaction in each of the first four.
    fn five_files(&self) {
        for key in ["a", "b", "c", "d"] {
            self.commit(key);
            self.admin.rotate().unwrap();
        }
    }

    fn events(
        &self,
        file: Option<&str>,
        from: u64,
        skip: usize,
        count: usize,
    ) -> Result<Vec<LogEvent>, SqlError> {
        let mut found = Vec::new();
        self.admin.events(file, from, &mut |event| {
            found.push(event);
            Ok(found.len() < skip.saturating_add(count))
        })?;
        Ok(found.into_iter().skip(skip).take(count).collect())
    }

    fn names(&self) -> Vec<String> {
        self.admin.files().unwrap().into_iter().map(|file| file.name).collect()
    }

    fn keeper(&self, settings: HousekeepingSettings) -> Keeper {
        Keeper::new(self.coordinator.clone(), self.limits.clone(), self.failures.clone(), settings)
    }

    fn set(&self, name: &str, value: VarValue) {
        self.admin.set_variable(name, &value).unwrap();
    }

    fn counter(&self, name: &str) -> String {
        let lines = self.admin.counters();
        lines.into_iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no {name}")).1
    }
}

fn text(value: &str) -> VarValue {
    VarValue::Str(value.into())
}

#[test]
fn status_and_files_agree_with_what_is_on_disk() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path());
    world.commit("a");
    let before = world.admin.status();
    world.commit("b");
    let after = world.admin.status();
    assert!(before.file == "binlog.000001" && after.position > before.position);
    let files = world.admin.files().unwrap();
    assert_eq!((files[0].size, files.len()), (after.position, 1), "the active file up to its durable end");
    world.admin.rotate().unwrap();
    assert_eq!(world.admin.status().file, "binlog.000002");
    let files = world.admin.files().unwrap();
    assert_eq!(files[0].size, std::fs::metadata(dir.path().join("binlog.000001")).unwrap().len());
    assert!(world.admin.gtid_executed().ends_with(":1-2"));
}

#[test]
fn events_can_be_read_from_any_event_on_and_from_no_other_offset() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path());
    world.commit("a");
    world.admin.rotate().unwrap();
    world.commit("b");
    let all = world.events(None, 4, 0, usize::MAX).unwrap();
    let kinds: Vec<&str> = all.iter().map(|event| event.kind.as_str()).collect();
    // The file's beginning, and the group's.
    let head = ["Format_desc", "Previous_gtids", "Ignorable", "Ignorable"];
    let rest = ["Gtid", "Query", "Rows_query", "Xid", "Rotate"];
    assert_eq!(kinds, [&head[..], &rest[..]].concat());
    assert_eq!(all[0].info, "Server ver: 8.4.0-omnibus, Binlog ver: 4");
    assert_eq!(all.last().unwrap().info, "binlog.000002;pos=4");
    assert!(all.windows(2).all(|pair| pair[0].end == pair[1].position));
    assert!(all.iter().all(|event| event.file == "binlog.000001" && event.server_id == 7));
    for (n, event) in all.iter().enumerate() {
        let from = world.events(Some("binlog.000001"), event.position, 0, usize::MAX).unwrap();
        assert_eq!(from, all[n..]);
        let wrong = world.events(Some("binlog.000001"), event.position + 1, 0, 1).unwrap_err();
        assert_eq!(wrong.code, 1220);
    }
    assert_eq!(world.events(None, 4, 2, 3).unwrap(), all[2..5]);
    assert_eq!(world.events(None, 0, 0, 1).unwrap(), all[..1]);
    let stopped = world.admin.events(None, 4, &mut |_| Err(SqlError::query_interrupted()));
    assert_eq!(stopped.unwrap_err().code, 1317);
    let end = world.admin.status();
    assert!(world.events(Some(&end.file), end.position, 0, 9).unwrap().is_empty());
    for (file, from) in
        [(end.file.as_str(), end.position + 1), ("binlog.000009", 4), ("x", 4), ("binlog.000001", 1 << 40)]
    {
        assert_eq!(world.events(Some(file), from, 0, 9).unwrap_err().code, 1220, "{file} {from}");
    }
}

#[test]
fn a_purge_checkpoints_the_engine_rather_than_keep_files_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path());
    world.five_files();
    assert_eq!(world.admin.purge_to("binlog.000009").unwrap_err().code, 1373);
    assert_eq!(world.admin.purge_to("nonsense").unwrap_err().code, 1373);
    world.admin.purge_to("binlog.000001").unwrap();
    assert_eq!((world.names().len(), world.engine.checkpoints.load(Ordering::SeqCst)), (5, 0));
    world.admin.purge_to("./binlog.000003").unwrap();
    assert_eq!(world.names(), ["binlog.000003", "binlog.000004", "binlog.000005"]);
    assert_eq!(world.engine.persisted(), CommitNo(4), "PURGE-1");
    assert!(world.admin.gtid_purged().ends_with(":1-2"));
    // A broken engine can not persist: then nothing goes, and the client is told.
    world.commit("e");
    world.admin.rotate().unwrap();
    *world.engine.broken.lock().unwrap() = Some("broken".into());
    assert_eq!(world.admin.purge_to("binlog.000006").unwrap_err().code, 1030);
    assert_eq!(world.names(), ["binlog.000005", "binlog.000006"], "what nobody needs is gone all the same");
}

#[test]
fn a_purge_that_meets_a_reader_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path());
    world.five_files();
    let position = LogPosition::new(omnibus_log::FileSeq(3), 4);
    let reader = TailReader::open(world.coordinator.log().files(), position).unwrap();
    let warning = world.admin.purge_to("binlog.000005").unwrap().unwrap();
    assert_eq!(warning.code, 1867);
    assert!(warning.message.contains("binlog.000003 is being read; 2 files"), "{}", warning.message);
    assert_eq!(world.names()[0], "binlog.000003");
    drop(reader);
    match world.admin.purge_before(i64::MAX / 2) {
        Ok(warning) => assert!(warning.is_none(), "{warning:?}"),
        Err(error) => assert_eq!(error.code, 1210),
    }
    let soon = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() + 60;
    world.admin.purge_before(i64::try_from(soon).unwrap()).unwrap();
    assert_eq!(world.names(), ["binlog.000005"], "the active file stays");
    world.admin.purge_before(-1).unwrap();
}

#[test]
fn a_reset_starts_numbers_and_gtids_again() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path());
    world.five_files();
    world.admin.purge_to("binlog.000003").unwrap();
    assert!(!world.admin.gtid_purged().is_empty());
    world.admin.reset(None).unwrap();
    assert_eq!(world.names(), ["binlog.000001"]);
    assert_eq!((world.admin.gtid_executed(), world.admin.gtid_purged()), (String::new(), String::new()));
    world.commit("e");
    assert!(world.admin.gtid_executed().ends_with(":1"));
    let events = world.events(None, 4, 4, 1).unwrap();
    assert!(events[0].info.ends_with(":1'"), "{}", events[0].info);
    world.admin.reset(Some(12)).unwrap();
    assert_eq!(world.admin.status().file, "binlog.000012");
    for wrong in [0, 1 << 31, u64::MAX] {
        assert_eq!(world.admin.reset(Some(wrong)).unwrap_err().code, 3567);
    }
    assert_eq!(world.names(), ["binlog.000012"]);
}

#[test]
fn variables_act() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path());
    let (settings, caches) = (world.coordinator.settings(), world.coordinator.cache_settings());
    world.set("sync_binlog", VarValue::UInt(5));
    world.set("binlog_group_commit_sync_delay", VarValue::UInt(6));
    world.set("binlog_group_commit_sync_no_delay_count", VarValue::UInt(7));
    world.set("binlog_max_flush_queue_time", VarValue::UInt(8));
    world.set("binlog_order_commits", VarValue::Bool(false));
    world.set("binlog_cache_size", VarValue::UInt(4096));
    world.set("max_binlog_cache_size", VarValue::UInt(8192));
    let values = [
        &settings.sync_binlog,
        &settings.sync_delay_us,
        &settings.sync_no_delay_count,
        &settings.max_flush_queue_time_us,
        &caches.cache_size,
        &caches.max_cache_size,
    ];
    assert_eq!(values.map(|value| value.load(Ordering::Relaxed)), [5, 6, 7, 8, 4096, 8192]);
    assert!(!settings.order_commits.load(Ordering::Relaxed));
    world.set("sync_binlog", VarValue::UInt(1));
    world.set("max_connections", VarValue::UInt(1));

    world.set("binlog_checksum", text("CRC32"));
    assert_eq!(world.names().len(), 1, "the same value needs no new file");
    world.set("binlog_checksum", text("NONE"));
    world.set("server_id", VarValue::UInt(99));
    world.admin.rotate().unwrap();
    world.commit("a");
    assert_eq!(world.names().len(), 3);
    let bytes = std::fs::read(dir.path().join("binlog.000003")).unwrap();
    let size = u32::from_le_bytes(bytes[4 + 9..4 + 13].try_into().unwrap()) as usize;
    let checksum = omnibus_format::FormatDescription::checksum_of_event(&bytes[4..4 + size]).unwrap();
    assert_eq!(checksum, Some(omnibus_format::Checksum::None));
    let events = world.events(Some("binlog.000003"), 4, 0, 1).unwrap();
    assert_eq!(events[0].server_id, 99);

    world.set("max_binlog_size", VarValue::UInt(4096));
    for n in 0..20 {
        world.commit(&n.to_string());
    }
    assert!(world.names().len() > 4);
    world.set("binlog_expire_logs_seconds", VarValue::UInt(10));
    assert_eq!(world.limits.expire_after(), Some(Duration::from_secs(10)));
    world.set("binlog_space_limit", VarValue::UInt(1000));
    assert_eq!(world.limits.total_bytes(), Some(1000));
    world.set("binlog_expire_logs_auto_purge", VarValue::Bool(false));
    assert_eq!((world.limits.expire_after(), world.limits.total_bytes()), (None, None));
}

#[test]
fn counters_count() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path());
    for n in 0..3 {
        world.commit(&n.to_string());
    }
    assert_eq!(
        (world.counter("Binlog_commits"), world.counter("Binlog_cache_use")),
        ("3".into(), "3".into())
    );
    assert_eq!(world.counter("Binlog_group_size_le_1"), "3");
    assert!(world.counter("Binlog_syncs").parse::<u64>().unwrap() >= 3);
    assert!(world.counter("Binlog_bytes_written").parse::<u64>().unwrap() > 1500);
    assert_eq!(world.counter("Binlog_snapshot_file"), "binlog.000001");
    assert_eq!(world.counter("Binlog_snapshot_position"), world.admin.status().position.to_string());
    assert_eq!(world.counter("Lsm_persisted_commit"), "0");
    assert!(world.counter("Binlog_group_commit_sync_us_p99").parse::<u64>().unwrap() > 0);
    let names: Vec<String> = world.admin.counters().into_iter().map(|(name, _)| name).collect();
    let mut unique = names.clone();
    unique.sort();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
}

#[test]
fn housekeeping_purges_by_size_at_a_rotation_and_by_age_after_a_while() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path());
    let mut keeper = world.keeper(HousekeepingSettings::default());
    let start = Instant::now();
    keeper.round(start);
    world.five_files();
    world.set("binlog_space_limit", VarValue::UInt(2500));
    keeper.round(start);
    let kept: u64 = world.admin.files().unwrap().iter().map(|file| file.size).sum();
    assert!(kept <= 2500 && world.names().len() > 1, "{kept} bytes in {:?}", world.names());
    let before = world.names();
    world.set("binlog_space_limit", VarValue::UInt(1));
    keeper.round(start + Duration::from_secs(59));
    assert_eq!(world.names(), before, "no rotation, and not a minute yet");
    keeper.round(start + Duration::from_secs(60));
    assert_eq!(world.names(), ["binlog.000005"]);

    world.set("binlog_space_limit", VarValue::UInt(0));
    world.commit("e");
    world.admin.rotate().unwrap();
    let old = std::time::SystemTime::now() - Duration::from_secs(3);
    world.set("binlog_expire_logs_seconds", VarValue::UInt(3600));
    keeper.round(start + Duration::from_secs(200));
    assert_eq!(world.names(), ["binlog.000005", "binlog.000006"], "finished after {old:?}");
}

#[test]
fn a_log_that_runs_ahead_of_the_engine_calls_for_a_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path());
    let settings = HousekeepingSettings { checkpoint_bytes: 10_000, ..HousekeepingSettings::default() };
    let mut keeper = world.keeper(settings);
    let now = Instant::now();
    for n in 0..100 {
        world.commit(&n.to_string());
        keeper.round(now);
    }
    // About 800 bytes each.
    let done = world.engine.checkpoints.load(Ordering::SeqCst);
    assert!((5..=12).contains(&done), "{done} checkpoints in 80 kB");
    assert!(world.engine.persisted() > CommitNo(80));
    drop(keeper);
    assert!(world.stops.try_recv().is_err());
}

#[test]
fn distance_counts_from_the_newest_sample_that_is_persistent() {
    let mut distance = Distance::new(640, 100);
    assert_eq!(distance.behind(CommitNo(0), CommitNo(1), 0), 100, "what lay behind before");
    assert_eq!(distance.behind(CommitNo(0), CommitNo(5), 300), 400);
    assert_eq!(distance.behind(CommitNo(0), CommitNo(9), 500), 600);
    assert_eq!(distance.behind(CommitNo(6), CommitNo(9), 500), 200, "number 5 was at 400");
    assert_eq!(distance.behind(CommitNo(9), CommitNo(9), 500), 0);
    assert_eq!(distance.behind(CommitNo(9), CommitNo(10), 530), 30);
}

#[test]
fn a_failed_engine_stops_the_server_once() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path());
    *world.engine.broken.lock().unwrap() = Some("no space left on the moon".into());
    let settings = HousekeepingSettings { tick: Duration::from_millis(1), ..HousekeepingSettings::default() };
    let (a, b, c) = (world.coordinator.clone(), world.limits.clone(), world.failures.clone());
    let housekeeping = Housekeeping::start(a, b, c, settings).unwrap();
    let why = world.stops.recv_timeout(Duration::from_secs(120)).unwrap();
    assert!(why.contains("the storage engine failed: no space left on the moon"), "{why}");
    assert_eq!(world.failures.stopped_because(), Some(why));
    let started = Instant::now();
    housekeeping.stop();
    assert!(started.elapsed() < Duration::from_secs(60));
    assert!(world.stops.try_recv().is_err(), "asked once");
}

/// Makes the next new file impossible: a directory has its name.
fn break_rotation(world: &World, dir: &Path) {
    let next = world.coordinator.log().files().durable_end().get().file.next().unwrap();
    std::fs::create_dir(dir.join(world.coordinator.log().files().names().log(next))).unwrap();
    assert_eq!(world.admin.rotate().unwrap_err().code, 1598);
}

#[test]
fn a_failed_log_stops_the_server_or_leaves_it_reading() {
    for ignore in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let world = world(dir.path());
        world.commit("a");
        world.set("binlog_error_action", text(if ignore { "IGNORE_ERROR" } else { "ABORT_SERVER" }));
        break_rotation(&world, dir.path());
        assert!(world.failures.log_failure().is_some());
        let refused = world.coordinator.commit(request(&world.coordinator, "b", "v")).wait();
        assert!(refused.is_err(), "nothing is written without the log");
        assert!(world.coordinator.engine().snapshot(CommitNo(1)).get(b"a").unwrap().is_some(), "reads go on");
        if ignore {
            assert_eq!(world.failures.stopped_because(), None);
            assert!(world.stops.try_recv().is_err());
        } else {
            let why = world.stops.recv_timeout(Duration::from_secs(120)).unwrap();
            assert!(why.contains("ABORT_SERVER") && why.contains("binlog.000002"), "{why}");
        }
        assert_eq!(world.admin.rotate().unwrap_err().code, 1598);
        assert_eq!(world.admin.reset(None).unwrap_err().code, 1598);
        assert!(world.admin.gtid_executed().ends_with(":1"));
    }
}

#[test]
fn damage_in_a_finished_file_is_found_before_anybody_needs_it() {
    let dir = tempfile::tempdir().unwrap();
    let world = world(dir.path());
    world.five_files();
    world.coordinator.log().files().wait_for_background();
    world.set("binlog_verify_interval", VarValue::UInt(60));
    let mut keeper = world.keeper(HousekeepingSettings::default());
    let start = Instant::now();
    let rounds = |keeper: &mut Keeper, minute: u64| {
        keeper.round(start + Duration::from_secs(60 * minute));
        (world.counter("Binlog_verify_files"), world.counter("Binlog_verify_damaged"))
    };
    assert_eq!(rounds(&mut keeper, 0), ("0".into(), "0".into()), "what was just recovered was just read");
    assert_eq!(rounds(&mut keeper, 1), ("4".into(), "0".into()));
    let file = dir.path().join("binlog.000002");
    let mut bytes = std::fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    assert_eq!(rounds(&mut keeper, 2), ("7".into(), "1".into()));
    world.set("binlog_verify_interval", VarValue::UInt(0));
    assert_eq!(rounds(&mut keeper, 3), ("7".into(), "1".into()));
}
