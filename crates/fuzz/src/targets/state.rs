//! Small files of state: the log's index, what an engine has applied, redo segments.

use omnibus_engine::CommitNo;
use omnibus_engine_lsm::LsmEngine;
use omnibus_log::{Disk, LogConfig, LogDir};
use omnibus_redo::Participant;
use std::path::Path;
use tempfile::TempDir;

/// A folder that goes with the input. In memory if there is such a place: nothing here is to survive anything.
pub(super) struct Folder(TempDir);

impl Folder {
    pub(super) fn new() -> Folder {
        let memory = Path::new("/dev/shm");
        let made = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
        Folder(made.expect("a temporary folder"))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path().join(name), bytes).expect("a file in a temporary folder");
    }
}

/// Reads a log's index and its list of files to delete; the byte 0xff, which no text has, separates the two in the input.
pub(super) fn log_index(input: &[u8]) {
    let mut parts = input.splitn(2, |byte| *byte == 0xff);
    let folder = Folder::new();
    folder.write("binlog.index", parts.next().unwrap_or_default());
    if let Some(purged) = parts.next() {
        folder.write("binlog.purge", purged);
    }
    folder.write("binlog.000001", b"\xfebin");
    let open = || LogDir::open(folder.path(), LogConfig::default());
    let Ok(dir) = open() else { return };
    let files = dir.files().to_vec();
    assert!(files.windows(2).all(|pair| pair[0].next() == Some(pair[1])), "INDEX-1: no file is left out");
    drop(dir);
    assert_eq!(
        open().ok().map(|dir| dir.files().to_vec()),
        Some(files),
        "what was brought to agreement stays"
    );
}

/// `format`, `applied` and the tree's own two files, separated by a byte.
pub(super) fn engine(input: &[u8]) {
    let folder = Folder::new();
    let mut parts = input.split(|byte| *byte == 0xff);
    let mut give = |name: &str| {
        if let Some(part) = parts.next().filter(|part| !part.is_empty()) {
            folder.write(name, part);
        }
    };
    std::fs::create_dir(folder.path().join("tree")).expect("a folder in a temporary folder");
    for name in ["format", "applied", "tree/current", "tree/v0"] {
        give(name);
    }
    if let Ok(applied) = LsmEngine::applied(folder.path()) {
        assert_eq!(LsmEngine::applied(folder.path()).ok(), Some(applied), "reading it changes nothing");
    }
}

/// Payloads of redo records, each behind two bytes of length; their checksums are made here.
pub(super) fn redo(input: &[u8]) {
    let Some((how, mut rest)) = input.split_first() else { return };
    let mut segment = Vec::new();
    while let [low, high, behind @ ..] = rest {
        let len = usize::from(u16::from_le_bytes([*low, *high])).min(behind.len());
        let (payload, behind) = behind.split_at(len);
        let mut sum = crc32fast::Hasher::new();
        sum.update(&1u64.to_le_bytes());
        sum.update(payload);
        segment.extend_from_slice(&(len as u32).to_le_bytes());
        segment.extend_from_slice(&sum.finalize().to_le_bytes());
        segment.extend_from_slice(payload);
        rest = behind;
    }
    if how & 1 != 0 {
        segment.extend_from_slice(&[1, 2, 3]);
    }
    let folder = Folder::new();
    folder.write("redo.000001", &segment);
    let open = || Participant::open(&Disk::default(), folder.path(), 4096, CommitNo(0));
    if let Ok(participant) = open() {
        let prepared = participant.prepared();
        drop(participant);
        assert_eq!(open().ok().map(|again| again.prepared()), Some(prepared), "opening decides nothing");
    }
}
