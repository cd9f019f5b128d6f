//! Progress notes for programs that show them.

use omnibus_replication::client::Pause;

/// A progress note.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Note {
    /// Bytes of the log are in the archive.
    Shipped {
        /// The server's file.
        file: String,
        /// Up to here.
        position: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// The bytes of a file that were archived before equal the server's.
    Checked {
        /// The server's file.
        file: String,
        /// Up to here.
        position: u64,
    },
    /// A log file has ended, and all of it is in the archive.
    Ended {
        /// The server's file.
        file: String,
        /// Its length.
        bytes: u64,
    },
    /// A base backup is in the archive.
    Backup {
        /// Its name.
        id: String,
        /// The log file of its position.
        file: String,
        /// The position.
        position: u64,
        /// Bytes of its files.
        bytes: u64,
    },
    /// Retention removed something.
    Removed {
        /// A backup, or a log file.
        what: String,
    },
    /// Something does not work, and is tried again, after a pause if there is one.
    Trouble {
        /// In words.
        what: String,
        /// The pause until then.
        pause: Option<Pause>,
    },
    /// A part of a restore is done.
    Restored {
        /// A file of the data directory.
        file: String,
        /// Bytes of it.
        bytes: u64,
    },
}

/// Receives notes, from several threads.
pub type Notes<'a> = &'a (dyn Fn(Note) + Sync);
