//! The column types that a row event may have where ours are others (`replica_type_conversions`), and their names.
//!
//! Types of one family convert: integers, fractional numbers, strings, bits, and temporal types among themselves, as far as
//! was allowed. Pure.

use crate::catalog::Column;
use omnibus_format::events::ColumnMetadata;
use omnibus_format::field::{FieldType, code};
use omnibus_value::{ColumnKind, ColumnType, collation};
use std::cmp::Ordering;

/// How the source's column relates to ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The same bytes.
    Same,
    /// The same values in another form.
    Form,
    /// Every value fits.
    Wider,
    /// Some values do not fit.
    Lossy,
    /// No value means anything.
    Impossible,
}

/// `replica_type_conversions`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversions {
    /// ALL_LOSSY: values that do not fit are clipped.
    pub lossy: bool,
    /// ALL_NON_LOSSY: our column may be wider.
    pub non_lossy: bool,
    /// Whether an integer of which the log does not say it is unsigned, and ours is wider: ALL_UNSIGNED or ALL_SIGNED, if it
    /// is one of them; else it is what our column is.
    pub unsigned: Option<bool>,
}

impl Default for Conversions {
    fn default() -> Conversions {
        Conversions { lossy: false, non_lossy: true, unsigned: None }
    }
}

impl Conversions {
    /// From the variable's text.
    #[must_use]
    pub fn parse(text: &str) -> Conversions {
        let has = |label: &str| text.split(',').any(|word| word == label);
        Conversions {
            lossy: has("ALL_LOSSY"),
            non_lossy: has("ALL_NON_LOSSY"),
            unsigned: match (has("ALL_UNSIGNED"), has("ALL_SIGNED")) {
                (true, false) => Some(true),
                (false, true) => Some(false),
                _ => None,
            },
        }
    }
}

/// Whether the source's integers are to be read as unsigned ones. Logs of MariaDB do not say.
pub(super) fn is_unsigned(
    field: FieldType,
    meta: &ColumnMetadata,
    column: &Column,
    conversions: Conversions,
) -> bool {
    let promoted = integer_bytes(field.code) < integer_bytes(FieldType::of_column(&column.ty).code);
    let assumed = conversions.unsigned.filter(|_| promoted);
    meta.unsigned.or(assumed).unwrap_or(column.ty.unsigned)
}

/// From the source's `field`, of which `meta` is known, to `column`.
pub(super) fn relation(
    field: FieldType,
    meta: &ColumnMetadata,
    column: &Column,
    conversions: Conversions,
) -> Relation {
    let target = FieldType::of_column(&column.ty);
    if let (Some(theirs), Some(ours)) = (integer_bytes(field.code), integer_bytes(target.code)) {
        let unsigned = is_unsigned(field, meta, column, conversions);
        return integers(theirs, unsigned, ours, column.ty.unsigned);
    }
    if let (Some(theirs), Some(ours)) = (string_bytes(field), string_bytes(target)) {
        return strings(field, theirs, target, ours, meta, &column.ty);
    }
    match (field.code, target.code) {
        (code::FLOAT, code::FLOAT) | (code::DOUBLE, code::DOUBLE) => Relation::Same,
        (code::FLOAT, code::DOUBLE) => Relation::Wider,
        (code::NEWDECIMAL, code::NEWDECIMAL) => decimals(field.meta, target.meta),
        (code::FLOAT | code::DOUBLE | code::NEWDECIMAL, code::FLOAT | code::DOUBLE | code::NEWDECIMAL) => {
            Relation::Lossy
        }
        (code::BIT, code::BIT) | (code::ENUM, code::ENUM) | (code::SET, code::SET) => {
            by_order(field.meta.cmp(&target.meta))
        }
        (code::DATE | code::NEWDATE, code::DATE) => Relation::Same,
        (code::YEAR, code::YEAR) | (code::JSON, code::JSON) | (code::GEOMETRY, code::GEOMETRY) => {
            Relation::Same
        }
        (code::TIME2, code::TIME2)
        | (code::DATETIME2, code::DATETIME2)
        | (code::TIMESTAMP2, code::TIMESTAMP2) => by_order(field.meta.cmp(&target.meta)),
        (code::TIME, code::TIME2)
        | (code::DATETIME, code::DATETIME2)
        | (code::TIMESTAMP, code::TIMESTAMP2) => match target.meta {
            0 => Relation::Form,
            _ => Relation::Wider,
        },
        // MariaDB's JSON is text, and so is ours there.
        (_, code::JSON) if string_bytes(field).is_some() => Relation::Wider,
        (code::JSON, _) if column.ty.kind == ColumnKind::LongText => Relation::Wider,
        (code::JSON, _) if string_bytes(target).is_some() => Relation::Lossy,
        _ => Relation::Impossible,
    }
}

