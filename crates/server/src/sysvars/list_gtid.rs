//! Global transaction ids, of both dialects. Which one a server has is chosen with its data directory.

use super::def::{Fixed::*, Kind, Scope, VarDef as V};
use omnibus_format::Dialect::{Mariadb, Mysql};

const MAX: u64 = u64::MAX;

/// The family.
pub static VARS: &[V] = &[
    V::fixed("dialect", Kind::Enum(&["auto", "mysql", "mariadb"]), S("auto")),
    V::global("gtid_mode", Kind::Enum(&["OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"]), S("ON"))
        .only(Mysql),
    V::global("enforce_gtid_consistency", Kind::Enum(&["OFF", "ON", "WARN"]), S("ON")).only(Mysql),
    V::computed("gtid_executed", Scope::Global, Kind::Text, S("")).only(Mysql),
    V::global("gtid_purged", Kind::Text, S("")).only(Mysql),
    V::computed("gtid_owned", Scope::Both, Kind::Text, S("")).only(Mysql),
    V::session("gtid_next", Kind::Text, S("AUTOMATIC")).only(Mysql),
    V::global("gtid_executed_compression_period", Kind::UInt(0, u32::MAX as u64, 1), U(0)).only(Mysql),
    V::both("session_track_gtids", Kind::Enum(&["OFF", "OWN_GTID", "ALL_GTIDS"]), S("OFF")).only(Mysql),
    V::both("gtid_domain_id", Kind::UInt(0, u32::MAX as u64, 1), U(0)).only(Mariadb),
    V::session("gtid_seq_no", Kind::UInt(0, MAX, 1), U(0)).only(Mariadb),
    V::computed("gtid_binlog_pos", Scope::Global, Kind::Text, S("")).only(Mariadb),
    V::global("gtid_binlog_state", Kind::Text, S("")).only(Mariadb),
    V::computed("gtid_current_pos", Scope::Global, Kind::Text, S("")).only(Mariadb),
    V::global("gtid_strict_mode", Kind::Bool, B(false)).only(Mariadb),
    V::global("gtid_ignore_duplicates", Kind::Bool, B(false)).only(Mariadb),
    V::global("gtid_pos_auto_engines", Kind::Text, S("")).only(Mariadb),
    V::global("gtid_cleanup_batch_size", Kind::UInt(0, i32::MAX as u64, 1), U(64)).only(Mariadb),
    V::session("skip_parallel_replication", Kind::Bool, B(false)).only(Mariadb),
    V::session("skip_replication", Kind::Bool, B(false)).only(Mariadb),
    V::computed("last_gtid", Scope::Session, Kind::Text, S("")).only(Mariadb),
];
