//! Comparing and hashing strings by weights.

use std::cmp::Ordering;
use std::hash::Hasher;

use super::tailoring::Level;
use super::{Charset, Collation, Kind, tables};

const SPACE: u16 = 0x20;

/// Weights of a `General` string. A byte that is no character weighs more than all that are, so
/// that order stays total.
#[derive(Clone)]
pub(super) struct GeneralWeights<'a> {
    pub(super) charset: Charset,
    pub(super) text: &'a [u8],
}

impl Iterator for GeneralWeights<'_> {
    type Item = u16;
    #[inline]
    fn next(&mut self) -> Option<u16> {
        let &first = self.text.first()?;
        if first < 0x80 {
            self.text = &self.text[1..];
            return Some(u16::from(first.to_ascii_uppercase()));
        }
        match self.charset.decode(self.text) {
            Some((code, len)) => {
                self.text = &self.text[len..];
                Some(tables::general_weight(code))
            }
            None => {
                self.text = &self.text[1..];
                Some(0xff00 | u16::from(first))
            }
        }
    }
}

/// Compares as if the shorter were padded with spaces for ever.
fn padded(a: impl Iterator<Item = u16>, b: impl Iterator<Item = u16>) -> Ordering {
    padded_with(a, b, SPACE)
}

fn padded_with(mut a: impl Iterator<Item = u16>, mut b: impl Iterator<Item = u16>, space: u16) -> Ordering {
    loop {
        match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (Some(x), Some(y)) if x == y => {}
            (Some(x), Some(y)) => return x.cmp(&y),
            (Some(x), None) => return against_spaces(x, a, space),
            (None, Some(y)) => return against_spaces(y, b, space).reverse(),
        }
    }
}

fn against_spaces(first: u16, mut rest: impl Iterator<Item = u16>, space: u16) -> Ordering {
    if first != space {
        return first.cmp(&space);
    }
    rest.find(|&w| w != space).map_or(Ordering::Equal, |w| w.cmp(&space))
}

fn padded_bytes(a: &[u8], b: &[u8]) -> Ordering {
    let common = a.len().min(b.len());
    match a[..common].cmp(&b[..common]) {
        Ordering::Equal => {}
        unequal => return unequal,
    }
    let beyond = |rest: &[u8]| rest.iter().find(|&&c| c != b' ').map_or(Ordering::Equal, |c| c.cmp(&b' '));
    beyond(&a[common..]).then(beyond(&b[common..]).reverse())
}

/// The order of two `General` texts, if that shows where they first differ and only ASCII is met there.
#[inline]
fn general_ascii(a: &[u8], b: &[u8]) -> Option<Ordering> {
    for (a, b) in a.iter().zip(b) {
        if (a | b) >= 0x80 {
            return None;
        }
        match a.to_ascii_uppercase().cmp(&b.to_ascii_uppercase()) {
            Ordering::Equal => {}
            unequal => return Some(unequal),
        }
    }
    None
}

fn table_weights<'a>(
    table: &'static [u8; 256],
    text: &'a [u8],
) -> impl Iterator<Item = u16> + Clone + use<'a> {
    text.iter().map(move |&b| u16::from(table[usize::from(b)]))
}

/// Weights of a text some of whose bytes have two.
pub(super) fn pair_weights<'a>(
    table: &'static [u8; 256],
    second: &'static [(u8, u8)],
    text: &'a [u8],
) -> impl Iterator<Item = u16> + Clone + use<'a> {
    text.iter().flat_map(move |&byte| {
        let more = second.iter().find(|(first, _)| *first == byte).map(|(_, weight)| u16::from(*weight));
        [Some(u16::from(table[usize::from(byte)])), more].into_iter().flatten()
    })
}

impl Collation {
    /// The order of two strings of this collation's character set.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self.kind {
            Kind::Bytes if !self.pad_space => a.cmp(b),
            Kind::Bytes => padded_bytes(a, b),
            Kind::Table(table) => padded(table_weights(table, a), table_weights(table, b)),
            Kind::Pairs(table, second) => {
                padded(pair_weights(table, second, a), pair_weights(table, second, b))
            }
            Kind::General => general_ascii(a, b).unwrap_or_else(|| padded(self.general(a), self.general(b))),
            Kind::Uca(levels) => levels
                .iter()
                .fold(Ordering::Equal, |so_far, v| so_far.then_with(|| self.compare_at(*v, a, b))),
        }
    }

    /// The order at one level.
    #[inline]
    fn compare_at(&self, level: Level, a: &[u8], b: &[u8]) -> Ordering {
        level.table().compare_ascii(a, b).unwrap_or_else(|| match self.pad_space {
            true => padded_with(level.weights(a), level.weights(b), level.space()),
            false => level.weights(a).cmp(level.weights(b)),
        })
    }

    /// Equality, faster than comparing where the bytes are the same.
    pub fn eq(&self, a: &[u8], b: &[u8]) -> bool {
        a == b || self.compare(a, b) == Ordering::Equal
    }

    /// Feeds what `compare` sees: equal strings hash equally.
    pub fn hash<H: Hasher>(&self, text: &[u8], state: &mut H) {
        match self.kind {
            Kind::Bytes => state.write(if self.pad_space { trim(text) } else { text }),
            Kind::Table(table) => hash_weights(table_weights(table, text), state),
            Kind::Pairs(table, second) => hash_weights(pair_weights(table, second, text), state),
            Kind::General => hash_weights(self.general(trim(text)), state),
            // The first level, which equal texts share.
            Kind::Uca([first, ..]) if self.pad_space => {
                hash_padded(first.weights(text), first.space(), state)
            }
            Kind::Uca([first, ..]) => first.weights(text).for_each(|w| state.write_u16(w)),
            Kind::Uca([]) => {}
        }
        state.write_u8(0xff);
    }

    pub(super) fn general<'a>(&self, text: &'a [u8]) -> GeneralWeights<'a> {
        GeneralWeights { charset: self.charset, text }
    }
}

/// Without trailing spaces. In every character set here a space is one byte 0x20, which is part of no
/// other character, and no other character weighs the same.
fn trim(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&c| c != b' ').map_or(0, |at| at + 1);
    &text[..end]
}

fn hash_weights<H: Hasher>(weights: impl Iterator<Item = u16>, state: &mut H) {
    hash_padded(weights, SPACE, state);
}

fn hash_padded<H: Hasher>(weights: impl Iterator<Item = u16>, space: u16, state: &mut H) {
    let mut spaces = 0;
    for w in weights {
        if w == space {
            spaces += 1;
            continue;
        }
        for _ in 0..spaces {
            state.write_u16(space);
        }
        spaces = 0;
        state.write_u16(w);
    }
}
