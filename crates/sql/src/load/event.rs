//! LOAD DATA as a log of statements has it: the file's bytes beside a text whose file name means nothing here.

use super::input::{LoadInput, Spool};
use omnibus_replication::model::LoadedFile;
use omnibus_temporary::TempFolder;
use std::io;

/// Collects the file.
///
/// # Errors
/// Its blocks cannot be read, or not be kept.
pub(crate) fn collect(file: &dyn LoadedFile, folder: &TempFolder) -> io::Result<LoadInput> {
    let mut spool = Spool::in_folder(folder);
    file.blocks(&mut |block| spool.write(block))?;
    Ok(spool.finish())
}

/// The statement to execute with a supplied file: a name that is never opened in place of the one in the
/// text, and duplicates handled as the event says.
pub(crate) fn executable(sql: &[u8], file: &dyn LoadedFile) -> Vec<u8> {
    let (from, to) = file.name_span();
    let (from, to) = ((from as usize).min(sql.len()), (to as usize).min(sql.len()));
    let duplicates: &[u8] = match file.duplicate_handling() {
        1 => b" IGNORE",
        2 => b" REPLACE",
        _ => b"",
    };
    let rest = sql[to.max(from)..].trim_ascii_start();
    // The span ends before INTO or behind it, depending on who wrote the event.
    let said = rest.get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"INTO"));
    let into: &[u8] = if said { b" " } else { b" INTO " };
    [&sql[..from], b" INFILE 'event'", duplicates, into, rest].concat()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    struct File((u32, u32), u8);
    impl LoadedFile for File {
        fn name_span(&self) -> (u32, u32) {
            self.0
        }
        fn duplicate_handling(&self) -> u8 {
            self.1
        }
        fn blocks(&self, each: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
            each(b"ab")?;
            each(b"c")
        }
    }

    #[test]
    fn the_name_goes_and_the_rest_stays() {
        let sql = b"LOAD DATA LOCAL INFILE '/x' INTO TABLE `t` FIELDS TERMINATED BY ','";
        let rest = " INTO TABLE `t` FIELDS TERMINATED BY ','";
        for (span, duplicates, expected) in [
            ((9, 27), 0, format!("LOAD DATA INFILE 'event'{rest}")),
            ((9, 32), 1, format!("LOAD DATA INFILE 'event' IGNORE{rest}")),
            ((9, 32), 2, format!("LOAD DATA INFILE 'event' REPLACE{rest}")),
        ] {
            let made = executable(sql, &File(span, duplicates));
            assert_eq!(String::from_utf8(made).unwrap(), expected);
        }
        executable(sql, &File((u32::MAX, 3), 9));
        let kept = collect(&File((0, 0), 0), &TempFolder::default()).unwrap();
        assert_eq!(kept.len().unwrap(), 3);
    }
}
