//! JSON_SCHEMA_VALID and JSON_SCHEMA_VALIDATION_REPORT: draft 4 of JSON Schema, as MySQL has it.
//!
//! Keywords are asked in the order in which MySQL's library asks them, so that a report names the same one. What a schema says that
//! is no keyword, or has another type than the keyword's, is passed over; a pattern that is no regular expression is, too.

use super::json::document;
use super::{Def, boolean, ty};
use crate::error::{ExecResult, SqlError};
use crate::expr::regexp::RegexpMatcher;
use crate::expr::{Context, Expr, ExprType, Kind, json};
use omnibus_value::Value;
use omnibus_value::json::Json;
use std::fmt::Write;

pub(super) const DEFS: &[Def] = &[
    Def::new("JSON_SCHEMA_VALID", 2, 2, ty::boolean, valid),
    Def::new("JSON_SCHEMA_VALIDATION_REPORT", 2, 2, ty::json, report),
];

/// `utf8mb4_bin`: patterns tell upper from lower case.
const PATTERN_COLLATION: u16 = 46;
/// Ticks that reading a pattern counts as.
const PATTERN: usize = 64;
/// Nested schemas, references included.
const DEEPEST: usize = 100;

/// The demand of a schema that a document does not meet.
struct Failure {
    keyword: &'static str,
    schema: String,
    document: String,
}

impl Failure {
    fn reason(&self) -> String {
        let Failure { keyword, schema, document } = self;
        format!(
            "The JSON document location '{document}' failed requirement '{keyword}' at JSON Schema location '{schema}'"
        )
    }
}

/// The reason why a condition that is a call of JSON_SCHEMA_VALID does not hold: 3934.
///
/// # Errors
/// As its evaluation.
pub(crate) fn failure_of(condition: &Expr, cx: &mut Context<'_>) -> ExecResult<Option<SqlError>> {
    let Kind::Call(Def { name: "JSON_SCHEMA_VALID", .. }, args) = &condition.kind else { return Ok(None) };
    let Some((schema, document)) = both(args, "json_schema_valid", cx)? else { return Ok(None) };
    let failure = check(&schema, &document, cx)?;
    Ok(failure.map(|failure| SqlError::new(3934, b"HY000", format!("{}.", failure.reason()))))
}

fn valid(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some((schema, document)) = both(args, "json_schema_valid", cx)? else { return Ok(Value::Null) };
    Ok(boolean(check(&schema, &document, cx)?.is_none()))
}

fn report(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some((schema, document)) = both(args, "json_schema_validation_report", cx)? else {
        return Ok(Value::Null);
    };
    let member = |name: &str, value: String| (name.to_owned(), Json::String(value));
    let members = match check(&schema, &document, cx)? {
        None => vec![("valid".to_owned(), Json::Bool(true))],
        Some(failure) => {
            let reason = failure.reason();
            let Failure { keyword, schema, document } = failure;
            vec![
                ("valid".to_owned(), Json::Bool(false)),
                member("reason", reason),
                member("schema-location", schema),
                member("document-location", document),
                member("schema-failed-keyword", keyword.to_owned()),
            ]
        }
    };
    Ok(json::to_value(&Json::object(members)))
}

/// The schema and the document.
fn both(args: &[Expr], function: &str, cx: &mut Context<'_>) -> ExecResult<Option<(Json, Json)>> {
    let Some(schema) = document(args, 0, function, cx)? else { return Ok(None) };
    if !matches!(schema, Json::Object(_)) {
        let message =
            format!("Invalid JSON type in argument 1 to function {function}; an object is required.");
        return Err(SqlError::new(3853, b"22032", message).into());
    }
    Ok(document(args, 1, function, cx)?.map(|document| (schema, document)))
}

fn check(schema: &Json, document: &Json, cx: &mut Context<'_>) -> ExecResult<Option<Failure>> {
    let place = CheckPath { schema: "#".into(), document: "#".into(), depth: 0 };
    Checker { root: schema }.value(schema, document, &place, cx)
}

/// Where a check is.
struct CheckPath {
    schema: String,
    document: String,
    depth: usize,
}

impl CheckPath {
    fn fails(&self, keyword: &'static str) -> ExecResult<Option<Failure>> {
        Ok(Some(Failure { keyword, schema: self.schema.clone(), document: self.document.clone() }))
    }

