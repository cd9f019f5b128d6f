//! Character sets and collations by id and name, as definitions need them. Thin over
//! `omnibus_value::collation`.

use crate::error::{SqlError, SqlResult};
use bytes::Bytes;
use omnibus_value::collation::{self, Charset};
use omnibus_value::{ColumnKind, ColumnType, Value};

/// `collation_server` as compiled in: `utf8mb4_general_ci`, which every MariaDB and MySQL that replays
/// the log knows; MySQL 8's `utf8mb4_0900_ai_ci` is used by whoever asks for it.
#[must_use]
pub fn server_default() -> u16 {
    45
}

/// The id of a collation's name.
#[must_use]
pub fn collation_id(name: &str) -> Option<u16> {
    collation::by_name(name).map(|found| found.id)
}

/// The id of a collation's name, which may be short of the character set: that of collation `of` is meant.
#[must_use]
pub fn collation_id_in(of: u16, name: &str) -> Option<u16> {
    collation::by_name_in(collation::by_id_or_binary(of).charset, name).map(|found| found.id)
}

/// The default collation of a character set's name.
#[must_use]
pub fn default_collation(charset: &str) -> Option<u16> {
    let charset = Charset::by_name(charset)?;
    if charset == Charset::Utf8mb4 { Some(server_default()) } else { Some(charset.default_collation().id) }
}

/// The binary collation of a collation's character set.
#[must_use]
pub fn bin_collation(id: u16) -> u16 {
    collation::by_id_or_binary(id).charset.bin_collation().id
}

/// The name of a collation's character set.
#[must_use]
pub fn charset_name(id: u16) -> &'static str {
    collation::by_id_or_binary(id).charset.name()
}

/// A collation's name.
#[must_use]
pub fn collation_name(id: u16) -> &'static str {
    collation::by_id_or_binary(id).name
}

/// Whether it is another collation than the one that its character set has by default.
#[must_use]
pub fn is_not_default(id: u16) -> bool {
    default_collation(charset_name(id)) != Some(id)
}

/// The most bytes a character takes.
#[must_use]
pub fn max_len(id: u16) -> u32 {
    match collation::by_id_or_binary(id).charset {
        Charset::Utf8mb4 => 4,
        Charset::Utf8mb3 => 3,
        Charset::Binary | Charset::Ascii | Charset::Latin1 => 1,
    }
}

/// Whether a column type has a character set that SHOW CREATE TABLE tells.
#[must_use]
pub fn is_character(ty: &ColumnType) -> bool {
    use ColumnKind as K;
    matches!(
        ty.kind,
        K::Char | K::VarChar | K::TinyText | K::Text | K::MediumText | K::LongText | K::Enum | K::Set
    )
}

/// Text of a statement in a column's character set.
#[must_use]
pub fn from_utf8mb4(text: &Bytes, id: u16) -> Bytes {
    convert(text, Charset::Utf8mb4, collation::by_id_or_binary(id).charset)
}

/// Column text as UTF-8.
#[must_use]
pub fn to_utf8(text: &Bytes, id: u16) -> String {
    let text = convert(text, collation::by_id_or_binary(id).charset, Charset::Utf8mb4);
    String::from_utf8_lossy(&text).into_owned()
}

fn convert(text: &Bytes, from: Charset, to: Charset) -> Bytes {
    if from == to || from == Charset::Binary || to == Charset::Binary || text.is_ascii() {
        return text.clone();
    }
    let mut out = Vec::with_capacity(text.len());
    from.convert(to, text, &mut out);
    out.into()
}

/// A value as text, in UTF-8.
#[must_use]
pub fn text(value: &Value, ty: &ColumnType) -> String {
    to_utf8(&value.to_bytes(ty), ty.collation)
}

/// A collation of a source by its id.
///
/// # Errors
/// 1273 with the number: its name is the source's to know.
pub(crate) fn known_collation(id: u64) -> SqlResult<u16> {
    let id16 = u16::try_from(id).ok().filter(|id| collation::by_id(*id).is_some());
    let family = if (2048..3328).contains(&id) { "uca1400 " } else { "" };
    id16.ok_or_else(|| SqlError::unknown_collation(format!("{family}#{id}")))
}
