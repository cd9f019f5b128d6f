//! Several engines behind one [`Engine`]: a space's slot says which one it lives in.
//!
//! Routing is one compare of a key's first byte; a transaction that touches only the first engine's keys is
//! handed to it as it is, without an allocation. A write set that spans engines is split. All engines get the same
//! commit numbers, so a snapshot is one number for all of them (SNAP-1), and one record of the log makes a
//! transaction whole in all of them or in none (COMMIT-3).
//!
//! *Shared keys.* Replay starts at the engine that is furthest behind, and needs the catalog as of there, while
//! the first engine's may be newer. So a range of keys, the catalog's definitions, is written to every engine;
//! each then holds them exactly as of its own `applied`. Only definitions: a set does not double hot keys.
//!
//! *Replay* goes over what some engine has already. Such an engine skips it (`prepare_ordered` compares numbers).
//!
//! *Joining.* An engine that is new in a data directory gets the shared keys as of the first engine's `applied`,
//! and then a mark that it has them. A crash in between means joining again.
//!
//! *Two phases.* A set takes part in a two-phase commit if all its engines do; each prepares and decides its part.
//!
//! A set is not a transaction coordinator. It has no file and no thread.

mod split;
mod view;

use crate::interruptible::GoOn;
use crate::{
    CommitNo, Engine, EngineError, EngineInfo, EngineStats, Kept, ReadAt, Snapshot, SortedWrites, SpaceId,
    SpaceNames, Staged, TrxId, Write, WriteSet,
};
use bytes::Bytes;
use std::io;
use std::ops::{Add, Bound, Range};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use view::SetSnapshot;

/// Space 0 belongs to no index: it has the mark of an engine that has joined.
const JOINED: &[u8] = b"\0\0\0\0joined";

/// Engines by slot, as one.
pub struct EngineSet<F> {
    parts: Arc<Parts<F>>,
}

pub(crate) struct Parts<F> {
    first: F,
    first_applied: CommitNo,
    /// Slot 1 and up.
    others: Vec<Member>,
    shared: Range<Bytes>,
    names: OnceLock<SpaceNames>,
}

/// The staged parts of a transaction that is not only the first engine's, by engine.
struct StagedParts(Vec<(usize, Staged)>);

struct Member {
    engine: Arc<dyn Engine>,
    /// The commit number that the engine had when the set was made; replay up to here skips it.
    applied: CommitNo,
}

impl<F> std::fmt::Debug for EngineSet<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EngineSet").field("others", &self.parts.others.len()).finish_non_exhaustive()
    }
}

impl<F: ReadAt> EngineSet<F> {
    /// The engines by slot: `first` is slot 0 and the default. `shared` is the range of keys that every engine
    /// gets; it lies in slot 0. Blocks if an engine is new.
    ///
    /// # Errors
    /// A new engine could not be given the shared keys.
    ///
    /// # Panics
    /// There are more engines than slots.
    pub fn new(
        first: F,
        others: Vec<Arc<dyn Engine>>,
        shared: Range<Bytes>,
    ) -> Result<EngineSet<F>, EngineError> {
        assert!(others.len() < SpaceId::SLOTS, "a space id has room for {} engines", SpaceId::SLOTS);
        let members = others.into_iter().map(|engine| {
            join(&first, &*engine, &shared)?;
            Ok(Member { applied: engine.persisted(), engine })
        });
        let others = members.collect::<Result<Vec<_>, EngineError>>()?;
        let first_applied = first.applied();
        Ok(EngineSet {
            parts: Arc::new(Parts { first, first_applied, others, shared, names: OnceLock::new() }),
        })
    }

    /// Returns whether an engine has never been in a set in this data directory.
    ///
    /// # Errors
    /// The engine's error.
    pub fn is_new(engine: &dyn Engine) -> Result<bool, EngineError> {
        Ok(engine.snapshot(CommitNo::MAX).get(JOINED)?.is_none())
    }

    /// The engine in slot 0.
    #[must_use]
    pub fn first(&self) -> &F {
        &self.parts.first
    }
}

