//! From a session's variables to the typed struct that execution reads. Rebuilt as a whole whenever
//! a SET touched the session or the server, never while a statement runs.

use super::{GlobalVars, SessionVars, VarValue};
use crate::charset;
use omnibus_format::{Tsid, Unnamed};
use omnibus_sql::KeptConditions;
use omnibus_sql::api::{
    BinlogFormat, CompletionType, DEFAULT_ENGINE, DefinitionSettings, Isolation, MemoryLimits, RowImage,
    SessionSettings, TimeLimits, TransactionSettings,
};
use omnibus_temporary::TempFolder;
use omnibus_value::locale;
use omnibus_value::temporal::{UTC, Zone};
use std::path::Path;

/// Names of the `sql_mode` bits; the place in the list is the bit. Empty names are bits of modes
/// that MySQL 8 no longer has.
const MODES: [&str; 33] = [
    "REAL_AS_FLOAT",
    "PIPES_AS_CONCAT",
    "ANSI_QUOTES",
    "IGNORE_SPACE",
    "",
    "ONLY_FULL_GROUP_BY",
    "NO_UNSIGNED_SUBTRACTION",
    "NO_DIR_IN_CREATE",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "ANSI",
    "NO_AUTO_VALUE_ON_ZERO",
    "NO_BACKSLASH_ESCAPES",
    "STRICT_TRANS_TABLES",
    "STRICT_ALL_TABLES",
    "NO_ZERO_IN_DATE",
    "NO_ZERO_DATE",
    "ALLOW_INVALID_DATES",
    "ERROR_FOR_DIVISION_BY_ZERO",
    "TRADITIONAL",
    "",
    "HIGH_NOT_PRECEDENCE",
    "NO_ENGINE_SUBSTITUTION",
    "PAD_CHAR_TO_FULL_LENGTH",
    "TIME_TRUNCATE_FRACTIONAL",
];

const ANSI: u64 = 1 << 18 | 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 5;
const TRADITIONAL: u64 = 1 << 27 | 1 << 21 | 1 << 22 | 1 << 23 | 1 << 24 | 1 << 26 | 1 << 30;

/// Modes of older servers that dump files still set; they mean nothing any more.
const GONE: [&str; 9] = [
    "NO_AUTO_CREATE_USER",
    "NO_FIELD_OPTIONS",
    "NO_KEY_OPTIONS",
    "NO_TABLE_OPTIONS",
    "MYSQL323",
    "MYSQL40",
    "NOT_USED",
    "SIMULTANEOUS_ASSIGNMENT",
    "EMPTY_STRING_IS_NULL",
];

/// The bits of a comma-separated list, or the word that is none.
pub fn sql_mode_bits(text: &str) -> Result<u64, String> {
    let mut bits = 0;
    for word in text.split(',').map(str::trim).filter(|w| !w.is_empty()) {
        let upper = word.to_ascii_uppercase();
        match MODES.iter().position(|m| *m == upper) {
            Some(bit) => bits |= 1 << bit,
            None if GONE.contains(&upper.as_str()) => {}
            None => return Err(word.to_owned()),
        }
    }
    if bits & 1 << 18 != 0 {
        bits |= ANSI;
    }
    if bits & 1 << 27 != 0 {
        bits |= TRADITIONAL;
    }
    Ok(bits)
}

/// The list of names of the bits.
#[must_use]
pub fn sql_mode_text(bits: u64) -> String {
    let names = MODES.iter().enumerate().filter(|(i, name)| bits & 1 << i != 0 && !name.is_empty());
    names.map(|(_, name)| *name).collect::<Vec<_>>().join(",")
}

/// `REPEATABLE-READ` and so on.
#[must_use]
pub fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::ReadUncommitted => "READ-UNCOMMITTED",
        Isolation::ReadCommitted => "READ-COMMITTED",
        Isolation::RepeatableRead => "REPEATABLE-READ",
        Isolation::Serializable => "SERIALIZABLE",
    }
}

fn isolation(value: &VarValue) -> Isolation {
    match value.as_str() {
        "READ-UNCOMMITTED" => Isolation::ReadUncommitted,
        "READ-COMMITTED" => Isolation::ReadCommitted,
        "SERIALIZABLE" => Isolation::Serializable,
        _ => Isolation::RepeatableRead,
    }
}

fn completion(value: &VarValue) -> CompletionType {
    match value.as_str() {
        "CHAIN" => CompletionType::Chain,
        "RELEASE" => CompletionType::Release,
        _ => CompletionType::NoChain,
    }
}

