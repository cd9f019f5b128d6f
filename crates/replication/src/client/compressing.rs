//! The compressed protocol, under the packets of a connection to a source (SOURCE_COMPRESSION_ALGORITHMS).
//!
//! The numbers of frames are not checked: a semi-synchronous source restarts them whenever it gets an answer. Frames
//! sent here are a command or an acknowledgement, and both begin with number 0.

use super::error::ClientError;
use omnibus_wire::Capability;
use omnibus_wire::compressed::{Algorithm, Compression, HEAD, Head, LONGEST, Piece, put_frame};
use std::io;
use std::str::FromStr;

/// Bytes read from the socket at once.
const READ: usize = 64 << 10;
const UNCOMPRESSED: &str = "uncompressed";

/// The permitted compression algorithms of a connection, and zstd's level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompressionChoice {
    /// In order of preference; `None` stands for no compression.
    algorithms: Vec<Option<Algorithm>>,
    /// zstd's level, 1 to 22.
    pub zstd_level: u8,
}

impl Default for CompressionChoice {
    fn default() -> CompressionChoice {
        CompressionChoice { algorithms: vec![None], zstd_level: 3 }
    }
}

/// A word that is not the name of an algorithm.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no compression algorithm")]
pub struct NoAlgorithm(pub String);

fn algorithm(word: &str) -> Result<Option<Algorithm>, NoAlgorithm> {
    match word {
        UNCOMPRESSED => Ok(None),
        _ => [Algorithm::Zlib, Algorithm::Zstd]
            .into_iter()
            .find(|known| known.name() == word)
            .map(Some)
            .ok_or_else(|| NoAlgorithm(word.to_owned())),
    }
}

/// Parses a comma-separated list; zstd's level is the default.
impl FromStr for CompressionChoice {
    type Err = NoAlgorithm;

    fn from_str(list: &str) -> Result<CompressionChoice, NoAlgorithm> {
        let words = list.split(',').map(|word| algorithm(&word.trim().to_ascii_lowercase()));
        Ok(CompressionChoice { algorithms: words.collect::<Result<_, _>>()?, ..CompressionChoice::default() })
    }
}

impl CompressionChoice {
    /// zlib if the source has it, otherwise no compression.
    #[must_use]
    pub fn if_offered() -> CompressionChoice {
        CompressionChoice { algorithms: vec![Some(Algorithm::Zlib), None], ..CompressionChoice::default() }
    }

    /// Sets zstd's level.
    #[must_use]
    pub fn at_level(self, zstd_level: u8) -> CompressionChoice {
        CompressionChoice { zstd_level, ..self }
    }

    /// The list as comma-separated names.
    #[must_use]
    pub fn names(&self) -> String {
        let names = self.algorithms.iter().map(|of| of.map_or(UNCOMPRESSED, Algorithm::name));
        names.collect::<Vec<_>>().join(",")
    }

    /// Returns whether only no compression is permitted.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.algorithms.iter().all(Option::is_none)
    }

    /// Returns the most preferred algorithm that the source offers.
    pub(super) fn of(&self, offered: Capability) -> Result<Option<Compression>, ClientError> {
        let has = |of: &&Option<Algorithm>| of.is_none_or(|algorithm| offered.has(flag(algorithm)));
        match self.algorithms.iter().find(has) {
            Some(None) => Ok(None),
            Some(Some(Algorithm::Zlib)) => Ok(Some(Compression::ZLIB)),
            Some(Some(Algorithm::Zstd)) => {
                Ok(Some(Compression { algorithm: Algorithm::Zstd, level: self.zstd_level }))
            }
            None => Err(ClientError::Unfit(format!(
                "the source has none of the compression algorithms {}: SOURCE_COMPRESSION_ALGORITHMS says what may be",
                self.names()
            ))),
        }
    }
}

/// The capability flag by which a login requests an algorithm.
pub(super) fn flag(algorithm: Algorithm) -> Capability {
    match algorithm {
        Algorithm::Zlib => Capability::COMPRESS,
        Algorithm::Zstd => Capability::ZSTD_COMPRESSION,
    }
}

/// Wraps bytes in compressed frames.
pub(super) fn framed(bytes: &[u8], compression: Compression) -> Vec<u8> {
    let mut frames = Vec::new();
    for (number, piece) in bytes.chunks(LONGEST).enumerate() {
        put_frame(&mut frames, piece, compression, number as u8);
    }
    frames
}

