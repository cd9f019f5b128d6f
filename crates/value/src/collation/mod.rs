//! Character sets and collations: how strings are read, compared, hashed, matched and turned into
//! bytes that sort.
//!
//! Ids and names are MySQL's. A collation that is not listed here is unknown to the server and refused by the caller of
//! the look-up. Everything is static: a `&'static Collation` is the handle that types and expressions carry.

mod charset;
mod compare;
mod languages;
mod latin1;
mod like;
mod sort_key;
mod tables;
mod tailoring;
mod uca;
mod weight_string;

#[cfg(test)]
mod tests;

pub use charset::Charset;
pub use like::LikePattern;
pub use sort_key::skip_sort_key;

/// The way in which a collation derives weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The bytes themselves (which for UTF-8 is code point order).
    Bytes,
    /// One weight per byte.
    Table(&'static [u8; 256]),
    /// The same, and a second weight for some bytes.
    Pairs(&'static [u8; 256], &'static [(u8, u8)]),
    /// One weight per character.
    General,
    /// Sequences of weights a character, for each of the UCA's levels that count, the first one first.
    Uca(&'static [tailoring::Level]),
}

/// A collation.
#[derive(Debug, PartialEq, Eq)]
pub struct Collation {
    /// MySQL's id.
    pub id: u16,
    /// MySQL's name.
    pub name: &'static str,
    /// Its character set.
    pub charset: Charset,
    /// The default of its character set.
    pub is_default: bool,
    /// Trailing spaces do not count in comparisons.
    pub pad_space: bool,
    pub(crate) kind: Kind,
}

/// The id of `binary`.
pub const BINARY_ID: u16 = 63;

const fn make(
    id: u16,
    name: &'static str,
    charset: Charset,
    is_default: bool,
    pad_space: bool,
    kind: Kind,
) -> Collation {
    Collation { id, name, charset, is_default, pad_space, kind }
}

use tailoring::Level;
use uca::Version;

const V400: Level = Level::root(Version::V400);
const V520: Level = Level::root(Version::V520);
const V900: Level = Level::root(Version::V900);
const V1400: Level = Level::root(Version::V1400);
const SECOND: Level = Level::root(Version::Second);
const THIRD: Level = Level::root(Version::Third);

use Charset::{Ascii, Binary, Latin1, Utf8mb3, Utf8mb4};

static COLLATIONS: [Collation; 39] = [
    make(8, "latin1_swedish_ci", Latin1, true, true, Kind::Table(&tables::LATIN1_SWEDISH)),
    make(11, "ascii_general_ci", Ascii, true, true, Kind::Table(&tables::ASCII_CI)),
    make(33, "utf8mb3_general_ci", Utf8mb3, true, true, Kind::General),
    make(45, "utf8mb4_general_ci", Utf8mb4, true, true, Kind::General),
    make(46, "utf8mb4_bin", Utf8mb4, false, true, Kind::Bytes),
    make(47, "latin1_bin", Latin1, false, true, Kind::Bytes),
    make(48, "latin1_general_ci", Latin1, false, true, Kind::Table(&tables::LATIN1_GENERAL)),
    make(63, "binary", Binary, true, false, Kind::Bytes),
    make(65, "ascii_bin", Ascii, false, true, Kind::Bytes),
    make(83, "utf8mb3_bin", Utf8mb3, false, true, Kind::Bytes),
    make(255, "utf8mb4_0900_ai_ci", Utf8mb4, false, false, Kind::Uca(&[V900])),
    make(192, "utf8mb3_unicode_ci", Utf8mb3, false, true, Kind::Uca(&[V400])),
    make(214, "utf8mb3_unicode_520_ci", Utf8mb3, false, true, Kind::Uca(&[V520])),
    make(224, "utf8mb4_unicode_ci", Utf8mb4, false, true, Kind::Uca(&[V400])),
    make(246, "utf8mb4_unicode_520_ci", Utf8mb4, false, true, Kind::Uca(&[V520])),
    make(278, "utf8mb4_0900_as_cs", Utf8mb4, false, false, Kind::Uca(&[V900, SECOND, THIRD])),
    make(305, "utf8mb4_0900_as_ci", Utf8mb4, false, false, Kind::Uca(&[V900, SECOND])),
    make(309, "utf8mb4_0900_bin", Utf8mb4, false, false, Kind::Bytes),
    make(2048, "utf8mb3_uca1400_ai_ci", Utf8mb3, false, true, Kind::Uca(&[V1400])),
    make(2049, "utf8mb3_uca1400_ai_cs", Utf8mb3, false, true, Kind::Uca(&[V1400, THIRD])),
    make(2050, "utf8mb3_uca1400_as_ci", Utf8mb3, false, true, Kind::Uca(&[V1400, SECOND])),
    make(2051, "utf8mb3_uca1400_as_cs", Utf8mb3, false, true, Kind::Uca(&[V1400, SECOND, THIRD])),
    make(2052, "utf8mb3_uca1400_nopad_ai_ci", Utf8mb3, false, false, Kind::Uca(&[V1400])),
    make(2053, "utf8mb3_uca1400_nopad_ai_cs", Utf8mb3, false, false, Kind::Uca(&[V1400, THIRD])),
    make(2054, "utf8mb3_uca1400_nopad_as_ci", Utf8mb3, false, false, Kind::Uca(&[V1400, SECOND])),
    make(2055, "utf8mb3_uca1400_nopad_as_cs", Utf8mb3, false, false, Kind::Uca(&[V1400, SECOND, THIRD])),
    make(2304, "utf8mb4_uca1400_ai_ci", Utf8mb4, false, true, Kind::Uca(&[V1400])),
    make(2305, "utf8mb4_uca1400_ai_cs", Utf8mb4, false, true, Kind::Uca(&[V1400, THIRD])),
    make(2306, "utf8mb4_uca1400_as_ci", Utf8mb4, false, true, Kind::Uca(&[V1400, SECOND])),
    make(2307, "utf8mb4_uca1400_as_cs", Utf8mb4, false, true, Kind::Uca(&[V1400, SECOND, THIRD])),
    make(2308, "utf8mb4_uca1400_nopad_ai_ci", Utf8mb4, false, false, Kind::Uca(&[V1400])),
    make(2309, "utf8mb4_uca1400_nopad_ai_cs", Utf8mb4, false, false, Kind::Uca(&[V1400, THIRD])),
    make(2310, "utf8mb4_uca1400_nopad_as_ci", Utf8mb4, false, false, Kind::Uca(&[V1400, SECOND])),
    make(2311, "utf8mb4_uca1400_nopad_as_cs", Utf8mb4, false, false, Kind::Uca(&[V1400, SECOND, THIRD])),
    make(5, "latin1_german1_ci", Latin1, false, true, Kind::Table(&latin1::GERMAN1_CI)),
    make(15, "latin1_danish_ci", Latin1, false, true, Kind::Table(&latin1::DANISH_CI)),
    make(
        31,
        "latin1_german2_ci",
        Latin1,
        false,
        true,
        Kind::Pairs(&latin1::GERMAN2_CI, &latin1::GERMAN2_CI_SECOND),
    ),
    make(49, "latin1_general_cs", Latin1, false, true, Kind::Table(&latin1::GENERAL_CS)),
    make(94, "latin1_spanish_ci", Latin1, false, true, Kind::Table(&latin1::SPANISH_CI)),
];

/// Every collation, by id.
pub fn all() -> impl Iterator<Item = &'static Collation> {
    COLLATIONS.iter().chain(languages::all())
}

