//! A disk in memory that knows what is durable: data, lengths, names. A crash leaves, by a seed, any legal mixture of
//! the rest.
//!
//! - `inode`  one file
//! - `names`  directories
//! - `files`  the seam's two traits over them; each request is a step of the [`Schedule`], and a place to die at
//!
//! A [`SimDisk`] lives as long as one process: [`SimDisk::crash_or_kill`] returns the disk that the next one finds, and
//! remaining users of the old one get errors, as if their calls had never returned from the kernel.

mod files;
mod inode;
mod names;

pub use names::NameRule;

use crate::random::Random;
use crate::schedule::Schedule;
use inode::Inode;
use names::Names;
use omnibus_disk::Disk;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

type Ino = u64;

/// The behaviour of the device.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// The number of bytes that are written whole or not at all.
    pub unit: usize,
    /// See [`NameRule`].
    pub names: NameRule,
    /// Bytes that fit; all that there is room for in the next life.
    pub capacity: u64,
    /// Some writes are shorter than they should be.
    pub short_writes: bool,
}

/// A request that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The process ends before it.
    Die,
    /// The next sync from there on fails, and what it should have written is lost.
    FailSync,
    /// The next write from there on fails.
    FailWrite,
    /// The disk is full from there on.
    Fill,
}

/// The sign of life that a mutant of the disk leaves out; see `docs/internals/simulation.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// A sync of data does nothing, and says that it did.
    SyncData,
    /// A sync of a file does nothing.
    SyncAll,
    /// A sync of a directory does nothing.
    SyncDir,
    /// A write-through write is only in the cache.
    WriteThrough,
    /// A sync covers what was there when it began, but for the newest write.
    SyncLess,
    /// A failed sync says that all is well.
    HideFailedSync,
    /// Setting a length is forgotten.
    SetLen,
    /// A rename leaves the old name there too.
    RenameAsLink,
    /// A write of more than a unit loses its last unit.
    ShortWriteHidden,
}

#[derive(Debug)]
struct World {
    random: Random,
    rules: Rules,
    inodes: BTreeMap<Ino, Inode>,
    names: Names,
    next_ino: Ino,
    next_fd: u64,
    steps: u64,
    troubles: BTreeMap<u64, Trouble>,
    fail_sync: bool,
    fail_write: bool,
    lost: bool,
    dead: bool,
    lie: Option<Lie>,
}

impl World {
    /// Creates an empty, healthy disk.
    fn new(random: Random, rules: Rules) -> World {
        World {
            random,
            rules,
            inodes: BTreeMap::new(),
            names: Names::new(rules.names),
            next_ino: 1,
            next_fd: 1,
            steps: 0,
            troubles: BTreeMap::new(),
            fail_sync: false,
            fail_write: false,
            lost: false,
            dead: false,
            lie: None,
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct SimDisk {
    world: Arc<Mutex<World>>,
    schedule: Arc<Schedule>,
}

impl SimDisk {
    /// An empty disk.
    #[must_use]
    pub fn new(seed: u64, rules: Rules, schedule: Arc<Schedule>) -> SimDisk {
        SimDisk { world: Arc::new(Mutex::new(World::new(Random::new(seed), rules))), schedule }
    }

    /// Returns the disk for the code under test.
    #[must_use]
    pub fn disk(&self) -> Disk {
        Disk::new(Arc::new(self.clone()))
    }

    /// Makes the request fail that comes `after` this number of others.
    pub fn plan(&self, after: u64, trouble: Trouble) {
        let mut world = self.world.lock();
        let at = world.steps + after;
        world.troubles.insert(at, trouble);
    }

    /// Has it lie.
    pub fn set_lie(&self, lie: Option<Lie>) {
        self.world.lock().lie = lie;
    }

    /// Requests so far.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.world.lock().steps
    }

    /// Returns whether a sync of this process has failed.
    #[must_use]
    pub fn has_lost(&self) -> bool {
        self.world.lock().lost
    }

    /// Returns random numbers for code that belongs to this process.
    pub(crate) fn fork_random(&self) -> Random {
        self.world.lock().random.fork()
    }

    /// Returns whether the process has ended.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.world.lock().dead
    }

    /// The process ends here and now: nothing that it asks for is done any more.
    pub fn die(&self) {
        self.world.lock().dead = true;
        self.schedule.let_go();
    }

    /// Forgets what was to go wrong.
    pub fn forget_plans(&self) {
        self.world.lock().troubles.clear();
    }

    /// Returns the disk that the next process finds: after a power cut only the durable state and some of the rest;
    /// after a kill everything that this process saw, no more durable than it was.
    #[must_use]
    pub fn crash_or_kill(&self, power_cut: bool, schedule: &Arc<Schedule>) -> SimDisk {
        self.die();
        self.image(power_cut, schedule)
    }

    /// As [`SimDisk::crash_or_kill`] while this process continues: the disk that would be left if it had ended here.
    #[must_use]
    pub fn image(&self, power_cut: bool, schedule: &Arc<Schedule>) -> SimDisk {
        let schedule = Arc::clone(schedule);
        let mut world = self.world.lock();
        let mut random = world.random.fork();
        let (mut inodes, mut names) = (world.inodes.clone(), world.names.clone());
        if power_cut {
            names.crash(&mut random);
        }
        inodes.retain(|ino, _| names.is_known(*ino));
        for inode in inodes.values_mut() {
            inode.locked_by = None;
            if power_cut {
                inode.forget_cache(&mut random, world.rules.unit);
            }
        }
        // Somebody made room.
        let rules = Rules { capacity: u64::MAX, ..world.rules };
        let (next_ino, lie) = (world.next_ino, world.lie);
        let next = World { inodes, names, next_ino, lie, ..World::new(random, rules) };
        SimDisk { world: Arc::new(Mutex::new(next)), schedule }
    }

    /// Copies all files below the directory that `SIM_KEEP` names, for other tools to look at.
    pub fn keep_files(&self) {
        let Some(root) = std::env::var_os("SIM_KEEP").map(PathBuf::from) else { return };
        for (path, _) in self.listing() {
            let target = root.join(path.strip_prefix("/").unwrap_or(&path));
            if let (Some(bytes), Some(dir)) = (self.peek(&path), target.parent()) {
                let _ = std::fs::create_dir_all(dir).and_then(|()| std::fs::write(&target, bytes));
            }
        }
    }

    /// Turns over a bit of the first place in a directory's files that has these bytes, on the device and in the cache. False if none
    /// has.
    #[must_use]
    pub fn damage(&self, dir: &Path, bytes: &[u8]) -> bool {
        let mut world = self.world.lock();
        let World { names, inodes, .. } = &mut *world;
        let inside = names.now.iter().filter(|(path, _)| path.parent() == Some(dir));
        inside.map(|(_, ino)| *ino).any(|ino| inodes.get_mut(&ino).is_some_and(|inode| inode.damage(bytes)))
    }

    /// The bytes of a file, as they are now, without a step.
    #[must_use]
    pub fn peek(&self, path: &Path) -> Option<Vec<u8>> {
        let world = self.world.lock();
        world.names.now.get(path).and_then(|ino| world.inodes.get(ino)).map(|inode| Vec::clone(&inode.now))
    }

    /// The files there are, with their lengths; for a report.
    #[must_use]
    pub fn listing(&self) -> Vec<(PathBuf, usize)> {
        let world = self.world.lock();
        let len = |ino| world.inodes.get(ino).map_or(0, |inode| inode.now.len());
        world.names.now.iter().map(|(path, ino)| (path.clone(), len(ino))).collect()
    }
}
