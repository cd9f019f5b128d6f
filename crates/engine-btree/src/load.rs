//! Bulk loads into a space that nobody reads yet: straight into the file, durable on return.

use crate::engine::Shared;
use crate::prune::Pruner;
use bytes::Bytes;
use omnibus_engine::EngineError;
use std::sync::atomic::Ordering;

/// Bytes in one transaction of the file.
const PIECE: u64 = 16 << 20;

pub(crate) fn load(
    shared: &Shared,
    at: u64,
    pairs: &mut dyn Iterator<Item = (Bytes, Bytes)>,
) -> Result<(), EngineError> {
    // What is persistent must stay a prefix: everything up to `at` goes to the file before the load does.
    shared.checkpoint_to.fetch_max(at, Ordering::AcqRel);
    shared.wait_persisted(at)?;
    let mut next = pairs.next();
    while next.is_some() {
        let mut state = shared.store.state.lock();
        let applied = state.applied;
        shared.store.transaction(&mut state, applied, true, |write, _| {
            let mut pruner = Pruner::new(write, 0)?;
            let mut bytes = 0;
            while let Some((key, value)) = next.take() {
                bytes += pruner.load(&key, at, &value)?;
                next = pairs.next();
                if bytes >= PIECE {
                    break;
                }
            }
            Ok(())
        })?;
        shared.show(&state, true, None)?;
    }
    Ok(())
}
