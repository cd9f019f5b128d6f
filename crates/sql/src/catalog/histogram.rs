//! Histograms of columns: which values a column has, as ANALYZE TABLE .. UPDATE HISTOGRAM found them.
//!
//! The kept and shown form is MySQL's document (`information_schema.COLUMN_STATISTICS`). A singleton histogram has a bucket for
//! each value, an equi-height one buckets of about as many rows each; a bucket ends with the share of the rows in it and before
//! it. Estimates go by the same bytes that index keys are made of, so a column's collation decides. Not here: who keeps them
//! (`store::kept_statistics`), who asks (`plan::cost::estimate`).

use super::Column;
use super::statistics::distance;
use bytes::Bytes;
use omnibus_value::base64;
use omnibus_value::convert::StoreContext;
use omnibus_value::json::Json;
use omnibus_value::temporal::DateTime;
use omnibus_value::{ColumnKind, ColumnType, Value, key};
use std::mem::size_of;

/// Characters of a text that count.
const CHARACTERS: u32 = 42;
/// Buckets where a statement names no number.
pub const BUCKETS: u64 = 100;
/// The most that a statement may name.
pub const MOST_BUCKETS: u64 = 1024;
/// MYSQL_TYPE_STRING: what texts in a document are.
const TEXT: u8 = 254;
/// Text of that kind where the document itself is text.
pub(super) const TEXT_PREFIX: &str = "base64:type254:";

/// A column's histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    document: Json,
    nulls: f64,
    buckets: Vec<Bucket>,
    auto: bool,
}

#[derive(Clone, Debug, PartialEq)]
struct Bucket {
    /// The first value's key.
    low: Bytes,
    /// The last value's.
    high: Bytes,
    /// The share of the rows up to its end.
    until: f64,
    /// Different values in it.
    distinct: u64,
}

/// The document's name for a column's type; `None` if there are no histograms of it.
pub(super) fn data_type(ty: &ColumnType) -> Option<&'static str> {
    use ColumnKind as K;
    Some(match ty.kind {
        kind if kind.is_integer() => {
            if ty.unsigned {
                "uint"
            } else {
                "int"
            }
        }
        K::Year | K::Bit => "uint",
        K::Decimal => "decimal",
        K::Float | K::Double => "double",
        K::Date => "date",
        K::Time => "time",
        K::DateTime | K::Timestamp => "datetime",
        K::Enum => "enum",
        K::Set => "set",
        K::Json | K::Geometry | K::Uuid | K::Inet4 | K::Inet6 => return None,
        _ => "string",
    })
}

/// Whether a column may have a histogram.
#[must_use]
pub fn supports(column: &Column) -> bool {
    data_type(&column.ty).is_some()
}

/// The key that a value is counted by.
pub(super) fn key_of(value: &Value, ty: &ColumnType) -> Bytes {
    let mut out = Vec::new();
    let text = data_type(ty) == Some("string");
    key::encode(value, ty, text.then_some(CHARACTERS), false, &mut out);
    out.into()
}

/// A value as a document has it.
fn to_json(value: &Value, ty: &ColumnType) -> Json {
    match value {
        Value::Int(n) => Json::Int(*n),
        Value::UInt(n) | Value::Bit(n) | Value::Set(n) => Json::UInt(*n),
        Value::Year(n) => Json::UInt(u64::from(*n)),
        Value::Enum(n) => Json::Int(i64::from(*n)),
        Value::Float(n) => Json::Double(f64::from(*n)),
        Value::Double(n) => Json::Double(*n),
        Value::Decimal(n) => Json::Decimal(*n),
        Value::Date(at) => Json::Date(*at),
        Value::DateTime(at) => Json::DateTime(*at),
        Value::Time(at) => Json::Time(*at),
        Value::Bytes(bytes) => {
            let end = ty.charset().byte_offset(bytes, CHARACTERS as usize);
            Json::Opaque(TEXT, bytes.slice(..end))
        }
        Value::Null | Value::Json(_) | Value::Fixed(_) => Json::Null,
    }
}

