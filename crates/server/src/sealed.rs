//! A checksum in the small files of the data directory that are text: a flipped bit in one of them would be another identity or another
//! value, and no error.
//!
//! It is a line at the end, a comment to whoever else reads the file. A file without one was written by people, by another server, or by
//! an earlier version, and is taken as it is; so one flipped bit is either in the content, and seen, or in that line, and harmless.

use std::path::Path;

const MARK: &str = "# crc32=";

/// A file whose content is not that of its checksum.
#[derive(Debug, thiserror::Error)]
#[error(
    "{0}: the content is not what its checksum says: the file is damaged; restore it from a backup. If it was changed by hand, remove its checksum"
)]
pub struct Broken(String);

impl Broken {
    pub(crate) fn new(path: &Path) -> Broken {
        Broken(path.display().to_string())
    }
}

/// The checksum of a text.
pub(crate) fn checksum(text: &str) -> String {
    format!("{:08x}", crc32fast::hash(text.as_bytes()))
}

/// The text, whose last line ends, with its checksum.
pub(crate) fn seal(text: &str) -> String {
    format!("{text}{MARK}{}\n", checksum(text))
}

/// The text, and whether it had a checksum.
///
/// # Errors
/// The checksum is another one's.
pub(crate) fn open<'a>(text: &'a str, path: &Path) -> Result<(&'a str, bool), Broken> {
    match text.rsplit_once(MARK) {
        None => Ok((text, false)),
        Some((content, own)) if own.trim_end() == checksum(content) => Ok((content, true)),
        Some(_) => Err(Broken::new(path)),
    }
}

/// The damage of a file that has a checksum, if it has any.
#[must_use]
pub(crate) fn damage(path: &Path) -> Option<String> {
    let bytes = std::fs::read(path).ok()?;
    let text = std::str::from_utf8(&bytes).map_err(|_| Broken::new(path));
    text.and_then(|text| open(text, path)).err().map(|broken| broken.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// One flipped bit anywhere leaves the content, or is seen.
    #[test]
    fn a_flipped_bit_is_seen_or_harmless() {
        let (path, content) = (Path::new("auto.cnf"), "[auto]\nserver-uuid=0b5c\n");
        let whole = seal(content);
        assert_eq!(open(&whole, path).unwrap(), (content, true));
        assert_eq!(open(content, path).unwrap(), (content, false));
        let mut seen = 0;
        for at in 0..whole.len() * 8 {
            let mut bytes = whole.clone().into_bytes();
            bytes[at / 8] ^= 1 << (at % 8);
            let Ok(text) = String::from_utf8(bytes) else { continue };
            match open(&text, path) {
                Ok((opened, _)) => assert!(opened.starts_with(content), "bit {at}: {opened}"),
                Err(_) => seen += 1,
            }
        }
        assert!(seen >= content.len() * 7, "only {seen}");
        assert!(open(&format!("{whole}x=1\n"), path).is_err(), "what is added by hand is not covered");
    }
}
