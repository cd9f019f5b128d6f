//! Where the server's messages go: standard error, or the file of `log_error`, which SIGHUP, FLUSH LOGS and FLUSH ERROR LOGS
//! open anew after somebody has renamed it.
//!
//! One for the process, as messages come from every thread and every crate. Writing never fails as far as others can see: a
//! message that a full disk does not take is lost, and nothing else is.

use parking_lot::Mutex;
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

static FILE: Mutex<Option<(PathBuf, File)>> = Mutex::new(None);

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// From now on messages go to the file, panics too.
///
/// # Errors
/// It can't be opened.
pub(crate) fn use_file(path: &Path) -> io::Result<()> {
    let file = open(path)?;
    *FILE.lock() = Some((path.to_owned(), file));
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    Ok(())
}

/// Opens the file again under its name. The old one goes on being used if that fails.
pub(crate) fn reopen() {
    let mut current = FILE.lock();
    let Some((path, file)) = current.as_mut() else { return };
    let opened = open(path);
    let failed = opened.map(|new| *file = new).err();
    let path = path.clone();
    drop(current);
    if let Some(error) = failed {
        tracing::error!(%error, path = %path.display(), "log_error can't be opened again; messages go where they went");
    }
}

/// A message on one line: what clients and peers put into it begins no line of its own, and no other control character
/// reaches whoever looks at it. Colours of the log itself are kept.
fn on_one_line(message: &[u8]) -> Cow<'_, [u8]> {
    const ESCAPE: u8 = 0x1b;
    let text = message.strip_suffix(b"\n").unwrap_or(message);
    let plain = |byte: &u8| !byte.is_ascii_control() || matches!(byte, b'\t' | &ESCAPE);
    if text.iter().all(plain) {
        return message.into();
    }
    let mut line = Vec::with_capacity(message.len() + 16);
    for byte in text {
        if plain(byte) { line.push(*byte) } else { line.extend(byte.escape_ascii()) }
    }
    line.extend_from_slice(&message[text.len()..]);
    line.into()
}

/// Takes one message.
#[derive(Clone, Copy, Debug, Default)]
pub struct ErrorLog;

impl Write for ErrorLog {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        let _ = match FILE.lock().as_mut() {
            Some((_, file)) => file.write_all(&on_one_line(message)),
            None => io::stderr().write_all(&on_one_line(message)),
        };
        Ok(message.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_file_is_followed_by_a_new_one_and_lost_messages_are_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("error.log");
        use_file(&path).unwrap();
        let _ = std::panic::take_hook();
        ErrorLog.write_all(b"one\n").unwrap();
        std::fs::rename(&path, dir.path().join("error.old")).unwrap();
        ErrorLog.write_all(b"two\n").unwrap();
        reopen();
        ErrorLog.write_all(b"three\n").unwrap();
        assert_eq!(std::fs::read_to_string(dir.path().join("error.old")).unwrap(), "one\ntwo\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\n");
        ErrorLog.write_all(b"user 'a\nERROR all is lost'\r\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text, "three\nuser 'a\\nERROR all is lost'\\r\n");
        // As a full disk is.
        *FILE.lock() = Some((path, OpenOptions::new().write(true).open("/dev/full").unwrap()));
        ErrorLog.write_all(b"four\n").unwrap();
        *FILE.lock() = None;
    }
}
