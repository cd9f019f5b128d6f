//! A fresh engine, a fresh log and a coordinator over both, and the transactions that clients commit through it.
//!
//! No server and no SQL: what a session would hand over is made here, of the size that an INSERT of one row of about
//! 200 bytes into a table with one secondary key has. Used by the benchmark's own threads; the directory goes with the
//! [`World`].

use bytes::{BufMut, Bytes, BytesMut};
use clap::ValueEnum;
use omnibus_commit::{
    CacheSettings, CommitProtocol, CommitRequest, CommitSettings, Coordinator, LogEnv, LogIdentity, Replay,
    ReplayEvent, Replayed, recover,
};
use omnibus_engine::{CommitNo, Engine, WriteSet};
use omnibus_engine_btree::{BtreeConfig, BtreeEngine};
use omnibus_engine_lsm::{LsmConfig, LsmEngine};
use omnibus_format::events::{Query, Xid, put_rows_header};
use omnibus_format::{Checksum, EventType, ServerUuid};
use omnibus_log::{LogConfig, LogDir};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The engine of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum EngineKind {
    Lsm,
    Btree,
}

impl EngineKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            EngineKind::Lsm => "LSM",
            EngineKind::Btree => "BTREE",
        }
    }

    fn open(self, dir: &Path) -> Result<Arc<dyn Engine>, Failure> {
        Ok(match self {
            EngineKind::Lsm => Arc::new(LsmEngine::open(LsmConfig::new(&dir.join("lsm")))?),
            EngineKind::Btree => Arc::new(BtreeEngine::open(BtreeConfig::new(&dir.join("btree")))?),
        })
    }
}

/// Bytes of the row beside its two integers.
const TEXT: usize = 190;
/// A GTID event as MySQL 8.4 writes it, with header and checksum: part of what a transaction's events are.
const GTID_EVENT: u64 = 79;
const CHECKSUM: u64 = 4;

/// The server side of one protocol.
pub(super) struct World {
    pub(super) protocol: CommitProtocol,
    pub(super) coordinator: Coordinator,
    xids: AtomicU64,
    ids: AtomicU64,
    _dir: TempDir,
}

/// A fresh log has nothing to replay.
struct Nothing;

impl Replay for Nothing {
    fn transaction(&mut self, _: CommitNo, _: &[ReplayEvent]) -> Result<Replayed, String> {
        Err("a new log holds no transaction".into())
    }

    fn part(&mut self, _: CommitNo, _: &[ReplayEvent]) -> Result<(), String> {
        Err("a new log holds no transaction".into())
    }

    fn forget(&mut self) {}
}

impl World {
    pub(super) fn open(at: &Path, engine: EngineKind, protocol: CommitProtocol) -> Result<World, Failure> {
        let dir = tempfile::Builder::new().prefix(".omnibus-bench-protocols-").tempdir_in(at)?;
        let engine = engine.open(dir.path())?;
        let log = LogDir::open(dir.path(), LogConfig::default())?;
        let recovered = recover(&log, engine.as_ref(), &mut Nothing)?;
        let identity = LogIdentity {
            server_id: 1,
            uuid: ServerUuid([7; 16]),
            version: "8.4.0-bench".into(),
            dialect: omnibus_format::Dialect::Mysql,
        };
        let (env, appender) =
            LogEnv::start(log, &recovered, identity, Checksum::Crc32, engine.clone(), Box::new(|_| {}))?;
        let settings = CommitSettings { protocol, ..CommitSettings::default() };
        if protocol == CommitProtocol::None {
            settings.sync_binlog.store(0, Ordering::Relaxed);
        }
        let caches = Arc::new(CacheSettings::new(dir.path().to_path_buf()));
        let coordinator = Coordinator::start(engine, env, appender, &recovered, Arc::new(settings), caches)?;
        let xids = AtomicU64::new(coordinator.first_xid());
        Ok(World { protocol, coordinator, xids, ids: AtomicU64::new(1), _dir: dir })
    }

