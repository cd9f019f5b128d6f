//! Problems of a conversion, with MySQL's error codes and texts.

/// A conversion's loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// 1264: a number beyond the column's range; the nearest value was taken.
    #[error("out of range")]
    OutOfRange,
    /// 1265: something behind the value, or an unknown ENUM or SET member, was dropped.
    #[error("data truncated")]
    Truncated,
    /// 1265 as a note even in strict mode: a fraction was rounded, a time part was dropped.
    #[error("data rounded")]
    Rounded,
    /// 1292 as a note: a part of the value was dropped. Carries `date` or `time`, which was taken.
    #[error("incorrect {0} value")]
    Dropped(&'static str),
    /// 1292 for a column: no such date or time. Carries `date`, `datetime` or `time`.
    #[error("incorrect {0} value")]
    IncorrectTemporal(&'static str),
    /// 1292 for a column, 1264 as a warning: a time or timestamp beyond its type's range.
    #[error("incorrect {0} value")]
    TemporalRange(&'static str),
    /// 1292 for a column: a time that the session's clocks were set forward past.
    #[error("incorrect datetime value")]
    SkippedTime,
    /// 1292 for a column, as a warning too: no UUID or address. Carries the type.
    #[error("incorrect {0} value")]
    IncorrectFixed(&'static str),
    /// 4078: a value of a type that never is a UUID or an address.
    #[error("cannot cast '{from}' as '{to}'")]
    CannotCast {
        /// Its type.
        from: &'static str,
        /// The column's.
        to: &'static str,
    },
    /// 1299: the same as a warning; the moment of the change was taken.
    #[error("invalid timestamp value")]
    InvalidTimestamp,
    /// 1366: no number. Carries `integer`, `decimal` or `double`.
    #[error("incorrect {0} value")]
    IncorrectNumber(&'static str),
    /// 1366: bytes that are no text of the column's character set, or have no counterpart in it.
    #[error("incorrect string value")]
    IncorrectString,
    /// 1406: too many characters, bytes or bits.
    #[error("data too long")]
    TooLong,
    /// 1406, 1264 as a warning: too many bits for a BIT.
    #[error("data too long")]
    TooManyBits,
    /// 1292 in an expression: carries `INTEGER`, `DOUBLE`, `DECIMAL`, `datetime` or `time`.
    #[error("truncated incorrect {0} value")]
    TruncatedWrong(&'static str),
    /// 3140: no JSON text.
    #[error("invalid JSON text")]
    InvalidJson,
    /// 3157: a document within a hundred others.
    #[error("JSON document too deep")]
    DeepJson,
    /// 3151: a name of a member that is too long.
    #[error("key of a JSON object too long")]
    LongJsonKey,
    /// 3144: a string of character set `binary` where JSON is wanted.
    #[error("cannot create a JSON value from a string with CHARACTER SET 'binary'")]
    BinaryJson,
    /// 3156: a document that is no number or time. Carries the type that was wanted.
    #[error("invalid JSON value for CAST to {0}")]
    JsonCast(&'static str),
    /// 3155: a document's number that the type does not hold.
    #[error("out of range JSON value for CAST to {0}")]
    JsonRange(&'static str),
    /// 3140: a value that is no text, where JSON is wanted.
    #[error("not a JSON text, may need CAST")]
    NoJsonText,
    /// 1416: bytes that are no geometry.
    #[error("cannot get geometry object")]
    InvalidGeometry,
}

impl Problem {
    /// MySQL's error number.
    pub fn code(self) -> u16 {
        match self {
            Problem::OutOfRange => 1264,
            Problem::Truncated | Problem::Rounded => 1265,
            Problem::IncorrectTemporal(_)
            | Problem::Dropped(_)
            | Problem::TemporalRange(_)
            | Problem::SkippedTime
            | Problem::IncorrectFixed(_)
            | Problem::TruncatedWrong(_) => 1292,
            Problem::CannotCast { .. } => 4078,
            Problem::InvalidTimestamp => 1299,
            Problem::IncorrectNumber(_) | Problem::IncorrectString => 1366,
            Problem::TooLong | Problem::TooManyBits => 1406,
            Problem::InvalidJson | Problem::NoJsonText => 3140,
            Problem::DeepJson => 3157,
            Problem::LongJsonKey => 3151,
            Problem::JsonCast(_) => 3156,
            Problem::JsonRange(_) => 3155,
            Problem::BinaryJson => 3144,
            Problem::InvalidGeometry => 1416,
        }
    }

    /// Its SQLSTATE as an error.
    pub fn sqlstate(self) -> &'static str {
        match self {
            Problem::OutOfRange | Problem::InvalidGeometry => "22003",
            Problem::Truncated | Problem::Rounded => "01000",
            Problem::IncorrectTemporal(_)
            | Problem::Dropped(_)
            | Problem::TemporalRange(_)
            | Problem::SkippedTime
            | Problem::IncorrectFixed(_)
            | Problem::TruncatedWrong(_) => "22007",
            Problem::CannotCast { .. } => "HY000",
            Problem::IncorrectNumber(_) | Problem::IncorrectString | Problem::InvalidTimestamp => "HY000",
            Problem::TooLong | Problem::TooManyBits => "22001",
            Problem::InvalidJson | Problem::DeepJson | Problem::LongJsonKey | Problem::NoJsonText => "22032",
            Problem::JsonCast(_) => "22018",
            Problem::JsonRange(_) => "22003",
            Problem::BinaryJson => "22032",
        }
    }

    /// Returns MySQL's warning for this problem where it is not an error; some losses have another name then.
    pub fn as_warning(self) -> Problem {
        match self {
            Problem::IncorrectTemporal(_) | Problem::TooLong => Problem::Truncated,
            Problem::TemporalRange(_) | Problem::TooManyBits => Problem::OutOfRange,
            Problem::SkippedTime => Problem::InvalidTimestamp,
            other => other,
        }
    }

    /// Never an error, only a note.
    pub fn is_note(self) -> bool {
        matches!(self, Problem::Rounded | Problem::Dropped(_))
    }

    /// MySQL's message. `value` is the text that was converted, `row` counts from 1.
    pub fn message(self, column: &str, row: u64, value: &[u8]) -> String {
        let shown = printable(value);
        match self {
            Problem::OutOfRange => format!("Out of range value for column '{column}' at row {row}"),
            Problem::Truncated | Problem::Rounded => {
                format!("Data truncated for column '{column}' at row {row}")
            }
            Problem::IncorrectTemporal(what)
            | Problem::Dropped(what)
            | Problem::TemporalRange(what)
            | Problem::IncorrectFixed(what)
            | Problem::IncorrectNumber(what) => {
                format!("Incorrect {what} value: '{shown}' for column '{column}' at row {row}")
            }
            Problem::CannotCast { from, to } => {
                format!("Cannot cast '{from}' as '{to}' in assignment of `{column}`")
            }
            Problem::SkippedTime => Problem::IncorrectTemporal("datetime").message(column, row, value),
            Problem::InvalidTimestamp => {
                format!("Invalid TIMESTAMP value in column '{column}' at row {row}")
            }
            Problem::IncorrectString => {
                let bad = bad_bytes(value);
                format!("Incorrect string value: '{bad}' for column '{column}' at row {row}")
            }
            Problem::TooLong | Problem::TooManyBits => {
                format!("Data too long for column '{column}' at row {row}")
            }
            Problem::TruncatedWrong(what) => format!("Truncated incorrect {what} value: '{shown}'"),
            Problem::InvalidJson => {
                let error = crate::json::Json::parse(value).err();
                let (why, at) = match error {
                    Some(crate::json::JsonError::Syntax { message, offset }) => (message, offset),
                    _ => ("Invalid value.", 0),
                };
                format!("Invalid JSON text: \"{why}\" at position {at} in value for column '{column}'.")
            }
            Problem::DeepJson => crate::json::JsonError::TooDeep.to_string(),
            Problem::LongJsonKey => crate::json::JsonError::LongKey.to_string(),
            Problem::JsonCast(what) => {
                format!("Invalid JSON value for CAST to {what} from column {column} at row {row}")
            }
            Problem::JsonRange(what) => {
                format!("Out of range JSON value for CAST to {what} from column {column} at row {row}")
            }
            Problem::NoJsonText => {
                format!("Invalid JSON text: \"{self}\" at position 0 in value for column '{column}'.")
            }
            Problem::BinaryJson => {
                "Cannot create a JSON value from a string with CHARACTER SET 'binary'.".to_owned()
            }
            Problem::InvalidGeometry => {
                "Cannot get geometry object from data you send to the GEOMETRY field".to_owned()
            }
        }
    }
}

/// Returns at most 128 characters of `value`, invalid bytes as \xHH.
pub fn printable(value: &[u8]) -> String {
    let mut out = String::new();
    for chunk in value[..value.len().min(512)].utf8_chunks() {
        out.push_str(chunk.valid());
        chunk.invalid().iter().for_each(|b| out.push_str(&format!("\\x{b:02X}")));
    }
    match out.char_indices().nth(128) {
        Some((at, _)) => out[..at].to_owned(),
        None => out,
    }
}

/// From the first byte that is not ASCII: six bytes, as MySQL shows them.
fn bad_bytes(value: &[u8]) -> String {
    let valid = std::str::from_utf8(value)
        .map_or_else(|e| e.valid_up_to(), |_| value.iter().position(|b| !b.is_ascii()).unwrap_or(0));
    let rest = &value[valid..];
    let mut out = String::new();
    for &b in rest.iter().take(6) {
        match b {
            0x20..0x7f => out.push(char::from(b)),
            _ => out.push_str(&format!("\\x{b:02X}")),
        }
    }
    if rest.len() > 6 {
        out.push_str("...");
    }
    out
}
