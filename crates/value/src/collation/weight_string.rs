//! WEIGHT_STRING(): the weights of a text as MySQL shows them. Nothing is compared by them here; keys of indexes are sort keys.

use super::{Charset, Collation, Kind};

const SPACE: u32 = 0x20;

fn characters(charset: Charset, mut text: &[u8]) -> usize {
    let mut count = 0;
    while let Some((_, len)) = charset.decode(text) {
        text = &text[len..];
        count += 1;
    }
    count
}

impl Collation {
    /// Appends the weights of `text`, or of its first `chars` characters; where PAD SPACE holds, spaces make up for missing ones.
    pub fn write_weights(&self, text: &[u8], chars: Option<usize>, out: &mut Vec<u8>) {
        let text = chars.map_or(text, |chars| self.charset.substring(text, 0, chars));
        let missing = match chars {
            Some(chars) if self.pad_space => chars.saturating_sub(characters(self.charset, text)),
            _ => 0,
        };
        match self.kind {
            // Code points, in as many bytes as the largest needs.
            Kind::Bytes if self.pad_space && self.charset.max_len() > 1 => {
                let bytes = if self.charset == Charset::Utf8mb4 { 3 } else { 2 };
                let mut rest = text;
                while let Some((code, len)) = self.charset.decode(rest) {
                    out.extend_from_slice(&code.to_be_bytes()[4 - bytes..]);
                    rest = &rest[len..];
                }
                (0..missing).for_each(|_| out.extend_from_slice(&SPACE.to_be_bytes()[4 - bytes..]));
            }
            Kind::Bytes => {
                out.extend_from_slice(text);
                out.resize(out.len() + missing, SPACE as u8);
            }
            Kind::Table(table) => {
                out.extend(text.iter().map(|&byte| table[usize::from(byte)]));
                out.resize(out.len() + missing, table[SPACE as usize]);
            }
            Kind::Pairs(table, second) => {
                out.extend(super::compare::pair_weights(table, second, text).map(|weight| weight as u8));
                out.resize(out.len() + missing, table[SPACE as usize]);
            }
            Kind::General => {
                let pad = std::iter::repeat_n(SPACE as u16, missing);
                self.general(text).chain(pad).for_each(|w| out.extend_from_slice(&w.to_be_bytes()));
            }
            Kind::Uca(levels) => {
                // Zeros stand between the levels of MySQL 8's.
                let apart = !self.pad_space && self.name.contains("_0900_");
                for (at, level) in levels.iter().enumerate() {
                    if at > 0 && apart {
                        out.extend_from_slice(&[0, 0]);
                    }
                    let pad = std::iter::repeat_n(level.space(), missing);
                    level.weights(text).chain(pad).for_each(|w| out.extend_from_slice(&w.to_be_bytes()));
                }
            }
        }
    }
}
