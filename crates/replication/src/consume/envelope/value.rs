//! Converts a column's value to Debezium's form.

use super::kind::Kind;
use crate::consume::json_rows::text_of;
use crate::consume::json_value::Line;
use omnibus_format::events::ColumnMetadata;
use omnibus_format::field::FieldType;
use omnibus_value::Value;
use omnibus_value::json::Json;
use omnibus_value::temporal::{Date, DateTime};

pub(super) fn put_value(
    line: &mut Line,
    value: &Value,
    kind: Kind,
    field: FieldType,
    metadata: &ColumnMetadata,
) {
    match (value, kind) {
        (Value::Bit(bits), Kind::Bits(len)) => {
            let bytes = bits.to_le_bytes();
            line.base64_text(&bytes[..usize::from(len).div_ceil(8).min(bytes.len())]);
        }
        (Value::Bit(bit), _) => line.boolean(*bit != 0),
        (Value::Int(n), _) => line.number(n),
        // A long has no more bits: what is past it comes as a negative number, as Debezium has it.
        (Value::UInt(n), _) => line.number(*n as i64),
        (Value::Year(n), _) => line.number(n),
        (Value::Enum(n), _) => label(line, metadata, usize::from(*n)),
        (Value::Set(bits), _) => line.text(&members(metadata, *bits)),
        (Value::Float(n), _) => line.float(*n),
        (Value::Double(n), _) => line.double(*n),
        (Value::Decimal(n), _) => {
            let mut text = Vec::new();
            n.write_text(&mut text);
            line.text(&String::from_utf8_lossy(&text));
        }
        (Value::Date(date), _) => or_null(line, days(*date)),
        (Value::Time(time), _) => line.number(time.to_micros()),
        (Value::DateTime(time), Kind::Named("string", _)) => zoned(line, *time, field.meta),
        (Value::DateTime(time), _) => {
            let unit = if field.meta > 3 { 1 } else { 1000 };
            or_null(line, time.to_micros_of_epoch().map(|us| us.div_euclid(unit)));
        }
        (Value::Json(binary), _) => match Json::decode(binary) {
            Ok(document) => {
                let mut text = Vec::new();
                document.write_text(&mut text);
                line.text(&String::from_utf8_lossy(&text));
            }
            Err(_) => line.raw("null"),
        },
        // SRID, then WKB.
        (Value::Bytes(bytes), Kind::Geometry) => match bytes.split_first_chunk::<4>() {
            Some((srid, wkb)) => {
                line.open('{');
                line.key("wkb").base64_text(wkb);
                match u32::from_le_bytes(*srid) {
                    0 => line.key("srid").raw("null"),
                    srid => line.key("srid").number(srid as i32),
                }
                line.close('}');
            }
            None => line.raw("null"),
        },
        (Value::Bytes(bytes), Kind::Plain("bytes")) => line.base64_text(bytes),
        (Value::Bytes(bytes), _) => line.text(&text_of(bytes, metadata)),
        (Value::Fixed(fixed), _) => {
            let mut text = Vec::new();
            fixed.write_text(&mut text);
            line.text(&String::from_utf8_lossy(&text));
        }
        (Value::Null, _) => line.raw("null"),
    }
}

/// Appends a number, or null for a value without a day, such as the zero date.
fn or_null(line: &mut Line, number: Option<i64>) {
    match number {
        Some(number) => line.number(number),
        None => line.raw("null"),
    }
}

fn days(date: Date) -> Option<i64> {
    Some(DateTime::new(date, 0, 0, 0, 0)?.to_unix()?.div_euclid(86_400))
}

trait Epoch {
    fn to_micros_of_epoch(self) -> Option<i64>;
}

impl Epoch for DateTime {
    fn to_micros_of_epoch(self) -> Option<i64> {
        Some(self.to_unix()? * 1_000_000 + i64::from(self.micros()))
    }
}

/// Appends a time in ISO 8601, in UTC.
fn zoned(line: &mut Line, time: DateTime, digits: u16) {
    if time.is_zero() {
        return line.raw("null");
    }
    let mut text = Vec::new();
    time.write_text(digits.min(6) as u8, &mut text);
    let mut text = String::from_utf8_lossy(&text).replace(' ', "T");
    text.push('Z');
    line.text(&text);
}

fn label(line: &mut Line, metadata: &ColumnMetadata, number: usize) {
    let label = number.checked_sub(1).and_then(|at| metadata.labels.get(at));
    line.text(&label.map(|label| String::from_utf8_lossy(label)).unwrap_or_default());
}

fn members(metadata: &ColumnMetadata, bits: u64) -> String {
    let there = metadata.labels.iter().enumerate().filter(|(at, _)| *at < 64 && bits >> at & 1 == 1);
    there.map(|(_, label)| String::from_utf8_lossy(label)).collect::<Vec<_>>().join(",")
}
