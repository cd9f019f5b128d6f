//! The session variables that execution reads. The server parses and sets them.

use crate::error::KeptConditions;
use omnibus_parser::ParseOptions;
use omnibus_parser::ast::Completion;
use omnibus_temporary::TempFolder;
use omnibus_value::locale::{self, Locale};
use omnibus_value::temporal::{DateMode, UTC, Zone};

/// Transaction isolation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Isolation {
    /// Treated as READ COMMITTED.
    ReadUncommitted,
    /// A snapshot a statement, no range locks.
    ReadCommitted,
    /// A snapshot a transaction; locking reads lock ranges.
    #[default]
    RepeatableRead,
    /// Plain reads are locking reads.
    Serializable,
}

/// `completion_type`: what COMMIT and ROLLBACK do that do not say it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompletionType {
    /// No more.
    #[default]
    NoChain,
    /// As AND CHAIN.
    Chain,
    /// As RELEASE.
    Release,
}

impl CompletionType {
    /// Whether a transaction of the same characteristics follows.
    #[must_use]
    pub fn chains(self, how: Completion) -> bool {
        how.chain.unwrap_or(self == CompletionType::Chain)
    }

    /// Whether the session ends.
    #[must_use]
    pub fn releases(self, how: Completion) -> bool {
        how.release.unwrap_or(self == CompletionType::Release)
    }
}

/// How transactions begin and end.
#[derive(Clone, Copy, Debug)]
pub struct TransactionSettings {
    /// `autocommit`.
    pub autocommit: bool,
    /// `completion_type`.
    pub completion: CompletionType,
}

impl Default for TransactionSettings {
    fn default() -> TransactionSettings {
        TransactionSettings { autocommit: true, completion: CompletionType::NoChain }
    }
}

/// `binlog_row_image`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowImage {
    /// All columns.
    #[default]
    Full,
    /// Key columns before, changed columns after.
    Minimal,
    /// All but unchanged blobs.
    NoBlob,
}

/// `binlog_format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BinlogFormat {
    /// The rows that changed.
    #[default]
    Row,
    /// The statement and its context.
    Statement,
    /// The statement where that is safe, else the rows.
    Mixed,
}

/// Bits of `sql_mode`, at MySQL's own positions (they go into QUERY events).
pub mod sql_mode {
    /// `||` is concatenation.
    pub const PIPES_AS_CONCAT: u64 = 1 << 1;
    /// `"` quotes identifiers.
    pub const ANSI_QUOTES: u64 = 1 << 2;
    /// REAL is FLOAT.
    pub const REAL_AS_FLOAT: u64 = 1;
    /// Blanks between a function's name and its parenthesis.
    pub const IGNORE_SPACE: u64 = 1 << 3;
    /// Several modes in one, and SHOW CREATE TABLE without options.
    pub const ANSI: u64 = 1 << 18;
    /// GROUP BY must determine the select list.
    pub const ONLY_FULL_GROUP_BY: u64 = 1 << 5;
    /// Unsigned minus unsigned may be negative.
    pub const NO_UNSIGNED_SUBTRACTION: u64 = 1 << 6;
    /// Backslash is an ordinary character.
    pub const NO_BACKSLASH_ESCAPES: u64 = 1 << 20;
    /// 0 inserted into an AUTO_INCREMENT column stays 0.
    pub const NO_AUTO_VALUE_ON_ZERO: u64 = 1 << 19;
    /// Bad values are errors for transactional tables.
    pub const STRICT_TRANS_TABLES: u64 = 1 << 21;
    /// Bad values are errors.
    pub const STRICT_ALL_TABLES: u64 = 1 << 22;
    /// No zero month or day.
    pub const NO_ZERO_IN_DATE: u64 = 1 << 23;
    /// No '0000-00-00'.
    pub const NO_ZERO_DATE: u64 = 1 << 24;
    /// Only month and day ranges are checked.
    pub const ALLOW_INVALID_DATES: u64 = 1 << 25;
    /// Division by zero is an error (when strict) or a warning.
    pub const ERROR_FOR_DIVISION_BY_ZERO: u64 = 1 << 26;
    /// An unknown engine is an error.
    pub const HIGH_NOT_PRECEDENCE: u64 = 1 << 29;
    /// See the manual.
    pub const NO_ENGINE_SUBSTITUTION: u64 = 1 << 30;
    /// CHAR values keep their padding.
    pub const PAD_CHAR_TO_FULL_LENGTH: u64 = 1 << 31;
    /// Fractions of seconds are cut, not rounded.
    pub const TIME_TRUNCATE_FRACTIONAL: u64 = 1 << 32;
    /// MySQL 8's default.
    pub const DEFAULT: u64 = ONLY_FULL_GROUP_BY
        | STRICT_TRANS_TABLES
        | NO_ZERO_IN_DATE
        | NO_ZERO_DATE
        | ERROR_FOR_DIVISION_BY_ZERO
        | NO_ENGINE_SUBSTITUTION;
}