/// Returns the collation with MySQL's id.
#[inline]
pub fn by_id(id: u16) -> Option<&'static Collation> {
    // The three that nearly every column has come first.
    match id {
        45 => Some(&COLLATIONS[3]),
        255 => Some(&COLLATIONS[10]),
        63 => Some(&COLLATIONS[7]),
        _ => find(id),
    }
}

fn find(id: u16) -> Option<&'static Collation> {
    COLLATIONS.iter().find(|c| c.id == id).or_else(|| languages::by_id(id))
}

/// Returns the collation with MySQL's id; an unknown id behaves like `binary`, because only its bytes are known.
#[inline]
pub fn by_id_or_binary(id: u16) -> &'static Collation {
    by_id(id).unwrap_or(&COLLATIONS[7])
}

/// The collation a client asked for in its handshake. Drivers name collations that are not here; such
/// a client gets the default of that collation's character set, which is what it needs to be read
/// right.
pub fn for_client(id: u16) -> &'static Collation {
    if let Some(known) = by_id(id) {
        return known;
    }
    match id {
        76 | 193..=223 | 2048..=2303 => Utf8mb3,
        _ => Utf8mb4,
    }
    .default_collation()
}

/// Returns the collation of that name, in any case; `utf8_` stands for `utf8mb3_`, and MariaDB's short names, which begin with `uca1400_`, for
/// those of utf8mb4.
pub fn by_name(name: &str) -> Option<&'static Collation> {
    let lower = name.to_ascii_lowercase();
    let full = match lower.strip_prefix("utf8_") {
        Some(rest) => format!("utf8mb3_{rest}"),
        None if is_short(&lower) => format!("utf8mb4_{lower}"),
        None => lower,
    };
    all().find(|c| c.name == full)
}

/// Returns the collation of that name where texts of a character set are meant, which short names leave out.
pub fn by_name_in(charset: Charset, name: &str) -> Option<&'static Collation> {
    if is_short(&name.to_ascii_lowercase()) {
        return by_name(&format!("{}_{name}", charset.name()));
    }
    by_name(name)
}

fn is_short(lower: &str) -> bool {
    lower.starts_with("uca1400_")
}

impl Collation {
    /// `binary`.
    pub fn binary() -> &'static Collation {
        &COLLATIONS[7]
    }
    /// Texts that are equal have beginnings of as many characters that are equal, and texts compare as such beginnings do where
    /// these differ. Not so in the UCA, where `ß` is two letters and accents count behind all letters.
    pub fn compares_by_character(&self) -> bool {
        !matches!(self.kind, Kind::Uca(_))
    }

    /// Compares by bytes alone (`_bin` and `binary`), so case and accents count.
    pub fn is_binary_order(&self) -> bool {
        self.kind == Kind::Bytes
    }
}
