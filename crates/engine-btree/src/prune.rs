//! Writes versions into the file, and removes those that no snapshot can see.
//!
//! A snapshot is at or above the watermark. So of a key's versions those above the watermark are needed, and the
//! newest at or below it, if that is no deletion. Nearly always a version is written when the watermark has passed
//! it, and then replaces all older ones on the spot. Where a snapshot is still in the way, a row in `garbage` says at
//! which watermark to look again.

use crate::key;
use crate::layer::Version;
use crate::store::{self, StoreState, Versions};
use crate::{damage, store_error};
use bytes::Bytes;
use omnibus_engine::EngineError;
use redb::{ReadableTable, Table, WriteTransaction};
use std::path::Path;
use std::sync::Arc;

/// Keys looked at again in one transaction.
const AGAIN: usize = 4096;

pub(crate) struct Pruner<'t> {
    versions: Table<'t, key::VersionKey, &'static [u8]>,
    garbage: Table<'t, &'static [u8], ()>,
    watermark: u64,
}

/// Reads ahead of a transaction what pruning will need: redb is of no more use once a transaction that writes has met
/// damage, and pruning is worth less than that.
pub(crate) struct Probe<'s> {
    pub(crate) file: Arc<Versions>,
    pub(crate) path: &'s Path,
}

impl Probe<'_> {
    /// Returns whether the first `count` versions from `from` on can be read; logs an error if not.
    fn readable(&self, from: &[u8], to: &[u8], count: usize) -> bool {
        let read = damage::caught(self.path, || {
            let range = self.file.range::<&[u8]>(from..=to).map_err(store_error)?;
            range.take(count).try_for_each(|found| found.map(|_| ()).map_err(store_error))
        });
        if let Err(error) = &read {
            tracing::error!(%error, "engine-btree: old versions are left where they are");
        }
        read.is_ok()
    }
}

impl<'t> Pruner<'t> {
    pub(crate) fn new(write: &'t WriteTransaction, watermark: u64) -> Result<Pruner<'t>, EngineError> {
        let versions = write.open_table(store::VERSIONS).map_err(store_error)?;
        let garbage = write.open_table(store::GARBAGE).map_err(store_error)?;
        Ok(Pruner { versions, garbage, watermark })
    }

    /// Writes a key's new versions, newest first. All are newer than what the file has. Tells how many bytes.
    pub(crate) fn write(&mut self, versions: &[Version]) -> Result<u64, EngineError> {
        let Some(newest) = versions.first() else { return Ok(0) };
        let mut bytes = 0;
        for version in versions {
            let place = key::join(&version.key, version.number);
            let value = store::encode(version.value.as_ref());
            bytes += (place.len() + value.len()) as u64;
            self.versions.insert(&place[..], &value[..]).map_err(store_error)?;
            if version.number <= self.watermark {
                break;
            }
        }
        self.settle(&newest.key)?;
        Ok(bytes)
    }

    /// Removes the invisible versions of a key, and notes when to look again if more will become invisible.
    fn settle(&mut self, key: &[u8]) -> Result<(), EngineError> {
        let (from, to) = (key::join(key, u64::MAX), key::join(key, 0));
        let (mut gone, mut kept, mut highest) = (Vec::new(), 0, None);
        let mut settled = false;
        for found in self.versions.range::<&[u8]>(&from[..]..=&to[..]).map_err(store_error)? {
            let (place, value) = found.map_err(store_error)?;
            let number = key::split(place.value()).1;
            let deleted = value.value().first() == Some(&0);
            if settled || (number <= self.watermark && deleted) {
                gone.push(place.value().to_vec());
            } else {
                kept += 1;
                highest.get_or_insert((number, deleted));
            }
            settled |= number <= self.watermark;
        }
        for place in gone {
            self.versions.remove(&place[..]).map_err(store_error)?;
        }
        if let Some((number, deleted)) = highest
            && (kept > 1 || deleted)
        {
            let row = [&number.to_be_bytes()[..], key].concat();
            self.garbage.insert(&row[..], ()).map_err(store_error)?;
        }
        Ok(())
    }

    /// Looks again at keys whose time has come, and tells the state what is left.
    pub(crate) fn again(&mut self, state: &mut StoreState, probe: &Probe<'_>) -> Result<(), EngineError> {
        for _ in 0..AGAIN {
            match store::first_garbage(&self.garbage)? {
                Some(number) if number <= self.watermark => {}
                _ => break,
            }
            let row = self.garbage.pop_first().map_err(store_error)?.map(|(row, _)| row.value().to_vec());
            let Some(row) = row else { break };
            let key = row.get(8..).unwrap_or_default();
            if probe.readable(&key::join(key, u64::MAX), &key::join(key, 0), usize::MAX) {
                self.settle(key)?;
            }
        }
        state.garbage_from = store::first_garbage(&self.garbage)?;
        Ok(())
    }

    /// Removes up to `count` versions of a space. Tells whether any are left to remove.
    pub(crate) fn remove_space(
        &mut self,
        space: u32,
        count: usize,
        probe: &Probe<'_>,
    ) -> Result<bool, EngineError> {
        // No key is as long as this one.
        let last = [&space.to_be_bytes()[..], &[u8::MAX; 8192]].concat();
        let (from, to) = (key::join(&space.to_be_bytes(), u64::MAX), key::join(&last, 0));
        if !probe.readable(&from, &to, count) {
            return Ok(false);
        }
        let places = self.versions.range::<&[u8]>(&from[..]..=&to[..]).map_err(store_error)?.take(count);
        let places = places.map(|found| found.map(|(place, _)| place.value().to_vec()));
        let places = places.collect::<Result<Vec<_>, _>>().map_err(store_error)?;
        for place in &places {
            self.versions.remove(&place[..]).map_err(store_error)?;
        }
        Ok(places.len() == count)
    }

    /// Adds a pair that is its key's only version.
    pub(crate) fn load(&mut self, key: &[u8], at: u64, value: &Bytes) -> Result<(), EngineError> {
        let (place, value) = (key::join(key, at), store::encode(Some(value)));
        self.versions.insert(&place[..], &value[..]).map_err(store_error)?;
        Ok(())
    }
}
