//! A system variable's value, as SHOW VARIABLES prints it and as `@@name` reads it.

use bytes::Bytes;
use omnibus_value::{ColumnKind, ColumnType, Value};
use std::sync::Arc;

/// A value of some variable.
#[derive(Clone, Debug, PartialEq)]
pub enum VarValue {
    /// NULL.
    Null,
    /// Shown as ON and OFF, read as 1 and 0.
    Bool(bool),
    /// Unsigned integer.
    UInt(u64),
    /// Signed integer.
    Int(i64),
    /// Real number.
    Double(f64),
    /// Text; also the labels of enumerations.
    Str(Arc<str>),
}

impl VarValue {
    /// The text in SHOW VARIABLES.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            VarValue::Null => String::new(),
            VarValue::Bool(b) => if *b { "ON" } else { "OFF" }.into(),
            VarValue::UInt(n) => n.to_string(),
            VarValue::Int(n) => n.to_string(),
            VarValue::Double(x) => format!("{x:.6}"),
            VarValue::Str(s) => s.to_string(),
        }
    }

    /// The value and type in an expression.
    #[must_use]
    pub fn to_sql(&self) -> (Value, ColumnType) {
        match self {
            VarValue::Null => (Value::Null, text_type(0)),
            VarValue::Bool(b) => (Value::Int(i64::from(*b)), integer_type(false)),
            VarValue::UInt(n) => (Value::UInt(*n), integer_type(true)),
            VarValue::Int(n) => (Value::Int(*n), integer_type(false)),
            VarValue::Double(x) => (Value::Double(*x), double_type()),
            VarValue::Str(s) => {
                (Value::Bytes(Bytes::copy_from_slice(s.as_bytes())), text_type(s.chars().count() as u32))
            }
        }
    }

    /// The number, for variables whose kind is one that is never negative; 0 otherwise.
    #[must_use]
    pub fn as_u64(&self) -> u64 {
        match self {
            VarValue::UInt(n) => *n,
            VarValue::Bool(b) => u64::from(*b),
            VarValue::Double(x) => *x as u64,
            VarValue::Null | VarValue::Int(_) | VarValue::Str(_) => 0,
        }
    }

    /// Whether it is ON.
    #[must_use]
    pub fn as_bool(&self) -> bool {
        self.as_u64() != 0
    }

    /// The text of a text variable; empty otherwise.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            VarValue::Str(s) => s,
            _ => "",
        }
    }
}

fn column(kind: ColumnKind, unsigned: bool, length: u32, decimals: u8, collation: u16) -> ColumnType {
    ColumnType { kind, unsigned, zerofill: false, length, decimals, collation, labels: Arc::new([]) }
}

/// BIGINT.
#[must_use]
pub fn integer_type(unsigned: bool) -> ColumnType {
    column(ColumnKind::BigInt, unsigned, 21, 0, 63)
}

/// DOUBLE with six digits, as MySQL and MariaDB show variables.
#[must_use]
pub fn double_type() -> ColumnType {
    column(ColumnKind::Double, false, 23, 6, 63)
}

/// VARCHAR of the server's character set.
#[must_use]
pub fn text_type(chars: u32) -> ColumnType {
    column(ColumnKind::VarChar, false, chars, 0, crate::charset::DEFAULT_ID)
}