/// Copies the shared keys into an engine that is new in the set.
fn join<F: ReadAt>(first: &F, engine: &dyn Engine, shared: &Range<Bytes>) -> Result<(), EngineError> {
    if !EngineSet::<F>::is_new(engine)? {
        return Ok(());
    }
    let at = first.applied();
    let (from, to) = (Bound::Included(&shared.start[..]), Bound::Excluded(&shared.end[..]));
    let pairs = first.scan_at(CommitNo::MAX, from, to, false).collect::<Result<Vec<_>, _>>()?;
    engine.commit_ordered(at);
    engine.checkpoint()?;
    engine.load(at, &mut pairs.into_iter())?;
    let mark = (Bytes::from_static(JOINED), Bytes::new());
    engine.load(at, &mut std::iter::once(mark))
}

impl<F: ReadAt> Parts<F> {
    /// The engine of a slot above 0.
    fn other(&self, slot: u8) -> Option<&dyn Engine> {
        self.others.get(usize::from(slot).wrapping_sub(1)).map(|member| &*member.engine)
    }

    fn engine(&self, slot: u8) -> Option<&dyn Engine> {
        if slot == 0 { Some(&self.first) } else { self.other(slot) }
    }

    fn engines(&self) -> impl Iterator<Item = &dyn Engine> {
        let first: &dyn Engine = &self.first;
        std::iter::once(first).chain(self.others.iter().map(|member| &*member.engine))
    }

    /// The error with the name of the table that the key is of.
    fn named(&self, error: EngineError, key: &[u8]) -> EngineError {
        let space = key.first_chunk().map(|prefix| SpaceId(u32::from_be_bytes(*prefix)));
        let name = self.names.get().zip(space).and_then(|(names, space)| names(space));
        match name {
            Some(name) => error.in_table(&name),
            None => error,
        }
    }

    fn holds_applied(&self) -> impl Iterator<Item = (&dyn Engine, CommitNo)> {
        let first: &dyn Engine = &self.first;
        let others = self.others.iter().map(|member| (&*member.engine, member.applied));
        std::iter::once((first, self.first_applied)).chain(others)
    }
}

