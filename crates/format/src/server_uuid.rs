//! A server's UUID, and the error of parsing one or a GTID. Pure.

use std::fmt;
use std::str::FromStr;

/// A server's UUID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerUuid(pub [u8; 16]);

/// The text is not a UUID, GTID or GTID set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed GTID set near '{0}'")]
pub struct GtidParseError(pub String);

pub(crate) fn malformed(text: &str) -> GtidParseError {
    GtidParseError(text.to_owned())
}

impl fmt::Display for ServerUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl FromStr for ServerUuid {
    type Err = GtidParseError;

    /// 32 hex digits, with dashes in the usual places or without any, optionally in braces.
    fn from_str(text: &str) -> Result<Self, GtidParseError> {
        omnibus_value::uuid::parse(text.as_bytes()).map(Self).ok_or_else(|| malformed(text))
    }
}