    /// A part of the schema, for the same document.
    fn schema(&self, steps: &[&str]) -> CheckPath {
        let mut schema = self.schema.clone();
        steps.iter().for_each(|step| push(&mut schema, step));
        CheckPath { schema, document: self.document.clone(), depth: self.depth + 1 }
    }

    /// A part of the document.
    fn document(mut self, step: &str) -> CheckPath {
        push(&mut self.document, step);
        self
    }
}

/// Appends a step of a JSON pointer in a URI.
fn push(pointer: &mut String, step: &str) {
    pointer.push('/');
    for byte in step.replace('~', "~0").replace('/', "~1").bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => pointer.push(byte as char),
            _ => drop(write!(pointer, "%{byte:02X}")),
        }
    }
}

fn count(schema: &Json, keyword: &str) -> Option<usize> {
    match schema.get(keyword)? {
        Json::Int(n) => usize::try_from(*n).ok(),
        Json::UInt(n) => usize::try_from(*n).ok(),
        _ => None,
    }
}

fn list<'s>(schema: &'s Json, keyword: &str) -> &'s [Json] {
    match schema.get(keyword) {
        Some(Json::Array(items)) => items,
        _ => &[],
    }
}

/// Counts what is compared with each of so many.
fn compares(count: usize, cx: &Context<'_>) -> ExecResult<()> {
    cx.session.budget.spend(u32::try_from(count).unwrap_or(u32::MAX))
}

fn members<'s>(schema: &'s Json, keyword: &str) -> &'s [(String, Json)] {
    match schema.get(keyword) {
        Some(Json::Object(members)) => members,
        _ => &[],
    }
}

fn number(value: &Json) -> Option<f64> {
    Some(match value {
        Json::Int(n) => *n as f64,
        Json::UInt(n) => *n as f64,
        Json::Double(n) => *n,
        Json::Decimal(d) => d.to_string().parse().ok()?,
        _ => return None,
    })
}

fn is_type(name: &str, value: &Json) -> bool {
    match name {
        "null" => matches!(value, Json::Null),
        "boolean" => matches!(value, Json::Bool(_)),
        "object" => matches!(value, Json::Object(_)),
        "array" => matches!(value, Json::Array(_)),
        "integer" => matches!(value, Json::Int(_) | Json::UInt(_)),
        "number" => number(value).is_some(),
        // Times and bytes are strings in a text.
        "string" => {
            !matches!(value, Json::Null | Json::Bool(_) | Json::Object(_) | Json::Array(_))
                && number(value).is_none()
        }
        _ => false,
    }
}

struct Checker<'s> {
    root: &'s Json,
}

impl<'s> Checker<'s> {
    fn value(
        &self,
        schema: &'s Json,
        value: &Json,
        place: &CheckPath,
        cx: &mut Context<'_>,
    ) -> ExecResult<Option<Failure>> {
        cx.tick()?;
        if place.depth > DEEPEST {
            return Err(SqlError::new(3157, b"22032", "The JSON document exceeds the maximum depth.").into());
        }
        if let Some(Json::String(reference)) = schema.get("$ref") {
            let target = self.referred(reference)?;
            let Some(target) = target else { return Ok(None) };
            let there = CheckPath {
                schema: reference.clone(),
                document: place.document.clone(),
                depth: place.depth + 1,
            };
            return self.value(target, value, &there, cx);
        }
        let types = match schema.get("type") {
            Some(one @ Json::String(_)) => std::slice::from_ref(one),
            Some(Json::Array(several)) => several,
            _ => &[],
        };
        let meets = |ty: &Json| matches!(ty, Json::String(name) if is_type(name, value));
        compares(types.len(), cx)?;
        if !types.is_empty() && !types.iter().any(meets) {
            return place.fails("type");
        }
        let failure = match value {
            Json::Object(own) => self.object(schema, (value, own), place, cx)?,
            Json::Array(items) => self.array(schema, items, place, cx)?,
            value if number(value).is_some() => numeric(schema, value, place)?,
            value if is_type("string", value) => text(schema, value, place, cx)?,
            _ => None,
        };
        if failure.is_some() {
            return Ok(failure);
        }
        if let Some(Json::Array(known)) = schema.get("enum") {
            compares(known.len(), cx)?;
            if !known.iter().any(|known| known.compare(value).is_eq()) {
                return place.fails("enum");
            }
        }
        self.combined(schema, value, place, cx)
    }

