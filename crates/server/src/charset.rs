//! Character sets and collations by name: what SET NAMES, the login packet and variables speak of.
//! Not comparison or conversion, which the value crate does.

/// One collation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collation {
    /// MySQL's number.
    pub id: u16,
    /// Name.
    pub name: &'static str,
    /// Its character set.
    pub charset: &'static str,
    /// Whether it is the character set's default.
    pub default: bool,
    /// Longest character, in bytes.
    pub max_bytes: u32,
}

const fn c(id: u16, name: &'static str, charset: &'static str, default: bool, max_bytes: u32) -> Collation {
    Collation { id, name, charset, default, max_bytes }
}

/// What the server speaks.
pub static COLLATIONS: &[Collation] = &[
    c(63, "binary", "binary", true, 1),
    c(45, "utf8mb4_general_ci", "utf8mb4", false, 4),
    c(46, "utf8mb4_bin", "utf8mb4", false, 4),
    c(224, "utf8mb4_unicode_ci", "utf8mb4", false, 4),
    c(255, "utf8mb4_0900_ai_ci", "utf8mb4", true, 4),
    c(309, "utf8mb4_0900_bin", "utf8mb4", false, 4),
    c(33, "utf8mb3_general_ci", "utf8mb3", true, 3),
    c(83, "utf8mb3_bin", "utf8mb3", false, 3),
    c(192, "utf8mb3_unicode_ci", "utf8mb3", false, 3),
    c(8, "latin1_swedish_ci", "latin1", true, 1),
    c(47, "latin1_bin", "latin1", false, 1),
    c(48, "latin1_general_ci", "latin1", false, 1),
    c(11, "ascii_general_ci", "ascii", true, 1),
    c(65, "ascii_bin", "ascii", false, 1),
];

/// `collation_server`'s default.
pub static DEFAULT_COLLATION: Collation = c(255, "utf8mb4_0900_ai_ci", "utf8mb4", true, 4);

/// The collation with this number.
#[must_use]
pub fn by_id(id: u16) -> Option<&'static Collation> {
    COLLATIONS.iter().find(|c| c.id == id)
}

/// The collation with this name; `utf8_` is taken for `utf8mb3_`.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static Collation> {
    let name = name.to_ascii_lowercase();
    let name = name.strip_prefix("utf8_").map_or(name.clone(), |rest| format!("utf8mb3_{rest}"));
    COLLATIONS.iter().find(|c| c.name == name)
}

/// The default collation of a character set; `utf8` is `utf8mb3`.
#[must_use]
pub fn of_charset(name: &str) -> Option<&'static Collation> {
    let name = name.to_ascii_lowercase();
    let name = if name == "utf8" { "utf8mb3" } else { &name };
    COLLATIONS.iter().find(|c| c.default && c.charset == name)
}

/// A client's collation number at login: an unknown one means the server's default, as in MySQL.
#[must_use]
pub fn of_login(id: u16) -> &'static Collation {
    by_id(id).unwrap_or(&DEFAULT_COLLATION)
}