/// The limits of time; 0 is none.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimits {
    /// `max_execution_time`, milliseconds.
    pub query_ms: u64,
    /// MariaDB's `max_statement_time`, for every statement, milliseconds.
    pub statement_ms: u64,
    /// `regexp_time_limit`, in units of ten thousand steps.
    pub regexp_units: u64,
}

impl Default for TimeLimits {
    fn default() -> TimeLimits {
        TimeLimits { query_ms: 0, statement_ms: 0, regexp_units: 32 }
    }
}

/// The bytes that statements may keep in memory.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimits {
    /// `connection_memory_limit`: those of the session.
    pub connection: u64,
    /// `global_connection_memory_limit`: those of all sessions.
    pub server: u64,
}

impl Default for MemoryLimits {
    fn default() -> MemoryLimits {
        MemoryLimits { connection: u64::MAX, server: u64::MAX }
    }
}

impl MemoryLimits {
    /// Those of a session.
    #[must_use]
    pub fn of(settings: &SessionSettings) -> MemoryLimits {
        settings.memory_limits
    }
}

/// Variables that definitions alone ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DefinitionSettings {
    /// `explicit_defaults_for_timestamp`.
    pub explicit_defaults_for_timestamp: bool,
    /// `restrict_fk_on_non_standard_key`: foreign keys refer to whole unique keys only.
    pub restrict_fk_on_non_standard_key: bool,
    /// `sql_require_primary_key`.
    pub require_primary_key: bool,
    /// `sql_generate_invisible_primary_key`.
    pub generate_primary_key: bool,
}

impl Default for DefinitionSettings {
    fn default() -> Self {
        Self {
            explicit_defaults_for_timestamp: true,
            restrict_fk_on_non_standard_key: true,
            require_primary_key: false,
            generate_primary_key: false,
        }
    }
}