    /// Checks a value by a combination of several schemas.
    fn combined(
        &self,
        schema: &'s Json,
        value: &Json,
        place: &CheckPath,
        cx: &mut Context<'_>,
    ) -> ExecResult<Option<Failure>> {
        let met = |keyword: &str, cx: &mut Context<'_>| -> ExecResult<Option<(usize, usize)>> {
            let schemas = list(schema, keyword);
            let mut count = 0;
            for (at, inner) in schemas.iter().enumerate() {
                let place = place.schema(&[keyword, &at.to_string()]);
                count += usize::from(self.value(inner, value, &place, cx)?.is_none());
            }
            Ok((!schemas.is_empty()).then_some((count, schemas.len())))
        };
        if met("allOf", cx)?.is_some_and(|(count, all)| count < all) {
            return place.fails("allOf");
        }
        if met("anyOf", cx)?.is_some_and(|(count, _)| count == 0) {
            return place.fails("anyOf");
        }
        if met("oneOf", cx)?.is_some_and(|(count, _)| count != 1) {
            return place.fails("oneOf");
        }
        if let Some(inner @ Json::Object(_)) = schema.get("not")
            && self.value(inner, value, &place.schema(&["not"]), cx)?.is_none()
        {
            return place.fails("not");
        }
        Ok(None)
    }

    fn object(
        &self,
        schema: &'s Json,
        (whole, own): (&Json, &[(String, Json)]),
        place: &CheckPath,
        cx: &mut Context<'_>,
    ) -> ExecResult<Option<Failure>> {
        for (name, value) in own {
            cx.tick()?;
            if let Some(failure) = self.member(schema, name, value, place, cx)? {
                return Ok(Some(failure));
            }
        }
        let has = |name: &str| whole.get(name).is_some();
        let lacks = |name: &Json| matches!(name, Json::String(name) if !has(name));
        compares(list(schema, "required").len(), cx)?;
        if list(schema, "required").iter().any(lacks) {
            return place.fails("required");
        }
        if count(schema, "minProperties").is_some_and(|least| own.len() < least) {
            return place.fails("minProperties");
        }
        if count(schema, "maxProperties").is_some_and(|most| own.len() > most) {
            return place.fails("maxProperties");
        }
        for (name, needs) in members(schema, "dependencies") {
            cx.tick()?;
            let fails = match needs {
                _ if !has(name) => false,
                Json::Array(names) => {
                    compares(names.len(), cx)?;
                    names.iter().any(lacks)
                }
                Json::Object(_) => {
                    self.value(needs, whole, &place.schema(&["dependencies", name]), cx)?.is_some()
                }
                _ => false,
            };
            if fails {
                return place.fails("dependencies");
            }
        }
        Ok(None)
    }

    fn member(
        &self,
        schema: &'s Json,
        name: &str,
        value: &Json,
        place: &CheckPath,
        cx: &mut Context<'_>,
    ) -> ExecResult<Option<Failure>> {
        let mut known = false;
        if let Some(inner) = schema.get("properties").and_then(|properties| properties.get(name)) {
            known = true;
            let place = place.schema(&["properties", name]).document(name);
            if let Some(failure) = self.value(inner, value, &place, cx)? {
                return Ok(Some(failure));
            }
        }
        for (pattern, inner) in members(schema, "patternProperties") {
            // Each pattern is read anew for each name.
            compares(PATTERN, cx)?;
            if !matches(pattern, name, cx)? {
                continue;
            }
            known = true;
            let inside = place.schema(&["patternProperties", pattern]).document(name);
            if let Some(failure) = self.value(inner, value, &inside, cx)? {
                return Ok(Some(failure));
            }
        }
        match schema.get("additionalProperties") {
            Some(Json::Bool(false)) if !known => {
                place.schema(&[]).document(name).fails("additionalProperties")
            }
            Some(inner @ Json::Object(_)) if !known => {
                self.value(inner, value, &place.schema(&["additionalProperties"]).document(name), cx)
            }
            _ => Ok(None),
        }
    }

    fn array(
        &self,
        schema: &'s Json,
        items: &[Json],
        place: &CheckPath,
        cx: &mut Context<'_>,
    ) -> ExecResult<Option<Failure>> {
        for (at, item) in items.iter().enumerate() {
            let number = at.to_string();
            let (inner, inside) = match (schema.get("items"), schema.get("additionalItems")) {
                (Some(all @ Json::Object(_)), _) => (all, place.schema(&["items"])),
                (Some(Json::Array(each)), more) => match (each.get(at), more) {
                    (Some(inner), _) => (inner, place.schema(&["items", &number])),
                    (None, Some(Json::Bool(false))) => {
                        return place.schema(&[]).document(&number).fails("additionalItems");
                    }
                    (None, Some(inner @ Json::Object(_))) => (inner, place.schema(&["additionalItems"])),
                    (None, _) => continue,
                },
                _ => break,
            };
            if let Some(failure) = self.value(inner, item, &inside.document(&number), cx)? {
                return Ok(Some(failure));
            }
        }
        if count(schema, "minItems").is_some_and(|least| items.len() < least) {
            return place.fails("minItems");
        }
        if count(schema, "maxItems").is_some_and(|most| items.len() > most) {
            return place.fails("maxItems");
        }
        if matches!(schema.get("uniqueItems"), Some(Json::Bool(true))) {
            let mut sorted: Vec<&Json> = items.iter().collect();
            cx.bytes(sorted.len())?;
            sorted.sort_by(|one, other| one.compare(other));
            if sorted.windows(2).any(|pair| matches!(pair, [one, other] if one.compare(other).is_eq())) {
                return place.fails("uniqueItems");
            }
        }
        Ok(None)
    }

    /// The meaning of `$ref`: a part of the schema itself.
    fn referred(&self, reference: &str) -> ExecResult<Option<&'s Json>> {
        let Some(pointer) = reference.strip_prefix('#') else {
            return Err(SqlError::not_supported_yet("references to external JSON schemas").into());
        };
        let mut at = self.root;
        for step in pointer.split('/').skip(1) {
            let step = step.replace("~1", "/").replace("~0", "~");
            let next = match at {
                Json::Array(items) => step.parse().ok().and_then(|n: usize| items.get(n)),
                other => other.get(&step),
            };
            let Some(next) = next else { return Ok(None) };
            at = next;
        }
        Ok(Some(at))
    }
}

