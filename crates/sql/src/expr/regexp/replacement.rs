//! The replacement text of REGEXP_REPLACE: what stands in it, and the groups of a match put in.

use super::fault::{self, Fault};
use crate::error::SqlResult;

/// A piece of a replacement.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// Bytes as they are.
    Text(Vec<u8>),
    /// A group of the match; 0 is all of it.
    Group(usize),
}

/// A replacement that has been read.
#[derive(Debug)]
pub struct Replacement {
    /// Its pieces in order.
    pub pieces: Vec<Piece>,
}

impl Replacement {
    /// Reads a replacement for a pattern with these groups: `$1` and `${name}`, or in MariaDB's dialect `\1`.
    ///
    /// # Errors
    /// 3686: no such group. 3887: no such name.
    pub fn read(text: &[u8], groups: &[Option<String>], mariadb: bool) -> SqlResult<Replacement> {
        let mut pieces = Vec::new();
        let mut plain = Vec::new();
        let mut rest = text;
        while let [byte, after @ ..] = rest {
            rest = after;
            let group = match byte {
                b'\\' if mariadb && rest.first().is_some_and(u8::is_ascii_digit) => {
                    let group = usize::from(rest[0] - b'0');
                    rest = &rest[1..];
                    // A group that the pattern has not is nothing.
                    Some(group).filter(|group| *group <= groups.len())
                }
                b'\\' if !mariadb || rest.first() == Some(&b'\\') => {
                    plain.extend(rest.first());
                    rest = rest.get(1..).unwrap_or_default();
                    None
                }
                b'$' if !mariadb => Some(group_of(&mut rest, groups)?),
                byte => {
                    plain.push(*byte);
                    None
                }
            };
            if let Some(group) = group {
                if !plain.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                }
                pieces.push(Piece::Group(group));
            }
        }
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        Ok(Replacement { pieces })
    }

    /// Whether it needs groups beyond the whole match.
    #[must_use]
    pub fn has_groups(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Group(group) if *group > 0))
    }

    /// The most bytes that it takes for a match of so many.
    #[must_use]
    pub fn bytes_max(&self, found: usize) -> usize {
        self.pieces.iter().fold(0usize, |sum, piece| {
            sum.saturating_add(match piece {
                Piece::Text(text) => text.len(),
                Piece::Group(_) => found,
            })
        })
    }
}

/// The group behind a `$`: as many digits as a group has, or a name in braces.
fn group_of(rest: &mut &[u8], groups: &[Option<String>]) -> SqlResult<usize> {
    if let [b'{', after @ ..] = *rest {
        let end = after.iter().position(|byte| *byte == b'}').ok_or_else(|| fault::of(Fault::GroupName))?;
        let place =
            groups.iter().position(|name| name.as_deref().is_some_and(|n| n.as_bytes() == &after[..end]));
        *rest = &after[end + 1..];
        return place.map(|place| place + 1).ok_or_else(|| fault::of(Fault::GroupName));
    }
    let mut number = None;
    while let Some(digit) = rest.first().filter(|byte| byte.is_ascii_digit()) {
        let more = number.unwrap_or(0) * 10 + usize::from(digit - b'0');
        if number.is_some() && more > groups.len() {
            break;
        }
        number = Some(more);
        *rest = &rest[1..];
        if more > groups.len() {
            break;
        }
    }
    match number {
        None => Err(fault::of(Fault::GroupName)),
        Some(number) if number > groups.len() => Err(fault::of(Fault::Index)),
        Some(number) => Ok(number),
    }
}
