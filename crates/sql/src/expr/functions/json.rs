//! JSON functions. The documents and what can be done with them are `omnibus_value::json`.

use super::{Def, MANY, boolean, text, ty, value_arg};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::types::Coercibility;
use crate::expr::{BindContext, Context, Expr, ExprType, cast, json};
use omnibus_value::Value;
use omnibus_value::json::{Json, JsonError, Path, SetMode, memory_of_binary, memory_of_text};

pub(super) const DEFS: &[Def] = &[
    Def::new("JSON_EXTRACT", 2, MANY, ty::json, extract),
    Def::new("JSON_UNQUOTE", 1, 1, long_text, unquote),
    Def::new("JSON_QUOTE", 1, 1, long_text, quote),
    Def::new("JSON_OBJECT", 0, MANY, ty::json, object),
    Def::new("JSON_ARRAY", 0, MANY, ty::json, array),
    Def::new("JSON_VALID", 1, 1, ty::boolean, valid),
    Def::new("JSON_TYPE", 1, 1, name_of_type, type_of),
    Def::new("JSON_LENGTH", 1, 2, length_type, length),
    Def::new("JSON_DEPTH", 1, 1, ty::int, depth),
    Def::new("JSON_KEYS", 1, 2, ty::json, keys),
    Def::new("JSON_CONTAINS", 2, 3, ty::perhaps, contains),
    Def::new("JSON_CONTAINS_PATH", 3, MANY, ty::perhaps, contains_path),
    Def::new("JSON_SET", 3, MANY, ty::json, |a, _, cx| change(a, SetMode::Set, "json_set", cx)),
    Def::new("JSON_INSERT", 3, MANY, ty::json, |a, _, cx| change(a, SetMode::Insert, "json_insert", cx)),
    Def::new("JSON_REPLACE", 3, MANY, ty::json, |a, _, cx| change(a, SetMode::Replace, "json_replace", cx)),
    Def::new("JSON_REMOVE", 2, MANY, ty::json, remove),
    Def::new("JSON_ARRAY_APPEND", 3, MANY, ty::json, array_append),
    Def::new("JSON_MERGE_PRESERVE", 2, MANY, ty::json, |a, _, cx| {
        merge_preserve(a, "json_merge_preserve", cx)
    }),
    Def::new("JSON_MERGE", 2, MANY, ty::json, |a, _, cx| merge_preserve(a, "json_merge", cx)),
    Def::new("JSON_MERGE_PATCH", 2, MANY, ty::json, |a, _, cx| merge_patch(a, cx)),
    Def::new("JSON_PRETTY", 1, 1, long_text, pretty),
    Def::new("JSON_STORAGE_FREE", 1, 1, ty::int, storage_free),
    Def::new("JSON_STORAGE_SIZE", 1, 1, ty::int, storage_size),
    Def::new("JSON_VALUE", 2, 2, value_type, value),
    Def::new("MEMBER_OF", 2, 2, ty::boolean, member_of),
];

/// Text that has the collation of what it stands beside, if that has a say.
fn long_text(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::varchar(u32::MAX, 46).nullable(true))
}

fn name_of_type(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    if cx.session.settings.mariadb {
        return ty::ascii::<51>(args, cx);
    }
    Ok(ExprType::varchar(17, json::COLLATION).nullable(true))
}

fn value_type(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::varchar(u32::MAX, 46).coercible(Coercibility::Implicit).nullable(true))
}

pub(crate) fn failure(error: &JsonError, number: usize, function: &str) -> SqlError {
    match error {
        JsonError::Syntax { message, offset } => SqlError::new(
            3141,
            b"22032",
            format!(
                "Invalid JSON text in argument {number} to function {function}: \"{message}\" at position {offset}."
            ),
        ),
        JsonError::Path { .. } => SqlError::new(3143, b"42000", error.to_string()),
        JsonError::TooDeep => SqlError::new(3157, b"22032", error.to_string()),
        JsonError::LongKey => SqlError::new(3151, b"22032", error.to_string()),
        other => SqlError::new(3140, b"22032", other.to_string()),
    }
}

