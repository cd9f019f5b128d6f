//! The binary log as files: `binlog.000001`, `binlog.000002`, … and `binlog.index`.
//!
//! This crate writes finished event bytes to the active file and makes them durable, switches files, finds the valid
//! end after a crash, reads events back, prepares empty files ahead of time and removes old ones. Of an event it knows
//! only the frame (length, end position, checksum) and the few types that open and close a transaction. It assigns no
//! commit numbers and takes no decision of recovery.
//!
//! | caller | functions | thread |
//! |---|---|---|
//! | start-up, recovery | [`LogDir::open`], [`RecoveryScan::new`](crate::RecoveryScan::new), [`LogDir::truncate_tail`], [`LogWriter::start`](crate::LogWriter::start) | the main thread |
//! | flush stage | [`LogWriter`] (one owner, `&mut self`) | the flush leader |
//! | sync stage | [`WriteJob::run`] and its siblings | any thread |
//! | sessions | [`LogHandle::list`], [`LogHandle::purge_to`], [`TailReader`] | any thread |
//!
//! Invariants: LOG-1 (the file parses up to the durable end), LOG-2 (bytes behind the durable end never parse as an
//! event), PURGE-1 (no file is removed that recovery or a connected replica needs), INDEX-1 (every file that the index
//! names exists and starts with a whole header), INDEX-2 (a file holds transactions only if the index names it).
//!
//! A new log, one event in it, durable:
//!
//! ```
//! use omnibus_format::events::Xid;
//! use omnibus_format::writer::write_final;
//! use omnibus_format::{Checksum, EventContext, EventType, FormatDescription};
//! use omnibus_log::{LogConfig, LogDir, LogWriter};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path();
//! let context = EventContext { timestamp: 1_767_225_600, server_id: 1 };
//! let mut head = Vec::new();
//! let description = FormatDescription::new("8.4.0-example", 0, Checksum::Crc32);
//! write_final(&mut head, context, EventType::FORMAT_DESCRIPTION, 1, 4, Checksum::Crc32, |body| description.encode(body));
//!
//! let mut writer = LogWriter::start(LogDir::open(path, LogConfig::default())?, &head)?;
//! let (at, out) = (writer.position().offset.0, writer.buffer().vec());
//! write_final(out, context, EventType::XID, 0, at, Checksum::Crc32, |body| Xid(7).encode(body));
//! let job = writer.seal();
//! let end = job.end();
//! job.run()?; // durable when it returns
//! writer.handle().durable_end().advance(end);
//! assert_eq!(writer.handle().list()[0].size, end.offset.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod behind;
mod buffer;
mod clip;
mod clock;
mod config;
mod dir;
mod durable;
mod error;
mod fault;
mod file;
mod finish;
mod fronts;
mod generation;
mod groups;
mod handle;
mod index;
#[cfg(test)]
mod interleavings;
mod io;
mod job;
mod lock;
mod measure;
#[doc(hidden)]
pub mod mutant;
mod position;
mod prealloc;
mod prepare;
mod promote;
mod purge;
mod recent;
mod recover;
mod reserve;
mod reset;
mod run;
mod scan;
mod size;
mod space;
mod tail;
mod transaction;
mod writer;

#[cfg(test)]
mod tests;

use omnibus_sync as sync;

pub use behind::Seen;
pub use buffer::{AlignedBuf, BLOCK};
pub use clip::clip_file;
pub use clock::now_us;
pub use config::{FlushMethod, LogConfig, Room};
pub use dir::{LogDir, listed_files};
pub use durable::DurableEnd;
pub use error::{
    IndexError, IoFailure, LockError, OpenError, PrepareError, PurgeError, ReadError, ResetError,
    RotateError, WriteError,
};
#[cfg(any(test, feature = "faults"))]
pub use fault::Action;
pub use fault::{Faults, Point};
pub use groups::{Behind, GroupedFile, GroupsEnd};
pub use handle::{FileEntry, LogHandle};
pub use job::{WriteJob, jobs_overlap};
pub use lock::DirLock;
pub use measure::{Allocation, SyncCall, measure_sync};
pub use omnibus_disk::{Disk, File, FileSystem, FullDisk, Metadata, Open, OpenFile, Overlay};
pub use position::{FileNames, FileSeq, LogOffset, LogPosition};
pub use prealloc::room_to_start;
pub use prepare::{Preparation, PreparedReport, Progress, prepare_file, remove_stale_temporaries};
pub use promote::Spilled;
pub use purge::{PurgeLimit, Purged};
pub use recover::{LogTail, RecoveryItem, RecoveryScan, TailGroups};
pub use run::Run;
pub use scan::{Next, RawEvent, ReadFile, ScanEnd, Torn, TornReason};
pub use size::parse_size;
pub use tail::{FilePin, TailNext, TailReader, TailRun};
pub use transaction::{EventPlace, TransactionTracker};
pub use writer::LogWriter;
