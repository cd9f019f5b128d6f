//! Rows in a map as a snapshot: what engines that are simulated give out. Versions have no number of their own.

use crate::{CommitNo, EngineError, Snapshot, SnapshotIter};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct FrozenRows(pub BTreeMap<Bytes, Bytes>);

impl Snapshot for FrozenRows {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        Ok(self.0.get(key).cloned())
    }

    fn get_version(&self, key: &[u8]) -> Result<Option<(CommitNo, Bytes)>, EngineError> {
        Ok(self.0.get(key).map(|value| (CommitNo::ZERO, value.clone())))
    }

    fn scan<'a>(&'a self, from: Bound<&[u8]>, to: Bound<&[u8]>, reverse: bool) -> SnapshotIter<'a> {
        let rows = self.0.range::<[u8], _>((from, to)).map(|(key, value)| Ok((key.clone(), value.clone())));
        if reverse { Box::new(rows.rev()) } else { Box::new(rows) }
    }
}