/// Argument `at` as a document: JSON as it is, text parsed; `None` for NULL.
pub(crate) fn document(
    args: &[Expr],
    at: usize,
    function: &str,
    cx: &mut Context<'_>,
) -> ExecResult<Option<Json>> {
    Ok(Some(match args[at].eval(cx)? {
        Value::Null => return Ok(None),
        Value::Json(binary) => {
            cx.ask(memory_of_binary(&binary))?;
            json::decode(&binary)
        }
        Value::Bytes(bytes) => {
            if json::is_bytes(&args[at]) && !reads_bytes(cx) {
                return Err(SqlError::binary_json().into());
            }
            cx.ask(memory_of_text(&bytes))?;
            Json::parse(&bytes).map_err(|error| failure(&error, at + 1, function))?
        }
        _ => {
            let error = format!(
                "Invalid data type for JSON data in argument {} to function {function}; a JSON string or JSON type is required.",
                at + 1
            );
            return Err(SqlError::new(3146, b"22032", error).into());
        }
    }))
}

/// Whether bytes are read as text of a document, as MariaDB reads them.
fn reads_bytes(cx: &Context<'_>) -> bool {
    cx.session.settings.mariadb || cx.session.settings.replicated
}

/// Fails for what JSON_QUOTE and JSON_UNQUOTE of MySQL do not take: what is neither text nor, for the latter, a document.
fn check_text(e: &Expr, value: &Value, function: &str, cx: &Context<'_>) -> SqlResult<()> {
    let text = matches!(value, Value::Null | Value::Bytes(_) | Value::Enum(_) | Value::Set(_));
    let document = matches!(value, Value::Json(_)) && function == "json_unquote";
    if text || document || e.ty.is_null() || reads_bytes(cx) {
        return Ok(());
    }
    let message = format!("Incorrect type for argument 1 in function {function}.");
    Err(SqlError::new(3064, b"HY000", message))
}

/// Argument `at` as a member of a document: text becomes a string.
pub(super) fn scalar(args: &[Expr], at: usize, cx: &mut Context<'_>) -> ExecResult<Json> {
    let value = args[at].eval(cx)?;
    cx.ask(match &value {
        Value::Json(binary) => memory_of_binary(binary),
        Value::Bytes(text) => size_of::<Json>() + text.len(),
        _ => size_of::<Json>(),
    })?;
    Ok(json::member(&args[at], &value))
}

/// A document as a function's result.
pub(super) fn result(doc: &Json, cx: &mut Context<'_>) -> ExecResult<Value> {
    cx.ask(doc.memory())?;
    Ok(json::made(doc)?)
}

pub(super) fn path(args: &[Expr], at: usize, cx: &mut Context<'_>) -> ExecResult<Option<Path>> {
    let Some(bytes) = super::text_arg(&args[at], cx)? else { return Ok(None) };
    if json::is_bytes(&args[at]) && !reads_bytes(cx) {
        return Err(SqlError::binary_json().into());
    }
    Ok(Some(Path::parse(&bytes).map_err(|error| failure(&error, at + 1, "path"))?))
}

fn extract(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(doc) = document(args, 0, "json_extract", cx)? else { return Ok(Value::Null) };
    let mut many = args.len() > 2;
    let mut found: Vec<Json> = Vec::new();
    for at in 1..args.len() {
        let Some(path) = path(args, at, cx)? else { return Ok(Value::Null) };
        many |= path.has_wildcard();
        let parts = cx.paced(|pace| path.find(&doc, pace))?;
        cx.ask(parts.iter().map(|part| part.memory()).sum())?;
        found.extend(parts.into_iter().cloned());
    }
    match (found.len(), many) {
        (0, _) => Ok(Value::Null),
        (_, true) => result(&Json::Array(found), cx),
        (_, false) => result(&found[0], cx),
    }
}

fn unquote(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = value_arg!(args, 0, cx);
    check_text(&args[0], &value, "json_unquote", cx)?;
    let mut out = Vec::new();
    match &value {
        Value::Json(binary) => {
            cx.ask(memory_of_binary(binary) + 2 * binary.len())?;
            json::decode(binary).unquote(&mut out);
        }
        value => {
            cx.ask(2 * long(value))?;
            let given =
                json::string(&args[0], &crate::expr::convert::text_in(&args[0], value, cx))?.into_bytes();
            let quoted = given.len() >= 2 && given.starts_with(b"\"") && given.ends_with(b"\"");
            if !quoted {
                return Ok(text(given));
            }
            cx.ask(memory_of_text(&given))?;
            Json::parse(&given).map_err(|error| failure(&error, 1, "json_unquote"))?.unquote(&mut out);
        }
    }
    Ok(text(out))
}