/// The value of a column's type that a document has.
pub(super) fn from_json(json: &Json, ty: &ColumnType) -> Option<Value> {
    let whole = |json: &Json| match json {
        Json::Int(n) => u64::try_from(*n).ok(),
        Json::UInt(n) => Some(*n),
        _ => None,
    };
    let value = match (data_type(ty)?, json) {
        ("string", Json::Opaque(TEXT, bytes)) => return Some(Value::Bytes(bytes.clone())),
        ("string", Json::String(text)) => {
            let bytes = base64::decode_runs(text.strip_prefix(TEXT_PREFIX)?.as_bytes())?;
            return Some(Value::Bytes(bytes.into()));
        }
        ("enum", json) => return whole(json).and_then(|n| u16::try_from(n).ok()).map(Value::Enum),
        ("set", json) => return whole(json).map(Value::Set),
        (_, json) if ty.kind == ColumnKind::Bit => return whole(json).map(Value::Bit),
        (_, json) if ty.kind == ColumnKind::Year => {
            return whole(json).and_then(|n| u16::try_from(n).ok()).map(Value::Year);
        }
        (_, Json::Int(n)) => Value::Int(*n),
        (_, Json::UInt(n)) => Value::UInt(*n),
        (_, Json::Double(n)) => Value::Double(*n),
        (_, Json::Decimal(n)) => Value::Decimal(*n),
        (_, Json::Date(at)) => Value::Date(*at),
        (_, Json::DateTime(at)) => Value::DateTime(*at),
        (_, Json::Time(at)) => Value::Time(*at),
        (_, Json::String(text)) => Value::Bytes(Bytes::copy_from_slice(text.as_bytes())),
        _ => return None,
    };
    // Values are in UTC.
    value.cast_for_column(ty, &StoreContext::default()).ok().map(|stored| stored.value)
}

impl Histogram {
    /// Reads a document for a column; `None` if it is none of the column's type.
    #[must_use]
    pub fn of_document(document: Json, column: &Column) -> Option<Histogram> {
        let ty = &column.ty;
        let word = |name: &str| match document.get(name) {
            Some(Json::String(text)) => Some(text.as_str()),
            _ => None,
        };
        if word("data-type")? != data_type(ty)? {
            return None;
        }
        let singleton = match word("histogram-type")? {
            "singleton" => true,
            "equi-height" => false,
            _ => return None,
        };
        let share = |json: &Json| json.as_f64().filter(|share| (0.0..=1.0).contains(share));
        let key = |json: &Json| Some(key_of(&from_json(json, ty)?, ty));
        let bucket = |json: &Json| match json {
            Json::Array(members) if singleton => {
                let [value, until] = &members[..] else { return None };
                let low = key(value)?;
                Some(Bucket { high: low.clone(), low, until: share(until)?, distinct: 1 })
            }
            Json::Array(members) => {
                let [low, high, until, distinct] = &members[..] else { return None };
                let distinct = distinct.as_f64().filter(|n| *n >= 1.0)? as u64;
                Some(Bucket { low: key(low)?, high: key(high)?, until: share(until)?, distinct })
            }
            _ => None,
        };
        let Json::Array(list) = document.get("buckets")? else { return None };
        let buckets = list.iter().map(bucket).collect::<Option<Vec<_>>>()?;
        let ordered = |pair: &[Bucket]| pair[0].high < pair[1].low && pair[0].until <= pair[1].until;
        if !buckets.windows(2).all(ordered) || buckets.iter().any(|bucket| bucket.low > bucket.high) {
            return None;
        }
        let nulls = share(document.get("null-values")?)?;
        document.get("sampling-rate").and_then(share)?;
        document.get("number-of-buckets-specified")?.as_f64()?;
        let auto = document.get("auto-update") == Some(&Json::Bool(true));
        Some(Histogram { nulls, buckets, auto, document })
    }

