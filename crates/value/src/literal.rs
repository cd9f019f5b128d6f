//! Values as SQL literals: column defaults in SHOW CREATE TABLE, row events in `omnibus binlog -v`.

use crate::Value;
use crate::collation::Charset;
use crate::column::{ColumnKind, ColumnType};

/// Appends a string literal in single quotes, escaped so that any server reads it back.
pub fn write_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for &c in text {
        match c {
            b'\'' => out.extend_from_slice(b"''"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0 => out.extend_from_slice(b"\\0"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            0x1a => out.extend_from_slice(b"\\Z"),
            _ => out.push(c),
        }
    }
    out.push(b'\'');
}

/// Appends X'0A1B'.
pub fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"X'");
    for b in bytes {
        out.extend_from_slice(format!("{b:02X}").as_bytes());
    }
    out.push(b'\'');
}

impl Value {
    /// Appends the value as a literal that gives it back when stored into a column of type `ty`.
    /// Numbers are bare, bits are b'101', binary strings that are not printable are X'..'.
    pub fn write_literal(&self, ty: &ColumnType, out: &mut Vec<u8>) {
        match self {
            Value::Null => out.extend_from_slice(b"NULL"),
            Value::Bit(bits) => out.extend_from_slice(format!("b'{bits:b}'").as_bytes()),
            Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) => {
                self.write_text(&plain(ty), out);
            }
            Value::Decimal(_) | Value::Year(_) => self.write_text(&plain(ty), out),
            Value::Bytes(b) if ty.charset() == Charset::Binary && !printable(b) => {
                write_hex(b, out);
            }
            other => write_quoted(&other.to_bytes(ty), out),
        }
    }
}

fn printable(bytes: &[u8]) -> bool {
    bytes.iter().all(|&b| matches!(b, 0x20..0x7f | b'\n' | b'\r' | b'\t'))
}

/// Without ZEROFILL, which is for display.
fn plain(ty: &ColumnType) -> ColumnType {
    ColumnType { zerofill: false, ..ty.clone() }
}

/// The type as SHOW CREATE TABLE spells it, without character set: `int unsigned`,
/// `decimal(10,2)`, `enum('a','b')`.
pub fn type_name(ty: &ColumnType) -> String {
    use ColumnKind::*;
    let n = ty.length;
    let base = match ty.kind {
        TinyInt if n == 1 && !ty.unsigned => "tinyint(1)".to_owned(),
        TinyInt => "tinyint".to_owned(),
        SmallInt => "smallint".to_owned(),
        MediumInt => "mediumint".to_owned(),
        Int => "int".to_owned(),
        BigInt => "bigint".to_owned(),
        Float => real("float", ty),
        Double => real("double", ty),
        Decimal => format!("decimal({n},{})", ty.decimals),
        Bit => format!("bit({n})"),
        Year => "year".to_owned(),
        Date => "date".to_owned(),
        Time => temporal("time", ty),
        DateTime => temporal("datetime", ty),
        Timestamp => temporal("timestamp", ty),
        Char => format!("char({n})"),
        VarChar => format!("varchar({n})"),
        Binary => format!("binary({n})"),
        VarBinary => format!("varbinary({n})"),
        TinyText => "tinytext".to_owned(),
        Text => "text".to_owned(),
        MediumText => "mediumtext".to_owned(),
        LongText => "longtext".to_owned(),
        TinyBlob => "tinyblob".to_owned(),
        Blob => "blob".to_owned(),
        MediumBlob => "mediumblob".to_owned(),
        LongBlob => "longblob".to_owned(),
        Enum => labels("enum", ty),
        Set => labels("set", ty),
        Json => "json".to_owned(),
        Geometry => "geometry".to_owned(),
    };
    let width = if ty.zerofill && ty.kind.is_integer() { format!("({n})") } else { String::new() };
    let unsigned = if ty.unsigned { " unsigned" } else { "" };
    let zerofill = if ty.zerofill { " zerofill" } else { "" };
    format!("{base}{width}{unsigned}{zerofill}")
}

fn real(name: &str, ty: &ColumnType) -> String {
    if ty.decimals < crate::column::NOT_FIXED {
        return format!("{name}({},{})", ty.length, ty.decimals);
    }
    name.to_owned()
}

fn temporal(name: &str, ty: &ColumnType) -> String {
    if ty.decimals > 0 { format!("{name}({})", ty.decimals) } else { name.to_owned() }
}

fn labels(name: &str, ty: &ColumnType) -> String {
    let mut out = format!("{name}(").into_bytes();
    for (i, label) in ty.labels.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.push(b'\'');
        for &c in label.iter() {
            out.extend_from_slice(if c == b'\'' { b"''" } else { std::slice::from_ref(&c) });
        }
        out.push(b'\'');
    }
    out.push(b')');
    String::from_utf8_lossy(&out).into_owned()
}