/// Bytes of a text.
fn long(value: &Value) -> usize {
    if let Value::Bytes(text) = value { text.len() } else { 0 }
}

fn quote(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = value_arg!(args, 0, cx);
    check_text(&args[0], &value, "json_quote", cx)?;
    let value = args[0].to_str(&value);
    // A byte that has to be escaped takes six.
    let escaped = value.iter().filter(|byte| **byte < b' ' || matches!(byte, b'"' | b'\\')).count();
    let length = value.len() + 5 * escaped + 2;
    cx.ask(length)?;
    let mut out = Vec::with_capacity(length);
    omnibus_value::json::write_quoted(&json::string(&args[0], &value)?, &mut out);
    Ok(text(out))
}

fn object(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    if args.len() % 2 == 1 {
        return Err(SqlError::wrong_parameter_count_to_native_fct("json_object").into());
    }
    let mut members = Vec::with_capacity(args.len() / 2);
    for at in (0..args.len()).step_by(2) {
        let Some(key) = super::text_arg(&args[at], cx)? else {
            return Err(
                SqlError::new(3158, b"22032", "JSON documents may not contain NULL member names.").into()
            );
        };
        cx.ask(size_of::<String>() + key.len())?;
        members.push((json::string(&args[at], &key)?, scalar(args, at + 1, cx)?));
    }
    result(&Json::object(members), cx)
}

fn array(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let mut items = Vec::with_capacity(args.len());
    for at in 0..args.len() {
        items.push(scalar(args, at, cx)?);
    }
    result(&Json::Array(items), cx)
}

fn valid(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(boolean(match value_arg!(args, 0, cx) {
        Value::Json(_) => true,
        Value::Bytes(bytes) => {
            cx.ask(memory_of_text(&bytes))?;
            let valid = omnibus_value::json::is_valid_text(&bytes);
            let valid = match valid {
                Err(_) if cx.session.settings.mariadb => false,
                valid => valid.map_err(|error| failure(&error, 1, "json_valid"))?,
            };
            valid && (reads_bytes(cx) || !json::is_bytes(&args[0]))
        }
        _ => false,
    }))
}

fn type_of(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(document(args, 0, "json_type", cx)?.map_or(Value::Null, |doc| text(doc.type_name())))
}

/// The part of the document in argument 0 that the optional path in argument 1 names.
fn part(args: &[Expr], function: &str, cx: &mut Context<'_>) -> ExecResult<Option<Json>> {
    let Some(doc) = document(args, 0, function, cx)? else { return Ok(None) };
    if args.len() < 2 {
        return Ok(Some(doc));
    }
    let Some(path) = path(args, 1, cx)? else { return Ok(None) };
    let Some(found) = cx.paced(|pace| path.find(&doc, pace))?.first().copied() else { return Ok(None) };
    cx.ask(found.memory())?;
    Ok(Some(found.clone()))
}

fn length_type(args: &[Expr], cx: &BindContext<'_>) -> SqlResult<ExprType> {
    if cx.session.settings.mariadb { ty::small_int(args, cx) } else { ty::bigint_or_null(args, cx) }
}

/// Of a path with wildcards MySQL counts what it matches.
fn length(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    if args.len() == 2 && !cx.session.settings.mariadb {
        let Some(doc) = document(args, 0, "json_length", cx)? else { return Ok(Value::Null) };
        let Some(path) = path(args, 1, cx)? else { return Ok(Value::Null) };
        let found = cx.paced(|pace| path.find(&doc, pace))?;
        return Ok(match &found[..] {
            [] => Value::Null,
            found if path.has_wildcard() => Value::Int(found.len() as i64),
            found => Value::Int(found[0].length() as i64),
        });
    }
    Ok(part(args, "json_length", cx)?.map_or(Value::Null, |doc| Value::Int(doc.length() as i64)))
}

fn depth(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(document(args, 0, "json_depth", cx)?.map_or(Value::Null, |doc| Value::Int(doc.depth() as i64)))
}

fn keys(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(doc) = document(args, 0, "json_keys", cx)? else { return Ok(Value::Null) };
    let whole = Path { legs: Vec::new() };
    let path = match args.len() {
        1 => Some(whole),
        _ => path(args, 1, cx)?,
    };
    let Some(path) = path else { return Ok(Value::Null) };
    refuse_wildcard(&path)?;
    match cx.paced(|pace| path.find_unwrapped(&doc, pace))?.first() {
        Some(Json::Object(members)) => {
            cx.ask(members.iter().map(|(name, _)| size_of::<Json>() + name.len()).sum())?;
            let names = members.iter().map(|(name, _)| Json::String(name.clone())).collect();
            result(&Json::Array(names), cx)
        }
        _ => Ok(Value::Null),
    }
}