/// The session variables that execution reads. The server parses and sets them.
#[derive(Clone, Debug)]
pub struct SessionSettings {
    /// `sql_mode` bits.
    pub sql_mode: u64,
    /// `time_zone`.
    pub zone: Zone,
    /// `time_zone` as the client wrote it.
    pub time_zone: String,
    /// `lc_time_names`: the language of months and days.
    pub lc_time_names: &'static Locale,
    /// `sql_auto_is_null`: `WHERE auto_increment_column IS NULL` finds the row that was inserted last.
    pub sql_auto_is_null: bool,
    /// `collation_database`, where a statement's context says it: what LOAD DATA takes a file's text for. `None`: the
    /// default database's own.
    pub collation_database: Option<u16>,
    /// `default_collation_for_utf8mb4`.
    pub default_collation_for_utf8mb4: u16,
    /// How transactions begin and end.
    pub transactions: TransactionSettings,
    /// `transaction_isolation` of the session.
    pub isolation: Isolation,
    /// `transaction_read_only` of the session.
    pub read_only: bool,
    /// Collation id of `collation_connection`.
    pub collation_connection: u16,
    /// Collation id of the `character_set_client`'s default.
    pub collation_client: u16,
    /// Collation id of the `character_set_results`' default; 0 = no conversion.
    pub collation_results: u16,
    /// Collation id of `collation_server`.
    pub collation_server: u16,
    /// `binlog_format`.
    pub binlog_format: BinlogFormat,
    /// `binlog_row_image`.
    pub binlog_row_image: RowImage,
    /// `binlog_transaction_compression`, if it is on: at this level of zstd's.
    pub binlog_transaction_compression: Option<i32>,
    /// `binlog_rows_query_log_events`.
    pub binlog_rows_query_log_events: bool,
    /// `binlog_row_metadata=FULL`.
    pub binlog_row_metadata_full: bool,
    /// `sql_log_bin`.
    pub sql_log_bin: bool,
    /// `foreign_key_checks`.
    pub foreign_key_checks: bool,
    /// `check_constraint_checks`.
    pub check_constraint_checks: bool,
    /// `unique_checks`.
    pub unique_checks: bool,
    /// `auto_increment_increment`.
    pub auto_increment_increment: u64,
    /// `auto_increment_offset`.
    pub auto_increment_offset: u64,
    /// `max_allowed_packet`.
    pub max_allowed_packet: u64,
    /// `innodb_lock_wait_timeout`, milliseconds.
    pub lock_wait_timeout_ms: u64,
    /// `lock_wait_timeout` (metadata locks), milliseconds.
    pub metadata_lock_wait_timeout_ms: u64,
    /// `sort_buffer_size`: bytes that a sort has in memory.
    pub sort_buffer_size: u64,
    /// `join_buffer_size`: bytes of a table that is kept for a join.
    pub join_buffer_size: u64,
    /// The lesser of `tmp_table_size` and `max_heap_table_size`: bytes of groups, distinct rows or derived rows in memory.
    pub tmp_table_size: u64,
    /// The bytes that statements may keep in all.
    pub memory_limits: MemoryLimits,
    /// `sql_notes` and `max_error_count`.
    pub conditions: KeptConditions,
    /// `tmpdir`: where temporary files are, and whether they are encrypted (`default_table_encryption`).
    pub tmpdir: TempFolder,
    /// `group_concat_max_len`.
    pub group_concat_max_len: u64,
    /// `sql_select_limit`; `u64::MAX` = none.
    pub sql_select_limit: u64,
    /// SET TIMESTAMP, in microseconds since the epoch.
    pub timestamp_us: Option<i64>,
    /// `rbr_exec_mode=IDEMPOTENT`: BINLOG statements take rows that are gone or there already for granted.
    pub rbr_idempotent: bool,
    /// SET INSERT_ID, used by the next statement.
    pub insert_id: Option<u64>,
    /// `ignore_unsupported_constraints`.
    pub ignore_unsupported_constraints: bool,
    /// `default_storage_engine`.
    pub default_storage_engine: &'static str,
    /// `sql_safe_updates`.
    pub sql_safe_updates: bool,
    /// `cte_max_recursion_depth`.
    pub cte_max_recursion_depth: u64,
    /// `max_join_size`, unless `sql_big_selects` lets every query run.
    pub max_join_size: u64,
    /// `default_week_format`: the mode of WEEK() without one.
    pub default_week_format: u8,
    /// How long statements may take, and what they run.
    pub time_limits: TimeLimits,
    /// Variables that definitions alone ask.
    pub definitions: DefinitionSettings,
    /// `div_precision_increment`.
    pub div_precision_increment: u8,
    /// `read_only`/`super_read_only` of the server: statements of this session may not write.
    pub server_read_only: bool,
    /// `pseudo_thread_id`: the connection whose statements are replayed from a log.
    pub pseudo_thread_id: Option<u32>,
    /// `server_id`, for events.
    pub server_id: u32,
    /// The server speaks MariaDB's dialect: its comments for versions are read as MariaDB does.
    pub mariadb: bool,
    /// `gtid_domain_id`, where the log numbers transactions in MariaDB's dialect.
    pub gtid_domain_id: u32,
    /// MariaDB's `skip_replication`: replicas may leave out what is logged.
    pub skip_replication: bool,
    /// `gtid_next` without a GTID: what the log does with transactions that have none of their own.
    pub gtid_unnamed: omnibus_format::Unnamed,
    /// CLIENT_FOUND_ROWS was negotiated.
    pub found_rows: bool,
    /// `temptable_max_ram`: the most bytes of a session's temporary tables.
    pub temporary_tables_max: u64,
    /// `local_infile`, and the client sends files.
    pub local_infile: bool,
    /// The statement has succeeded at another server.
    pub replicated: bool,
}

