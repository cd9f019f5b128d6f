//! The seam's traits over the model. A request is one step of the schedule; those that take the device a while (a sync, a
//! write-through write) are two, so that others may come in between and a crash find them half done.

use super::{Ino, Lie, SimDisk, Trouble, World};
use crate::random::Random;
use omnibus_disk::{FileSystem, Metadata, Open, OpenFile};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

const EIO: i32 = 5;

#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    ino: Ino,
    fd: u64,
    through: bool,
    /// The number of failed write-backs that were reported on this descriptor.
    told: AtomicU64,
}

fn killed() -> io::Error {
    io::Error::other("the process was killed (simulation)")
}

fn not_found() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl SimDisk {
    /// Runs one step: other threads may run first, and the process may end here.
    fn step<T>(
        &self,
        what: impl FnOnce() -> String,
        request: impl FnOnce(&mut World) -> io::Result<T>,
    ) -> io::Result<T> {
        let thread = self.schedule.step();
        let mut world = self.world.lock();
        if traces() {
            let (disk, step, dead) = (Arc::as_ptr(&self.world), world.steps, world.dead);
            println!("{disk:?} {step} thread {thread:?} {}{}", what(), if dead { " (dead)" } else { "" });
        }
        if world.dead {
            return Err(killed());
        }
        let now = world.steps;
        world.steps += 1;
        match world.troubles.remove(&now) {
            Some(Trouble::Die) => {
                world.dead = true;
                return Err(killed());
            }
            Some(Trouble::FailSync) => world.fail_sync = true,
            Some(Trouble::FailWrite) => world.fail_write = true,
            Some(Trouble::Fill) => world.rules.capacity = world.used(),
            None => {}
        }
        request(&mut world)
    }
}

/// Returns whether each request is printed: `SIM_TRACE=1` with one seed shows how a finding came about.
fn traces() -> bool {
    static TRACES: OnceLock<bool> = OnceLock::new();
    *TRACES.get_or_init(|| std::env::var_os("SIM_TRACE").is_some())
}

impl World {
    fn used(&self) -> u64 {
        self.inodes.values().map(|inode| inode.now.len() as u64).sum()
    }

    fn named(&self, path: &Path) -> io::Result<Ino> {
        self.names.now.get(path).copied().ok_or_else(not_found)
    }

    fn create(&mut self, path: &Path) -> io::Result<Ino> {
        if path.parent().is_some_and(|dir| !self.names.dirs.contains(dir)) {
            return Err(not_found());
        }
        let ino = self.next_ino;
        self.next_ino += 1;
        self.inodes.insert(ino, super::Inode::default());
        self.names.change(&[(path, Some(ino))]);
        Ok(ino)
    }

    fn open(&mut self, path: &Path, how: Open) -> io::Result<Ino> {
        match (self.named(path), how) {
            (Ok(_), Open::CreateNew) => Err(io::ErrorKind::AlreadyExists.into()),
            (Ok(ino), Open::Replace) => {
                self.inode(ino)?.set_len(0);
                Ok(ino)
            }
            (Err(_), Open::CreateNew | Open::Create | Open::Replace) => self.create(path),
            (found, _) => found,
        }
    }

    fn inode(&mut self, ino: Ino) -> io::Result<&mut super::Inode> {
        self.inodes.get_mut(&ino).ok_or_else(not_found)
    }

    fn metadata(&self, ino: Ino) -> io::Result<Metadata> {
        let inode = self.inodes.get(&ino).ok_or_else(not_found)?;
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + self.steps);
        Ok(Metadata { len: inode.now.len() as u64, links: self.names.links(ino), is_file: true, modified })
    }

    /// Returns the number of bytes of a write that the device accepts.
    fn accept(&mut self, ino: Ino, offset: u64, len: usize) -> io::Result<usize> {
        if std::mem::take(&mut self.fail_write) {
            return Err(io::Error::from_raw_os_error(EIO));
        }
        let there = self.inode(ino)?.now.len() as u64;
        let growth = (offset + len as u64).saturating_sub(there);
        let room = self.rules.capacity.saturating_sub(self.used());
        if growth > room {
            let fits = (len as u64).saturating_sub(growth - room);
            if fits == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            return Ok(usize::try_from(fits).unwrap_or(len));
        }
        let unit = self.rules.unit;
        if self.rules.short_writes && len > unit && self.random.one_in(8) {
            return Ok(unit * (1 + self.random.index(len / unit)).min(len / unit));
        }
        Ok(len)
    }
}

