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

use super::compare::pair_weights;
use super::tailoring::Level;
use super::{Collation, Kind};

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
        let weight = if let Kind::Uca(levels) = self.kind { 2 * levels.len() } else { 1 };
        out.reserve(weight * text.len() + 4);
        match self.kind {
            Kind::Bytes if !self.pad_space => push_unpadded(text, out),
            Kind::Bytes => push_padded(text.iter().map(|&b| u16::from(b)), push_byte, out),
            Kind::Table(table) => {
                let weights = text.iter().map(|&b| u16::from(table[usize::from(b)]));
                push_padded(weights, push_byte, out);
            }
            Kind::Pairs(table, second) => push_padded(pair_weights(table, second, text), push_byte, out),
            Kind::General => push_padded(self.general(text), push_weight, out),
            // No weight is zero, so two zero bytes end the key of a level.
            Kind::Uca(levels) => levels.iter().for_each(|v| match self.pad_space {
                false => push_uca(*v, text, out),
                true => push_padded_uca(v.weights(text), v.space(), out),
            }),
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

/// Weights of two bytes, then a zero one.
fn push_uca(level: Level, text: &[u8], out: &mut Vec<u8>) {
    let table = level.table();
    let mut rest = text;
    while let Some((&first, behind)) = rest.split_first() {
        let Some(weight) = table.ascii(first) else { break };
        if weight != 0 {
            push_pair(weight, out);
        }
        rest = behind;
    }
    level.weights(rest).chain([0]).for_each(|w| push_pair(w, out));
}

#[inline]
fn push_pair(weight: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&weight.to_be_bytes());
}

/// As `push_padded`, with weights and marks of two bytes.
fn push_padded_uca(weights: impl Iterator<Item = u16>, space: u16, out: &mut Vec<u8>) {
    let mut spaces = 0;
    for weight in weights {
        if weight == space {
            spaces += 1;
            continue;
        }
        let mark = if weight > space { 2 } else { 0 };
        for _ in 0..spaces {
            push_pair(space, out);
            push_pair(mark, out);
        }
        spaces = 0;
        push_pair(weight, out);
    }
    push_pair(space, out);
    push_pair(u16::from(END), out);
}

/// The length of a key of two-byte weights; `space` if it is padded.
fn skip_pairs(key: &[u8], space: Option<u16>) -> Option<usize> {
    let pair = |at: usize| Some(u16::from_be_bytes(key.get(at..at + 2)?.try_into().ok()?));
    let mut at = 0;
    loop {
        let weight = pair(at)?;
        at += 2;
        match space {
            None if weight == 0 => return Some(at),
            Some(space) if weight == space => {
                at += 2;
                if pair(at - 2)? == u16::from(END) {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
}

/// Bytes of the sort key at the start of `key`; `None` if it has no end.
pub fn skip_sort_key(collation: &Collation, key: &[u8]) -> Option<usize> {
    if let Kind::Uca(levels) = collation.kind {
        return levels.iter().try_fold(0, |at, v| {
            let space = collation.pad_space.then_some(v.space());
            Some(at + skip_pairs(key.get(at..)?, space)?)
        });
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
