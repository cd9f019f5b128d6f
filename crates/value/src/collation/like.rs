//! LIKE: `%` any characters, `_` one character, an escape character before a literal.
//!
//! Matching goes character by character and equality is the collation's, without PAD SPACE: MySQL
//! documents that LIKE sees trailing spaces. Backtracking is to the last `%` only, so time is at
//! most text length times pattern length.

use super::{Collation, Kind, tables};
use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{PoisonError, RwLock};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// A literal, already as its weight.
    Literal(u64),
    One,
    Many,
}

/// A pattern made ready, for a statement that matches many rows.
#[derive(Clone, Debug)]
pub struct LikePattern {
    collation: &'static Collation,
    tokens: Vec<Token>,
    prefix: Vec<u8>,
    exact: bool,
}

fn weight(collation: &Collation, code: u32) -> u64 {
    match collation.kind {
        Kind::Bytes => u64::from(code),
        Kind::Uca(levels) => {
            levels.iter().fold(0, |so_far, v| so_far << 21 | u64::from(v.table().identity(code)))
        }
        Kind::General => u64::from(tables::general_weight(code)),
        Kind::Pairs(table, second) => {
            let byte = (code & 255) as u8;
            let more =
                second.iter().find(|(first, _)| *first == byte).map_or(0, |(_, weight)| u64::from(*weight));
            u64::from(table[usize::from(byte)]) << 8 | more
        }
        // Single-byte characters are read as bytes: see `next_unit`.
        Kind::Table(table) => u64::from(table[(code & 255) as usize]),
    }
}

/// The next character, or the next byte in single-byte sets and where the text is not valid.
fn next_unit(collation: &Collation, text: &[u8]) -> Option<(u32, usize)> {
    let &first = text.first()?;
    if first < 0x80 || collation.charset.max_len() == 1 {
        return Some((u32::from(first), 1));
    }
    // Invalid bytes get numbers that no character has.
    Some(collation.charset.decode(text).unwrap_or((0x11_0000 + u32::from(first), 1)))
}

/// The characters of a collation that may count as one with the next, by weight.
struct Joined {
    /// All that another character of such a sequence follows.
    firsts: HashSet<u64>,
    /// Each with the one that follows.
    pairs: HashSet<(u64, u64)>,
}

/// `None`: each character of the collation counts alone.
fn joined(collation: &'static Collation) -> Option<&'static Joined> {
    static KNOWN: RwLock<Option<HashMap<u16, Option<&'static Joined>>>> = RwLock::new(None);
    let Kind::Uca(levels) = collation.kind else { return None };
    if let Some(known) = KNOWN
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .as_ref()
        .and_then(|known| known.get(&collation.id))
    {
        return *known;
    }
    let mut made = Joined { firsts: HashSet::new(), pairs: HashSet::new() };
    for sequence in levels.iter().flat_map(|level| level.table().sequences()) {
        for pair in sequence.windows(2) {
            let (first, second) = (weight(collation, pair[0]), weight(collation, pair[1]));
            made.firsts.insert(first);
            made.pairs.insert((first, second));
        }
    }
    // One a collation, for as long as the process.
    let made = (!made.firsts.is_empty()).then(|| &*Box::leak(Box::new(made)));
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    *known.get_or_insert_default().entry(collation.id).or_insert(made)
}

impl LikePattern {
    /// `escape` is the escape character's code (a byte in single-byte sets), by default `\`.
    pub fn new(collation: &'static Collation, pattern: &[u8], escape: Option<u32>) -> LikePattern {
        let mut made = LikePattern { collation, tokens: Vec::new(), prefix: Vec::new(), exact: true };
        let mut rest = pattern;
        while let Some((code, len)) = next_unit(collation, rest) {
            let (unit, tail) = rest.split_at(len);
            rest = tail;
            let escaped = (Some(code) == escape).then(|| next_unit(collation, rest)).flatten();
            if let Some((code, len)) = escaped {
                let (unit, tail) = rest.split_at(len);
                rest = tail;
                made.literal(code, unit);
                continue;
            }
            match code {
                0x25 => made.wild(Token::Many),
                0x5f => made.wild(Token::One),
                _ => made.literal(code, unit),
            }
        }
        made.cut_prefix();
        made
    }

    /// Ends the prefix where a text that matches may have characters that its key has as one: `l%` matches `ll`, which Spanish sorts
    /// behind all other words with `l`.
    fn cut_prefix(&mut self) {
        let Some(joined) = joined(self.collation) else { return };
        let units: Vec<(usize, u64)> = {
            let mut at = 0;
            std::iter::from_fn(|| {
                let (code, len) = next_unit(self.collation, &self.prefix[at..])?;
                at += len;
                Some((at - len, weight(self.collation, code)))
            })
            .collect()
        };
        let unsafe_at = units.iter().enumerate().find(|(nth, (_, first))| match units.get(nth + 1) {
            Some((_, second)) => joined.pairs.contains(&(*first, *second)),
            None => joined.firsts.contains(first),
        });
        if let Some((_, (at, _))) = unsafe_at {
            self.prefix.truncate(*at);
        }
    }

    fn literal(&mut self, code: u32, unit: &[u8]) {
        self.tokens.push(Token::Literal(weight(self.collation, code)));
        if self.exact {
            self.prefix.extend_from_slice(unit);
        }
    }

    fn wild(&mut self, token: Token) {
        self.exact = false;
        if token == Token::Many && self.tokens.last() == Some(&Token::Many) {
            return;
        }
        self.tokens.push(token);
    }

    /// How the keys of all texts begin that match, as text: what is literal before the first wildcard, or a part of it.
    pub fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// The pattern has no wildcard.
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// Returns whether all of `text` matches. `compared` is called at intervals with the number of bytes examined, and
    /// may end the search.
    ///
    /// # Errors
    /// The error of `compared`.
    pub fn matches<E>(
        &self,
        text: &[u8],
        mut compared: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<bool, E> {
        let (mut at, mut token) = (0, 0);
        // Where to go on after the last `%`: (text offset it may swallow up to, token behind it).
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let unit = next_unit(self.collation, &text[at..]);
            let fits = match (self.tokens.get(token), unit) {
                (Some(Token::Many), _) => {
                    token += 1;
                    if token == self.tokens.len() {
                        return Ok(true);
                    }
                    retry = Some((at, token));
                    continue;
                }
                (None, None) => return Ok(true),
                (_, None) => return Ok(false),
                (None, Some(_)) => None,
                (Some(Token::One), Some((_, len))) => Some(len),
                (Some(Token::Literal(want)), Some((code, len))) => {
                    (weight(self.collation, code) == *want).then_some(len)
                }
            };
            if let Some(len) = fits {
                at += len;
                token += 1;
                continue;
            }
            let Some((from, behind)) = retry else { return Ok(false) };
            let Some((_, len)) = next_unit(self.collation, &text[from..]) else { return Ok(false) };
            compared(at - from)?;
            at = from + len;
            token = behind;
            retry = Some((at, behind));
        }
    }
}

impl Collation {
    /// `text LIKE pattern ESCAPE escape`, for a single match.
    pub fn like(&'static self, text: &[u8], pattern: &[u8], escape: Option<u32>) -> bool {
        let Ok(found) = LikePattern::new(self, pattern, escape).matches(text, |_| Ok::<_, Infallible>(()));
        found
    }
}
