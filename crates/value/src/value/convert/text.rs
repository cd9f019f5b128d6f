//! Values as text: result sets, string functions, error messages.

use bytes::Bytes;

use crate::Value;
use crate::column::{ColumnKind, ColumnType, NOT_FIXED};
use crate::json;
use crate::temporal::DateTime;
use crate::text::{write_f32, write_f64, write_f64_fixed, write_i64, write_u64};

/// '00042' of a ZEROFILL column: what follows `start` is filled to the display width.
pub fn zero_fill(ty: &ColumnType, start: usize, out: &mut Vec<u8>) {
    let len = out.len() - start;
    let width = match ty.kind {
        ColumnKind::Decimal => ty.length as usize + usize::from(ty.decimals > 0),
        ColumnKind::Float if fixed_places(ty).is_none() => 12,
        ColumnKind::Double if fixed_places(ty).is_none() => 22,
        _ => ty.length as usize,
    };
    if ty.zerofill && len < width && width <= 255 {
        out.splice(start..start, std::iter::repeat_n(b'0', width - len));
    }
}

fn fixed_places(ty: &ColumnType) -> Option<u8> {
    let real = matches!(ty.kind, ColumnKind::Float | ColumnKind::Double);
    (real && ty.decimals < NOT_FIXED).then_some(ty.decimals)
}

/// Digits to show of a temporal value: the type's, or as many as it needs.
fn shown_fsp(ty: &ColumnType, micros: u32) -> u8 {
    match (ty.kind.is_temporal(), micros) {
        (true, _) => ty.fsp(),
        (false, 0) => 0,
        (false, _) => 6,
    }
}

fn write_datetime(dt: DateTime, ty: &ColumnType, out: &mut Vec<u8>) {
    match ty.kind {
        ColumnKind::Date => dt.date().write_text(out),
        ColumnKind::Time => dt.time().write_text(ty.fsp(), out),
        _ => dt.write_text(shown_fsp(ty, dt.micros()), out),
    }
}

/// BIT(n): its bytes, big-endian.
fn write_bit(bits: u64, ty: &ColumnType, out: &mut Vec<u8>) {
    let width = if ty.kind == ColumnKind::Bit { ty.length.clamp(1, 64) } else { 64 };
    out.extend_from_slice(&bits.to_be_bytes()[8 - (width as usize).div_ceil(8)..]);
}

impl Value {
    /// Appends the value's text as a result set shows it; `ty` gives fractions, ZEROFILL, labels
    /// and the width of BIT. NULL appends nothing. TIMESTAMP values must be in the session's zone.
    pub fn write_text(&self, ty: &ColumnType, out: &mut Vec<u8>) {
        let start = out.len();
        match self {
            Value::Null => return,
            Value::Int(n) => write_i64(*n, out),
            Value::UInt(n) => write_u64(*n, out),
            Value::Float(n) => match fixed_places(ty) {
                Some(places) => write_f64_fixed(f64::from(*n), places, out),
                None => write_f32(*n, out),
            },
            Value::Double(n) => match fixed_places(ty) {
                Some(places) => write_f64_fixed(*n, places, out),
                None => write_f64(*n, out),
            },
            Value::Decimal(n) if ty.kind == ColumnKind::Decimal => {
                n.rescale(ty.decimals).write_text(out);
            }
            Value::Decimal(n) => n.write_text(out),
            Value::Bytes(b) => return out.extend_from_slice(b),
            Value::Date(d) if matches!(ty.kind, ColumnKind::DateTime | ColumnKind::Timestamp) => {
                return write_datetime(DateTime::from(*d), ty, out);
            }
            Value::Date(d) => return d.write_text(out),
            Value::DateTime(dt) => return write_datetime(*dt, ty, out),
            Value::Time(t) => return t.write_text(shown_fsp(ty, t.micros()), out),
            Value::Year(0) => return out.extend_from_slice(b"0000"),
            Value::Year(y) => return out.extend_from_slice(y.to_string().as_bytes()),
            Value::Bit(bits) => return write_bit(*bits, ty, out),
            Value::Enum(index) => return out.extend_from_slice(ty.enum_label(*index)),
            Value::Set(mask) => return ty.write_set(*mask, out),
            Value::Fixed(v) => return v.write_text(out),
            // A damaged document has no text; whoever stored it is to blame, not the reader.
            Value::Json(binary) => return json::binary_to_text(binary, out).unwrap_or(()),
        }
        zero_fill(ty, start, out);
    }

    /// The text as bytes of the value's own; no copy for strings.
    pub fn to_bytes(&self, ty: &ColumnType) -> Bytes {
        if let Value::Bytes(b) = self {
            return b.clone();
        }
        let mut out = Vec::with_capacity(24);
        self.write_text(ty, &mut out);
        crate::shared(&out)
    }
}
