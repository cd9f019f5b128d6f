//! A frozen view: a commit number. What is read through it is fetched from the present view each time, so that a
//! transaction that stays open for an hour pins no pages; the watermark keeps what it needs.

use crate::layer::VersionRef;
use crate::scan::Scan;
use crate::shared::Shared;
use crate::{damage, key, store, store_error};
use bytes::Bytes;
use omnibus_engine::{CommitNo, EngineError, Snapshot, SnapshotIter};
use std::ops::Bound;
use std::sync::Arc;

pub(crate) struct BtreeSnapshot {
    pub(crate) shared: Arc<Shared>,
    pub(crate) at: u64,
}

impl BtreeSnapshot {
    fn find(&self, key: &[u8]) -> Result<Option<(u64, Option<Bytes>)>, EngineError> {
        let view = self.shared.views.current();
        let mut place = None;
        for layer in view.layers().filter(|layer| !layer.is_empty()) {
            let place =
                place.get_or_insert_with(|| VersionRef { key: Bytes::copy_from_slice(key), number: self.at });
            if let Some(found) = layer.get(place)? {
                return Ok(Some(found));
            }
        }
        let (from, to) = (key::join(key, self.at), key::join(key, 0));
        damage::caught(&self.shared.store.path, || {
            let mut range = view.file.range::<&[u8]>(&from[..]..=&to[..]).map_err(store_error)?;
            let Some(found) = range.next() else { return Ok(None) };
            let (place, value) = found.map_err(store_error)?;
            Ok(Some((key::split(place.value()).1, store::decode(value.value())?)))
        })
    }
}

impl Snapshot for BtreeSnapshot {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, EngineError> {
        Ok(self.find(key)?.and_then(|(_, value)| value))
    }

    fn get_version(&self, key: &[u8]) -> Result<Option<(CommitNo, Bytes)>, EngineError> {
        Ok(self.find(key)?.and_then(|(number, value)| value.map(|value| (CommitNo(number), value))))
    }

    fn scan<'a>(&'a self, from: Bound<&[u8]>, to: Bound<&[u8]>, reverse: bool) -> SnapshotIter<'a> {
        if inverted(from, to) {
            return Box::new(std::iter::empty());
        }
        match Scan::new(&self.shared, from, to, self.at, reverse) {
            Ok(scan) => Box::new(scan),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }
}

fn inverted(from: Bound<&[u8]>, to: Bound<&[u8]>) -> bool {
    match (from, to) {
        (Bound::Included(from), Bound::Included(to)) => from > to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Excluded(to))
        | (Bound::Excluded(from), Bound::Included(to)) => from >= to,
        _ => false,
    }
}