impl<F: ReadAt> Engine for EngineSet<F> {
    fn name(&self) -> &'static str {
        self.parts.first.name()
    }

    fn applied(&self) -> CommitNo {
        self.parts.holds_applied().map(|(_, applied)| applied).min().unwrap_or_default()
    }

    fn prepare_ordered(&self, no: CommitNo, writes: WriteSet) {
        let parts = &*self.parts;
        if split::only_first(&writes, &parts.shared) {
            if no > parts.first_applied {
                parts.first.prepare_ordered(no, writes);
            }
            return;
        }
        for (slot, (engine, applied)) in parts.holds_applied().enumerate() {
            if no > applied
                && let Some(part) = split::owned_part(&writes, slot as u8, &parts.shared)
            {
                engine.prepare_ordered(no, part);
            }
        }
    }

    fn stage(&self, writes: WriteSet) -> Staged {
        let parts = &*self.parts;
        if split::only_first(&writes, &parts.shared) {
            return parts.first.stage(writes);
        }
        let mut staged = Vec::new();
        for (slot, engine) in parts.engines().enumerate() {
            staged.extend(
                split::owned_part(&writes, slot as u8, &parts.shared).map(|p| (slot, engine.stage(p))),
            );
        }
        Staged::Built(Box::new(StagedParts(staged)))
    }

    fn prepare_staged(&self, no: CommitNo, staged: Staged) {
        let parts = match staged {
            Staged::Writes(writes) => return self.prepare_ordered(no, writes),
            Staged::Built(any) => match any.downcast::<StagedParts>() {
                Ok(parts) => parts.0,
                Err(any) if no > self.parts.first_applied => {
                    return self.parts.first.prepare_staged(no, Staged::Built(any));
                }
                Err(_) => return,
            },
        };
        for (slot, staged) in parts {
            if let Some((engine, applied)) = self.parts.holds_applied().nth(slot)
                && no > applied
            {
                engine.prepare_staged(no, staged);
            }
        }
    }

    fn install_sorted(&self, no: CommitNo, writes: &mut SortedWrites<'_>) -> Result<(), EngineError> {
        // Slots are in key order too. Shared keys are in the first one, and few.
        let (mut writes, mut shared) = (writes.peekable(), Vec::new());
        for (slot, (engine, applied)) in self.parts.holds_applied().enumerate() {
            let own = |write: &io::Result<(Bytes, Write)>| {
                write.as_ref().map_or(true, |(key, _)| usize::from(SpaceId::slot_of_key(key)) == slot)
            };
            let definitions = shared.clone();
            let mut part = definitions.into_iter().map(Ok).chain(std::iter::from_fn(|| {
                let write = writes.next_if(own)?;
                if let Ok((key, value)) = &write
                    && self.parts.shared.contains(key)
                {
                    shared.push((key.clone(), value.clone()));
                }
                Some(write)
            }));
            if no > applied {
                let mut part = part.by_ref().peekable();
                if part.peek().is_some() {
                    engine.install_sorted(no, &mut part)?;
                }
            }
            // What it has already.
            part.try_for_each(|write| write.map(|_| ()))
                .map_err(|source| EngineError::Io { engine: "set", source })?;
        }
        match writes.next() {
            Some(Ok((key, _))) => Err(no_engine(SpaceId::slot_of_key(&key))),
            Some(Err(source)) => Err(EngineError::Io { engine: "set", source }),
            None => Ok(()),
        }
    }

    fn commit_ordered(&self, up_to: CommitNo) {
        self.parts.first.commit_ordered(up_to);
        for member in &self.parts.others {
            member.engine.commit_ordered(up_to);
        }
    }

    fn snapshot(&self, at: CommitNo) -> Box<dyn Snapshot> {
        Box::new(SetSnapshot::new(Arc::clone(&self.parts), at))
    }

    fn load(&self, at: CommitNo, pairs: &mut dyn Iterator<Item = (Bytes, Bytes)>) -> Result<(), EngineError> {
        let mut pairs = pairs.peekable();
        while let Some((key, _)) = pairs.peek() {
            let slot = SpaceId::slot_of_key(key);
            let engine = self.parts.engine(slot).ok_or_else(|| no_engine(slot))?;
            let same = |pair: &(Bytes, Bytes)| SpaceId::slot_of_key(&pair.0) == slot;
            engine.load(at, &mut std::iter::from_fn(|| pairs.next_if(same)))?;
        }
        Ok(())
    }

    fn drop_space(&self, space: SpaceId, at: CommitNo) {
        if let Some(engine) = self.parts.engine(space.slot()) {
            engine.drop_space(space, at);
        }
    }

    fn gc_watermark(&self, oldest: CommitNo) {
        self.parts.engines().for_each(|engine| engine.gc_watermark(oldest));
    }

    fn write_stall(&self) -> Duration {
        self.parts.engines().map(Engine::write_stall).max().unwrap_or_default()
    }

    fn refuses(&self, writes: &WriteSet) -> Option<EngineError> {
        let parts = &*self.parts;
        for (slot, engine) in parts.engines().enumerate() {
            let Some(error) = engine.refuses(writes) else { continue };
            let own = split::keys_of(slot as u8);
            if let Some(first) = writes.range(split::bounds(&own), false).next() {
                return Some(first.map_or_else(|unread| unread, |first| parts.named(error, first.key())));
            }
        }
        None
    }

    fn name_spaces(&self, names: SpaceNames) {
        // Set once, by the server.
        let _ = self.parts.names.set(names);
    }

    fn recovered(&self) -> Result<(), EngineError> {
        self.parts.engines().try_for_each(Engine::recovered)
    }

    fn checkpoint(&self) -> Result<CommitNo, EngineError> {
        for engine in self.parts.engines() {
            engine.checkpoint()?;
        }
        Ok(self.persisted())
    }

    fn checkpoint_if_room(&self) -> Result<CommitNo, EngineError> {
        for engine in self.parts.engines() {
            engine.checkpoint_if_room()?;
        }
        Ok(self.persisted())
    }

    fn persisted(&self) -> CommitNo {
        self.parts.engines().map(Engine::persisted).min().unwrap_or_default()
    }

    fn failure(&self) -> Option<String> {
        self.parts.engines().find_map(Engine::failure)
    }

    fn backup_to(&self, root: &Path, go_on: GoOn<'_>) -> Result<CommitNo, EngineError> {
        // One after the other: each is a prefix of the commits of its own, as after a crash.
        let mut least = CommitNo::MAX;
        for engine in self.parts.engines() {
            least = least.min(engine.backup_to(root, go_on)?);
        }
        Ok(least)
    }

    fn stats(&self) -> EngineStats {
        self.parts.engines().map(Engine::stats).fold(EngineStats::default(), |a, b| EngineStats {
            memtable_bytes: a.memtable_bytes + b.memtable_bytes,
            flushes: a.flushes + b.flushes,
            compactions: a.compactions + b.compactions,
            write_stalls: a.write_stalls + b.write_stalls,
            disk_bytes: a.disk_bytes + b.disk_bytes,
            redo_syncs: a.redo_syncs + b.redo_syncs,
        })
    }

    fn kept_since(&self, at: CommitNo) -> Kept {
        self.parts.engines().map(|engine| engine.kept_since(at)).fold(Kept::default(), Kept::add)
    }

    fn two_phase(&self) -> bool {
        self.parts.engines().all(Engine::two_phase)
    }

    fn prepare(&self, trx: TrxId, writes: &WriteSet) -> Result<(), EngineError> {
        let parts = &*self.parts;
        if split::only_first(writes, &parts.shared) {
            return parts.first.prepare(trx, writes);
        }
        let mut done = Ok(());
        for (slot, engine) in parts.engines().enumerate() {
            split::part(writes, slot as u8, &parts.shared, |writes| {
                if done.is_ok() {
                    done = engine.prepare(trx, writes);
                }
            });
        }
        if done.is_err() {
            self.rollback(trx);
        }
        done
    }

    fn flush_logs(&self) -> Result<(), EngineError> {
        self.parts.engines().try_for_each(Engine::flush_logs)
    }

    fn prepared(&self) -> Vec<TrxId> {
        let mut trxs: Vec<_> = self.parts.engines().flat_map(Engine::prepared).collect();
        trxs.sort_unstable();
        trxs.dedup();
        trxs
    }

    fn commit_prepared(&self, trx: TrxId, no: CommitNo) {
        self.parts.engines().for_each(|engine| engine.commit_prepared(trx, no));
    }

    fn rollback(&self, trx: TrxId) {
        self.parts.engines().for_each(|engine| engine.rollback(trx));
    }

    fn comment(&self) -> &'static str {
        self.parts.first.comment()
    }

    fn members(&self) -> Vec<EngineInfo> {
        let info = |(slot, engine): (usize, &dyn Engine)| EngineInfo {
            name: engine.name(),
            comment: engine.comment(),
            slot: slot as u8,
        };
        self.parts.engines().enumerate().map(info).collect()
    }

    fn applied_to(&self, key: &[u8]) -> CommitNo {
        let slot = usize::from(SpaceId::slot_of_key(key));
        self.parts.holds_applied().nth(slot).map_or(CommitNo::ZERO, |(_, applied)| applied)
    }

    fn newest(&self) -> CommitNo {
        self.parts.holds_applied().map(|(_, applied)| applied).max().unwrap_or_default()
    }

    fn definitions(&self) -> Box<dyn Snapshot> {
        let behind = self.parts.holds_applied().min_by_key(|(_, applied)| *applied);
        behind.map_or_else(|| self.snapshot(CommitNo::MAX), |(engine, _)| engine.snapshot(CommitNo::MAX))
    }
}

fn no_engine(slot: u8) -> EngineError {
    EngineError::Corrupt { engine: "set", detail: format!("no engine is in slot {slot}") }
}
