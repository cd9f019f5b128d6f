//! JSON paths: `$.a."b c"[0][last-1][1 to 3].*[*]**.x`.

use super::{Json, JsonError};
use crate::pace::{Pace, Paced};
use std::collections::HashSet;

/// An array position: from the front, or from the end (`last` is 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// `[n]`
    Front(usize),
    /// `[last-n]`
    Back(usize),
}

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Leg {
    /// `.key`
    Member(String),
    /// `.*`
    AnyMember,
    /// `[n]`, `[last-n]`
    Cell(Index),
    /// `[m to n]`
    Range(Index, Index),
    /// `[*]`
    AnyCell,
    /// `**`
    Ellipsis,
}

/// A parsed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The steps after `$`.
    pub legs: Vec<Leg>,
}

impl Index {
    /// Returns the position in an array with this number of cells; from the front it may be behind the last one.
    pub fn resolve(self, len: usize) -> Option<usize> {
        match self {
            Index::Front(n) => Some(n),
            Index::Back(n) => len.checked_sub(n + 1),
        }
    }
}

struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }
    fn spaces(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }
    fn take(&mut self, c: u8) -> bool {
        let found = self.peek() == Some(c);
        self.at += usize::from(found);
        found
    }
    fn word(&mut self, word: &str) -> bool {
        let found = self.text.as_bytes()[self.at..].starts_with(word.as_bytes());
        self.at += if found { word.len() } else { 0 };
        found
    }
    fn number(&mut self) -> Option<usize> {
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_ascii_digit()) {
            self.at += 1;
        }
        let Ok(n) = self.text[start..self.at].parse::<u32>() else {
            self.at = start;
            return None;
        };
        Some(n as usize)
    }
    fn index(&mut self) -> Option<Index> {
        if !self.word("last") {
            return self.number().map(Index::Front);
        }
        self.spaces();
        if !self.take(b'-') {
            return Some(Index::Back(0));
        }
        self.spaces();
        self.number().map(Index::Back)
    }
    fn cell(&mut self) -> Option<Leg> {
        self.spaces();
        let leg = if self.take(b'*') {
            Leg::AnyCell
        } else {
            let from = self.index()?;
            self.spaces();
            if self.word("to") {
                if !matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
                    self.at -= 1;
                    return None;
                }
                self.spaces();
                let to = self.index()?;
                match (from, to) {
                    (Index::Front(from), Index::Front(to)) if from > to => return None,
                    (Index::Back(from), Index::Back(to)) if from < to => return None,
                    _ => Leg::Range(from, to),
                }
            } else {
                Leg::Cell(from)
            }
        };
        self.spaces();
        if self.take(b']') {
            return Some(leg);
        }
        self.at += usize::from(self.peek().is_some());
        None
    }
    fn member(&mut self) -> Option<Leg> {
        self.spaces();
        if self.take(b'*') {
            return Some(Leg::AnyMember);
        }
        let rest = &self.text[self.at..];
        if rest.starts_with('"') {
            let mut end = 1;
            let bytes = rest.as_bytes();
            while *bytes.get(end)? != b'"' {
                end += 1 + usize::from(bytes[end] == b'\\');
            }
            self.at += end + 1;
            return match Json::parse(&bytes[..=end]) {
                Ok(Json::String(key)) => Some(Leg::Member(key)),
                _ => None,
            };
        }
        let is_key = |c: char| c.is_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
        let ends = |c: char| matches!(c, '.' | '[' | '*' | ' ' | '\t' | '\n' | '\r');
        let name = &rest[..rest.find(ends).unwrap_or(rest.len())];
        if name.is_empty() {
            return None;
        }
        self.at += name.len();
        let is_name = name.chars().all(is_key) && !name.as_bytes()[0].is_ascii_digit();
        is_name.then(|| Leg::Member(name.to_owned()))
    }
    fn leg(&mut self) -> Option<Leg> {
        if self.take(b'.') {
            self.member()
        } else if self.take(b'[') {
            self.cell()
        } else if self.word("**") {
            Some(Leg::Ellipsis)
        } else {
            None
        }
    }
}

