//! A file system over the operating system's whose changes stay in memory, for inspecting a directory as a start would
//! without changing it.
//!
//! Changes are kept by block. A directory that does not exist counts as existing if files below it were created; syncs
//! have no effect.

use crate::{Disk, File, FileSystem, Metadata, Open, OpenFile};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

const BLOCK: u64 = 4096;

/// See the module.
#[derive(Debug, Default)]
pub struct Overlay {
    below: Disk,
    /// Files that were opened or renamed; none: the name was taken away.
    names: Mutex<BTreeMap<PathBuf, Option<Arc<Node>>>>,
}

/// A file: what it was, and what was written to it.
#[derive(Debug)]
struct Node {
    below: Option<File>,
    modified: SystemTime,
    state: Mutex<Overlaid>,
}

#[derive(Debug)]
struct Overlaid {
    len: u64,
    /// The number of bytes of the file below that are still visible.
    below: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
}

#[derive(Debug)]
struct Handle(Arc<Node>);

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Overlay {
    /// A disk over the operating system's.
    #[must_use]
    pub fn disk() -> Disk {
        Disk::new(Arc::new(Overlay::default()))
    }

    fn node(
        &self,
        names: &mut BTreeMap<PathBuf, Option<Arc<Node>>>,
        path: &Path,
    ) -> io::Result<Option<Arc<Node>>> {
        if let Some(known) = names.get(path) {
            return Ok(known.clone());
        }
        let below = match self.below.open(path, Open::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let about = below.metadata()?;
        let state = Overlaid { len: about.len, below: about.len, blocks: BTreeMap::new() };
        let node = Arc::new(Node { below: Some(below), modified: about.modified, state: Mutex::new(state) });
        names.insert(path.to_owned(), Some(Arc::clone(&node)));
        Ok(Some(node))
    }

    fn existing(&self, path: &Path) -> io::Result<Arc<Node>> {
        self.node(&mut locked(&self.names), path)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl FileSystem for Overlay {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn OpenFile>> {
        let mut names = locked(&self.names);
        let node = match (self.node(&mut names, path)?, how) {
            (Some(_), Open::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(node), Open::Replace) => {
                locked(&node.state).set_len(0);
                node
            }
            (Some(node), _) => node,
            (None, Open::CreateNew | Open::Create | Open::Replace) => {
                let state = Overlaid { len: 0, below: 0, blocks: BTreeMap::new() };
                let (below, modified) = (None, SystemTime::now());
                let node = Arc::new(Node { below, modified, state: Mutex::new(state) });
                names.insert(path.to_owned(), Some(Arc::clone(&node)));
                node
            }
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Box::new(Handle(node)))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        match locked(&self.names).get(path) {
            Some(Some(node)) => node.metadata(),
            Some(None) => Err(io::ErrorKind::NotFound.into()),
            None => self.below.metadata(path),
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        let names = locked(&self.names);
        let mut found: BTreeSet<OsString> = match self.below.list(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeSet::new(),
            below => below?.into_iter().collect(),
        };
        for (path, node) in names.iter().filter(|(path, _)| path.parent() == Some(dir)) {
            let Some(name) = path.file_name() else { continue };
            match node {
                Some(_) => found.insert(name.to_owned()),
                None => found.remove(name),
            };
        }
        Ok(found.into_iter().collect())
    }

    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let node = self.existing(from)?;
        let mut names = locked(&self.names);
        names.insert(to.to_owned(), Some(node));
        names.insert(from.to_owned(), None);
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let node = self.existing(from)?;
        locked(&self.names).insert(to.to_owned(), Some(node));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.existing(path)?;
        locked(&self.names).insert(path.to_owned(), None);
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

impl Overlaid {
    fn set_len(&mut self, len: u64) {
        self.blocks.split_off(&len.div_ceil(BLOCK));
        if let Some(block) = self.blocks.get_mut(&(len / BLOCK)) {
            block[(len % BLOCK) as usize..].fill(0);
        }
        self.below = self.below.min(len);
        self.len = len;
    }
}

/// Calls `each` with the block, where in it, and how many of the bytes, for each block of a range.
fn blocks(
    offset: u64,
    len: usize,
    mut each: impl FnMut(u64, usize, std::ops::Range<usize>) -> io::Result<()>,
) -> io::Result<()> {
    let mut done = 0;
    while done < len {
        let at = offset + done as u64;
        let skip = (at % BLOCK) as usize;
        let part = (len - done).min(BLOCK as usize - skip);
        each(at / BLOCK, skip, done..done + part)?;
        done += part;
    }
    Ok(())
}

impl Node {
    fn metadata(&self) -> io::Result<Metadata> {
        Ok(Metadata { len: locked(&self.state).len, links: 1, is_file: true, modified: self.modified })
    }

    /// Reads the file below, and zeros behind its visible part.
    fn read_below(&self, state: &Overlaid, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let there =
            usize::try_from(state.below.saturating_sub(offset)).unwrap_or(usize::MAX).min(bytes.len());
        let (below, behind) = bytes.split_at_mut(there);
        behind.fill(0);
        match &self.below {
            Some(file) => file.read_exact_at(below, offset),
            None => Ok(()),
        }
    }
}

impl OpenFile for Handle {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = locked(&self.0.state);
        let len = usize::try_from(state.len.saturating_sub(offset)).unwrap_or(usize::MAX).min(bytes.len());
        let bytes = &mut bytes[..len];
        self.0.read_below(&state, bytes, offset)?;
        blocks(offset, len, |number, skip, part| {
            if let Some(block) = state.blocks.get(&number) {
                let len = part.len();
                bytes[part].copy_from_slice(&block[skip..skip + len]);
            }
            Ok(())
        })?;
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = locked(&self.0.state);
        blocks(offset, bytes.len(), |number, skip, part| {
            if !state.blocks.contains_key(&number) {
                let mut block = vec![0; BLOCK as usize].into_boxed_slice();
                self.0.read_below(&state, &mut block, number * BLOCK)?;
                state.blocks.insert(number, block);
            }
            if let Some(block) = state.blocks.get_mut(&number) {
                block[skip..skip + part.len()].copy_from_slice(&bytes[part]);
            }
            Ok(())
        })?;
        state.len = state.len.max(offset + bytes.len() as u64);
        Ok(bytes.len())
    }

    fn metadata(&self) -> io::Result<Metadata> {
        self.0.metadata()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        locked(&self.0.state).set_len(len);
        Ok(())
    }

    fn reserve(&self, len: u64) -> io::Result<bool> {
        let mut state = locked(&self.0.state);
        state.len = state.len.max(len);
        Ok(true)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self) -> io::Result<bool> {
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn changes_are_seen_above_and_not_below() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        std::fs::write(path("a"), vec![1; 10_000]).unwrap();
        std::fs::write(path("b"), b"b").unwrap();
        let disk = Overlay::disk();
        let file = disk.open(&path("a"), Open::Write).unwrap();
        file.write_all_at(&[2; 10], 4090).unwrap();
        file.set_len(9000).unwrap();
        file.set_len(9500).unwrap();
        let mut expected = vec![1; 9000];
        expected[4090..4100].fill(2);
        expected.resize(9500, 0);
        assert_eq!(disk.read(&path("a")).unwrap(), expected);
        disk.rename(&path("a"), &path("c")).unwrap();
        disk.remove(&path("b")).unwrap();
        disk.open(&path("d"), Open::CreateNew).unwrap().write_all_at(b"new", 5000).unwrap();
        assert_eq!(disk.list(place.path()).unwrap(), ["c", "d"]);
        assert!(!disk.exists(&path("a")).unwrap() && disk.exists(&path("c")).unwrap());
        assert_eq!(disk.metadata(&path("d")).unwrap().len, 5003);
        assert!(
            disk.open(&path("c"), Open::CreateNew).is_err() && disk.open(&path("b"), Open::Read).is_err()
        );
        disk.open(&path("c"), Open::Replace).unwrap();
        assert_eq!(disk.read(&path("c")).unwrap(), b"");
        assert_eq!(std::fs::read(path("a")).unwrap(), vec![1; 10_000]);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 2);
    }
}
