//! Copies of files that somebody may end. They take minutes, and who asked for them may have gone.

use std::fs::File;
use std::io::{self, Read};

/// Asked now and then by what takes long; its error ends that.
pub type GoOn<'a> = &'a dyn Fn() -> io::Result<()>;

/// Bytes copied between two questions.
const PIECE: u64 = 4 << 20;
/// Bytes copied between two syncs: the last one can't be ended, and has no more than these to write.
const SYNC: u64 = 64 << 20;

/// Copies a file's bytes from where it stands, at most `bytes`; how many there were. They are durable on return.
///
/// # Errors
/// The operating system's, or that of `go_on`.
pub fn copy(from: &File, mut to: &File, bytes: u64, go_on: GoOn<'_>) -> io::Result<u64> {
    let (mut copied, mut synced) = (0, 0);
    while copied < bytes {
        go_on()?;
        let wanted = PIECE.min(bytes - copied);
        let piece = io::copy(&mut from.take(wanted), &mut to)?;
        copied += piece;
        if piece < wanted {
            break;
        }
        if copied - synced >= SYNC {
            to.sync_data()?;
            synced = copied;
        }
    }
    to.sync_all()?;
    Ok(copied)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn a_copy_is_whole_or_was_ended() {
        let bytes = vec![7; PIECE as usize + 9];
        let (mut from, mut to) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        io::Write::write_all(&mut from, &bytes).unwrap();
        let copied = |limit, go_on: GoOn<'_>| {
            io::Seek::rewind(&mut &from)?;
            copy(&from, &to, limit, go_on)
        };
        assert_eq!(copied(5, &|| Ok(())).unwrap(), 5);
        assert_eq!(copied(u64::MAX, &|| Ok(())).unwrap(), bytes.len() as u64);
        let asked = Cell::new(0);
        let ended = copied(u64::MAX, &|| {
            asked.set(asked.get() + 1);
            if asked.get() == 2 { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
        });
        assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::Interrupted);
        io::Seek::rewind(&mut to).unwrap();
        let mut found = Vec::new();
        to.read_to_end(&mut found).unwrap();
        assert_eq!(found.len(), 5 + bytes.len() + PIECE as usize);
    }
}