impl Path {
    /// Reads a path; `**` must not be last.
    pub fn parse(text: &[u8]) -> Result<Path, JsonError> {
        let text = std::str::from_utf8(text).map_err(|e| JsonError::Path { offset: e.valid_up_to() })?;
        let mut scan = Scanner { text, at: 0 };
        scan.spaces();
        if !scan.take(b'$') {
            return Err(JsonError::Path { offset: scan.at + usize::from(scan.peek().is_some()) });
        }
        let mut legs = Vec::new();
        let (mut doubled, mut open) = (false, false);
        scan.spaces();
        while scan.peek().is_some() {
            let leg = scan.leg().ok_or(JsonError::Path { offset: scan.at })?;
            let ellipsis = leg == Leg::Ellipsis;
            doubled |= ellipsis && open;
            open = ellipsis;
            // One more than there may be tells that there are too many.
            if legs.len() <= super::MAX_DEPTH {
                legs.push(leg);
            }
            scan.spaces();
        }
        if doubled || open || legs.len() > super::MAX_DEPTH {
            return Err(JsonError::Path { offset: text.len() });
        }
        Ok(Path { legs })
    }

    /// May match more than one value, so that JSON_EXTRACT gives an array.
    pub fn has_wildcard(&self) -> bool {
        !self.legs.iter().all(|leg| matches!(leg, Leg::Member(_) | Leg::Cell(_)))
    }

    /// Every value it matches, in document order; some of them if `pace` says to stop.
    pub fn find<'a>(&self, root: &'a Json, pace: &mut Pace<'_>) -> Vec<&'a Json> {
        self.find_with(root, true, pace)
    }

    /// As `find`, where what is no array is none of one cell.
    pub fn find_unwrapped<'a>(&self, root: &'a Json, pace: &mut Pace<'_>) -> Vec<&'a Json> {
        self.find_with(root, false, pace)
    }

    fn find_with<'a>(&self, root: &'a Json, wraps: bool, pace: &mut Pace<'_>) -> Vec<&'a Json> {
        let mut found = Found { values: Vec::new(), seen: HashSet::new(), wraps, pace: Paced::new(pace) };
        walk(root, &self.legs, &mut found);
        found.values
    }
}

struct Found<'a, 'p> {
    values: Vec<&'a Json>,
    /// Their places: `**` can reach one value along several ways; MySQL reports it once.
    seen: HashSet<*const Json>,
    /// A value that is no array is taken for an array of one.
    wraps: bool,
    pace: Paced<'p, 'p>,
}

fn walk<'a>(json: &'a Json, legs: &[Leg], found: &mut Found<'a, '_>) {
    if !found.pace.did(1) {
        return;
    }
    let Some((leg, rest)) = legs.split_first() else {
        if found.seen.insert(json) {
            found.values.push(json);
        }
        return;
    };
    match (leg, json) {
        (Leg::Member(key), _) => {
            if let Some(value) = json.get(key) {
                walk(value, rest, found);
            }
        }
        (Leg::AnyMember, Json::Object(members)) => {
            members.iter().for_each(|(_, value)| walk(value, rest, found));
        }
        (Leg::AnyCell, Json::Array(items)) => items.iter().for_each(|v| walk(v, rest, found)),
        (Leg::Cell(index), Json::Array(items)) => {
            if let Some(value) = index.resolve(items.len()).and_then(|n| items.get(n)) {
                walk(value, rest, found);
            }
        }
        (Leg::Range(from, to), Json::Array(items)) => {
            let start = from.resolve(items.len()).unwrap_or(0);
            let end = to.resolve(items.len()).map_or(0, |n| n.saturating_add(1));
            let slice = items.get(start..end.min(items.len())).unwrap_or(&[]);
            slice.iter().for_each(|v| walk(v, rest, found));
        }
        (Leg::Cell(index), _) if found.wraps && index.resolve(1) == Some(0) => walk(json, rest, found),
        (Leg::Range(from, to), _)
            if found.wraps && from.resolve(1).unwrap_or(0) == 0 && to.resolve(1).is_some() =>
        {
            walk(json, rest, found);
        }
        (Leg::Ellipsis, _) => {
            walk(json, rest, found);
            match json {
                Json::Array(items) => items.iter().for_each(|v| walk(v, legs, found)),
                Json::Object(items) => items.iter().for_each(|(_, v)| walk(v, legs, found)),
                _ => {}
            }
        }
        _ => {}
    }
}
