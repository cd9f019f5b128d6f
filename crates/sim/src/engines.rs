//! The engines of a history as one, by the server's own [`EngineSet`]: one of the simulation's, or two that transactions span. Each
//! persists by itself, so that a crash finds one of them behind the other.

use crate::disk::SimDisk;
use crate::engine::{FIRST, SECOND, SimEngine, Tables};
use crate::mutant::Mutant;
use crate::names::is_named;
use bytes::Bytes;
use omnibus_disk::Disk;
use omnibus_engine::{Engine, EngineError, EngineSet};
use omnibus_sql::catalog::persist::definition_keys;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// The persistent state by slot.
#[derive(Debug, Default)]
pub(crate) struct Kept([Arc<Mutex<Tables>>; 2]);

impl Kept {
    /// Copies the state, for engines that persist on their own.
    pub(crate) fn copy(&self) -> Kept {
        Kept([0, 1].map(|slot| Arc::new(Mutex::new(self.0[slot].lock().clone()))))
    }
}

/// The contents of all engines.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// The rows of the simulation's own transactions.
    pub(crate) rows: BTreeMap<Bytes, Bytes>,
    /// Numbers and transactions.
    pub(crate) order: Vec<(u64, u64)>,
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Engines {
    set: Arc<EngineSet<SimEngine>>,
    second: Option<Arc<SimEngine>>,
}

impl Engines {
    pub(crate) fn open(
        disk: &Disk,
        root: &Path,
        kept: &Kept,
        two: bool,
        mutant: Option<Mutant>,
        process: &SimDisk,
    ) -> Result<Engines, EngineError> {
        if mutant == Some(Mutant::OtherPosition) {
            let first = kept.0[0].lock().applied;
            kept.0[1].lock().claim(first);
        }
        let open = |slot: usize, name| {
            let engine =
                SimEngine::open(name, disk, root, Arc::clone(&kept.0[slot]), mutant, process.clone());
            engine.map_err(|source| EngineError::Io { engine: name, source })
        };
        let first = open(0, FIRST)?;
        let second = two.then(|| open(1, SECOND).map(Arc::new)).transpose()?;
        let others = second.iter().map(|engine| Arc::clone(engine) as Arc<dyn Engine>).collect();
        let set = Arc::new(EngineSet::new(first, others, definition_keys())?);
        Ok(Engines { set, second })
    }

    /// Returns the engines as one.
    pub(crate) fn shared(&self) -> Arc<dyn Engine> {
        self.set.clone()
    }

    fn each(&self) -> impl Iterator<Item = &SimEngine> {
        std::iter::once(self.set.first()).chain(self.second.as_deref())
    }

    /// The log is replayed.
    pub(crate) fn is_recovered(&self) {
        self.each().for_each(SimEngine::is_recovered);
    }

    /// The number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.each().map(|engine| engine.tables().rows.len()).sum()
    }

    pub(crate) fn are_two(&self) -> bool {
        self.second.is_some()
    }

    /// The engine of a slot persists what it has, and no other does.
    pub(crate) fn checkpoint(&self, slot: usize) {
        let _ = self.each().nth(slot).map(Engine::checkpoint);
    }

    /// Returns everything up to the durable number. The error is a number under which the engines have different
    /// transactions.
    pub(crate) fn contents(&self) -> Result<Contents, String> {
        let (mut contents, mut order) = (Contents::default(), BTreeMap::new());
        for engine in self.each() {
            let tables = engine.tables();
            let own = tables.rows.iter().filter(|(key, _)| is_own(key));
            contents.rows.extend(own.map(|(key, value)| (key.clone(), value.clone())));
            for (no, id) in tables.order.iter().map(|(no, id)| (no.0, *id)) {
                let known = order.entry(no).or_insert(id);
                if *known != id && is_named(id) && is_named(*known) {
                    return Err(format!(
                        "COMMIT-1: {no} is transaction {known} in one engine, and {id} in another"
                    ));
                }
                *known = id.min(*known);
            }
        }
        contents.order.extend(order);
        Ok(contents)
    }
}

/// Returns whether a key belongs to one of the simulation's own transactions: keys of SQL begin with a small number,
/// behind the bits of a slot.
fn is_own(key: &[u8]) -> bool {
    key.first().is_some_and(|byte| byte & 0x3f != 0)
}
