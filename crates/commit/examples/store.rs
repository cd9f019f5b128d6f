//! The commit path without a server: a store of keys and values in memory whose only file is the log, for a program to copy.
//!
//! `cargo run -p omnibus-commit --example store -- DIR` replays what is in DIR's log, and prints it; with `KEY VALUE` behind it, it
//! first commits that. A store that keeps more than fits in memory writes itself out: see [`Engine::checkpoint`], and
//! `omnibus-engine-lsm` for one that does.
#![allow(missing_docs)]

use bytes::Bytes;
use omnibus_commit::*;
use omnibus_engine::{CommitNo, Engine, EngineError, EngineStats, FrozenRows, Snapshot, SpaceId, WriteSet};
use omnibus_format::events::{Query, RowsQuery, Xid};
use omnibus_format::{Checksum, Dialect, EventType, ServerUuid};
use omnibus_log::{LogConfig, LogDir};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Readers that do not know the event pass over it.
const IGNORABLE: u16 = 0x80;

type Rows = BTreeMap<Bytes, Bytes>;

/// A map as the engine. It persists nothing, so every start replays the log from its beginning.
#[derive(Default)]
struct Map(Mutex<Rows>);

impl Map {
    fn rows(&self) -> Rows {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Engine for Map {
    fn name(&self) -> &'static str {
        "MAP"
    }
    /// Called for each transaction in the order of the log, before it is durable; also by recovery.
    fn prepare_ordered(&self, _: CommitNo, writes: WriteSet) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let writes = writes.into_writes().expect("this program never moves a write set to a file");
        for (key, write) in writes {
            match write {
                Some(value) => rows.insert(key, value),
                None => rows.remove(&key),
            };
        }
    }
    /// Learns that everything up to this number is durable: only that may be written elsewhere.
    fn commit_ordered(&self, _: CommitNo) {}
    /// Up to which commit the engine needs no log: from there on recovery replays.
    fn applied(&self) -> CommitNo {
        CommitNo(0)
    }
    fn persisted(&self) -> CommitNo {
        CommitNo(0)
    }
    fn checkpoint(&self) -> Result<CommitNo, EngineError> {
        Ok(self.persisted())
    }
    fn snapshot(&self, _: CommitNo) -> Box<dyn Snapshot> {
        Box::new(FrozenRows(self.rows()))
    }
    fn load(&self, _: CommitNo, _: &mut dyn Iterator<Item = (Bytes, Bytes)>) -> Result<(), EngineError> {
        Ok(())
    }
    fn drop_space(&self, _: SpaceId, _: CommitNo) {}
    fn gc_watermark(&self, _: CommitNo) {}
    fn write_stall(&self) -> Duration {
        Duration::ZERO
    }
    fn failure(&self) -> Option<String> {
        None
    }
    fn stats(&self) -> EngineStats {
        EngineStats::default()
    }
}

/// Recovery: makes writes of a transaction's events again. Here the event is one that every reader of binary logs shows as text.
struct Replayer;

impl Replay for Replayer {
    fn transaction(&mut self, _: CommitNo, events: &[ReplayEvent]) -> Result<Replayed, String> {
        let mut writes = WriteSet::default();
        for event in events.iter().filter(|event| event.event_type == EventType::ROWS_QUERY) {
            let text = RowsQuery::decode(&event.body).map_err(|error| error.to_string())?.0;
            let at = text.iter().position(|byte| *byte == b'=').ok_or("no =")?;
            writes.put(Bytes::copy_from_slice(&text[..at]), Bytes::copy_from_slice(&text[at + 1..]));
        }
        Ok(Replayed::Writes(writes))
    }
    /// Only transactions that are larger than `CacheSettings` allows come in parts; none of ours does.
    fn part(&mut self, _: CommitNo, _: &[ReplayEvent]) -> Result<(), String> {
        Err("a transaction in parts".into())
    }
    fn forget(&mut self) {}
}

/// Opens the log, replays it into the engine, and starts the pipeline behind it.
fn open(folder: &Path, map: &Arc<Map>) -> Result<Coordinator, Box<dyn Error>> {
    let log = LogDir::open(folder, LogConfig::default())?;
    let recovered = recover(&log, map.as_ref(), &mut Replayer)?;
    let identity = LogIdentity {
        server_id: 1,
        uuid: ServerUuid(*b"a store of a map"),
        // Readers of binary logs take from it what the events look like: whether they have checksums, for one.
        version: "8.4.0-store".to_owned(),
        dialect: Dialect::Mysql,
    };
    let engine: Arc<dyn Engine> = map.clone();
    // A log that fails takes nothing more; a program that has nothing else to do ends.
    let on_failure = Box::new(|why: &str| eprintln!("the log has failed: {why}"));
    let (env, appender) =
        LogEnv::start(log, &recovered, identity, Checksum::Crc32, engine.clone(), on_failure)?;
    let caches = Arc::new(CacheSettings::new(folder.to_owned()));
    Ok(Coordinator::start(engine, env, appender, &recovered, Arc::new(CommitSettings::default()), caches)?)
}

/// A transaction: its events as they will be in the log, and its writes. The pipeline adds the GTID.
fn put(coordinator: &Coordinator, key: &str, value: &str) -> Result<(), Box<dyn Error>> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    let mut cache = coordinator.new_cache();
    cache.set_context(now.as_secs() as u32, 1);
    let mut body = Vec::new();
    let begin =
        Query { thread_id: 1, exec_time: 0, error_code: 0, status: &[], database: b"", sql: b"BEGIN" };
    begin.encode(&mut body);
    cache.append_event(EventType::QUERY.0, 0, &body)?;
    body.clear();
    RowsQuery(format!("{key}={value}").as_bytes()).encode(&mut body);
    cache.append_event(EventType::ROWS_QUERY.0, IGNORABLE, &body)?;
    body.clear();
    Xid(1).encode(&mut body);
    cache.append_event(EventType::XID.0, 0, &body)?;
    let mut writes = WriteSet::default();
    writes.put(Bytes::copy_from_slice(key.as_bytes()), Bytes::copy_from_slice(value.as_bytes()));
    let ticket = coordinator.commit(CommitRequest {
        cache,
        writes,
        logged: true,
        commit_timestamp_us: now.as_micros() as u64,
        xid: None,
        prepared: false,
        staged: None,
        awaited: false,
        inline: false,
        on_durable: None,
        on_ordered: None,
    });
    // Durable when this returns. Many threads that commit at once share a write; a future can await the ticket.
    ticket.wait()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let folder = Path::new(args.first().ok_or("usage: store DIR [KEY VALUE]")?);
    std::fs::create_dir_all(folder)?;
    let map = Arc::new(Map::default());
    let coordinator = open(folder, &map)?;
    if let [_, key, value] = args.as_slice() {
        put(&coordinator, key, value)?;
    }
    for (key, value) in map.rows() {
        println!("{}={}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
    }
    coordinator.close()?;
    Ok(())
}
