//! Names of files: what a directory says now, what the device has of it, and what is in between.
//!
//! Directories themselves are durable once they are made: the code under test makes none that matters while data
//! depends on it.

use super::Ino;
use crate::random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The guarantees of a file system about names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// POSIX: only a sync of the directory makes names durable, and without one any subset of the changes may be there.
    Strict,
    /// A journalling file system: changes reach the device in order, and a sync of any file makes the earlier ones
    /// durable.
    Journal,
}

/// One atomic change: names and the files that they refer to afterwards.
#[derive(Clone, Debug)]
struct Change(Vec<(PathBuf, Option<Ino>)>);

impl Change {
    fn apply(&self, to: &mut BTreeMap<PathBuf, Ino>) {
        for (path, ino) in &self.0 {
            match ino {
                Some(ino) => to.insert(path.clone(), *ino),
                None => to.remove(path),
            };
        }
    }

    fn is_in(&self, dir: &Path) -> bool {
        self.0.iter().any(|(path, _)| path.parent() == Some(dir))
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Names {
    rule: NameRule,
    pub(super) now: BTreeMap<PathBuf, Ino>,
    pub(super) dirs: BTreeSet<PathBuf>,
    durable: BTreeMap<PathBuf, Ino>,
    changes: Vec<Change>,
}

impl Names {
    pub(super) fn new(rule: NameRule) -> Names {
        Names {
            rule,
            now: BTreeMap::new(),
            dirs: BTreeSet::new(),
            durable: BTreeMap::new(),
            changes: Vec::new(),
        }
    }

    pub(super) fn change(&mut self, names: &[(&Path, Option<Ino>)]) {
        let change = Change(names.iter().map(|(path, ino)| (path.to_path_buf(), *ino)).collect());
        change.apply(&mut self.now);
        self.changes.push(change);
    }

    pub(super) fn sync_dir(&mut self, dir: &Path) {
        let all = self.rule == NameRule::Journal;
        let durable = &mut self.durable;
        self.changes.retain(|change| {
            let goes = all || change.is_in(dir);
            if goes {
                change.apply(durable);
            }
            !goes
        });
    }

    /// A file was synced whose metadata had changed.
    pub(super) fn journal_commits(&mut self) {
        if self.rule == NameRule::Journal {
            self.changes.drain(..).for_each(|change| change.apply(&mut self.durable));
        }
    }

    /// A power cut.
    pub(super) fn crash(&mut self, random: &mut Random) {
        let (mode, some) = (random.below(4), random.index(self.changes.len() + 1));
        for (index, change) in self.changes.drain(..).enumerate() {
            let survives = match (self.rule, mode) {
                (_, 0) => false,
                (_, 1) => true,
                (NameRule::Journal, _) | (_, 2) => index < some,
                (NameRule::Strict, _) => random.one_in(2),
            };
            if survives {
                change.apply(&mut self.durable);
            }
        }
        self.now.clone_from(&self.durable);
    }

    pub(super) fn links(&self, ino: Ino) -> u64 {
        self.now.values().filter(|other| **other == ino).count() as u64
    }

    /// Returns whether the device or the directory still knows the file.
    pub(super) fn is_known(&self, ino: Ino) -> bool {
        self.now.values().chain(self.durable.values()).any(|other| *other == ino)
            || self.changes.iter().any(|change| change.0.iter().any(|(_, other)| *other == Some(ino)))
    }
}