    /// MySQL's document.
    #[must_use]
    pub fn document(&self) -> &Json {
        &self.document
    }

    /// Whether ANALYZE TABLE makes it anew.
    #[must_use]
    pub fn is_auto(&self) -> bool {
        self.auto
    }

    /// How many buckets were asked for.
    #[must_use]
    pub fn asked_buckets(&self) -> u64 {
        let asked = self.document.get("number-of-buckets-specified").and_then(Json::as_f64);
        asked.map_or(BUCKETS, |n| n as u64)
    }

    /// The share of the rows that are NULL.
    #[must_use]
    pub fn nulls(&self) -> f64 {
        self.nulls
    }

    /// The share of the rows with a value that nobody knows yet.
    #[must_use]
    pub fn any_value(&self) -> f64 {
        let distinct: u64 = self.buckets.iter().map(|bucket| bucket.distinct).sum();
        (1.0 - self.nulls) / distinct.max(1) as f64
    }

    /// The share of the rows with a value of the column's type.
    #[must_use]
    pub fn equal(&self, value: &Value, ty: &ColumnType) -> f64 {
        let key = key_of(value, ty);
        let at = self.buckets.partition_point(|bucket| bucket.high < key);
        match self.buckets.get(at) {
            Some(bucket) if bucket.low <= key => (bucket.until - self.before(at)) / bucket.distinct as f64,
            _ => 0.0,
        }
    }

    /// The share of the rows below a value, or up to it.
    #[must_use]
    pub fn below(&self, value: &Value, ty: &ColumnType, inclusive: bool) -> f64 {
        let key = key_of(value, ty);
        let at = self.buckets.partition_point(|bucket| bucket.high < key);
        let before = self.before(at);
        let Some(bucket) = self.buckets.get(at).filter(|bucket| bucket.low <= key) else { return before };
        let within = bucket.until - before;
        let one = within / bucket.distinct as f64;
        let share = if bucket.low == bucket.high { 0.0 } else { distance(&bucket.low, &key, &bucket.high) };
        before + (share * (within - one)).max(0.0) + if inclusive { one } else { 0.0 }
    }

    /// The share of the rows in front of a bucket.
    fn before(&self, at: usize) -> f64 {
        at.checked_sub(1).and_then(|at| self.buckets.get(at)).map_or(0.0, |bucket| bucket.until)
    }
}

/// Takes a column's values and makes a histogram of them. Where they need more memory than they may have, a part of the
/// rows is taken, the same part each time.
#[derive(Debug)]
pub struct Collector {
    ty: ColumnType,
    values: Vec<(Bytes, Value, u64)>,
    nulls: Vec<u64>,
    memory: usize,
    most: usize,
    /// Rows whose numbers' hashes are below are taken.
    bound: u64,
    seen: u64,
}

/// A number's bits well mixed.
fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

impl Collector {
    /// Of a column, with so many bytes.
    #[must_use]
    pub fn new(column: &Column, most: usize) -> Collector {
        let ty = column.ty.clone();
        Collector { ty, values: Vec::new(), nulls: Vec::new(), memory: 0, most, bound: u64::MAX, seen: 0 }
    }

    /// Takes the next row's value.
    pub fn add(&mut self, value: &Value) {
        self.seen += 1;
        let hash = mixed(self.seen);
        if hash > self.bound {
            return;
        }
        if value.is_null() {
            self.nulls.push(hash);
            self.memory += size_of::<u64>();
        } else {
            let key = key_of(value, &self.ty);
            self.memory += held(&key, value);
            self.values.push((key, value.clone(), hash));
        }
        while self.memory > self.most && self.bound > 1 {
            self.bound /= 2;
            let bound = self.bound;
            self.values.retain(|(.., hash)| *hash <= bound);
            self.nulls.retain(|hash| *hash <= bound);
            self.memory = self.nulls.len() * size_of::<u64>()
                + self.values.iter().map(|(key, value, _)| held(key, value)).sum::<usize>();
        }
    }

