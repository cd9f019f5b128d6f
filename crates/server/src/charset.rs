//! Character sets and collations by name, as SET NAMES, the login packet and variables speak of them.
//! The table itself, comparison and conversion are the value crate's.

use omnibus_value::collation::{self, Charset};

/// A collation as the protocol names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collation {
    /// MySQL's number.
    pub id: u16,
    /// Name.
    pub name: &'static str,
    /// Its character set's name.
    pub charset: &'static str,
    /// Longest character, in bytes.
    pub max_bytes: u32,
}

impl From<&'static collation::Collation> for Collation {
    fn from(c: &'static collation::Collation) -> Self {
        let max_bytes = u32::try_from(c.charset.max_len()).unwrap_or(4);
        Collation { id: c.id, name: c.name, charset: c.charset.name(), max_bytes }
    }
}

/// The server's own: `collation_server`'s default.
pub const DEFAULT_ID: u16 = 45;

/// `collation_server`'s default.
#[must_use]
pub fn default_collation() -> Collation {
    collation::for_client(DEFAULT_ID).into()
}

/// The collation with this number.
#[must_use]
pub fn by_id(id: u16) -> Option<Collation> {
    collation::by_id(id).map(Collation::from)
}

/// The collation with this name; `utf8_` is taken for `utf8mb3_`.
#[must_use]
pub fn by_name(name: &str) -> Option<Collation> {
    collation::by_name(name).map(Collation::from)
}

/// The default collation of a character set; `utf8` is `utf8mb3`.
#[must_use]
pub fn of_charset(name: &str) -> Option<Collation> {
    Charset::by_name(name).map(|set| set.default_collation().into())
}

/// A client's collation number at login. 0 means the server's default.
#[must_use]
pub fn of_login(id: u16) -> Collation {
    if id == 0 { default_collation() } else { collation::for_client(id).into() }
}