/// Unwraps the compressed frames of incoming bytes.
pub(super) struct Frames {
    pub compression: Compression,
    /// Bytes of frames that were not read yet, from `from` on.
    raw: Vec<u8>,
    from: usize,
    piece: Option<Piece>,
}

impl Frames {
    pub(super) fn new(compression: Compression) -> Frames {
        Frames { compression, raw: Vec::new(), from: 0, piece: None }
    }

    /// Reads into `into`, which is not empty, and returns the number of bytes; 0 at the stream's end. `more` reads from
    /// the stream.
    pub(super) fn read(
        &mut self,
        into: &mut [u8],
        more: &mut dyn FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        loop {
            if let Some(piece) = &mut self.piece {
                match piece.read(into).map_err(invalid)? {
                    0 => self.piece = None,
                    count => return Ok(count),
                }
            }
            let have = &self.raw[self.from..];
            if let Some(head) = have.first_chunk::<HEAD>().map(Head::decode)
                && let Some(payload) = have.get(HEAD..HEAD + head.len)
            {
                let algorithm = self.compression.algorithm;
                self.piece = Some(Piece::new(head, payload.to_vec(), algorithm).map_err(invalid)?);
                self.from += HEAD + head.len;
                continue;
            }
            self.raw.drain(..self.from);
            self.from = 0;
            let before = self.raw.len();
            self.raw.resize(before + READ, 0);
            let read = more(&mut self.raw[before..]);
            self.raw.truncate(before + *read.as_ref().unwrap_or(&0));
            if read? == 0 {
                return Ok(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_first_that_the_source_has_is_taken() {
        let choice: CompressionChoice = "ZSTD, zlib,uncompressed".parse().unwrap();
        assert_eq!(choice.names(), "zstd,zlib,uncompressed");
        let of = |offered| choice.of(offered).unwrap().map(|found| found.algorithm);
        assert_eq!(of(Capability::COMPRESS.with(Capability::ZSTD_COMPRESSION)), Some(Algorithm::Zstd));
        assert_eq!(of(Capability::COMPRESS), Some(Algorithm::Zlib));
        assert_eq!(of(Capability::default()), None);
        let only: CompressionChoice = "zstd".parse().unwrap();
        assert!(only.of(Capability::COMPRESS).unwrap_err().to_string().contains("zstd"));
        assert_eq!("lz4".parse::<CompressionChoice>(), Err(NoAlgorithm("lz4".into())));
        assert!(CompressionChoice::default().is_plain() && !CompressionChoice::if_offered().is_plain());
    }

    #[test]
    fn what_is_framed_is_read_however_it_comes() {
        let text: Vec<u8> = (0..300_000u32).flat_map(|n| (n / 9).to_le_bytes()).collect();
        for compression in [Compression::ZLIB, Compression { algorithm: Algorithm::Zstd, level: 5 }] {
            let frames = [framed(&text, compression), framed(b"short", compression)].concat();
            for step in [1, 7, 4096, frames.len()] {
                let mut source = &frames[..];
                let (mut read, mut all, mut room) = (Frames::new(compression), Vec::new(), [0; 1000]);
                let mut more = |into: &mut [u8]| {
                    let (now, later) = source.split_at(step.min(source.len()).min(into.len()));
                    into[..now.len()].copy_from_slice(now);
                    source = later;
                    Ok(now.len())
                };
                while let count @ 1.. = read.read(&mut room, &mut more).unwrap() {
                    all.extend_from_slice(&room[..count]);
                }
                assert!(all == [&text[..], b"short"].concat(), "{compression:?} by {step}");
            }
        }
    }

    #[test]
    fn a_failed_read_loses_nothing() {
        let frames = framed(&[b'x'; 5000], Compression::ZLIB);
        let mut source = &frames[..];
        let mut fails = false;
        let mut more = |into: &mut [u8]| {
            fails = !fails;
            if fails {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let (now, later) = source.split_at(source.len().min(3));
            into[..now.len()].copy_from_slice(now);
            source = later;
            Ok(now.len())
        };
        let (mut read, mut all, mut room) = (Frames::new(Compression::ZLIB), 0, [0; 900]);
        while all < 5000 {
            all += read.read(&mut room, &mut more).unwrap_or(0);
        }
        assert_eq!(all, 5000);
    }
}
