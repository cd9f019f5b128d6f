//! Character sets, collations, time zones, locales.

use super::def::{Fixed::*, Kind, Scope, VarDef as V};
use omnibus_format::Dialect::Mariadb;

/// The family.
pub static VARS: &[V] = &[
    V::both("character_set_client", Kind::Charset, S("utf8mb4")),
    V::both("character_set_connection", Kind::Charset, S("utf8mb4")),
    V::both("character_set_database", Kind::Charset, S("utf8mb4")),
    V::both("character_set_filesystem", Kind::Charset, S("binary")),
    V::both("character_set_results", Kind::NullableCharset, S("utf8mb4")),
    V::both("character_set_server", Kind::Charset, S("utf8mb4")),
    V::fixed("character_set_system", Kind::Charset, S("utf8mb3")),
    V::fixed("character_sets_dir", Kind::Text, S("")),
    V::both("collation_connection", Kind::Collation, S("utf8mb4_general_ci")),
    V::both("collation_database", Kind::Collation, S("utf8mb4_general_ci")),
    V::both("collation_server", Kind::Collation, S("utf8mb4_general_ci")),
    V::both("default_collation_for_utf8mb4", Kind::Collation, S("utf8mb4_general_ci")),
    V::both("character_set_collations", Kind::CharsetCollations, S("")).only(Mariadb),
    V::both("time_zone", Kind::TimeZone, S("SYSTEM")),
    V::computed("system_time_zone", Scope::Global, Kind::Text, S("UTC")),
    V::both("lc_messages", Kind::Text, S("en_US")),
    V::both("lc_time_names", Kind::Locale, S("en_US")),
    V::fixed("lc_messages_dir", Kind::Text, S("")),
    V::fixed("skip_character_set_client_handshake", Kind::Bool, B(false)),
    V::both("default_week_format", Kind::UInt(0, 7, 1), U(0)),
    V::fixed("date_format", Kind::Text, S("%Y-%m-%d")),
    V::fixed("datetime_format", Kind::Text, S("%Y-%m-%d %H:%i:%s")),
    V::fixed("time_format", Kind::Text, S("%H:%i:%s")),
];
