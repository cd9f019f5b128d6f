//! An engine of maps: every version of every key, nothing persistent.

use bytes::Bytes;
use omnibus_commit::Replayed;
use omnibus_engine::{
    CommitNo, Engine, EngineError, EngineStats, Snapshot, SnapshotIter, SpaceId, Write, WriteSet,
};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

type Versions = BTreeMap<Bytes, Vec<(CommitNo, Write)>>;

#[derive(Default)]
pub struct MemEngine {
    keys: Arc<RwLock<Versions>>,
    applied: AtomicU64,
    /// Spaces that were dropped.
    pub dropped: RwLock<Vec<SpaceId>>,
}

struct MemSnapshot {
    keys: Arc<RwLock<Versions>>,
    at: CommitNo,
}

fn visible(versions: &[(CommitNo, Write)], at: CommitNo) -> Option<(CommitNo, Bytes)> {
    let (no, write) = versions.iter().rev().find(|(no, _)| *no <= at)?;
    write.clone().map(|value| (*no, value))
}

impl Snapshot for MemSnapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        Ok(self.get_version(key)?.map(|(_, value)| value))
    }
    fn get_version(&self, key: &[u8]) -> Result<Option<(CommitNo, Bytes)>, EngineError> {
        Ok(self.keys.read().get(key).and_then(|versions| visible(versions, self.at)))
    }
    fn scan<'a>(&'a self, from: Bound<&[u8]>, to: Bound<&[u8]>, reverse: bool) -> SnapshotIter<'a> {
        let keys = self.keys.read();
        let range = keys.range::<[u8], _>((from, to));
        let found = range.filter_map(|(key, versions)| Some((key.clone(), visible(versions, self.at)?.1)));
        let mut pairs: Vec<_> = found.map(Ok).collect();
        if reverse {
            pairs.reverse();
        }
        Box::new(pairs.into_iter())
    }
}

impl MemEngine {
    /// Everything visible now.
    pub fn contents(&self) -> BTreeMap<Bytes, Bytes> {
        let keys = self.keys.read();
        keys.iter()
            .filter_map(|(key, versions)| Some((key.clone(), visible(versions, CommitNo::MAX)?.1)))
            .collect()
    }
}

impl Engine for MemEngine {
    fn name(&self) -> &'static str {
        "InnoDB"
    }
    fn applied(&self) -> CommitNo {
        CommitNo(self.applied.load(Ordering::Acquire))
    }
    fn prepare_ordered(&self, no: CommitNo, writes: WriteSet) {
        let mut keys = self.keys.write();
        for (key, write) in writes.into_sorted().map(Result::unwrap) {
            keys.entry(key).or_default().push((no, write));
        }
    }
    fn commit_ordered(&self, up_to: CommitNo) {
        self.applied.store(up_to.0, Ordering::Release);
    }
    fn snapshot(&self, at: CommitNo) -> Box<dyn Snapshot> {
        Box::new(MemSnapshot { keys: self.keys.clone(), at })
    }
    fn load(&self, at: CommitNo, pairs: &mut dyn Iterator<Item = (Bytes, Bytes)>) -> Result<(), EngineError> {
        let mut keys = self.keys.write();
        for (key, value) in pairs {
            keys.entry(key).or_default().push((at, Some(value)));
        }
        Ok(())
    }
    fn drop_space(&self, space: SpaceId, _: CommitNo) {
        self.dropped.write().push(space);
        self.keys.write().retain(|key, _| !key.starts_with(&space.prefix()));
    }
    fn gc_watermark(&self, _: CommitNo) {}
    fn write_stall(&self) -> Duration {
        Duration::ZERO
    }
    fn checkpoint(&self) -> Result<CommitNo, EngineError> {
        Ok(self.applied())
    }
    fn persisted(&self) -> CommitNo {
        self.applied()
    }
    fn failure(&self) -> Option<String> {
        None
    }
    fn stats(&self) -> EngineStats {
        EngineStats::default()
    }
}

/// Installs a replayed transaction.
#[allow(dead_code)]
pub fn install(engine: &dyn Engine, no: CommitNo, writes: Replayed) {
    match writes {
        Replayed::Writes(writes) => engine.prepare_ordered(no, writes),
        Replayed::Sorted(mut writes) => engine.install_sorted(no, &mut writes).unwrap(),
    }
}