impl Default for SessionSettings {
    fn default() -> Self {
        SessionSettings {
            sql_mode: sql_mode::DEFAULT,
            zone: UTC,
            time_zone: "SYSTEM".into(),
            lc_time_names: &locale::ENGLISH,
            sql_auto_is_null: false,
            collation_database: None,
            default_collation_for_utf8mb4: crate::catalog::charset::server_default(),
            transactions: TransactionSettings::default(),
            isolation: Isolation::RepeatableRead,
            read_only: false,
            collation_connection: crate::catalog::charset::server_default(),
            collation_client: crate::catalog::charset::server_default(),
            collation_results: crate::catalog::charset::server_default(),
            collation_server: crate::catalog::charset::server_default(),
            binlog_format: BinlogFormat::Row,
            binlog_row_image: RowImage::Full,
            binlog_transaction_compression: None,
            binlog_rows_query_log_events: false,
            binlog_row_metadata_full: false,
            sql_log_bin: true,
            foreign_key_checks: true,
            check_constraint_checks: true,
            unique_checks: true,
            auto_increment_increment: 1,
            auto_increment_offset: 1,
            max_allowed_packet: 64 << 20,
            lock_wait_timeout_ms: 50_000,
            metadata_lock_wait_timeout_ms: 31_536_000_000,
            sort_buffer_size: 8 << 20,
            join_buffer_size: 8 << 20,
            tmp_table_size: 16 << 20,
            memory_limits: MemoryLimits::default(),
            conditions: KeptConditions::default(),
            tmpdir: TempFolder::default(),
            group_concat_max_len: 1024,
            sql_select_limit: u64::MAX,
            timestamp_us: None,
            rbr_idempotent: false,
            insert_id: None,
            ignore_unsupported_constraints: false,
            default_storage_engine: super::DEFAULT_ENGINE,
            sql_safe_updates: false,
            cte_max_recursion_depth: 1000,
            max_join_size: u64::MAX,
            default_week_format: 0,
            time_limits: TimeLimits::default(),
            definitions: DefinitionSettings::default(),
            div_precision_increment: 4,
            server_read_only: false,
            pseudo_thread_id: None,
            server_id: 1,
            mariadb: false,
            gtid_domain_id: 0,
            skip_replication: false,
            gtid_unnamed: omnibus_format::Unnamed::Automatic,
            found_rows: false,
            temporary_tables_max: 1 << 30,
            local_infile: false,
            replicated: false,
        }
    }
}

impl SessionSettings {
    /// The dates that `sql_mode` lets in.
    #[must_use]
    pub fn date_mode(&self) -> DateMode {
        let has = |bit: u64| self.sql_mode & bit != 0;
        DateMode {
            no_zero_in_date: has(sql_mode::NO_ZERO_IN_DATE),
            no_zero_date: has(sql_mode::NO_ZERO_DATE),
            allow_invalid: has(sql_mode::ALLOW_INVALID_DATES),
            truncate: has(sql_mode::TIME_TRUNCATE_FRACTIONAL),
        }
    }

    /// The parts of `sql_mode` that the grammar depends on.
    #[must_use]
    pub fn parse_options(&self) -> ParseOptions {
        let has = |bit: u64| self.sql_mode & bit != 0;
        ParseOptions {
            ansi_quotes: has(sql_mode::ANSI_QUOTES),
            pipes_as_concat: has(sql_mode::PIPES_AS_CONCAT),
            no_backslash_escapes: has(sql_mode::NO_BACKSLASH_ESCAPES),
            ignore_space: has(sql_mode::IGNORE_SPACE),
            real_as_float: has(sql_mode::REAL_AS_FLOAT),
            high_not_precedence: has(sql_mode::HIGH_NOT_PRECEDENCE),
            mariadb: self.mariadb,
            version: if self.mariadb { 110_405 } else { 80_400 },
            markers: false,
        }
    }

    /// Whether bad values are errors.
    #[must_use]
    pub fn strict(&self) -> bool {
        self.sql_mode & (sql_mode::STRICT_TRANS_TABLES | sql_mode::STRICT_ALL_TABLES) != 0
    }

    /// Whether bad values are errors where a statement that writes looks for its rows. Servers differ in what they
    /// complain of there, so a replicated statement does not fail for it.
    #[must_use]
    pub fn strict_search(&self) -> bool {
        self.strict() && !self.replicated
    }
}
