//! Tailorings of the Unicode Collation Algorithm's order for languages: `å` behind `z`, `ch` as a letter of its own.
//!
//! `uca*_languages.txt` have for each language the characters, and the sequences of characters that count as one
//! (contractions), whose weights differ from those of the base table. A line has code points, and weights for each
//! level: `e5 1c3f.54a5/20.116/2.21`. Levels that are not written are not known. `rotate a b c` exchanges the primary
//! weights from `b` to `c` with those from `a` to `b`, which puts scripts in another order; `capitals` sorts capital
//! letters first where letters are equal but for case.
//!
//! A language's table is made when it is first used, as a copy of its base table.

use super::uca::{Table, Version, Weights};
use std::sync::OnceLock;

/// One of the UCA's levels in a language's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    version: Version,
    /// Its place in `LANGUAGES`, counted from 1; 0 is none.
    language: u8,
}

/// A file of languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Changes {
    /// The base table of `unicode_ci`.
    V400,
    /// The base table of the 0900 collations.
    V900,
    /// The base table of MariaDB's uca1400.
    V1400,
}

impl Changes {
    fn text(self) -> &'static str {
        match self {
            Changes::V400 => include_str!("uca400_languages.txt"),
            Changes::V900 => include_str!("uca900_languages.txt"),
            Changes::V1400 => include_str!("uca1400_languages.txt"),
        }
    }

    /// Names of languages, in the order of the file.
    pub(super) fn languages(self) -> impl Iterator<Item = &'static str> {
        self.text().lines().filter_map(|line| line.strip_prefix('='))
    }

    /// The base of the numbers of its languages.
    const fn first(self) -> u8 {
        match self {
            Changes::V400 => 0,
            Changes::V900 => 40,
            Changes::V1400 => 80,
        }
    }

    /// The levels that its collations may have.
    pub(super) const fn versions(self) -> [Version; 3] {
        let first = match self {
            Changes::V400 => Version::V400,
            Changes::V900 => Version::V900,
            Changes::V1400 => Version::V1400,
        };
        [first, Version::Second, Version::Third]
    }

    fn of(language: u8) -> (Changes, usize) {
        let file = [Changes::V1400, Changes::V900, Changes::V400].into_iter().find(|f| language > f.first());
        let file = file.unwrap_or(Changes::V400);
        (file, usize::from(language - file.first() - 1))
    }
}

/// Made tables, by language and level.
static TABLES: [[OnceLock<Table>; 3]; 120] = [const { [const { OnceLock::new() }; 3] }; 120];

impl Level {
    pub(super) const fn root(version: Version) -> Level {
        Level { version, language: 0 }
    }

    /// Returns a level of the language at this place of the file.
    pub(super) fn of(file: Changes, place: usize, level: usize) -> Level {
        Level { version: file.versions()[level], language: file.first() + 1 + place as u8 }
    }

    #[inline]
    pub(super) fn table(self) -> &'static Table {
        if self.language == 0 {
            return self.version.table();
        }
        let level = match self.version {
            Version::Second => 1,
            Version::Third => 2,
            _ => 0,
        };
        TABLES[usize::from(self.language)][level].get_or_init(|| self.made(level))
    }

    fn made(self, level: usize) -> Table {
        let (file, place) = Changes::of(self.language);
        let section = file.text().split('=').nth(place + 1).unwrap_or_default();
        let mut table = self.version.table().changed();
        let lines = section.lines().skip(1);
        for line in lines.clone().filter_map(|line| line.strip_prefix("rotate ")) {
            let mut bounds = line.split(' ').filter_map(|hex| u16::from_str_radix(hex, 16).ok());
            if let (0, Some(a), Some(b), Some(c)) = (level, bounds.next(), bounds.next(), bounds.next()) {
                table.rotate(a, b, c);
            }
        }
        if level == 2 && lines.clone().any(|line| line == "capitals") {
            table.capitals_first();
        }
        for line in lines {
            let Some((codes, weights)) = line.split_once(' ') else { continue };
            let codes: Option<Vec<u32>> =
                codes.split(',').map(|hex| u32::from_str_radix(hex, 16).ok()).collect();
            let (Some(codes), Some(weights)) = (codes, weights.split('/').nth(level)) else { continue };
            let weights = weights.split('.').filter_map(|hex| u16::from_str_radix(hex, 16).ok()).collect();
            table.put(&codes, weights);
        }
        table
    }

    /// The weight of a space, which PAD SPACE pads with.
    pub(super) const fn space(self) -> u16 {
        self.version.space()
    }

    #[inline]
    pub(super) fn weights(self, text: &[u8]) -> Weights<'_> {
        self.table().weights(text)
    }
}