fn row_image(value: &VarValue) -> RowImage {
    match value.as_str() {
        "MINIMAL" => RowImage::Minimal,
        "NOBLOB" => RowImage::NoBlob,
        _ => RowImage::Full,
    }
}

fn binlog_format(value: &VarValue) -> BinlogFormat {
    match value.as_str() {
        "STATEMENT" => BinlogFormat::Statement,
        "MIXED" => BinlogFormat::Mixed,
        _ => BinlogFormat::Row,
    }
}

/// The level of `binlog_transaction_compression`, if it is on.
fn compression_level<'v>(value: &impl Fn(&str) -> &'v VarValue) -> Option<i32> {
    let on = value("binlog_transaction_compression").as_bool();
    on.then(|| value("binlog_transaction_compression_level_zstd").as_u64() as i32)
}

fn collation(name: &str) -> u16 {
    charset::by_name(name).map_or(charset::DEFAULT_ID, |c| c.id)
}

fn charset_default(value: &VarValue) -> u16 {
    match value {
        VarValue::Null => 0,
        v => charset::of_charset(v.as_str()).map_or(charset::DEFAULT_ID, |c| c.id),
    }
}

/// The treatment of transactions without a GTID that `gtid_next` asks for.
fn unnamed(next: &VarValue, globals: &GlobalVars) -> Unnamed {
    let tag = match next.as_str() {
        "AUTOMATIC" => return Unnamed::Automatic,
        "ANONYMOUS" => return Unnamed::Anonymous,
        other => other.strip_prefix("AUTOMATIC:").and_then(|tag| tag.parse().ok()),
    };
    let Some(tag) = tag else { return Unnamed::Automatic };
    let own = globals.named("server_uuid").as_str().parse().unwrap_or_default();
    Unnamed::NextOf(Tsid::new(own, tag))
}

fn time_limits(vars: &SessionVars, globals: &GlobalVars) -> TimeLimits {
    TimeLimits {
        query_ms: vars.named("max_execution_time").as_u64(),
        statement_ms: match vars.named("max_statement_time") {
            VarValue::Double(seconds) => (seconds * 1e3).ceil() as u64,
            _ => 0,
        },
        regexp_units: globals.named("regexp_time_limit").as_u64(),
    }
}

fn conditions(vars: &SessionVars, limits: MemoryLimits) -> KeptConditions {
    KeptConditions {
        notes: vars.named("sql_notes").as_bool(),
        most: usize::try_from(vars.named("max_error_count").as_u64()).unwrap_or(usize::MAX),
        connection_memory: limits.connection,
        server_memory: limits.server,
    }
}

fn memory_limits(vars: &SessionVars, globals: &GlobalVars) -> MemoryLimits {
    if !vars.named("global_connection_memory_tracking").as_bool() {
        return MemoryLimits::default();
    }
    let server = match globals.named("global_connection_memory_limit").as_u64() {
        // A server that was given no limit and did not look for one has 0.
        0 => u64::MAX,
        bytes => bytes,
    };
    MemoryLimits { connection: vars.named("connection_memory_limit").as_u64(), server }
}

/// Where temporary files are made: encrypted, if tables are.
pub(crate) fn temp_folder(globals: &GlobalVars) -> TempFolder {
    let encrypted = globals.named("default_table_encryption").as_bool();
    match globals.named("tmpdir").as_str() {
        "" => TempFolder::new(&std::env::temp_dir(), encrypted),
        path => TempFolder::new(Path::new(path), encrypted),
    }
}

/// The name of the collation that utf8mb4 has where none is named.
pub(crate) fn collation_of_utf8mb4(vars: &SessionVars) -> &str {
    match vars.named("character_set_collations").as_str().split_once('=') {
        Some((_, name)) => name,
        None => vars.named("default_collation_for_utf8mb4").as_str(),
    }
}

