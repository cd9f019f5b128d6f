//! Strings as bytes whose `memcmp` order is the collation's order, self-terminating, so that they
//! can stand in front of other columns in an index key.
//!
//! With PAD SPACE the end of a string counts as spaces without end. So the end is written as a
//! space and the mark 1; a space inside is written with the mark 0 or 2, which says whether the
//! first thing behind its run of spaces is less or greater than a space. Weights are written like
//! UTF-8, which keeps their order, costs one byte for ASCII and never uses 0x20 inside.
//!
//! Without PAD SPACE a zero byte is written as 0 255, and the end as 0 0; weights of the UCA take two
//! bytes each and end with a zero weight.

use super::{Collation, Kind, uca};

const SPACE: u16 = 0x20;
const END: u8 = 1;

fn push_weight(weight: u16, out: &mut Vec<u8>) {
    match weight {
        0..0x80 => out.push(weight as u8),
        0x80..0x800 => {
            out.extend_from_slice(&[0xc0 | (weight >> 6) as u8, 0x80 | (weight & 63) as u8]);
        }
        _ => out.extend_from_slice(&[
            0xe0 | (weight >> 12) as u8,
            0x80 | (weight >> 6 & 63) as u8,
            0x80 | (weight & 63) as u8,
        ]),
    }
}

fn push_padded(weights: impl Iterator<Item = u16>, push: fn(u16, &mut Vec<u8>), out: &mut Vec<u8>) {
    let mut spaces = 0;
    for weight in weights {
        if weight == SPACE {
            spaces += 1;
            continue;
        }
        let mark = if weight > SPACE { 2 } else { 0 };
        for _ in 0..spaces {
            out.extend_from_slice(&[SPACE as u8, mark]);
        }
        spaces = 0;
        push(weight, out);
    }
    out.extend_from_slice(&[SPACE as u8, END]);
}

fn push_byte(weight: u16, out: &mut Vec<u8>) {
    out.push(weight as u8);
}

impl Collation {
    /// Appends the sort key of `text`.
    pub fn write_sort_key(&self, text: &[u8], out: &mut Vec<u8>) {
        out.reserve(text.len() + 2);
        match self.kind {
            Kind::Bytes if !self.pad_space => push_unpadded(text, out),
            Kind::Bytes => push_padded(text.iter().map(|&b| u16::from(b)), push_byte, out),
            Kind::Table(table) => {
                let weights = text.iter().map(|&b| u16::from(table[usize::from(b)]));
                push_padded(weights, push_byte, out);
            }
            Kind::General => push_padded(self.general(text), push_weight, out),
            Kind::Uca => {
                // No weight is zero, so two zero bytes end the key.
                uca::Weights::new(text).for_each(|w| out.extend_from_slice(&w.to_be_bytes()));
                out.extend_from_slice(&[0, 0]);
            }
        }
    }
}

fn push_unpadded(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(zero) = rest.iter().position(|&b| b == 0) {
        out.extend_from_slice(&rest[..=zero]);
        out.push(0xff);
        rest = &rest[zero + 1..];
    }
    out.extend_from_slice(rest);
    out.extend_from_slice(&[0, 0]);
}

/// Bytes of the sort key at the start of `key`; `None` if it has no end.
pub fn skip_sort_key(collation: &Collation, key: &[u8]) -> Option<usize> {
    if collation.kind == Kind::Uca {
        let end = key.chunks_exact(2).position(|pair| pair == [0, 0])?;
        return Some(2 * end + 2);
    }
    let (lead, end) = if collation.pad_space { (SPACE as u8, END) } else { (0, 0) };
    let mut at = 0;
    loop {
        at += key.get(at..)?.iter().position(|&b| b == lead)?;
        if *key.get(at + 1)? == end {
            return Some(at + 2);
        }
        at += 2;
    }
}
