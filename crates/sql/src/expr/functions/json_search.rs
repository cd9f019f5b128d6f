//! JSON functions that look for something in a document, and that put something into an array.

use super::json::{document, one_or_all, path, result, scalar};
use super::{Def, MANY, boolean, ty};
use crate::error::{ExecResult, SqlError};
use crate::expr::like::LikeMatcher;
use crate::expr::{Context, Expr, ExprType};
use omnibus_value::Value;
use omnibus_value::json::{Index, Json, Leg};
use std::collections::HashSet;

pub(super) const DEFS: &[Def] = &[
    Def::new("JSON_OVERLAPS", 2, 2, ty::perhaps, overlaps),
    Def::new("JSON_SEARCH", 3, MANY, ty::json, search),
    Def::new("JSON_ARRAY_INSERT", 3, MANY, ty::json, array_insert),
];

/// Whether two documents have something in common: members of arrays, members of objects by name and value, or all.
fn overlaps(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(one) = document(args, 0, "json_overlaps", cx)? else { return Ok(Value::Null) };
    let Some(other) = document(args, 1, "json_overlaps", cx)? else { return Ok(Value::Null) };
    Ok(boolean(match (one, other) {
        (Json::Object(one), other @ Json::Object(_)) => {
            let mut found = false;
            for (name, value) in &one {
                cx.tick()?;
                found |= other.get(name).is_some_and(|theirs| theirs.compare(value).is_eq());
            }
            found
        }
        (one, other) => {
            let items = |doc| match doc {
                Json::Array(items) => items,
                alone => vec![alone],
            };
            let (one, mut other) = (items(one), items(other));
            cx.bytes(one.len() + other.len())?;
            other.sort_by(Json::compare);
            one.iter().any(|item| other.binary_search_by(|theirs| theirs.compare(item)).is_ok())
        }
    }))
}

/// The paths of the strings that are LIKE the third argument.
fn search(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(doc) = document(args, 0, "json_search", cx)? else { return Ok(Value::Null) };
    let Some(all) = one_or_all(args, 1, "json_search", cx)? else { return Ok(Value::Null) };
    let Some(pattern) = super::text_arg(&args[2], cx)? else { return Ok(Value::Null) };
    let escape = match args.get(3) {
        None => Some('\\'),
        Some(escape) => match escape.eval_str(cx)? {
            None => Some('\\'),
            Some(text) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                let mut chars = text.chars();
                match (chars.next(), chars.next()) {
                    (None, _) => Some('\\'),
                    (one, None) => one,
                    _ => return Err(SqlError::wrong_arguments("ESCAPE").into()),
                }
            }
        },
    };
    let matcher = LikeMatcher::new(&pattern, escape.map(u32::from), JSON_COLLATION);
    let mut found = Found { matcher, all, paths: Vec::new(), known: HashSet::new() };
    if args.len() <= 4 {
        found.within(&doc, &mut "$".to_owned(), cx)?;
    }
    for at in 4..args.len() {
        let Some(path) = path(args, at, cx)? else { return Ok(Value::Null) };
        if !path.has_wildcard() {
            // What it leads to has the path that was given.
            let part = cx.paced(|pace| path.find(&doc, pace))?.first().copied();
            if let Some(part) = part {
                found.within(part, &mut given(&path.legs), cx)?;
            }
            continue;
        }
        for (place, part) in places(&doc, &path.legs, "$", cx)? {
            found.within(part, &mut place.clone(), cx)?;
        }
    }
    let mut paths = found.paths;
    match paths.len() {
        0 => Ok(Value::Null),
        1 => result(&paths.remove(0), cx),
        _ => result(&Json::Array(paths), cx),
    }
}

/// Strings of documents are compared byte by byte.
const JSON_COLLATION: u16 = 46;

/// Bytes of a place in a document beside its path.
const PLACE: usize = 128;

struct Found {
    matcher: LikeMatcher,
    all: bool,
    paths: Vec<Json>,
    /// The same: a part that two paths name is found once.
    known: HashSet<String>,
}

