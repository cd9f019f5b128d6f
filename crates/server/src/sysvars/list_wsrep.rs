//! Variables of Galera, which every MariaDB has and whose defaults say that there is no cluster.

use super::def::{Fixed::*, Kind, VarDef as V};
use omnibus_format::Dialect::Mariadb;

const MAX: u64 = u64::MAX;
const WORD: u64 = u32::MAX as u64;

/// The family.
pub static VARS: &[V] = &[
    V::fixed("wsrep_allowlist", Kind::Text, S("")).only(Mariadb),
    V::global("wsrep_auto_increment_control", Kind::Bool, B(true)).only(Mariadb),
    V::global("wsrep_certification_rules", Kind::Enum(&["strict", "optimized"]), S("strict")).only(Mariadb),
    V::global("wsrep_certify_nonpk", Kind::Bool, B(true)).only(Mariadb),
    V::global("wsrep_cluster_address", Kind::Text, S("")).only(Mariadb),
    V::global("wsrep_cluster_name", Kind::Text, S("my_wsrep_cluster")).only(Mariadb),
    V::global("wsrep_convert_lock_to_trx", Kind::Bool, B(false)).only(Mariadb),
    V::fixed("wsrep_data_home_dir", Kind::Text, S("")).only(Mariadb),
    V::global("wsrep_dbug_option", Kind::Text, S("")).only(Mariadb),
    V::global(
        "wsrep_debug",
        Kind::Enum(&["NONE", "SERVER", "TRANSACTION", "STREAMING", "CLIENT"]),
        S("NONE"),
    )
    .only(Mariadb),
    V::global("wsrep_desync", Kind::Bool, B(false)).only(Mariadb),
    V::both("wsrep_dirty_reads", Kind::Bool, B(false)).only(Mariadb),
    V::global("wsrep_drupal_282555_workaround", Kind::Bool, B(false)).only(Mariadb),
    V::global("wsrep_forced_binlog_format", Kind::Enum(&["MIXED", "STATEMENT", "ROW", "NONE"]), S("NONE"))
        .only(Mariadb),
    V::global("wsrep_gtid_domain_id", Kind::UInt(0, WORD, 1), U(0)).only(Mariadb),
    V::global("wsrep_gtid_mode", Kind::Bool, B(false)).only(Mariadb),
    V::session("wsrep_gtid_seq_no", Kind::UInt(0, MAX, 1), U(0)).only(Mariadb),
    V::global("wsrep_ignore_apply_errors", Kind::UInt(0, 7, 1), U(7)).only(Mariadb),
    V::global("wsrep_log_conflicts", Kind::Bool, B(false)).only(Mariadb),
    V::global("wsrep_max_ws_rows", Kind::UInt(0, 1_048_576, 1), U(0)).only(Mariadb),
    V::global("wsrep_max_ws_size", Kind::UInt(1024, 2_147_483_647, 1), U(2_147_483_647)).only(Mariadb),
    V::global(
        "wsrep_mode",
        Kind::Set(&[
            "STRICT_REPLICATION",
            "BINLOG_ROW_FORMAT_ONLY",
            "REQUIRED_PRIMARY_KEY",
            "REPLICATE_MYISAM",
            "REPLICATE_ARIA",
            "DISALLOW_LOCAL_GTID",
            "BF_ABORT_MARIABACKUP",
        ]),
        S(""),
    )
    .only(Mariadb),
    V::global("wsrep_mysql_replication_bundle", Kind::UInt(0, 1000, 1), U(0)).only(Mariadb),
    V::global("wsrep_node_address", Kind::Text, S("")).only(Mariadb),
    V::global("wsrep_node_incoming_address", Kind::Text, S("AUTO")).only(Mariadb),
    V::global("wsrep_node_name", Kind::Text, S("")).only(Mariadb),
    V::fixed("wsrep_notify_cmd", Kind::Text, S("")).only(Mariadb),
    V::both("wsrep_on", Kind::Bool, B(false)).only(Mariadb),
    V::both("wsrep_osu_method", Kind::Enum(&["TOI", "RSU"]), S("TOI")).only(Mariadb),
    V::fixed("wsrep_patch_version", Kind::Text, S("")).only(Mariadb),
    V::fixed("wsrep_provider", Kind::Text, S("none")).only(Mariadb),
    V::global("wsrep_provider_options", Kind::Text, S("")).only(Mariadb),
    V::fixed("wsrep_recover", Kind::Bool, B(false)).only(Mariadb),
    V::global("wsrep_reject_queries", Kind::Enum(&["NONE", "ALL", "ALL_KILL"]), S("NONE")).only(Mariadb),
    V::global("wsrep_restart_slave", Kind::Bool, B(false)).only(Mariadb),
    V::both("wsrep_retry_autocommit", Kind::UInt(0, 10_000, 1), U(1)).only(Mariadb),
    V::global("wsrep_slave_fk_checks", Kind::Bool, B(true)).only(Mariadb),
    V::global("wsrep_slave_threads", Kind::UInt(1, 512, 1), U(1)).only(Mariadb),
    V::global("wsrep_slave_uk_checks", Kind::Bool, B(false)).only(Mariadb),
    V::fixed("wsrep_sr_store", Kind::Enum(&["none", "table"]), S("table")).only(Mariadb),
    V::global("wsrep_sst_auth", Kind::NullableText, Null).only(Mariadb),
    V::global("wsrep_sst_donor", Kind::Text, S("")).only(Mariadb),
    V::global("wsrep_sst_donor_rejects_queries", Kind::Bool, B(false)).only(Mariadb),
    V::global("wsrep_sst_method", Kind::Text, S("rsync")).only(Mariadb),
    V::global("wsrep_sst_receive_address", Kind::Text, S("AUTO")).only(Mariadb),
    V::global("wsrep_start_position", Kind::Text, S("00000000-0000-0000-0000-000000000000:-1")).only(Mariadb),
    V::fixed("wsrep_status_file", Kind::Text, S("")).only(Mariadb),
    V::both("wsrep_sync_wait", Kind::UInt(0, 15, 1), U(0)).only(Mariadb),
    V::both("wsrep_trx_fragment_size", Kind::UInt(0, 2_147_483_647, 1), U(0)).only(Mariadb),
    V::both("wsrep_trx_fragment_unit", Kind::Enum(&["bytes", "rows", "statements"]), S("bytes"))
        .only(Mariadb),
];
