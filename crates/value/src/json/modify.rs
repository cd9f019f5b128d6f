//! Changing documents: JSON_SET, JSON_INSERT, JSON_REPLACE, JSON_REMOVE, merges, containment.

use super::path::Index;
use super::{Json, Leg, Path, key_order};
use crate::pace::{Pace, Paced};
use std::cmp::Ordering;

/// Whether existing values, missing values, or both are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetMode {
    /// JSON_SET
    Set,
    /// JSON_INSERT
    Insert,
    /// JSON_REPLACE
    Replace,
}

fn child<'a>(json: &'a mut Json, leg: &Leg) -> Option<&'a mut Json> {
    match (leg, json) {
        (Leg::Member(key), Json::Object(members)) => {
            let at = members.binary_search_by(|(k, _)| key_order(k, key)).ok()?;
            Some(&mut members[at].1)
        }
        (Leg::Cell(index), Json::Array(items)) => {
            let at = position(*index, items.len())?;
            items.get_mut(at)
        }
        (Leg::Cell(index), other) if !matches!(other, Json::Array(_)) => {
            (position(*index, 1) == Some(0)).then_some(other)
        }
        _ => None,
    }
}

/// The members of two objects, in their order. `value` makes one of what each of them has; nothing leaves the name out.
fn merge_members(
    a: Vec<(String, Json)>,
    b: Vec<(String, Json)>,
    mut value: impl FnMut(Option<Json>, Option<Json>) -> Option<Json>,
) -> Vec<(String, Json)> {
    let mut merged = Vec::with_capacity(a.len().max(b.len()));
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    loop {
        let order = match (a.peek(), b.peek()) {
            (Some((own, _)), Some((theirs, _))) => key_order(own, theirs),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        let (name, own) = a.next_if(|_| order.is_le()).unzip();
        let (other, theirs) = b.next_if(|_| order.is_ge()).unzip();
        let Some(name) = name.or(other) else { return merged };
        merged.extend(value(own, theirs).map(|value| (name, value)));
    }
}

fn position(index: Index, len: usize) -> Option<usize> {
    match index {
        Index::Front(n) => Some(n),
        Index::Back(n) => len.checked_sub(n + 1),
    }
}

impl Json {
    /// Returns the value at the end of the steps, none of which may be a wildcard.
    pub fn at_mut(&mut self, legs: &[Leg]) -> Option<&mut Json> {
        legs.iter().try_fold(self, child)
    }

    /// Writes `value` at a path without wildcards. A missing last step is created; missing earlier
    /// steps leave the document as it is.
    pub fn set(&mut self, path: &Path, value: Json, mode: SetMode) {
        let Some((last, parents)) = path.legs.split_last() else {
            if mode != SetMode::Insert {
                *self = value;
            }
            return;
        };
        let Some(at) = self.at_mut(parents) else { return };
        if let Some(existing) = child(at, last) {
            if mode != SetMode::Insert {
                *existing = value;
            }
            return;
        }
        if mode != SetMode::Replace {
            at.insert_child(last, value);
        }
    }

    fn insert_child(&mut self, leg: &Leg, value: Json) {
        match (leg, &mut *self) {
            (Leg::Member(key), Json::Object(members)) => {
                if let Err(at) = members.binary_search_by(|(k, _)| key_order(k, key)) {
                    members.insert(at, (key.clone(), value));
                }
            }
            (Leg::Cell(Index::Front(_)), Json::Array(items)) => items.push(value),
            (Leg::Cell(Index::Back(_)), Json::Array(items)) => items.insert(0, value),
            (Leg::Cell(index), _) => {
                // A scalar becomes an array of itself and the new value.
                let old = std::mem::replace(self, Json::Null);
                *self = Json::Array(match index {
                    Index::Front(_) => vec![old, value],
                    Index::Back(_) => vec![value, old],
                });
            }
            _ => {}
        }
    }

    /// Removes what a path without wildcards names; whether there was anything.
    pub fn remove(&mut self, path: &Path) -> bool {
        let Some((last, parents)) = path.legs.split_last() else { return false };
        let Some(at) = self.at_mut(parents) else { return false };
        match (last, at) {
            (Leg::Member(key), Json::Object(members)) => {
                let found = members.binary_search_by(|(k, _)| key_order(k, key));
                found.map(|at| members.remove(at)).is_ok()
            }
            (Leg::Cell(index), Json::Array(items)) => {
                match position(*index, items.len()).filter(|&n| n < items.len()) {
                    Some(n) => {
                        items.remove(n);
                        true
                    }
                    None => false,
                }
            }
            _ => false,
        }
    }

    /// JSON_MERGE_PRESERVE.
    pub fn merge_preserve(self, other: Json) -> Json {
        match (self, other) {
            (Json::Object(a), Json::Object(b)) => Json::Object(merge_members(a, b, |own, theirs| {
                Some(match (own, theirs) {
                    (Some(own), Some(theirs)) => own.merge_preserve(theirs),
                    (own, theirs) => own.or(theirs)?,
                })
            })),
            (a, b) => {
                let mut items = a.into_items();
                items.extend(b.into_items());
                Json::Array(items)
            }
        }
    }

    /// JSON_MERGE_PATCH (RFC 7396).
    pub fn merge_patch(self, patch: Json) -> Json {
        let Json::Object(changes) = patch else { return patch };
        let members = if let Json::Object(members) = self { members } else { Vec::new() };
        Json::Object(merge_members(members, changes, |own, change| match (own, change) {
            (own, None) => own,
            (_, Some(Json::Null)) => None,
            (own, Some(change)) => Some(own.unwrap_or(Json::Null).merge_patch(change)),
        }))
    }

    /// The number of members, or of items, of what the last step of a path is taken in: so many may have to move to change one.
    pub fn beside(&mut self, path: &Path) -> usize {
        let parent = path.legs.split_last().and_then(|(_, parents)| self.at_mut(parents));
        parent.map_or(0, |parent| parent.length())
    }

    /// JSON_CONTAINS: every part of `candidate` is in `self`.
    /// Anything if `pace` says to stop.
    pub fn contains(&self, candidate: &Json, pace: &mut Pace<'_>) -> bool {
        self.has(candidate, &mut Paced::new(pace))
    }

    fn has(&self, candidate: &Json, pace: &mut Paced<'_, '_>) -> bool {
        if !pace.did(4) {
            return false;
        }
        match (self, candidate) {
            (Json::Array(_), Json::Array(parts)) => parts.iter().all(|part| self.has_element(part, pace)),
            (Json::Array(_), part) => self.has_element(part, pace),
            (Json::Object(_), Json::Object(parts)) => {
                parts.iter().all(|(k, part)| self.get(k).is_some_and(|v| v.has(part, pace)))
            }
            _ => self.compare(candidate).is_eq(),
        }
    }

    fn has_element(&self, part: &Json, pace: &mut Paced<'_, '_>) -> bool {
        let Json::Array(items) = self else { return false };
        items.iter().any(|item| {
            // A scalar may be anywhere in nested arrays; an array is only contained in an array.
            let comparable = !matches!(part, Json::Array(_)) || matches!(item, Json::Array(_));
            comparable && item.has(part, pace)
        })
    }

    fn into_items(self) -> Vec<Json> {
        if let Json::Array(items) = self { items } else { vec![self] }
    }
}