impl FileSystem for SimDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn OpenFile>> {
        let (ino, fd, told) = self.step(
            || format!("open {} {how:?}", path.display()),
            |world| {
                let ino = world.open(path, how)?;
                if traces() {
                    println!("  it is file {ino}");
                }
                world.next_fd += 1;
                let errors = world.inode(ino)?.errors;
                Ok((ino, world.next_fd, errors))
            },
        )?;
        let through = matches!(how, Open::WriteThrough | Open::WriteDirect);
        Ok(Box::new(SimFile { disk: self.clone(), ino, fd, through, told: AtomicU64::new(told) }))
    }

    fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.step(
            || format!("look at {}", path.display()),
            |world| {
                if world.names.dirs.contains(path) {
                    let modified = SystemTime::UNIX_EPOCH;
                    return Ok(Metadata { len: 0, links: 1, is_file: false, modified });
                }
                world.metadata(world.named(path)?)
            },
        )
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.step(
            || format!("list {}", dir.display()),
            |world| {
                if !world.names.dirs.contains(dir) {
                    return Err(not_found());
                }
                let inside = |path: &&std::path::PathBuf| path.parent() == Some(dir);
                let all = world.names.now.keys().chain(&world.names.dirs).filter(inside);
                Ok(all.filter_map(|path| path.file_name()).map(OsString::from).collect())
            },
        )
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.step(
            || format!("make {}", dir.display()),
            |world| {
                world.names.dirs.extend(dir.ancestors().map(Path::to_path_buf));
                Ok(())
            },
        )
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(
            || format!("rename {} {}", from.display(), to.display()),
            |world| {
                let ino = world.named(from)?;
                if world.lie == Some(Lie::RenameAsLink) {
                    world.names.change(&[(to, Some(ino))]);
                } else {
                    world.names.change(&[(from, None), (to, Some(ino))]);
                }
                Ok(())
            },
        )
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(
            || format!("link {} {}", from.display(), to.display()),
            |world| {
                let ino = world.named(from)?;
                if world.names.now.contains_key(to) {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                world.names.change(&[(to, Some(ino))]);
                Ok(())
            },
        )
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.step(
            || format!("remove {}", path.display()),
            |world| {
                world.named(path)?;
                world.names.change(&[(path, None)]);
                Ok(())
            },
        )
    }

    fn pause(&self, _: Duration) {
        let _ = self.step(|| "pause".to_owned(), |_| Ok(()));
    }

    fn announce(&self) -> Box<dyn FnOnce() + Send> {
        self.schedule.announce()
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.step(|| format!("begin to sync {}", dir.display()), |_| Ok(()))?;
        self.step(
            || format!("sync {}", dir.display()),
            |world| {
                if std::mem::take(&mut world.fail_sync) {
                    return Err(io::Error::from_raw_os_error(EIO));
                }
                if world.lie != Some(Lie::SyncDir) {
                    world.names.sync_dir(dir);
                }
                Ok(())
            },
        )
    }
}

impl SimFile {
    fn step<T>(
        &self,
        what: impl FnOnce() -> String,
        request: impl FnOnce(&mut World) -> io::Result<T>,
    ) -> io::Result<T> {
        self.disk.step(|| format!("{} of file {}", what(), self.ino), request)
    }