fn contains(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(doc) = document(args, 0, "json_contains", cx)? else { return Ok(Value::Null) };
    let Some(candidate) = document(args, 1, "json_contains", cx)? else { return Ok(Value::Null) };
    if args.len() < 3 {
        return Ok(boolean(cx.paced(|pace| doc.contains(&candidate, pace))?));
    }
    let Some(path) = path(args, 2, cx)? else { return Ok(Value::Null) };
    refuse_wildcard(&path)?;
    let found = cx.paced(|pace| path.find(&doc, pace))?;
    let Some(found) = found.first() else { return Ok(Value::Null) };
    Ok(boolean(cx.paced(|pace| found.contains(&candidate, pace))?))
}

/// Whether an argument says 'all', and not 'one'; `None` for NULL.
pub(super) fn one_or_all(
    args: &[Expr],
    at: usize,
    function: &str,
    cx: &mut Context<'_>,
) -> ExecResult<Option<bool>> {
    let Some(mode) = args[at].eval_str(cx)? else { return Ok(None) };
    match mode.to_ascii_lowercase().as_slice() {
        b"all" => Ok(Some(true)),
        b"one" => Ok(Some(false)),
        _ => {
            let text = format!("The oneOrAll argument to {function} may take these values: 'one' or 'all'.");
            Err(SqlError::new(3154, b"42000", text).into())
        }
    }
}

fn contains_path(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(doc) = document(args, 0, "json_contains_path", cx)? else { return Ok(Value::Null) };
    let Some(all) = one_or_all(args, 1, "json_contains_path", cx)? else { return Ok(Value::Null) };
    for at in 2..args.len() {
        let Some(path) = path(args, at, cx)? else { return Ok(Value::Null) };
        if cx.paced(|pace| path.find(&doc, pace))?.is_empty() == all {
            return Ok(boolean(!all));
        }
    }
    Ok(boolean(all))
}

fn change(args: &[Expr], mode: SetMode, function: &str, cx: &mut Context<'_>) -> ExecResult<Value> {
    if args.len().is_multiple_of(2) {
        return Err(SqlError::wrong_parameter_count_to_native_fct(function.to_uppercase()).into());
    }
    let Some(mut doc) = document(args, 0, function, cx)? else { return Ok(Value::Null) };
    for at in (1..args.len()).step_by(2) {
        let Some(path) = path(args, at, cx)? else { return Ok(Value::Null) };
        refuse_wildcard(&path)?;
        let value = scalar(args, at + 1, cx)?;
        cx.bytes(doc.beside(&path))?;
        doc.set(&path, value, mode);
    }
    result(&doc, cx)
}

pub(super) fn refuse_wildcard(path: &Path) -> ExecResult<()> {
    if path.has_wildcard() {
        let text =
            "In this situation, path expressions may not contain the * and ** tokens or an array range.";
        return Err(SqlError::new(3149, b"42000", text).into());
    }
    Ok(())
}

fn remove(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(mut doc) = document(args, 0, "json_remove", cx)? else { return Ok(Value::Null) };
    for at in 1..args.len() {
        let Some(path) = path(args, at, cx)? else { return Ok(Value::Null) };
        refuse_wildcard(&path)?;
        if path.legs.is_empty() {
            return Err(SqlError::new(
                3153,
                b"42000",
                "The path expression '$' is not allowed in this context.",
            )
            .into());
        }
        cx.bytes(doc.beside(&path))?;
        doc.remove(&path);
    }
    result(&doc, cx)
}

fn array_append(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    if args.len().is_multiple_of(2) {
        return Err(SqlError::wrong_parameter_count_to_native_fct("json_array_append").into());
    }
    let Some(mut doc) = document(args, 0, "json_array_append", cx)? else { return Ok(Value::Null) };
    for at in (1..args.len().saturating_sub(1)).step_by(2) {
        let Some(path) = path(args, at, cx)? else { return Ok(Value::Null) };
        refuse_wildcard(&path)?;
        let value = scalar(args, at + 1, cx)?;
        let found = cx.paced(|pace| path.find(&doc, pace))?;
        let Some(found) = found.first().copied() else { continue };
        cx.ask(found.memory())?;
        let target = found.clone();
        if let Json::Array(items) = &target {
            cx.session.budget.spend(u32::try_from(items.len() / 16).unwrap_or(u32::MAX))?;
        }
        let longer = match target {
            Json::Array(mut items) => {
                items.push(value);
                Json::Array(items)
            }
            other => Json::Array(vec![other, value]),
        };
        if path.legs.is_empty() { doc = longer } else { doc.set(&path, longer, SetMode::Replace) }
    }
    result(&doc, cx)
}

