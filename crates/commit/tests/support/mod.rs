//! A coordinator on real files over an engine that is a plain map. The replayed "transaction" is the
//! ROWS_QUERY text `key=value`.
#![allow(clippy::unwrap_used, missing_docs, dead_code)]

use bytes::Bytes;
use omnibus_commit::*;
use omnibus_engine::{CommitNo, Engine, EngineError, EngineStats, FrozenRows, Snapshot, SpaceId, WriteSet};
use omnibus_format::events::{Query, RowsQuery, Xid};
use omnibus_format::{Checksum, Dialect, EventType, ServerUuid};
use omnibus_log::{LogConfig, LogDir};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Default)]
pub struct MapEngine {
    pub rows: Mutex<BTreeMap<Bytes, Bytes>>,
    installed: AtomicU64,
    committed: AtomicU64,
    applied: u64,
    /// Persists only at a checkpoint, as an engine with a memtable does; else at once.
    pub lazy: bool,
    kept: Mutex<(u64, BTreeMap<Bytes, Bytes>)>,
    pub checkpoints: AtomicU64,
    pub broken: Mutex<Option<String>>,
}

impl MapEngine {
    /// One that persists only at a checkpoint.
    pub fn lazy() -> MapEngine {
        MapEngine { lazy: true, ..MapEngine::default() }
    }

    /// Returns the engine that a crash now would leave.
    pub fn after_crash(&self) -> MapEngine {
        let (applied, rows) = self.kept.lock().unwrap().clone();
        MapEngine {
            applied,
            installed: AtomicU64::new(applied),
            committed: AtomicU64::new(applied),
            rows: Mutex::new(rows.clone()),
            kept: Mutex::new((applied, rows)),
            ..MapEngine::lazy()
        }
    }
}

impl Engine for MapEngine {
    fn name(&self) -> &'static str {
        "MAP"
    }
    fn applied(&self) -> CommitNo {
        CommitNo(self.applied)
    }
    fn prepare_ordered(&self, no: CommitNo, writes: WriteSet) {
        let before = self.installed.swap(no.0, Ordering::SeqCst);
        assert!(before < no.0, "COMMIT-1: installed in order");
        let mut rows = self.rows.lock().unwrap();
        for (key, write) in writes.into_sorted().map(Result::unwrap) {
            match write {
                Some(value) => rows.insert(key, value),
                None => rows.remove(&key),
            };
        }
    }
    fn commit_ordered(&self, up_to: CommitNo) {
        assert!(self.committed.swap(up_to.0, Ordering::SeqCst) <= up_to.0);
    }
    fn snapshot(&self, _at: CommitNo) -> Box<dyn Snapshot> {
        Box::new(FrozenRows(self.rows.lock().unwrap().clone()))
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
        self.checkpoints.fetch_add(1, Ordering::SeqCst);
        if self.broken.lock().unwrap().is_some() {
            return Err(EngineError::Corrupt { engine: "map", detail: "broken".into() });
        }
        let committed = self.committed.load(Ordering::SeqCst);
        *self.kept.lock().unwrap() = (committed, self.rows.lock().unwrap().clone());
        Ok(self.persisted())
    }
    fn persisted(&self) -> CommitNo {
        let kept = self.kept.lock().unwrap().0;
        CommitNo(if self.lazy { kept } else { self.committed.load(Ordering::SeqCst) })
    }
    fn failure(&self) -> Option<String> {
        self.broken.lock().unwrap().clone()
    }
    fn stats(&self) -> EngineStats {
        EngineStats::default()
    }
}

/// Turns `key=value` back into a write.
#[derive(Default)]
pub struct Texts {
    seen: Vec<u64>,
    /// Of a large transaction that has not ended yet.
    begun: WriteSet,
}

impl Texts {
    fn take(&mut self, events: &[ReplayEvent]) -> Result<(), String> {
        for event in events {
            let text = match event.event_type {
                EventType::ROWS_QUERY => RowsQuery::decode(&event.body).map_err(|error| error.to_string())?.0,
                EventType::MARIADB_ANNOTATE_ROWS => &event.body,
                _ => continue,
            };
            let at = text.iter().position(|byte| *byte == b'=').ok_or("no =")?;
            self.begun.put(Bytes::copy_from_slice(&text[..at]), Bytes::copy_from_slice(&text[at + 1..]));
        }
        Ok(())
    }
}

impl Replay for Texts {
    fn transaction(&mut self, no: CommitNo, events: &[ReplayEvent]) -> Result<Replayed, String> {
        self.seen.push(no.0);
        self.take(events)?;
        Ok(Replayed::Writes(std::mem::take(&mut self.begun)))
    }