fn by_order(order: Ordering) -> Relation {
    match order {
        Ordering::Equal => Relation::Same,
        Ordering::Less => Relation::Wider,
        Ordering::Greater => Relation::Lossy,
    }
}

fn integer_bytes(code: u8) -> Option<u8> {
    Some(match code {
        code::TINY => 1,
        code::SHORT => 2,
        code::INT24 => 3,
        code::LONG => 4,
        code::LONGLONG => 8,
        _ => return None,
    })
}

fn integers(theirs: u8, their_unsigned: bool, ours: u8, our_unsigned: bool) -> Relation {
    match (their_unsigned, our_unsigned) {
        (true, true) | (false, false) => by_order(theirs.cmp(&ours)),
        (true, false) if theirs < ours => Relation::Wider,
        _ => Relation::Lossy,
    }
}

/// Most bytes of a string type.
fn string_bytes(field: FieldType) -> Option<u64> {
    Some(match field.code {
        code::STRING | code::VAR_STRING | code::VARCHAR => u64::from(field.meta),
        code::TINY_BLOB => 0xff,
        code::MEDIUM_BLOB => 0xff_ffff,
        code::LONG_BLOB => 0xffff_ffff,
        code::BLOB => (1u64 << (8 * field.meta.clamp(1, 4))) - 1,
        _ => return None,
    })
}

fn strings(
    field: FieldType,
    theirs: u64,
    target: FieldType,
    ours: u64,
    meta: &ColumnMetadata,
    ty: &ColumnType,
) -> Relation {
    let recode = charset_differs(meta, ty);
    if field == target && !recode {
        return Relation::Same;
    }
    // How many characters fit is only known when it is done; a value that does not fit is an error then.
    if recode || theirs <= ours { Relation::Wider } else { Relation::Lossy }
}

/// Whether both character sets are known, and are two.
pub(super) fn charset_differs(meta: &ColumnMetadata, ty: &ColumnType) -> bool {
    let Some(theirs) = meta.collation.and_then(collation::by_id) else { return false };
    let ours = collation::by_id_or_binary(ty.collation);
    let binary = collation::BINARY_ID;
    theirs.charset != ours.charset && theirs.id != binary && ours.id != binary
}

fn decimals(theirs: u16, ours: u16) -> Relation {
    let parts = |meta: u16| ((meta >> 8).saturating_sub(meta & 0xff), meta & 0xff);
    let ((whole, scale), (our_whole, our_scale)) = (parts(theirs), parts(ours));
    match (whole.cmp(&our_whole), scale.cmp(&our_scale)) {
        (Ordering::Equal, Ordering::Equal) => Relation::Same,
        (Ordering::Greater, _) | (_, Ordering::Greater) => Relation::Lossy,
        _ => Relation::Wider,
    }
}

/// A source's type as error 1677 names it.
pub(super) fn type_name(field: FieldType) -> String {
    let meta = field.meta;
    let digits = |name: &str| if meta == 0 { name.to_owned() } else { format!("{name}({meta})") };
    match field.code {
        code::TINY => "tinyint".into(),
        code::SHORT => "smallint".into(),
        code::INT24 => "mediumint".into(),
        code::LONG => "int".into(),
        code::LONGLONG => "bigint".into(),
        code::FLOAT => "float".into(),
        code::DOUBLE => "double".into(),
        code::NEWDECIMAL => format!("decimal({},{})", meta >> 8, meta & 0xff),
        code::BIT => format!("bit({meta})"),
        code::YEAR => "year".into(),
        code::DATE | code::NEWDATE => "date".into(),
        code::TIME | code::TIME2 => digits("time"),
        code::DATETIME | code::DATETIME2 => digits("datetime"),
        code::TIMESTAMP | code::TIMESTAMP2 => digits("timestamp"),
        code::VARCHAR | code::VAR_STRING => format!("varchar({meta}(bytes))"),
        code::STRING => format!("char({meta}(bytes))"),
        code::BLOB if meta == 1 => "tinyblob".into(),
        code::BLOB if meta == 3 => "mediumblob".into(),
        code::BLOB if meta == 4 => "longblob".into(),
        code::BLOB => "blob".into(),
        code::TINY_BLOB => "tinyblob".into(),
        code::MEDIUM_BLOB => "mediumblob".into(),
        code::LONG_BLOB => "longblob".into(),
        code::ENUM => "enum".into(),
        code::SET => "set".into(),
        code::JSON => "json".into(),
        code::GEOMETRY => "geometry".into(),
        other => format!("<unknown type {other}>"),
    }
}