    /// The document, with at most `most` buckets.
    #[must_use]
    pub fn finish(mut self, most: u64, auto: bool, now: DateTime) -> Json {
        self.values.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let rows = (self.values.len() + self.nulls.len()).max(1) as f64;
        let mut groups: Vec<(&Value, u64)> = Vec::new();
        let mut last: Option<&Bytes> = None;
        for (key, value, _) in &self.values {
            match groups.last_mut() {
                Some((_, count)) if last == Some(key) => *count += 1,
                _ => groups.push((value, 1)),
            }
            last = Some(key);
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX).max(1);
        let singleton = groups.len() <= most;
        let width = if singleton { 1 } else { narrowest(&groups, most) };
        let mut before = 0;
        let buckets = split(&groups, if singleton { 0 } else { width }).into_iter().map(|bucket| {
            before += bucket.iter().map(|(_, count)| count).sum::<u64>();
            let until = Json::Double(before as f64 / rows);
            let (low, high) = (bucket[0].0, bucket[bucket.len() - 1].0);
            Json::Array(match singleton {
                true => vec![to_json(low, &self.ty), until],
                false => vec![
                    to_json(low, &self.ty),
                    to_json(high, &self.ty),
                    until,
                    Json::Int(bucket.len() as i64),
                ],
            })
        });
        let buckets = Json::Array(buckets.collect());
        let mut updated = Vec::new();
        now.write_text(6, &mut updated);
        let updated = String::from_utf8_lossy(&updated).into_owned();
        let rate = if self.bound == u64::MAX { 1.0 } else { self.bound as f64 / u64::MAX as f64 };
        let collation = if data_type(&self.ty) == Some("string") { i64::from(self.ty.collation) } else { 8 };
        let text = |text: &str| Json::String(text.to_owned());
        let members = [
            ("buckets", buckets),
            ("data-type", text(data_type(&self.ty).unwrap_or_default())),
            ("auto-update", Json::Bool(auto)),
            ("null-values", Json::Double(self.nulls.len() as f64 / rows)),
            ("collation-id", Json::Int(collation)),
            ("last-updated", Json::String(updated)),
            ("sampling-rate", Json::Double(rate)),
            ("histogram-type", text(if singleton { "singleton" } else { "equi-height" })),
            ("number-of-buckets-specified", Json::Int(most as i64)),
        ];
        Json::object(members.map(|(name, json)| (name.to_owned(), json)))
    }
}

/// Bytes that a value takes while it is collected.
fn held(key: &Bytes, value: &Value) -> usize {
    let text = if let Value::Bytes(bytes) = value { bytes.len() } else { 0 };
    size_of::<(Bytes, Value, u64)>() + key.len() + text
}

/// Groups in buckets: one that would have more than `width` rows with the next group ends before it.
fn split<'g>(groups: &'g [(&'g Value, u64)], width: u64) -> Vec<&'g [(&'g Value, u64)]> {
    let (mut buckets, mut from, mut rows) = (Vec::new(), 0, 0);
    for (at, (_, count)) in groups.iter().enumerate() {
        if at > from && rows + count > width {
            buckets.push(&groups[from..at]);
            (from, rows) = (at, 0);
        }
        rows += count;
    }
    if from < groups.len() {
        buckets.push(&groups[from..]);
    }
    buckets
}

/// The least rows of a bucket with which there are no more than `most` of them.
fn narrowest(groups: &[(&Value, u64)], most: usize) -> u64 {
    let (mut low, mut high) = (1, groups.iter().map(|(_, count)| count).sum::<u64>());
    while low < high {
        let middle = low + (high - low) / 2;
        if split(groups, middle).len() <= most {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}
