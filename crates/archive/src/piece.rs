//! Pieces of a log file: objects whose names say which bytes they are.
//!
//! A program that ships may be killed between a request and its answer, and begin again with other pieces of the same
//! bytes. So pieces may overlap; they never disagree, because a log file is only appended to. Pure.

use std::fmt;
use std::str::FromStr;

/// `OFFSET-LENGTH-CRC32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Piece {
    /// File offset of its first byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Checksum of its bytes.
    pub crc: u32,
}

impl Piece {
    pub fn of(offset: u64, bytes: &[u8]) -> Piece {
        Piece { offset, len: bytes.len() as u64, crc: crc32fast::hash(bytes) }
    }

    pub fn end(&self) -> u64 {
        self.offset + self.len
    }

    pub fn is(&self, bytes: &[u8]) -> bool {
        bytes.len() as u64 == self.len && crc32fast::hash(bytes) == self.crc
    }
}

impl fmt::Display for Piece {
    /// Digits enough that names sort as offsets do.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016}-{}-{:08x}", self.offset, self.len, self.crc)
    }
}

impl FromStr for Piece {
    type Err = ();

    fn from_str(name: &str) -> Result<Piece, ()> {
        let mut parts = name.split('-');
        let mut part = || parts.next().ok_or(());
        let (offset, len, crc) = (part()?, part()?, part()?);
        let piece = Piece {
            offset: offset.parse().map_err(drop)?,
            len: len.parse().map_err(drop)?,
            crc: u32::from_str_radix(crc, 16).map_err(drop)?,
        };
        let whole = piece.len > 0 && piece.offset.checked_add(piece.len).is_some();
        (whole && piece.to_string() == name).then_some(piece).ok_or(())
    }
}

/// Pieces that follow one another from the file's beginning, as few as will do. What is behind a gap is left out.
pub(crate) fn chain(mut pieces: Vec<Piece>) -> Vec<Piece> {
    pieces.sort_unstable();
    let (mut chain, mut end): (Vec<Piece>, u64) = (Vec::new(), 0);
    let mut rest = pieces.as_slice();
    loop {
        // Of those that begin no later than here, the one that reaches furthest.
        let reach = rest.partition_point(|piece| piece.offset <= end);
        let Some(best) = rest[..reach].iter().max_by_key(|piece| piece.end()).filter(|best| best.end() > end)
        else {
            return chain;
        };
        chain.push(*best);
        (end, rest) = (best.end(), &rest[reach..]);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn piece(offset: u64, len: u64) -> Piece {
        Piece { offset, len, crc: 7 }
    }

    #[test]
    fn a_name_says_which_bytes_and_nothing_else_is_a_piece() {
        let piece = Piece::of(81_920, b"bytes");
        assert!(piece.is(b"bytes") && !piece.is(b"byter") && !piece.is(b"byte"));
        assert_eq!(piece.to_string().parse::<Piece>().unwrap(), piece);
        for name in ["", "1", "0000000000000004-5", "4-5-00000007", "0000000000000004-0-00000007", "x-y-z"] {
            assert!(name.parse::<Piece>().is_err(), "{name}");
        }
        assert!(format!("{piece}-1").parse::<Piece>().is_err());
    }

    #[test]
    fn pieces_that_overlap_make_one_chain_and_a_gap_ends_it() {
        assert_eq!(chain(vec![piece(10, 5), piece(0, 10)]), [piece(0, 10), piece(10, 5)]);
        // One was shipped, its answer was lost, and what was shipped next is longer.
        let twice = vec![piece(0, 10), piece(10, 5), piece(10, 30), piece(15, 5), piece(40, 1)];
        assert_eq!(chain(twice), [piece(0, 10), piece(10, 30), piece(40, 1)]);
        assert_eq!(chain(vec![piece(0, 10), piece(5, 10), piece(16, 1)]), [piece(0, 10), piece(5, 10)]);
        assert!(chain(vec![piece(1, 10)]).is_empty());
        assert!(chain(Vec::new()).is_empty());
    }
}
