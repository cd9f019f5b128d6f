//! Variables of MariaDB and MySQL that replicas, dump tools, CDC clients and option files read or set, and that have no effect here.

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
    V::both("system_versioning_insert_history", Kind::Bool, B(false)),
    V::both("sql_if_exists", Kind::Bool, B(false)),
    V::both("keep_files_on_create", Kind::Bool, B(false)),
    V::both("select_into_buffer_size", Kind::UInt(8192, 2_147_479_552, 4096), U(131_072)),
    V::both("xa_detach_on_prepare", Kind::Bool, B(true)),
    // What dumps and printed logs of these servers set before and after what they have to say.
    V::global("innodb_stats_auto_recalc", Kind::Bool, B(true)),
    V::both("note_verbosity", Kind::Set(&["basic", "unknown_variables", "explain"]), S("basic,explain"))
        .only(Mariadb),
    // Of MySQL 8.4: what tunes threads, caches and formats that are not here.
    V::fixed("core_file", Kind::Bool, B(false)),
    V::global("delayed_insert_limit", Kind::UInt(1, u64::MAX, 1), U(100)),
    V::global("delayed_insert_timeout", Kind::UInt(1, 31_536_000, 1), U(300)),
    V::global("delayed_queue_size", Kind::UInt(1, u64::MAX, 1), U(1000)),
    V::both("max_insert_delayed_threads", Kind::UInt(0, 16_384, 1), U(20)),
    V::fixed("ft_query_expansion_limit", Kind::UInt(0, 1000, 1), U(20)),
    V::fixed("ft_stopword_file", Kind::Text, S("(built-in)")),
    V::fixed("ngram_token_size", Kind::UInt(1, 10, 1), U(2)),
    V::global("key_cache_age_threshold", Kind::UInt(100, u64::MAX - 15, 100), U(300)),
    V::global("key_cache_block_size", Kind::UInt(512, 16_384, 512), U(1024)),
    V::global("key_cache_division_limit", Kind::UInt(1, 100, 1), U(100)),
    V::global("myisam_data_pointer_size", Kind::UInt(2, 7, 1), U(6)),
    V::global("myisam_max_sort_file_size", Kind::UInt(0, i64::MAX as u64, 1), U(9_223_372_036_853_727_232)),
    V::fixed("myisam_mmap_size", Kind::UInt(7, u64::MAX, 1), U(u64::MAX)),
    V::both(
        "myisam_stats_method",
        Kind::Enum(&["nulls_unequal", "nulls_equal", "nulls_ignored"]),
        S("nulls_unequal"),
    ),
    V::global("myisam_use_mmap", Kind::Bool, B(false)),
    V::global("max_write_lock_count", Kind::UInt(1, u64::MAX, 1), U(u64::MAX)),
    V::global("schema_definition_cache", Kind::UInt(256, 524_288, 1), U(256)),
    V::global("tablespace_definition_cache", Kind::UInt(256, 524_288, 1), U(256)),
    V::global("temptable_max_mmap", Kind::UInt(0, u64::MAX, 1), U(0)),
    V::both("set_operations_buffer_size", Kind::UInt(16_384, u64::MAX - 1023, 128), U(262_144)),
    V::both("parser_max_mem_size", Kind::UInt(10_000_000, u64::MAX, 1), U(u64::MAX)),
    V::both("select_into_disk_sync", Kind::Bool, B(false)),
    V::both("select_into_disk_sync_delay", Kind::UInt(0, 31_536_000, 1), U(0)),
    V::global("regexp_stack_limit", Kind::UInt(0, 2_147_483_647, 1), U(8_000_000)),
    V::global("slow_launch_time", Kind::UInt(0, 31_536_000, 1), U(2)),
    V::both(
        "optimizer_trace_features",
        Kind::Text,
        S("greedy_search=on,range_optimizer=on,dynamic_range=on,repeated_subselect=on"),
    ),
    V::both("optimizer_trace_limit", Kind::UInt(0, i64::MAX as u64, 1), U(1)),
    V::both("optimizer_trace_max_mem_size", Kind::UInt(0, u64::MAX, 1), U(1 << 20)),
    V::global("table_encryption_privilege_check", Kind::Bool, B(false)),
    // Of a replica.
    V::global("init_replica", Kind::Text, S("")),
    V::global("replica_allow_batching", Kind::Bool, B(true)),
    V::global("replica_checkpoint_group", Kind::UInt(32, 524_280, 8), U(512)),
    V::global("replica_checkpoint_period", Kind::UInt(1, 4_294_967_295, 1), U(300)),
    V::global("sync_source_info", Kind::UInt(0, u32::MAX as u64, 1), U(10_000)),
    // Of the slow query log.
    V::global("log_slow_extra", Kind::Bool, B(false)),
    V::global("log_slow_replica_statements", Kind::Bool, B(false)),
    V::global("log_throttle_queries_not_using_indexes", Kind::UInt(0, u64::MAX, 1), U(0)),
    V::both("terminology_use_previous", Kind::Enum(&["NONE", "BEFORE_8_0_26", "BEFORE_8_2_0"]), S("NONE")),
];