/// The struct for a session. `found_rows` is the login's CLIENT_FOUND_ROWS; `may_write_read_only` is
/// the account's privilege to write although the server is `read_only`.
#[must_use]
pub fn session_settings(
    vars: &SessionVars,
    globals: &GlobalVars,
    found_rows: bool,
    may_write_read_only: bool,
) -> SessionSettings {
    let v = |name: &str| vars.named(name);
    let read_only = globals.named("super_read_only").as_bool()
        || (globals.named("read_only").as_bool() && !may_write_read_only);
    SessionSettings {
        sql_mode: sql_mode_bits(v("sql_mode").as_str()).unwrap_or(omnibus_sql::api::sql_mode::DEFAULT),
        zone: Zone::by_name(v("time_zone").as_str()).unwrap_or(UTC),
        time_zone: v("time_zone").as_str().to_owned(),
        lc_time_names: locale::by_name(v("lc_time_names").as_str()).unwrap_or(&locale::ENGLISH),
        sql_auto_is_null: v("sql_auto_is_null").as_bool(),
        collation_database: (*v("collation_database") != globals.named("collation_database"))
            .then(|| collation(v("collation_database").as_str())),
        default_collation_for_utf8mb4: collation(collation_of_utf8mb4(vars)),
        transactions: TransactionSettings {
            autocommit: v("autocommit").as_bool(),
            completion: completion(v("completion_type")),
        },
        isolation: isolation(v("transaction_isolation")),
        read_only: v("transaction_read_only").as_bool(),
        collation_connection: collation(v("collation_connection").as_str()),
        collation_client: charset_default(v("character_set_client")),
        collation_results: charset_default(v("character_set_results")),
        collation_server: collation(v("collation_server").as_str()),
        binlog_format: binlog_format(v("binlog_format")),
        binlog_row_image: row_image(v("binlog_row_image")),
        rbr_idempotent: v("rbr_exec_mode").as_str() == "IDEMPOTENT",
        binlog_transaction_compression: compression_level(&v),
        binlog_rows_query_log_events: v("binlog_rows_query_log_events").as_bool(),
        binlog_row_metadata_full: globals.named("binlog_row_metadata").as_str() == "FULL",
        sql_log_bin: v("sql_log_bin").as_bool(),
        foreign_key_checks: v("foreign_key_checks").as_bool(),
        check_constraint_checks: v("check_constraint_checks").as_bool(),
        unique_checks: v("unique_checks").as_bool(),
        auto_increment_increment: v("auto_increment_increment").as_u64(),
        auto_increment_offset: v("auto_increment_offset").as_u64(),
        max_allowed_packet: v("max_allowed_packet").as_u64(),
        lock_wait_timeout_ms: v("innodb_lock_wait_timeout").as_u64().saturating_mul(1000),
        metadata_lock_wait_timeout_ms: v("lock_wait_timeout").as_u64().saturating_mul(1000),
        sort_buffer_size: v("sort_buffer_size").as_u64(),
        join_buffer_size: v("join_buffer_size").as_u64(),
        tmp_table_size: v("tmp_table_size").as_u64().min(v("max_heap_table_size").as_u64()),
        memory_limits: memory_limits(vars, globals),
        conditions: conditions(vars, memory_limits(vars, globals)),
        tmpdir: temp_folder(globals),
        group_concat_max_len: v("group_concat_max_len").as_u64(),
        sql_select_limit: v("sql_select_limit").as_u64(),
        timestamp_us: match v("timestamp") {
            VarValue::Double(x) if *x > 0.0 => Some((x * 1e6).round() as i64),
            _ => None,
        },
        insert_id: Some(v("insert_id").as_u64()).filter(|n| *n != 0),
        ignore_unsupported_constraints: v("ignore_unsupported_constraints").as_bool(),
        default_storage_engine: crate::engines::find(v("default_storage_engine").as_str())
            .unwrap_or(DEFAULT_ENGINE),
        sql_safe_updates: v("sql_safe_updates").as_bool(),
        cte_max_recursion_depth: v("cte_max_recursion_depth").as_u64(),
        max_join_size: match v("sql_big_selects").as_bool() {
            true => u64::MAX,
            false => v("max_join_size").as_u64(),
        },
        default_week_format: v("default_week_format").as_u64() as u8,
        time_limits: time_limits(vars, globals),
        definitions: DefinitionSettings {
            explicit_defaults_for_timestamp: v("explicit_defaults_for_timestamp").as_bool(),
            restrict_fk_on_non_standard_key: v("restrict_fk_on_non_standard_key").as_bool(),
            require_primary_key: v("sql_require_primary_key").as_bool(),
            generate_primary_key: v("sql_generate_invisible_primary_key").as_bool(),
        },
        div_precision_increment: v("div_precision_increment").as_u64() as u8,
        server_read_only: read_only,
        pseudo_thread_id: u32::try_from(v("pseudo_thread_id").as_u64()).ok().filter(|id| *id != 0),
        server_id: v("server_id").as_u64() as u32,
        mariadb: globals.named("dialect").as_str() == "mariadb",
        gtid_unnamed: unnamed(v("gtid_next"), globals),
        gtid_domain_id: v("gtid_domain_id").as_u64() as u32,
        skip_replication: v("skip_replication").as_bool(),
        found_rows,
        temporary_tables_max: globals.named("temptable_max_ram").as_u64(),
        local_infile: globals.named("local_infile").as_bool(),
        replicated: false,
    }
}