    fn part(&mut self, _: CommitNo, events: &[ReplayEvent]) -> Result<(), String> {
        self.take(events)
    }

    fn forget(&mut self) {
        self.begun = WriteSet::default();
    }
}

pub struct Server {
    pub coordinator: Coordinator,
    pub recovered: Recovered,
    pub replayed: Vec<u64>,
    pub engine: Arc<MapEngine>,
}

pub fn open(path: &Path, max_size: u64) -> Server {
    open_with(path, max_size, CommitSettings::default())
}

pub fn open_with(path: &Path, max_size: u64, settings: CommitSettings) -> Server {
    open_engine(path, max_size, settings, MapEngine::default(), Box::new(|_| {}))
}

pub fn open_engine(
    path: &Path,
    max_size: u64,
    settings: CommitSettings,
    engine: MapEngine,
    on_failure: OnFailure,
) -> Server {
    open_dialect(path, max_size, settings, engine, on_failure, Dialect::Mysql)
}

pub fn open_dialect(
    path: &Path,
    max_size: u64,
    settings: CommitSettings,
    engine: MapEngine,
    on_failure: OnFailure,
    dialect: Dialect,
) -> Server {
    let config = LogConfig { max_size, ..LogConfig::default() };
    let engine = Arc::new(engine);
    let dir = LogDir::open(path, config).unwrap();
    let mut texts = Texts::default();
    let recovered = recover(&dir, engine.as_ref(), &mut texts).unwrap();
    let identity = LogIdentity {
        server_id: 7,
        uuid: ServerUuid([9; 16]),
        version: match dialect {
            Dialect::Mysql => "8.4.0-omnibus".to_owned(),
            Dialect::Mariadb => "11.4.5-MariaDB-omnibus".to_owned(),
        },
        dialect,
    };
    let shared: Arc<dyn Engine> = engine.clone();
    let (env, appender) =
        LogEnv::start(dir, &recovered, identity, Checksum::Crc32, shared.clone(), on_failure).unwrap();
    let coordinator = Coordinator::start(
        shared,
        env,
        appender,
        &recovered,
        Arc::new(settings),
        Arc::new(CacheSettings { dialect, ..CacheSettings::new(path.to_path_buf()) }),
    )
    .unwrap();
    Server { coordinator, recovered, replayed: texts.seen, engine }
}

/// Ends a server as a crash does: nothing is closed, and from here on it changes no file.
///
/// Its threads live on, as those of a killed process do not. Acknowledging the last commit is not the last thing they do:
/// a file that became full is followed by the next one after that, which would be while the next server starts in the
/// same directory. So the log is stopped for ever at a moment when nothing is under way.
pub fn crash(coordinator: Coordinator) {
    let (stopped, when_stopped) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        coordinator.with_quiet_log(|log, _| {
            log.files().wait_for_background();
            stopped.send(()).unwrap();
            loop {
                std::thread::park();
            }
        })
    });
    when_stopped.recv().expect("the log works, or there is nothing to stop");
}

pub fn request(coordinator: &Coordinator, key: &str, value: &str) -> CommitRequest {
    request_rows(coordinator, &[(key.to_owned(), value.to_owned())], true)
}

/// One of several rows; one that is not logged has no more than those.
pub fn request_rows(coordinator: &Coordinator, rows: &[(String, String)], logged: bool) -> CommitRequest {
    let mut cache = coordinator.new_cache();
    cache.set_context(1_700_000_000, 7);
    let mut body = Vec::new();
    let begin =
        Query { thread_id: 1, exec_time: 0, error_code: 0, status: &[], database: b"", sql: b"BEGIN" };
    begin.encode(&mut body);
    if logged {
        cache.append_event(EventType::QUERY.0, 0, &body).unwrap();
    }
    let mut writes = WriteSet::default();
    for (key, value) in rows {
        body.clear();
        RowsQuery(format!("{key}={value}").as_bytes()).encode(&mut body);
        cache.append_event(EventType::ROWS_QUERY.0, 0x80, &body).unwrap();
        writes.put(Bytes::copy_from_slice(key.as_bytes()), Bytes::copy_from_slice(value.as_bytes()));
    }
    body.clear();
    Xid(1).encode(&mut body);
    if logged {
        cache.append_event(EventType::XID.0, 0, &body).unwrap();
    }
    CommitRequest {
        cache,
        writes,
        logged,
        commit_timestamp_us: 1_700_000_000_000_000,
        xid: None,
        prepared: false,
        staged: None,
        awaited: false,
        inline: false,
        on_durable: None,
        on_ordered: None,
    }
}
