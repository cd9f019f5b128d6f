//! The tree's table files on the engine's file system, which may encrypt them. A table file is written once, from its beginning to its end.

use lsm_tree::table_file::{TableFile, TableFiles};
use omnibus_disk::{Disk, File, Open};
use std::io;
use std::path::Path;

/// Makes and opens table files on a disk.
pub(crate) struct OnDisk(pub(crate) Disk);

struct OpenTable(File);

impl TableFiles for OnDisk {
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn TableFile>> {
        Ok(Box::new(OpenTable(File::new(self.0.create_in_order(path)?))))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn TableFile>> {
        Ok(Box::new(OpenTable(self.0.open(path, Open::Read)?)))
    }
}

impl TableFile for OpenTable {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(bytes, offset)
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn sync_all(&self) -> io::Result<()> {
        self.0.sync_all()
    }

    fn size(&self) -> io::Result<u64> {
        self.0.len()
    }
}
