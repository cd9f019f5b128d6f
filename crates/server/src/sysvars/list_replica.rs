//! This server as a replica.

use super::def::{Fixed::*, Kind, VarDef as V};
use omnibus_format::Dialect;

const CONVERSIONS: &[&str] = &["ALL_LOSSY", "ALL_NON_LOSSY", "ALL_UNSIGNED", "ALL_SIGNED"];

const MARKED: &[&str] = &["REPLICATE", "FILTER_ON_SLAVE", "FILTER_ON_MASTER"];

/// The family.
pub static VARS: &[V] = &[
    V::fixed("skip_replica_start", Kind::Bool, B(false)),
    V::global("replica_net_timeout", Kind::UInt(1, 31_536_000, 1), U(60)),
    V::global("replica_parallel_workers", Kind::UInt(0, 1024, 1), U(4)),
    V::global("replica_parallel_type", Kind::Enum(&["DATABASE", "LOGICAL_CLOCK"]), S("LOGICAL_CLOCK")),
    V::global("replica_preserve_commit_order", Kind::Bool, B(true)),
    V::global("replica_exec_mode", Kind::Enum(&["STRICT", "IDEMPOTENT"]), S("STRICT")),
    // MySQL's and MariaDB's default is none at all. Here a replica whose columns are wider than its source's goes on, which
    // is how columns are widened without stopping: first at the replicas. Nothing can be lost by it.
    V::global("replica_type_conversions", Kind::Set(CONVERSIONS), S("ALL_NON_LOSSY")),
    V::global("replica_transaction_retries", Kind::UInt(0, u64::MAX, 1), U(10)),
    V::global("replica_max_allowed_packet", Kind::UInt(1024, 1 << 30, 1024), U(1 << 30)),
    V::fixed("replica_pending_jobs_size_max", Kind::UInt(1024, u64::MAX, 1024), U(128 << 20)),
    V::fixed("replica_skip_errors", Kind::Text, S("OFF")),
    V::global("replica_sql_verify_checksum", Kind::Bool, B(true)),
    V::global("replica_compressed_protocol", Kind::Bool, B(false)),
    V::global("rpl_stop_replica_timeout", Kind::UInt(2, 31_536_000, 1), U(31_536_000)),
    V::global("sql_replica_skip_counter", Kind::UInt(0, u32::MAX as u64, 1), U(0)),
    V::fixed("replicate_same_server_id", Kind::Bool, B(false)),
    V::global("replicate_events_marked_for_skip", Kind::Enum(MARKED), S("REPLICATE")).only(Dialect::Mariadb),
    V::fixed("replicate_do_db", Kind::Text, S("")),
    V::fixed("replicate_ignore_db", Kind::Text, S("")),
    V::fixed("replicate_do_table", Kind::Text, S("")),
    V::fixed("replicate_ignore_table", Kind::Text, S("")),
    V::fixed("replicate_wild_do_table", Kind::Text, S("")),
    V::fixed("replicate_wild_ignore_table", Kind::Text, S("")),
    V::fixed("replicate_rewrite_db", Kind::Text, S("")),
    V::global("gtid_slave_pos", Kind::Text, S("")),
];