impl Found {
    fn within(&mut self, doc: &Json, at: &mut String, cx: &mut Context<'_>) -> ExecResult<()> {
        cx.tick()?;
        if !self.all && !self.paths.is_empty() {
            return Ok(());
        }
        let length = at.len();
        match doc {
            Json::String(text) if self.matcher.matches(text.as_bytes(), cx)? && !self.known.contains(at) => {
                cx.ask(4 * (size_of::<Json>() + at.len()))?;
                self.known.insert(at.clone());
                self.paths.push(Json::String(at.clone()));
            }
            Json::Array(items) => {
                for (number, item) in items.iter().enumerate() {
                    at.push_str(&format!("[{number}]"));
                    self.within(item, at, cx)?;
                    at.truncate(length);
                }
            }
            Json::Object(members) => {
                for (name, member) in members {
                    push_member(at, name);
                    self.within(member, at, cx)?;
                    at.truncate(length);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The text of a path without wildcards.
fn given(legs: &[Leg]) -> String {
    let mut text = "$".to_owned();
    for leg in legs {
        match leg {
            Leg::Member(name) => push_member(&mut text, name),
            Leg::Cell(Index::Front(at)) => text.push_str(&format!("[{at}]")),
            Leg::Cell(Index::Back(0)) => text.push_str("[last]"),
            Leg::Cell(Index::Back(before)) => text.push_str(&format!("[last-{before}]")),
            _ => {}
        }
    }
    text
}

/// A step to a member, in quotes if its name is no identifier.
fn push_member(path: &mut String, name: &str) {
    path.push('.');
    let plain = name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '$');
    if plain && !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) {
        path.push_str(name);
        return;
    }
    let mut quoted = Vec::new();
    omnibus_value::json::write_quoted(name, &mut quoted);
    path.push_str(&String::from_utf8_lossy(&quoted));
}

/// The parts of a document that a path with wildcards leads to, each with a path without.
fn places<'d>(
    doc: &'d Json,
    legs: &[Leg],
    at: &str,
    cx: &mut Context<'_>,
) -> ExecResult<Vec<(String, &'d Json)>> {
    cx.tick()?;
    cx.check_stack()?;
    // Each place on the way has its own copy of its path.
    cx.ask(at.len() + PLACE)?;
    let Some((leg, rest)) = legs.split_first() else { return Ok(vec![(at.to_owned(), doc)]) };
    let mut children: Vec<(String, &Json)> = Vec::new();
    let mut member = |name: &str, value: &'d Json| {
        let mut path = at.to_owned();
        push_member(&mut path, name);
        children.push((path, value));
    };
    match (leg, doc) {
        (Leg::Member(name), Json::Object(members)) => {
            members.iter().filter(|(own, _)| own == name).for_each(|(own, value)| member(own, value));
        }
        (Leg::AnyMember, Json::Object(members)) => {
            members.iter().for_each(|(own, value)| member(own, value));
        }
        (Leg::AnyCell | Leg::Cell(_) | Leg::Range(..), Json::Array(items)) => {
            let last = items.len();
            let wanted = |number: usize| match leg {
                Leg::Cell(index) => index.resolve(last) == Some(number),
                Leg::Range(from, to) => {
                    from.resolve(last).is_some_and(|from| from <= number)
                        && to.resolve(last).is_some_and(|to| number <= to)
                }
                _ => true,
            };
            let cells = items.iter().enumerate().filter(|(number, _)| wanted(*number));
            children.extend(cells.map(|(number, item)| (format!("{at}[{number}]"), item)));
        }
        (Leg::Ellipsis, _) => {
            let mut found = places(doc, rest, at, cx)?;
            let below: Vec<(String, &Json)> = match doc {
                Json::Object(_) => places(doc, &[Leg::AnyMember], at, cx)?,
                Json::Array(_) => places(doc, &[Leg::AnyCell], at, cx)?,
                _ => Vec::new(),
            };
            for (path, child) in below {
                found.extend(places(child, legs, &path, cx)?);
            }
            return Ok(found);
        }
        _ => {}
    }
    let mut found = Vec::new();
    for (path, child) in children {
        found.extend(places(child, rest, &path, cx)?);
    }
    Ok(found)
}

fn array_insert(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    if args.len().is_multiple_of(2) {
        return Err(SqlError::wrong_parameter_count_to_native_fct("JSON_ARRAY_INSERT").into());
    }
    let Some(mut doc) = document(args, 0, "json_array_insert", cx)? else { return Ok(Value::Null) };
    for at in (1..args.len()).step_by(2) {
        let Some(path) = path(args, at, cx)? else { return Ok(Value::Null) };
        super::json::refuse_wildcard(&path)?;
        let Some((Leg::Cell(index), parents)) = path.legs.split_last() else {
            let message = "A path expression is not a path to a cell in an array.";
            return Err(SqlError::new(3165, b"42000", message).into());
        };
        let value = scalar(args, at + 1, cx)?;
        if let Some(Json::Array(items)) = doc.at_mut(parents) {
            cx.bytes(items.len())?;
            let place = match index {
                Index::Front(at) => (*at).min(items.len()),
                Index::Back(from_end) => items.len().saturating_sub(from_end + 1),
            };
            items.insert(place, value);
        }
    }
    result(&doc, cx)
}
