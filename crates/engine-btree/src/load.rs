//! Bulk loads into a space without readers: straight into the file, durable on return.

use crate::io_error;
use crate::layer::Version;
use crate::prune::Pruner;
use crate::shared::{Full, Shared};
use bytes::Bytes;
use omnibus_engine::{EngineError, SortedWrites};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Bytes in one transaction of the file.
const PIECE: u64 = 16 << 20;
/// The estimated bytes of a row in the file besides its own.
const ROW_BYTES: u64 = 16;
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn load(
    shared: &Shared,
    at: u64,
    pairs: &mut dyn Iterator<Item = (Bytes, Bytes)>,
) -> Result<(), EngineError> {
    // What is persistent must stay a prefix: everything up to `at` goes to the file before the load does.
    shared.checkpoint_to.fetch_max(at, Ordering::AcqRel);
    shared.wait_persisted(at, Full::IsAnError)?;
    loop {
        let (mut piece, mut bytes) = (Vec::new(), 0);
        while bytes < PIECE
            && let Some((key, value)) = pairs.next()
        {
            bytes += (key.len() + value.len()) as u64 + ROW_BYTES;
            piece.push((key, value));
        }
        if piece.is_empty() {
            return Ok(());
        }
        write(shared, at, &piece, bytes)?;
    }
}

/// See `Engine::install_sorted`. redb writes pages of a transaction under way to the file when its cache is full of them.
pub(crate) fn install(shared: &Shared, no: u64, writes: &mut SortedWrites<'_>) -> Result<(), EngineError> {
    let mut state = shared.store.state.lock();
    shared.store.transaction(&mut state, no, true, |write, _| {
        let mut pruner = Pruner::new(write, no)?;
        for write in writes {
            let (key, value) = write.map_err(io_error)?;
            // On a full disk all that is left of the transaction would be kept in memory.
            shared.store.files.wait_until_settled().map_err(io_error)?;
            pruner.write(&[Version { key, number: no, value }])?;
        }
        Ok(())
    })?;
    let mut installer = shared.views.installer.lock();
    installer.prepared = installer.prepared.max(no);
    drop(installer);
    shared.committed.fetch_max(no, Ordering::AcqRel);
    shared.show(&state, true, None)
}

/// Writes one durable transaction. If the disk is full only its statement fails; redb is given no error.
fn write(shared: &Shared, at: u64, piece: &[(Bytes, Bytes)], bytes: u64) -> Result<(), EngineError> {
    let mut state = loop {
        // Whoever has it may be waiting for space.
        shared.store.room(bytes * 2)?;
        if let Some(state) = shared.store.state.try_lock_for(LOOK) {
            break state;
        }
    };
    shared.usable()?;
    let applied = state.applied;
    shared.writing(|| {
        shared.store.transaction(&mut state, applied, true, |write, _| {
            let mut pruner = Pruner::new(write, 0)?;
            piece.iter().try_for_each(|(key, value)| pruner.load(key, at, value))
        })
    })?;
    shared.show(&state, true, None)
}
