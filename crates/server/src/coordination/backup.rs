//! BACKUP TO: a copy of the running server's data directory, as a crash at one position of the log would leave it.
//!
//! The engines' files come first, each as far as it is persistent; then the log from the file that recovery of those
//! would begin with, up to a position that was published after them. Log files that are closed never change and are
//! linked; the active one is copied up to the position. Nothing waits: the log files are pinned against purging
//! (PURGE-1), and the engines say how they copy themselves. On a thread that may block.

use crate::backup::{BackupInfo, BackupTarget, copy_file, finish, sync_folder};
use omnibus_commit::{Coordinator, SnapshotReader};
use omnibus_engine::interruptible::GoOn;
use omnibus_engine::{CommitNo, EngineError};
use omnibus_log::{FilePin, FileSeq, LogHandle, LogPosition, Open, ReadError};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long one group may be on its way to the device. Only a log that has failed takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub(super) enum BackupFailure {
    #[error("{0}")]
    Place(String),
    #[error("{what}: {source}")]
    Io {
        what: String,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Log(#[from] ReadError),
    #[error("the log was reset meanwhile")]
    Reset,
    #[error("the log does not get on")]
    Stuck,
}

fn failed<E: Into<io::Error>>(what: &Path) -> impl FnOnce(E) -> BackupFailure + '_ {
    move |source| BackupFailure::Io { what: what.display().to_string(), source: source.into() }
}

/// Makes a backup in a folder that does not exist or is empty.
pub(super) fn backup(
    coordinator: &Coordinator,
    target: &BackupTarget,
    go_on: GoOn<'_>,
) -> Result<BackupInfo, BackupFailure> {
    let (datadir, name) = (coordinator.log().files().path(), target.name());
    let parent = target.parent().map_err(failed(name))?;
    if datadir.canonicalize().is_ok_and(|datadir| parent.starts_with(datadir)) {
        return Err(BackupFailure::Place(format!("'{}' is inside of the data directory", name.display())));
    }
    let root = target.begin().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            BackupFailure::Place(format!("'{}' exists and is not an empty folder", name.display()))
        }
        _ => failed(name)(error),
    })?;
    let filled = fill(coordinator, datadir, root.path(), go_on).and_then(|info| {
        target.sync().map_err(failed(name))?;
        Ok(info)
    });
    filled.map_err(|failure| {
        // What is left, if this fails too, says that it is incomplete.
        target.remove();
        let text = failure.to_string();
        BackupFailure::Place(text.replace(&*root.path().to_string_lossy(), &name.to_string_lossy()))
    })
}

fn fill(
    coordinator: &Coordinator,
    datadir: &Path,
    root: &Path,
    go_on: GoOn<'_>,
) -> Result<BackupInfo, BackupFailure> {
    let files = coordinator.log().files();
    // Engines only get further: what recovery needs now is enough for a copy that is made later.
    let first = coordinator.recovery_start()?;
    let pin = FilePin::new(files, first)?;
    coordinator.engine().backup_to(root, go_on)?;
    let mut held = coordinator.reader();
    let (number, end) = published_now(coordinator, &mut held, go_on)?;
    let gtid_executed = coordinator.gtids().state_at(number).to_string();
    held.release();
    // Finished files lose their spare tails in the background.
    files.wait_for_background();
    let wanted: Vec<FileSeq> = files
        .list()
        .iter()
        .map(|entry| entry.file)
        .filter(|file| (first..=end.file).contains(file))
        .collect();
    if wanted.first() != Some(&first) || wanted.last() != Some(&end.file) {
        return Err(BackupFailure::Reset);
    }
    let names = files.names();
    let mut index = String::new();
    for file in wanted {
        let name = names.log(file);
        let (from, to) = (datadir.join(&name), root.join(&name));
        let done = if file == end.file {
            copy_file(&from, &to, Some(end.offset.0 + front(files, end.file)?), go_on)
        } else {
            std::fs::hard_link(&from, &to).or_else(|_| copy_file(&from, &to, None, go_on))
        };
        done.map_err(failed(&from))?;
        index.push_str(&format!("./{name}\n"));
    }
    // The same names may be other files by now, behind transactions that no file has any more.
    if pin.is_stale() {
        return Err(BackupFailure::Reset);
    }
    drop(pin);
    let index_path = root.join(names.index());
    std::fs::write(&index_path, index).map_err(failed(&index_path))?;
    let sync = |path: &Path| std::fs::File::open(path).and_then(|file| file.sync_all());
    sync(&index_path).map_err(failed(&index_path))?;
    copy_small_files(datadir, root)?;
    sync_folder(root).map_err(failed(root))?;
    let format = std::fs::read_to_string(datadir.join(crate::datadir::MARKER)).map_err(failed(datadir))?;
    let info = BackupInfo {
        file: names.log(end.file),
        position: end.offset.0,
        gtid_executed,
        ..BackupInfo::default()
    };
    finish(root, info, &format, go_on).map_err(failed(root))
}

/// How many bytes are in front of a file's position 0: it is copied as it is.
fn front(files: &LogHandle, file: FileSeq) -> Result<u64, BackupFailure> {
    let path = files.path().join(files.names().log(file));
    files.disk().open(&path, Open::Read).map(|file| file.front()).map_err(failed(&path))
}

/// A published place that is not before what the engines have: they learn what is durable a moment earlier.
fn published_now(
    coordinator: &Coordinator,
    held: &mut SnapshotReader,
    go_on: GoOn<'_>,
) -> Result<(CommitNo, LogPosition), BackupFailure> {
    let newest = coordinator.numbered();
    let started = Instant::now();
    loop {
        let place = held.take_with_position();
        if place.0 >= newest {
            return Ok(place);
        }
        go_on().map_err(|source| BackupFailure::Io { what: "the log".to_owned(), source })?;
        if started.elapsed() > PATIENCE {
            return Err(BackupFailure::Stuck);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The server's identity, what SET PERSIST has kept, the keys that its clients know it by, its tables' key under its master key, and the
/// passwords that it has for its sources.
fn copy_small_files(datadir: &Path, root: &Path) -> Result<(), BackupFailure> {
    for entry in std::fs::read_dir(datadir).map_err(failed(datadir))? {
        let entry = entry.map_err(failed(datadir))?;
        let name = entry.file_name();
        let wanted = name == crate::datadir::AUTO
            || name == omnibus_encryption::TABLE_KEY_FILE
            || name == crate::sysvars::persisted::FILE
            || name == omnibus_encryption::REPLICA_PASSWORDS
            || Path::new(&name).extension().is_some_and(|end| end == "pem");
        if wanted && entry.path().is_file() {
            let to = root.join(&name);
            copy_file(&entry.path(), &to, None, &|| Ok(())).map_err(failed(&to))?;
        }
    }
    Ok(())
}
