//! USER_VAR: the value of a user variable that the next statement reads.

use crate::cursor::Reader;
use crate::error::DecodeError;
use omnibus_value::decimal::Decimal;

/// A variable's value with its type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UserVarValue<'a> {
    /// NULL.
    Null,
    /// A string in the event's collation.
    String(&'a [u8]),
    /// DOUBLE.
    Real(f64),
    /// BIGINT, signed or not, as 64 bits.
    Int {
        /// The bits.
        bits: u64,
        /// Whether the value is unsigned.
        unsigned: bool,
    },
    /// DECIMAL: precision, scale, and the bytes of a NEWDECIMAL field.
    Decimal(&'a [u8]),
}

impl UserVarValue<'_> {
    /// Returns the digits of a DECIMAL's bytes; `None` if they are not a DECIMAL.
    #[must_use]
    pub fn decimal_text(bytes: &[u8]) -> Option<Vec<u8>> {
        let [precision, scale, digits @ ..] = bytes else { return None };
        let (value, _) = Decimal::from_binlog(*precision, *scale, digits).ok()?;
        let mut out = Vec::new();
        value.write_text(&mut out);
        Some(out)
    }
}

/// The decoded event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UserVar<'a> {
    /// Name without `@`.
    pub name: &'a [u8],
    /// Its value.
    pub value: UserVarValue<'a>,
    /// Collation id of a string value.
    pub collation: u32,
}

const TYPE_STRING: u8 = 0;
const TYPE_REAL: u8 = 1;
const TYPE_INT: u8 = 2;
const TYPE_DECIMAL: u8 = 4;
const FLAG_UNSIGNED: u8 = 1;

impl<'a> UserVar<'a> {
    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.name.len() as u32).to_le_bytes());
        out.extend_from_slice(self.name);
        let code = match self.value {
            UserVarValue::Null => {
                out.push(1);
                return;
            }
            UserVarValue::String(_) => TYPE_STRING,
            UserVarValue::Real(_) => TYPE_REAL,
            UserVarValue::Int { .. } => TYPE_INT,
            UserVarValue::Decimal(_) => TYPE_DECIMAL,
        };
        out.push(0);
        out.push(code);
        out.extend_from_slice(&self.collation.to_le_bytes());
        let number;
        let bytes: &[u8] = match self.value {
            UserVarValue::String(bytes) | UserVarValue::Decimal(bytes) => bytes,
            UserVarValue::Real(real) => {
                number = real.to_le_bytes();
                &number
            }
            UserVarValue::Int { bits, .. } => {
                number = bits.to_le_bytes();
                &number
            }
            UserVarValue::Null => &[],
        };
        out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        out.extend_from_slice(bytes);
        if let UserVarValue::Int { unsigned, .. } = self.value {
            out.push(u8::from(unsigned));
        }
    }

    /// Decodes the body.
    ///
    /// # Errors
    /// The bytes are truncated or malformed.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut r = Reader::new(body);
        let name_len = r.u32("variable name")? as usize;
        let name = r.take(name_len, "variable name")?;
        if r.u8("null flag")? != 0 {
            return Ok(Self { name, value: UserVarValue::Null, collation: 63 });
        }
        let code = r.u8("variable type")?;
        let collation = r.u32("collation")?;
        let len = r.u32("value length")? as usize;
        let bytes = r.take(len, "variable value")?;
        // Flags follow integers only, and servers before 5.6 wrote none.
        let flags = if r.is_empty() { 0 } else { r.u8("variable flags")? };
        let mut number = Reader::new(bytes);
        let value = match code {
            TYPE_STRING => UserVarValue::String(bytes),
            TYPE_REAL => UserVarValue::Real(f64::from_bits(number.u64("variable value")?)),
            TYPE_INT => UserVarValue::Int {
                bits: number.u64("variable value")?,
                unsigned: flags & FLAG_UNSIGNED != 0,
            },
            TYPE_DECIMAL => UserVarValue::Decimal(bytes),
            _ => return Err(r.error("variable type")),
        };
        Ok(Self { name, value, collation })
    }
}
