//! The coordinator on real files: what is committed is in the log, in order, and comes back.
//! The engine here is a plain map; the replayed "transaction" is the ROWS_QUERY text `key=value`.
#![allow(clippy::unwrap_used, missing_docs)]

use bytes::Bytes;
use omnibus_commit::*;
use omnibus_engine::{CommitNo, Engine, EngineError, EngineStats, Snapshot, SnapshotIter, SpaceId, WriteSet};
use omnibus_format::events::{Query, RowsQuery, Xid};
use omnibus_format::{Checksum, EventType, ServerUuid};
use omnibus_log::{LogConfig, LogDir};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct MapEngine {
    rows: Mutex<BTreeMap<Bytes, Bytes>>,
    installed: AtomicU64,
    committed: AtomicU64,
    applied: u64,
}

impl Engine for MapEngine {
    fn name(&self) -> &'static str {
        "MAP"
    }
    fn applied(&self) -> CommitNo {
        CommitNo(self.applied)
    }
    fn prepare_ordered(&self, no: CommitNo, writes: &WriteSet) {
        let before = self.installed.swap(no.0, Ordering::SeqCst);
        assert!(before < no.0, "COMMIT-1: installed in order");
        let mut rows = self.rows.lock().unwrap();
        for (key, write) in writes.iter() {
            match write {
                Some(value) => rows.insert(key.clone(), value.clone()),
                None => rows.remove(key),
            };
        }
    }
    fn commit_ordered(&self, up_to: CommitNo) {
        assert!(self.committed.swap(up_to.0, Ordering::SeqCst) <= up_to.0);
    }
    fn snapshot(&self, _at: CommitNo) -> Box<dyn Snapshot> {
        Box::new(Frozen(self.rows.lock().unwrap().clone()))
    }
    fn load(&self, _: CommitNo, _: &mut dyn Iterator<Item = (Bytes, Bytes)>) -> Result<(), EngineError> {
        Ok(())
    }
    fn drop_space(&self, _: SpaceId, _: CommitNo) {}
    fn gc_watermark(&self, _: CommitNo) {}
    fn write_stall(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
    fn checkpoint(&self) -> Result<CommitNo, EngineError> {
        Ok(self.persisted())
    }
    fn persisted(&self) -> CommitNo {
        CommitNo(self.committed.load(Ordering::SeqCst))
    }
    fn failure(&self) -> Option<String> {
        None
    }
    fn stats(&self) -> EngineStats {
        EngineStats::default()
    }
}

struct Frozen(BTreeMap<Bytes, Bytes>);

impl Snapshot for Frozen {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        Ok(self.0.get(key).cloned())
    }
    fn get_version(&self, key: &[u8]) -> Result<Option<(CommitNo, Bytes)>, EngineError> {
        Ok(self.0.get(key).map(|value| (CommitNo::ZERO, value.clone())))
    }
    fn scan<'a>(&'a self, _: Bound<&[u8]>, _: Bound<&[u8]>, _: bool) -> SnapshotIter<'a> {
        Box::new(self.0.iter().map(|(k, v)| Ok((k.clone(), v.clone()))))
    }
}

/// Turns `key=value` back into a write.
#[derive(Default)]
struct Texts {
    seen: Vec<u64>,
}

impl Replay for Texts {
    fn transaction(&mut self, no: CommitNo, events: &[ReplayEvent]) -> Result<WriteSet, String> {
        self.seen.push(no.0);
        let mut writes = WriteSet::default();
        for event in events.iter().filter(|event| event.event_type == EventType::ROWS_QUERY) {
            let text = RowsQuery::decode(&event.body).map_err(|error| error.to_string())?.0;
            let at = text.iter().position(|byte| *byte == b'=').ok_or("no =")?;
            writes.put(Bytes::copy_from_slice(&text[..at]), Bytes::copy_from_slice(&text[at + 1..]));
        }
        Ok(writes)
    }
}

struct Server {
    coordinator: Coordinator,
    recovered: Recovered,
    replayed: Vec<u64>,
    engine: Arc<MapEngine>,
}

fn open(path: &Path, max_size: u64) -> Server {
    let config = LogConfig { max_size, ..LogConfig::default() };
    let engine = Arc::new(MapEngine::default());
    let dir = LogDir::open(path, config).unwrap();
    let mut texts = Texts::default();
    let recovered = recover(&dir, engine.as_ref(), &mut texts).unwrap();
    let identity =
        LogIdentity { server_id: 7, uuid: ServerUuid([9; 16]), version: "8.4.0-omnibus".to_owned() };
    let shared: Arc<dyn Engine> = engine.clone();
    let (env, appender) =
        LogEnv::start(dir, &recovered, identity, Checksum::Crc32, shared.clone(), Box::new(|_| {})).unwrap();
    let coordinator = Coordinator::start(
        shared,
        env,
        appender,
        recovered.last,
        Arc::new(CommitSettings::default()),
        Arc::new(CacheSettings::new(path.to_path_buf())),
    )
    .unwrap();
    Server { coordinator, recovered, replayed: texts.seen, engine }
}