    /// A sync: what was there when it began is durable when it ends.
    fn sync(&self, lie: Lie, metadata: bool) -> io::Result<()> {
        let (covers, was_dirty) = self.step(
            || "begin to sync".to_owned(),
            |world| {
                let inode = world.inode(self.ino)?;
                Ok((inode.newest(), inode.is_dirty()))
            },
        )?;
        self.disk.schedule.syncing();
        self.step(
            || "sync".to_owned(),
            |world| {
                let (unit, told) = (world.rules.unit, self.told.load(Ordering::Relaxed));
                if std::mem::take(&mut world.fail_sync) {
                    world.lost = true;
                    let mut random: Random = world.random.fork();
                    world.inode(self.ino)?.lose(&mut random, unit);
                }
                let told_lie = world.lie;
                let inode = world.inode(self.ino)?;
                if inode.errors > told && told_lie != Some(Lie::HideFailedSync) {
                    self.told.store(inode.errors, Ordering::Relaxed);
                    return Err(io::Error::from_raw_os_error(EIO));
                }
                match told_lie {
                    Some(found) if found == lie => return Ok(()),
                    Some(Lie::SyncLess) => inode.settle(covers.saturating_sub(1)),
                    _ => inode.settle(covers),
                }
                if metadata || was_dirty {
                    world.names.journal_commits();
                }
                Ok(())
            },
        )
    }
}

impl OpenFile for SimFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let wanted = bytes.len();
        self.step(
            || format!("read {wanted} at {offset}"),
            |world| {
                let content = &world.inode(self.ino)?.now;
                let from = usize::try_from(offset).unwrap_or(usize::MAX).min(content.len());
                let count = bytes.len().min(content.len() - from);
                bytes[..count].copy_from_slice(&content[from..from + count]);
                Ok(count)
            },
        )
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let (written, change, lie) = self.step(
            || format!("write {} at {offset}", bytes.len()),
            |world| {
                let count = world.accept(self.ino, offset, bytes.len())?;
                let (unit, lie) = (world.rules.unit, world.lie);
                let kept = match lie {
                    Some(Lie::ShortWriteHidden) if count > 2 * unit => count - unit,
                    _ => count,
                };
                let change = world.inode(self.ino)?.write(offset, &bytes[..kept]);
                Ok((count, change, lie))
            },
        )?;
        if self.through && lie != Some(Lie::WriteThrough) {
            self.step(
                || "write through".to_owned(),
                |world| {
                    world.inode(self.ino)?.force(change);
                    Ok(())
                },
            )?;
        }
        self.disk.schedule.written();
        Ok(written)
    }

    fn metadata(&self) -> io::Result<Metadata> {
        self.step(|| "look".to_owned(), |world| world.metadata(self.ino))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.step(
            || format!("set the length to {len}"),
            |world| {
                if world.lie != Some(Lie::SetLen) {
                    world.inode(self.ino)?.set_len(len);
                }
                Ok(())
            },
        )
    }

    fn reserve(&self, len: u64) -> io::Result<bool> {
        self.step(
            || format!("reserve {len}"),
            |world| {
                let there = world.inode(self.ino)?.now.len() as u64;
                if len.saturating_sub(there) > world.rules.capacity.saturating_sub(world.used()) {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                world.inode(self.ino)?.set_len(len.max(there));
                Ok(true)
            },
        )
    }

    fn sync_data(&self) -> io::Result<()> {
        self.sync(Lie::SyncData, false)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.sync(Lie::SyncAll, true)
    }

    fn forget_cached(&self) -> io::Result<()> {
        self.step(
            || "forget what is cached".to_owned(),
            |world| {
                world.inode(self.ino)?.drop_clean();
                Ok(())
            },
        )
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.step(
            || "lock".to_owned(),
            |world| {
                let inode = world.inode(self.ino)?;
                let free = inode.locked_by.is_none_or(|fd| fd == self.fd);
                if free {
                    inode.locked_by = Some(self.fd);
                }
                Ok(free)
            },
        )
    }
}

impl Drop for SimFile {
    fn drop(&mut self) {
        let mut world = self.disk.world.lock();
        if let Ok(inode) = world.inode(self.ino)
            && inode.locked_by == Some(self.fd)
        {
            inode.locked_by = None;
        }
    }
}
