//! Checks of a document that ANALYZE TABLE .. UPDATE HISTOGRAM .. USING DATA has, in MySQL's words.

use super::Column;
use super::histogram::{TEXT_PREFIX, data_type, from_json, key_of};
use bytes::Bytes;
use omnibus_value::collation;
use omnibus_value::convert::StoreContext;
use omnibus_value::json::Json;
use omnibus_value::temporal::{DateMode, parse_datetime, parse_time};
use omnibus_value::{ColumnType, Value};

/// Why a document is refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// A warning of a value, in front of the error.
    pub warning: Option<String>,
    /// The error's text.
    pub error: String,
}

impl From<String> for Refusal {
    fn from(error: String) -> Refusal {
        Refusal { warning: None, error }
    }
}

type Checked<T> = Result<T, Refusal>;

fn wrong_type<T>(at: &str) -> Checked<T> {
    Err(format!("Wrong attribute type at '{at}'.").into())
}

/// A bucket's members, and where they are.
struct Bucket<'a> {
    members: &'a [Json],
    at: String,
}

impl Bucket<'_> {
    fn place(&self, member: usize) -> String {
        format!("{}[{member}]", self.at)
    }

    /// The key of a value.
    fn key(&self, member: usize, column: &Column) -> Checked<Bytes> {
        let at = self.place(member);
        let value = value(&self.members[member], column, &at)?;
        Ok(key_of(&value, &column.ty))
    }

    /// The share of the rows up to the bucket's end, which is more than `before`.
    fn share(&self, member: usize, before: f64) -> Checked<f64> {
        let at = self.place(member);
        let share = share(&self.members[member], &at, "frequency")?;
        if share <= before {
            let message = format!(
                "The cumulative frequency of bucket at '{at}' must be greater than that of previous bucket."
            );
            return Err(message.into());
        }
        Ok(share)
    }
}

/// Fails if a document is no histogram of a column.
///
/// # Errors
/// The first thing that is wrong.
pub(crate) fn check(document: &Json, column: &Column) -> Checked<()> {
    if !matches!(document, Json::Object(_)) {
        return Err("JSON data is not an object".to_owned().into());
    }
    if text(document, "data-type")? != data_type(&column.ty).unwrap_or_default() {
        return Err("Histogram data type does not match column data type at '$.\"data-type\"'."
            .to_owned()
            .into());
    }
    let nulls = share(member(document, "null-values")?, "$.\"null-values\"", "frequency")?;
    // Older documents have none.
    if document.get("auto-update").is_some_and(|auto| !matches!(auto, Json::Bool(_))) {
        return wrong_type("$.\"auto-update\"");
    }
    let id = whole(member(document, "collation-id")?, "$.\"collation-id\"")?;
    // MariaDB's own have larger numbers.
    if u16::try_from(id).ok().filter(|id| *id < 1024).and_then(collation::by_id).is_none() {
        return Err("The charset ID does not exist at '$.\"collation-id\"'.".to_owned().into());
    }
    share(member(document, "sampling-rate")?, "$.\"sampling-rate\"", "sampling rate")?;
    let singleton = match text(document, "histogram-type")? {
        "singleton" => true,
        "equi-height" => false,
        _ => return Err("Unsupported histogram type at '$.\"histogram-type\"'.".to_owned().into()),
    };
    let name = "number-of-buckets-specified";
    let most = whole(member(document, name)?, &format!("$.\"{name}\""))?;
    if !(1..=1024).contains(&most) {
        let message = format!(
            "The value of attribute {name} must be an integer in the range from 1 to 1024 at '$.\"{name}\"'."
        );
        return Err(message.into());
    }
    let Some(list) = document.get("buckets") else {
        return Err("Missing attribute at '$.buckets'.".to_owned().into());
    };
    let Json::Array(list) = list else { return wrong_type("$.buckets") };
    if list.len() as i128 > most {
        let message = format!(
            "The number of real buckets must be less than or equal to the number specified by attribute {name}."
        );
        return Err(message.into());
    }
    buckets(list, singleton, nulls, column)
}

fn buckets(list: &[Json], singleton: bool, nulls: f64, column: &Column) -> Checked<()> {
    if list.is_empty() && !singleton {
        return Err("Equi-height histogram must have at least one bucket".to_owned().into());
    }
    if list.is_empty() && nulls != 0.0 && nulls != 1.0 {
        return Err("The null values fraction should be 0 or 1.".to_owned().into());
    }
    let (mut until, mut last) = (0.0, None);
    for (number, bucket) in list.iter().enumerate() {
        let at = format!("$.buckets[{number}]");
        let Json::Array(members) = bucket else { return wrong_type(&at) };
        let wanted = if singleton { ("Two", 2) } else { ("Four", 4) };
        if members.len() != wanted.1 {
            return Err(format!("{} elements required for bucket at '{at}'.", wanted.0).into());
        }
        let bucket = Bucket { members, at };
        let low = bucket.key(0, column)?;
        let behind = last.as_ref().is_none_or(|last| *last < low);
        if singleton && !behind {
            let at = bucket.place(0);
            return Err(format!("The value at '{at}' must be greater than that of previous bucket.").into());
        }
        let high = if singleton { low.clone() } else { upper(&bucket, &low, behind, column)? };
        until = bucket.share(if singleton { 1 } else { 2 }, until)?;
        if !singleton {
            distinct(&bucket)?;
        }
        last = Some(high);
    }
    if !list.is_empty() && (nulls + until - 1.0).abs() > 1e-9 {
        let message = "The sum of the null values fraction and the cumulative frequency of the last bucket should be 1.'";
        return Err(message.to_owned().into());
    }
    Ok(())
}