fn numeric(schema: &Json, value: &Json, place: &CheckPath) -> ExecResult<Option<Failure>> {
    let exclusive = |keyword: &str| matches!(schema.get(keyword), Some(Json::Bool(true)));
    let bound = |keyword: &str| schema.get(keyword).filter(|bound| number(bound).is_some());
    if let Some(bound) = bound("minimum") {
        let order = value.compare(bound);
        if order.is_lt() || order.is_eq() && exclusive("exclusiveMinimum") {
            return place.fails("minimum");
        }
    }
    if let Some(bound) = bound("maximum") {
        let order = value.compare(bound);
        if order.is_gt() || order.is_eq() && exclusive("exclusiveMaximum") {
            return place.fails("maximum");
        }
    }
    let divides = match (value, bound("multipleOf")) {
        (_, None) => true,
        (Json::Int(n), Some(Json::Int(of))) => *of <= 0 || n % of == 0,
        (_, Some(of)) => match (number(value), number(of)) {
            (Some(n), Some(of)) if of > 0.0 => {
                let rest = (n / of - (n / of).round()).abs();
                rest < 1e-9
            }
            _ => true,
        },
    };
    if divides { Ok(None) } else { place.fails("multipleOf") }
}

fn text(schema: &Json, value: &Json, place: &CheckPath, cx: &mut Context<'_>) -> ExecResult<Option<Failure>> {
    let mut bytes = Vec::new();
    value.unquote(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let length = text.chars().count();
    if count(schema, "minLength").is_some_and(|least| length < least) {
        return place.fails("minLength");
    }
    if count(schema, "maxLength").is_some_and(|most| length > most) {
        return place.fails("maxLength");
    }
    if let Some(Json::String(pattern)) = schema.get("pattern")
        && !matches_or_bad(pattern, &text, cx)?
    {
        return place.fails("pattern");
    }
    Ok(None)
}

/// Whether a text has what a pattern describes; a bad pattern describes nothing.
fn matches(pattern: &str, text: &str, cx: &mut Context<'_>) -> ExecResult<bool> {
    match RegexpMatcher::new(pattern.as_bytes(), PATTERN_COLLATION) {
        Ok(matcher) => matcher.is_match(text.as_bytes(), cx),
        Err(_) => Ok(false),
    }
}

/// As `matches`; a bad pattern asks for nothing.
fn matches_or_bad(pattern: &str, text: &str, cx: &mut Context<'_>) -> ExecResult<bool> {
    match RegexpMatcher::new(pattern.as_bytes(), PATTERN_COLLATION) {
        Ok(matcher) => matcher.is_match(text.as_bytes(), cx),
        Err(_) => Ok(true),
    }
}