fn request(coordinator: &Coordinator, key: &str, value: &str) -> CommitRequest {
    let mut cache = coordinator.new_cache();
    cache.set_context(1_700_000_000, 7);
    let mut body = Vec::new();
    let begin = Query { thread_id: 1, exec_time: 0, error_code: 0, status: &[], database: b"", sql: b"BEGIN" };
    begin.encode(&mut body);
    cache.append_event(EventType::QUERY.0, 0, &body).unwrap();
    body.clear();
    RowsQuery(format!("{key}={value}").as_bytes()).encode(&mut body);
    cache.append_event(EventType::ROWS_QUERY.0, 0x80, &body).unwrap();
    body.clear();
    Xid(1).encode(&mut body);
    cache.append_event(EventType::XID.0, 0, &body).unwrap();
    let mut writes = WriteSet::default();
    writes.put(Bytes::copy_from_slice(key.as_bytes()), Bytes::copy_from_slice(value.as_bytes()));
    CommitRequest { cache, writes, logged: true, commit_timestamp_us: 1_700_000_000_000_000, on_ordered: None }
}

fn commit_many(server: &Server, threads: usize, each: usize) {
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                for n in 0..each {
                    let value = "v".repeat(n % 300);
                    let request = request(&server.coordinator, &format!("{thread}-{n}"), &value);
                    server.coordinator.commit_inline(request).wait().unwrap();
                }
            });
        }
    });
}

#[test]
fn what_was_committed_comes_back_after_a_crash_and_after_a_clean_stop() {
    let dir = tempfile::tempdir().unwrap();
    let server = open(dir.path(), 64 << 10);
    commit_many(&server, 8, 100);
    let expected = server.engine.rows.lock().unwrap().clone();
    let (number, position) = server.coordinator.published().place();
    assert_eq!(number, CommitNo(800));
    assert!(position.file.0 > 1, "small files rotate");
    // A crash: nothing is closed. The writer's threads end with the process in real life.
    std::mem::forget(server.coordinator);

    let server = open(dir.path(), 64 << 10);
    assert_eq!(server.recovered.last, CommitNo(800));
    assert_eq!(server.replayed, (1..=800).collect::<Vec<u64>>(), "RECOVER-2: all, in order, once");
    assert_eq!(*server.engine.rows.lock().unwrap(), expected, "RECOVER-2");
    assert_eq!(server.recovered.executed.count(), 800);
    commit_many(&server, 2, 10);
    server.coordinator.close().unwrap();
    assert!(server.coordinator.commit(request(&server.coordinator, "late", "")).wait().is_err());

    let server = open(dir.path(), 64 << 10);
    assert_eq!(server.recovered.last, CommitNo(820));
    server.coordinator.close().unwrap();
}

#[test]
fn groups_without_gtid_keep_their_number() {
    let dir = tempfile::tempdir().unwrap();
    let server = open(dir.path(), 1 << 20);
    commit_many(&server, 1, 3);
    let mut private = request(&server.coordinator, "p", "q");
    private.cache.clear();
    private.cache.set_context(0, 7);
    private.cache.append_event(EventType::IGNORABLE.0, 0x80, b"OMNI\x01\x01something").unwrap();
    private.logged = false;
    assert_eq!(server.coordinator.commit(private).wait().unwrap(), CommitNo(4));
    commit_many(&server, 1, 3);
    std::mem::forget(server.coordinator);
    let server = open(dir.path(), 1 << 20);
    assert_eq!(server.replayed, vec![1, 2, 3, 4, 5, 6, 7]);
    assert!(!server.recovered.executed.contains(ServerUuid([9; 16]), 4));
    assert_eq!(server.recovered.executed.count(), 6);
    server.coordinator.close().unwrap();
}

#[test]
fn the_log_reads_with_the_standard_tool() {
    let dir = tempfile::tempdir().unwrap();
    let server = open(dir.path(), 32 << 10);
    commit_many(&server, 4, 50);
    // Larger than a piece, and spilled: goes through the file in pieces.
    let mut big = request(&server.coordinator, "big", "");
    big.cache.clear();
    big.cache.set_context(1_700_000_000, 7);
    let mut body = Vec::new();
    let begin = Query { thread_id: 1, exec_time: 0, error_code: 0, status: &[], database: b"", sql: b"BEGIN" };
    begin.encode(&mut body);
    big.cache.append_event(EventType::QUERY.0, 0, &body).unwrap();
    for n in 0..500 {
        body.clear();
        RowsQuery(format!("big{n}={}", "x".repeat(10_000)).as_bytes()).encode(&mut body);
        big.cache.append_event(EventType::ROWS_QUERY.0, 0x80, &body).unwrap();
    }
    body.clear();
    Xid(1).encode(&mut body);
    big.cache.append_event(EventType::XID.0, 0, &body).unwrap();
    assert!(big.cache.spilled() > 4_000_000);
    server.coordinator.commit(big).wait().unwrap();
    server.coordinator.close().unwrap();

    let mut files: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with("binlog.0"));
    files.sort();
    assert!(files.len() > 2);
    for file in &files {
        let read = std::process::Command::new("mariadb-binlog")
            .args(["--no-defaults", "--verify-binlog-checksum"])
            .arg(file)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&read.stderr).into_owned();
        assert!(read.status.success() && !errors.contains("ERROR"), "LOG-1: {}: {errors}", file.display());
    }
    let server = open(dir.path(), 32 << 10);
    assert_eq!(server.recovered.last, CommitNo(201));
    server.coordinator.close().unwrap();
}
