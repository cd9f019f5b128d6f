//! Variables of MariaDB and older MySQL that replicas, dump tools and CDC clients read or set.

use super::def::{Fixed::*, Kind, VarDef as V};
use omnibus_format::Dialect::Mariadb;

/// The family.
pub static VARS: &[V] = &[
    V::both("net_compression_level", Kind::UInt(1, 9, 1), U(6)),
    V::global("stored_program_cache", Kind::UInt(16, 524_288, 1), U(256)),
    V::global("stored_program_definition_cache", Kind::UInt(256, 524_288, 1), U(256)),
    V::fixed("ft_min_word_len", Kind::UInt(1, 84, 1), U(4)),
    V::fixed("ft_max_word_len", Kind::UInt(10, 84, 1), U(84)),
    V::global("ft_boolean_syntax", Kind::Text, S("+ -><()~*:\"\"&|")),
    V::both("auto_generate_invisible_key", Kind::Bool, B(false)),
    V::both("new", Kind::Bool, B(false)),
    V::both("max_delayed_threads", Kind::UInt(0, 16_384, 1), U(20)),
    V::both("check_constraint_checks", Kind::Bool, B(true)),
    V::both("system_versioning_insert_history", Kind::Bool, B(false)),
    V::both("sql_if_exists", Kind::Bool, B(false)),
    V::both("keep_files_on_create", Kind::Bool, B(false)),
    V::both("select_into_buffer_size", Kind::UInt(8192, 2_147_479_552, 4096), U(131_072)),
    V::both("xa_detach_on_prepare", Kind::Bool, B(true)),
    // What dumps and printed logs of these servers set before and after what they have to say.
    V::global("innodb_stats_auto_recalc", Kind::Bool, B(true)),
    V::both("default_table_encryption", Kind::Enum(&["OFF"]), S("OFF")),
    V::both("note_verbosity", Kind::Set(&["basic", "unknown_variables", "explain"]), S("basic,explain"))
        .only(Mariadb),
    V::both("max_statement_time", Kind::Double(0.0, 31_536_000.0), D(0.0)).only(Mariadb),
    V::both("terminology_use_previous", Kind::Enum(&["NONE", "BEFORE_8_0_26", "BEFORE_8_2_0"]), S("NONE")),
];