fn merge_preserve(args: &[Expr], function: &str, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(mut doc) = document(args, 0, function, cx)? else { return Ok(Value::Null) };
    for at in 1..args.len() {
        let Some(other) = document(args, at, function, cx)? else { return Ok(Value::Null) };
        doc = doc.merge_preserve(other);
    }
    result(&doc, cx)
}

/// NULL is a document that is not known, until something that is no object takes its place.
fn merge_patch(args: &[Expr], cx: &mut Context<'_>) -> ExecResult<Value> {
    let mut merged = document(args, 0, "json_merge_patch", cx)?;
    for at in 1..args.len() {
        merged = match (merged, document(args, at, "json_merge_patch", cx)?) {
            (_, None) | (None, Some(Json::Object(_))) => None,
            (None, Some(other)) => Some(other),
            (Some(doc), Some(patch)) => Some(doc.merge_patch(patch)),
        };
    }
    merged.map_or(Ok(Value::Null), |doc| result(&doc, cx))
}

fn line(out: &mut Vec<u8>, depth: usize, cx: &mut Context<'_>) -> ExecResult<()> {
    cx.tick()?;
    cx.room(out, depth * 2 + 4)?;
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b' ', depth * 2));
    Ok(())
}

fn indent(doc: &Json, depth: usize, out: &mut Vec<u8>, cx: &mut Context<'_>) -> ExecResult<()> {
    match doc {
        Json::Array(items) if !items.is_empty() => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                line(out, depth + 1, cx)?;
                indent(item, depth + 1, out, cx)?;
            }
            line(out, depth, cx)?;
            out.push(b']');
        }
        Json::Object(members) if !members.is_empty() => {
            out.push(b'{');
            for (at, (name, member)) in members.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                line(out, depth + 1, cx)?;
                cx.room(out, 6 * name.len() + 4)?;
                omnibus_value::json::write_quoted(name, out);
                out.extend_from_slice(b": ");
                indent(member, depth + 1, out, cx)?;
            }
            line(out, depth, cx)?;
            out.push(b'}');
        }
        other => {
            // Each byte of a text may have to be escaped.
            cx.room(out, other.memory().saturating_mul(2))?;
            other.write_text(out);
        }
    }
    Ok(())
}

fn pretty(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(doc) = document(args, 0, "json_pretty", cx)? else { return Ok(Value::Null) };
    let mut out = Vec::new();
    indent(&doc, 0, &mut out, cx)?;
    Ok(text(out))
}

fn storage_size(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(doc) = document(args, 0, "json_storage_size", cx)? else { return Ok(Value::Null) };
    Ok(doc.encode().map_or(Value::Null, |binary| Value::Int(binary.len() as i64)))
}

/// Documents are written as a whole, so none has room left by what was in it.
fn storage_free(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(document(args, 0, "json_storage_free", cx)?.map_or(Value::Null, |_| Value::Int(0)))
}

fn value(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(found) = part(args, "json_value", cx)? else { return Ok(Value::Null) };
    Ok(match found {
        Json::Null | Json::Array(_) | Json::Object(_) => Value::Null,
        scalar => {
            let mut out = Vec::new();
            scalar.unquote(&mut out);
            text(out)
        }
    })
}

fn member_of(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let value = value_arg!(args, 0, cx);
    let wanted = match cast::to_json(&value, &args[0].ty) {
        Ok(Value::Json(binary)) if !matches!(value, Value::Bytes(_)) && !args[0].is_truth() => {
            json::decode(&binary)
        }
        _ => json::member(&args[0], &value),
    };
    let Some(doc) = document(args, 1, "member of", cx)? else { return Ok(Value::Null) };
    Ok(boolean(match doc {
        Json::Array(items) => items.iter().any(|item| item.compare(&wanted).is_eq()),
        other => other.compare(&wanted).is_eq(),
    }))
}