    /// Returns an INSERT of one row that has not been inserted yet.
    pub(super) fn insert(&self) -> Result<CommitRequest, Failure> {
        let (id, xid) = (self.ids.fetch_add(1, Ordering::Relaxed), self.xids.fetch_add(1, Ordering::Relaxed));
        let row = row(id);
        let mut cache = self.coordinator.new_cache();
        let now_us = u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_micros())?;
        cache.set_context(u32::try_from(now_us / 1_000_000)?, 1);
        for (kind, flags, body) in events(xid, &row) {
            cache.append_event(kind.0, flags, &body)?;
        }
        Ok(CommitRequest { xid: Some(xid), ..CommitRequest::new(cache, writes(id, row), true, now_us) })
    }
}

/// Bytes that any server with row-based logging would write for this transaction: its events and a GTID event.
pub(super) fn own_bytes(request: &CommitRequest) -> u64 {
    request.cache.len() + request.cache.events() * CHECKSUM + GTID_EVENT
}

fn row(id: u64) -> Bytes {
    let mut row = BytesMut::with_capacity(12 + TEXT);
    row.put_u64_le(id);
    row.put_u32_le(scatter(id));
    // Neither constant nor costly: tables are compressed.
    row.extend((0..TEXT as u64).map(|n| b'0' + (id.wrapping_mul(n + 3) % 10) as u8));
    row.freeze()
}

/// The secondary key's value.
fn scatter(id: u64) -> u32 {
    (id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as u32
}

/// The row by its primary key, and an entry of the secondary key.
fn writes(id: u64, row: Bytes) -> WriteSet {
    let mut writes = WriteSet::default();
    let mut primary = BytesMut::with_capacity(12);
    primary.put_u32(100);
    primary.put_u64(id);
    writes.put(primary.freeze(), row);
    let mut secondary = BytesMut::with_capacity(16);
    secondary.put_u32(101);
    secondary.put_u32(scatter(id));
    secondary.put_u64(id);
    writes.put(secondary.freeze(), Bytes::new());
    writes
}

fn events(xid: u64, row: &[u8]) -> [(EventType, u16, Vec<u8>); 4] {
    let (mut begin, mut rows, mut end) = (Vec::new(), Vec::new(), Vec::new());
    // As many bytes of status variables as a session's defaults make.
    let status = [0; 29];
    let query = Query {
        thread_id: 8,
        exec_time: 0,
        error_code: 0,
        status: &status,
        database: b"bench",
        sql: b"BEGIN",
    };
    query.encode(&mut begin);
    put_rows_header(&mut rows, 90, 1, 3, &[&[0x07]]);
    rows.push(0);
    rows.extend_from_slice(row);
    Xid(xid).encode(&mut end);
    [
        (EventType::QUERY, 8, begin),
        (EventType::TABLE_MAP, 0, TABLE.to_vec()),
        (EventType::WRITE_ROWS, 0, rows),
        (EventType::XID, 0, end),
    ]
}

/// `bench.sbtest1 (BIGINT, INT, VARCHAR(190))`: id, flags, names, column types and metadata, NULL bits.
const TABLE: &[u8] =
    b"\x5a\0\0\0\0\0\x01\0\x05bench\0\x07sbtest1\0\x03\x08\x03\x0f\x02\xbe\0\x06\x01\x01\xc0\x02\x01\x21";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use omnibus_format::events::{Rows, TableMap};

    #[test]
    fn the_events_are_what_a_session_would_have_written() {
        let [_, (_, _, table), (kind, _, rows), _] = events(1, &row(5));
        let table = TableMap::decode(&table).unwrap();
        assert_eq!((table.table_id, table.table.as_slice()), (90, &b"sbtest1"[..]));
        let rows = Rows::decode(kind, &rows).unwrap();
        assert_eq!((rows.table_id, rows.columns, rows.rows.len()), (90, 3, 1 + 12 + TEXT));
    }

    #[test]
    fn every_protocol_commits_on_both_engines() {
        let at = tempfile::tempdir().unwrap();
        for engine in [EngineKind::Lsm, EngineKind::Btree] {
            for protocol in CommitProtocol::ALL {
                let world = World::open(at.path(), engine, protocol).unwrap();
                let request = world.insert().unwrap();
                let keys = request.writes.len();
                assert_eq!(keys, 2, "the row and its secondary key");
                world.coordinator.commit(request.inline()).wait().unwrap();
                let prepared = world.coordinator.engine().stats().redo_syncs;
                assert_eq!(
                    prepared > 0,
                    protocol.is_two_phase(),
                    "{protocol:?} really prepares, or does not"
                );
            }
        }
    }
}
