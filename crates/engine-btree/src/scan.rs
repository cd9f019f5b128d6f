//! A scan: what a number may see of the layers and of the file, merged.

use crate::key;
use crate::layer::{Layer, Span, Version, span};
use crate::shared::Shared;
use crate::store::Versions;
use crate::{damage, store_error};
use bytes::Bytes;
use omnibus_engine::EngineError;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::Arc;

const FIRST_BATCH: usize = 8;
const LAST_BATCH: usize = 256;

/// All versions of a range, in key order of the scan's direction.
enum Raw {
    Layer { layer: Arc<Layer>, span: Span, ready: VecDeque<Version>, batch: usize, more: bool },
    File { range: redb::Range<'static, key::VersionKey, &'static [u8]>, shared: Arc<Shared> },
}

impl Raw {
    fn next(&mut self, reverse: bool) -> Option<Result<Version, EngineError>> {
        match self {
            Raw::Layer { layer, span, ready, batch, more } => {
                if ready.is_empty() && *more {
                    match layer.batch(span, reverse, *batch, ready) {
                        Ok(left) => *more = left,
                        Err(error) => return Some(Err(error)),
                    }
                    *batch = (*batch * 2).min(LAST_BATCH);
                }
                ready.pop_front().map(Ok)
            }
            Raw::File { range, shared } => damage::caught(&shared.store.path, || {
                let Some(next) = (if reverse { range.next_back() } else { range.next() }) else {
                    return Ok(None);
                };
                let (place, value) = next.map_err(store_error)?;
                let (key, number) = key::split(place.value());
                let value = crate::store::decode(value.value())?;
                Ok(Some(Version { key: Bytes::copy_from_slice(key), number, value }))
            })
            .transpose(),
        }
    }
}

/// A source of the newest visible version of each key.
struct VersionCursor {
    raw: Raw,
    at: u64,
    reverse: bool,
    /// Descending, a key's newest version comes last: the next key's first one is read to know.
    ahead: Option<Version>,
    front: Option<Version>,
    last: Bytes,
    ended: bool,
}

impl VersionCursor {
    fn new(raw: Raw, at: u64, reverse: bool) -> VersionCursor {
        VersionCursor { raw, at, reverse, ahead: None, front: None, last: Bytes::new(), ended: false }
    }

    fn fill(&mut self) -> Result<(), EngineError> {
        if self.front.is_none() && !self.ended {
            self.front = if self.reverse { self.backward()? } else { self.forward()? };
            self.ended = self.front.is_none();
        }
        Ok(())
    }

    fn forward(&mut self) -> Result<Option<Version>, EngineError> {
        while let Some(version) = self.raw.next(false).transpose()? {
            if version.number <= self.at && version.key != self.last {
                self.last = version.key.clone();
                return Ok(Some(version));
            }
        }
        Ok(None)
    }

    fn backward(&mut self) -> Result<Option<Version>, EngineError> {
        let mut best = self.ahead.take();
        while let Some(version) = self.raw.next(true).transpose()? {
            if version.number > self.at {
                continue;
            }
            if best.as_ref().is_some_and(|best| best.key != version.key) {
                self.ahead = Some(version);
                break;
            }
            best = Some(version);
        }
        Ok(best)
    }
}

/// Newest source first: of equal keys the first one's version counts.
pub(crate) struct Scan {
    sources: Vec<VersionCursor>,
    reverse: bool,
    failed: bool,
}

impl Scan {
    pub(crate) fn new(
        shared: &Arc<Shared>,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        at: u64,
        reverse: bool,
    ) -> Result<Scan, EngineError> {
        let view = shared.views.current();
        let bounds = span(from, to);
        let mut sources = Vec::new();
        for layer in view.layers().filter(|layer| !layer.is_empty()) {
            let (layer, span) = (Arc::clone(layer), bounds.clone());
            let raw = Raw::Layer { layer, span, ready: VecDeque::new(), batch: FIRST_BATCH, more: true };
            sources.push(VersionCursor::new(raw, at, reverse));
        }
        let range = damage::caught(&shared.store.path, || file_range(&view.file, from, to))?;
        let raw = Raw::File { range, shared: Arc::clone(shared) };
        sources.push(VersionCursor::new(raw, at, reverse));
        Ok(Scan { sources, reverse, failed: false })
    }

    fn advance(&mut self) -> Result<Option<Version>, EngineError> {
        let mut best: Option<&Bytes> = None;
        for source in &mut self.sources {
            source.fill()?;
        }
        for front in self.sources.iter().filter_map(|source| source.front.as_ref()) {
            let order = best.map_or(Ordering::Less, |best| front.key.cmp(best));
            if order == if self.reverse { Ordering::Greater } else { Ordering::Less } || best.is_none() {
                best = Some(&front.key);
            }
        }
        let Some(best) = best.cloned() else { return Ok(None) };
        let mut newest = None;
        for source in &mut self.sources {
            if let Some(found) = source.front.take_if(|front| front.key == best)
                && newest.is_none()
            {
                newest = Some(found);
            }
        }
        Ok(newest)
    }
}

fn file_range(
    file: &Versions,
    from: Bound<&[u8]>,
    to: Bound<&[u8]>,
) -> Result<redb::Range<'static, key::VersionKey, &'static [u8]>, EngineError> {
    let from = match from {
        Bound::Included(key) => Bound::Included(key::join(key, u64::MAX)),
        Bound::Excluded(key) => Bound::Excluded(key::join(key, 0)),
        Bound::Unbounded => Bound::Unbounded,
    };
    let to = match to {
        Bound::Included(key) => Bound::Included(key::join(key, 0)),
        Bound::Excluded(key) => Bound::Excluded(key::join(key, u64::MAX)),
        Bound::Unbounded => Bound::Unbounded,
    };
    let bounds = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
    file.range::<&[u8]>(bounds).map_err(store_error)
}

impl Iterator for Scan {
    type Item = Result<(Bytes, Bytes), EngineError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed {
            match self.advance() {
                Ok(None) => return None,
                Ok(Some(Version { key, value: Some(value), .. })) => return Some(Ok((key, value))),
                Ok(Some(_)) => {}
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}
