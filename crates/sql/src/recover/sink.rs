//! The writes of a transaction that is being replayed, in bounded memory: beyond a limit they become sorted runs in files,
//! which are merged in the end. A lookup sees what was written last.

use super::run::{Reader, Run};
use crate::error::{SqlError, SqlResult};
use bytes::Bytes;
use omnibus_engine::{Write, WriteSet};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::Result;
use std::path::{Path, PathBuf};

/// Runs that are merged into one before there is another: each takes a buffer in the last merge.
const MOST_RUNS: usize = 64;

/// See the module.
pub(super) struct Sink {
    set: WriteSet,
    /// Oldest first.
    runs: Vec<Run>,
    folder: PathBuf,
    limit: usize,
}

fn failed(error: std::io::Error) -> SqlError {
    SqlError::internal(format!("a file for the writes of a large transaction: {error}"))
}

impl Sink {
    /// Keeps about `limit` bytes in memory, as write sets count them.
    pub(super) fn new(folder: &Path, limit: usize) -> Sink {
        Sink { set: WriteSet::default(), runs: Vec::new(), folder: folder.to_owned(), limit }
    }

    pub(super) fn write(&mut self, key: Bytes, write: Write) -> SqlResult<()> {
        match write {
            Some(value) => self.set.put(key, value),
            None => self.set.delete(key),
        }
        if self.set.memory() >= self.limit { self.spill().map_err(failed) } else { Ok(()) }
    }

    fn spill(&mut self) -> Result<()> {
        if self.runs.len() >= MOST_RUNS {
            let merged =
                Run::write(&self.folder, Sorted::new(WriteSet::default(), std::mem::take(&mut self.runs))?)?;
            self.runs.push(merged);
        }
        let writes = std::mem::take(&mut self.set);
        self.runs.push(Run::write(&self.folder, writes.into_writes().map(Ok))?);
        Ok(())
    }

    /// The write of a key, if there is one.
    pub(super) fn get(&self, key: &[u8]) -> SqlResult<Option<Write>> {
        if let Some(write) = self.set.get(key) {
            return Ok(Some(write));
        }
        for run in self.runs.iter().rev() {
            if let Some(write) = run.get(key).map_err(failed)? {
                return Ok(Some(write));
            }
        }
        Ok(None)
    }

    /// All writes, if they are in memory.
    pub(super) fn into_set(self) -> std::result::Result<WriteSet, Box<Sink>> {
        if self.runs.is_empty() { Ok(self.set) } else { Err(Box::new(self)) }
    }

    /// All writes in key order, each key once.
    pub(super) fn into_sorted(self) -> SqlResult<Sorted> {
        Sorted::new(self.set, self.runs).map_err(failed)
    }

    /// Forgets all writes.
    pub(super) fn clear(&mut self) {
        self.set.clear();
        self.runs.clear();
    }

    /// Another one with the same limit.
    pub(super) fn empty(&self) -> Sink {
        Sink::new(&self.folder, self.limit)
    }
}

enum Source {
    Memory(omnibus_engine::IntoWrites),
    File(Reader<File>),
}

impl Source {
    fn next(&mut self) -> Option<Result<(Bytes, Write)>> {
        match self {
            Source::Memory(writes) => writes.next().map(Ok),
            Source::File(reader) => reader.next(),
        }
    }
}

/// The next write of a source.
struct Front {
    key: Bytes,
    write: Write,
    /// Newest first.
    source: usize,
}

impl Ord for Front {
    fn cmp(&self, other: &Front) -> Ordering {
        // A heap gives the greatest.
        other.key.cmp(&self.key).then_with(|| other.source.cmp(&self.source))
    }
}

impl PartialOrd for Front {
    fn partial_cmp(&self, other: &Front) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Front {
    fn eq(&self, other: &Front) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Front {}

/// A merge of runs. An error ends it.
pub(super) struct Sorted {
    sources: Vec<Source>,
    fronts: BinaryHeap<Front>,
    last: Bytes,
    failed: Option<std::io::Error>,
}

impl Sorted {
    fn new(newest: WriteSet, runs: Vec<Run>) -> Result<Sorted> {
        let mut sources = vec![Source::Memory(newest.into_writes())];
        sources.extend(runs.into_iter().rev().map(|run| Source::File(run.into_reader())));
        let mut sorted = Sorted { sources, fronts: BinaryHeap::new(), last: Bytes::new(), failed: None };
        for source in 0..sorted.sources.len() {
            sorted.fill(source)?;
        }
        Ok(sorted)
    }

    fn fill(&mut self, source: usize) -> Result<()> {
        if let Some(next) = self.sources[source].next() {
            let (key, write) = next?;
            self.fronts.push(Front { key, write, source });
        }
        Ok(())
    }
}

impl Iterator for Sorted {
    type Item = Result<(Bytes, Write)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(error) = self.failed.take() {
                self.fronts.clear();
                return Some(Err(error));
            }
            let Front { key, write, source } = self.fronts.pop()?;
            self.failed = self.fill(source).err();
            // No key is empty.
            if key != self.last {
                self.last = key.clone();
                return Some(Ok((key, write)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeMap;

    /// However many runs there are, what was written last counts, for lookups and in the end.
    #[test]
    fn runs_are_one_write_set() {
        for (limit, writes) in [(usize::MAX, 500), (2000, 3000), (300, 20_000)] {
            let folder = tempfile::tempdir().unwrap();
            let (mut sink, mut model) = (Sink::new(folder.path(), limit), BTreeMap::new());
            let mut state = 7u64;
            let mut random = |below: u64| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) % below
            };
            for n in 0..writes {
                let key = Bytes::from(format!("k{:05}", random(2000)));
                let size = if n % 500 == 0 { 300_000 } else { n % 100 };
                let write = (n % 7 != 0).then(|| Bytes::from(vec![n as u8; size]));
                sink.write(key.clone(), write.clone()).unwrap();
                model.insert(key, write);
                if n % 50 == 0 {
                    let key = Bytes::from(format!("k{:05}", random(2100)));
                    assert_eq!(sink.get(&key).unwrap().as_ref(), model.get(&key), "{key:?}");
                }
            }
            assert!(sink.runs.len() <= MOST_RUNS + 1);
            let found: Vec<_> = sink.into_sorted().unwrap().map(Result::unwrap).collect();
            assert_eq!(found, model.into_iter().collect::<Vec<_>>());
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "files without a name");
        }
    }
}