/// The last value's key of an equi-height bucket.
fn upper(bucket: &Bucket<'_>, low: &Bytes, behind: bool, column: &Column) -> Checked<Bytes> {
    let (high, at) = (bucket.key(1, column)?, bucket.place(0));
    if *low > high {
        let message = format!(
            "The lower inclusive value of bucket at '{at}' must be less than or equal to upper inclusive value."
        );
        return Err(message.into());
    }
    if !behind {
        let message = format!(
            "The lower inclusive value of bucket at '{at}' must be greater than the upper inclusive value of previous bucket."
        );
        return Err(message.into());
    }
    Ok(high)
}

fn distinct(bucket: &Bucket<'_>) -> Checked<()> {
    let at = bucket.place(3);
    match whole(&bucket.members[3], &at)? {
        1.. => Ok(()),
        _ => Err(format!("The number of distinct values must be a positive integer at '{at}'.").into()),
    }
}

fn member<'a>(document: &'a Json, name: &str) -> Checked<&'a Json> {
    document.get(name).ok_or_else(|| format!("Missing attribute at '$.\"{name}\"'.").into())
}

fn text<'a>(document: &'a Json, name: &str) -> Checked<&'a str> {
    match member(document, name)? {
        Json::String(text) => Ok(text),
        _ => wrong_type(&format!("$.\"{name}\"")),
    }
}

fn whole(json: &Json, at: &str) -> Checked<i128> {
    match json {
        Json::Int(n) => Ok(i128::from(*n)),
        Json::UInt(n) => Ok(i128::from(*n)),
        _ => wrong_type(at),
    }
}

fn share(json: &Json, at: &str, name: &str) -> Checked<f64> {
    let Json::Double(share) = json else { return wrong_type(at) };
    if !(0.0..=1.0).contains(share) {
        let message =
            format!("The {name} must be greater than or equal to 0 and less than or equal to 1 at '{at}'.");
        return Err(message.into());
    }
    Ok(*share)
}

/// The value of the column's type that a document's member is.
fn value(json: &Json, column: &Column, at: &str) -> Checked<Value> {
    let ty = &column.ty;
    let kind = data_type(ty).unwrap_or_default();
    let fits = match (kind, json) {
        ("int" | "uint" | "enum" | "set", Json::Int(_) | Json::UInt(_))
        | ("double", Json::Double(_))
        | ("decimal", Json::Int(_) | Json::UInt(_) | Json::Double(_) | Json::Decimal(_))
        | ("string" | "date" | "time" | "datetime", Json::String(_)) => true,
        // Those of a document that was not written.
        ("string", Json::Opaque(..)) | ("date", Json::Date(_)) | ("time", Json::Time(_)) => true,
        ("datetime", Json::DateTime(_)) => true,
        _ => false,
    };
    if !fits {
        return wrong_type(at);
    }
    if !is_well_formed(kind, json, ty) {
        return Err(format!("Value format error at '{at}'.").into());
    }
    let out = || format!("Out of range value for column at '{at}'.");
    if let Some(warning) = zero_date(kind, json, column) {
        return Err(Refusal { warning: Some(warning), error: out() });
    }
    if loses_a_part(kind, json) {
        return Err(out().into());
    }
    let context = StoreContext { strict: true, ..StoreContext::default() };
    let value = from_json(json, ty).filter(|value| match value {
        Value::Enum(n) => usize::from(*n) <= ty.labels.len(),
        Value::Set(n) => ty.labels.len() >= 64 || *n < 1 << ty.labels.len(),
        value => value.cast_for_column(ty, &context).is_ok(),
    });
    value.ok_or_else(|| out().into())
}

fn is_well_formed(kind: &str, json: &Json, ty: &ColumnType) -> bool {
    match (kind, json) {
        ("string", Json::String(text)) => text.starts_with(TEXT_PREFIX) && from_json(json, ty).is_some(),
        ("date" | "datetime", Json::String(text)) => {
            parse_datetime(text.as_bytes(), 6, DateMode::RELAXED).is_ok_and(|read| !read.truncated)
        }
        ("time", Json::String(text)) => {
            let dated =
                parse_datetime(text.as_bytes(), 6, DateMode::RELAXED).is_ok_and(|read| !read.has_time);
            parse_time(text.as_bytes(), 6).is_ok_and(|read| !read.truncated) && !(dated && text.contains('-'))
        }
        // More digits than a DECIMAL has.
        ("decimal", Json::Double(n)) => n.abs() < 1e65,
        _ => true,
    }
}

/// A date is more than its type has a place for.
fn loses_a_part(kind: &str, json: &Json) -> bool {
    let Json::String(text) = json else { return false };
    match kind {
        "date" => parse_datetime(text.as_bytes(), 6, DateMode::RELAXED).is_ok_and(|read| read.has_time),
        "time" => parse_time(text.as_bytes(), 6).is_ok_and(|read| read.has_date),
        _ => false,
    }
}

fn zero_date(kind: &str, json: &Json, column: &Column) -> Option<String> {
    let Json::String(text) = json else { return None };
    let read = parse_datetime(text.as_bytes(), 6, DateMode::RELAXED).ok()?;
    if !matches!(kind, "date" | "datetime") || !read.value.date().is_zero() {
        return None;
    }
    let shown = text.split('.').next().unwrap_or(text);
    Some(format!("Incorrect {kind} value: '{shown}' for column '{}' at row 1", column.name))
}
