//! A walk over what a large transaction has staged (`staged`).

use crate::key::Span;
use bytes::Bytes;
use omnibus_engine::{EngineError, Pending, WriteSet, WriteSetIter};
use std::ops::Bound;

/// A walk over a part of what was staged, forward.
pub(crate) struct Walk<'m> {
    rest: WriteSetIter<'m>,
    now: Option<Pending<'m>>,
    /// The commit number of all versions.
    pub(crate) number: u64,
}

impl<'m> Walk<'m> {
    pub(crate) fn new(writes: &'m WriteSet, span: &Span, number: u64) -> Walk<'m> {
        Walk { rest: within(writes, span, false), now: None, number }
    }

    pub(crate) fn advance(&mut self) -> Result<bool, EngineError> {
        self.now = self.rest.next().transpose()?;
        Ok(self.now.is_some())
    }

    /// The key of the present version. Valid only after `advance` returned true.
    pub(crate) fn key(&self) -> &[u8] {
        self.now.as_ref().map_or(&[], Pending::key)
    }

    pub(crate) fn value(&self) -> Option<Bytes> {
        self.now.as_ref().and_then(Pending::write)
    }
}

/// Each key has one version, so the bounds' numbers say nothing.
pub(crate) fn within<'m>(writes: &'m WriteSet, span: &Span, reverse: bool) -> WriteSetIter<'m> {
    let bounds = (span.0.as_ref().map(|from| &from.key[..]), span.1.as_ref().map(|to| &to.key[..]));
    writes.range::<(Bound<&[u8]>, Bound<&[u8]>)>(bounds, reverse)
}
