//! The errors a client can see: MySQL's code, SQLSTATE and message.
//!
//! Not an internal error type: an engine or log failure is mapped to its MySQL code here and
//! logged where it happened. Constructors are named after MySQL's symbolic names, so that a
//! reader can look them up. [`Interrupt`] is what a running statement stops with: an error, or
//! the wish to be run again later.

mod diagnostics;

pub use diagnostics::{ConditionMemory, Diagnostics, KeptConditions, Level};
use omnibus_parser::ast::{Spanned, Statement};
use std::fmt::Display;
use std::sync::Arc;

/// Result of anything that can fail with a client-visible error.
pub type SqlResult<T> = Result<T, SqlError>;

/// A MySQL error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("ERROR {code} ({}): {message}", String::from_utf8_lossy(.state))]
pub struct SqlError {
    /// MySQL's error number.
    pub code: u16,
    /// SQLSTATE.
    pub state: [u8; 5],
    /// The text after "ERROR code (state): ".
    pub message: String,
}

/// Declares constructors: `name(args) = code, state, format`.
macro_rules! errors {
    ($($(#[$doc:meta])* $name:ident($($arg:ident),*) = $code:literal, $state:literal, $text:literal;)*) => {
        impl SqlError { $(
            $(#[$doc])*
            #[doc = concat!("Error ", stringify!($code), ".")]
            #[must_use]
            pub fn $name($($arg: impl Display),*) -> SqlError {
                SqlError { code: $code, state: *$state, message: format!($text) }
            }
        )* }
    };
}

errors! {
    no_master_key() = 3185, b"HY000", "Can't find master key from keyring, please check in the server log if a keyring is loaded and initialized successfully.";
    db_create_exists(db) = 1007, b"HY000", "Can't create database '{db}'; database exists";
    db_drop_exists(db) = 1008, b"HY000", "Can't drop database '{db}'; database doesn't exist";
    key_not_found(table) = 1032, b"HY000", "Can't find record in '{table}'";
    dbaccess_denied(user, host, db) = 1044, b"42000", "Access denied for user '{user}'@'{host}' to database '{db}'";
    no_db() = 1046, b"3D000", "No database selected";
    bad_null(column) = 1048, b"23000", "Column '{column}' cannot be null";
    bad_db(db) = 1049, b"42000", "Unknown database '{db}'";
    table_exists(table) = 1050, b"42S01", "Table '{table}' already exists";
    bad_table(tables) = 1051, b"42S02", "Unknown table '{tables}'";
    non_uniq(column, clause) = 1052, b"23000", "Column '{column}' in {clause} is ambiguous";
    bad_field(column, clause) = 1054, b"42S22", "Unknown column '{column}' in '{clause}'";
    wrong_field_with_group(number, clause, column) = 1055, b"42000", "Expression #{number} of {clause} is not in GROUP BY clause and contains nonaggregated column '{column}' which is not functionally dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by";
    wrong_group_field(column) = 1056, b"42000", "Can't group on '{column}'";
    too_long_ident(ident) = 1059, b"42000", "Identifier name '{ident}' is too long";
    dup_fieldname(column) = 1060, b"42S21", "Duplicate column name '{column}'";
    dup_keyname(key) = 1061, b"42000", "Duplicate key name '{key}'";
    dup_entry(entry, key) = 1062, b"23000", "Duplicate entry '{entry}' for key '{key}'";
    wrong_field_spec(column) = 1063, b"42000", "Incorrect column specifier for column '{column}'";
    parse_error(text) = 1064, b"42000", "{text}";
    empty_query() = 1065, b"42000", "Query was empty";
    partition_clause() = 1747, b"HY000", "PARTITION () clause on non partitioned table";
    nonuniq_table(table) = 1066, b"42000", "Not unique table/alias: '{table}'";
    invalid_default(column) = 1067, b"42000", "Invalid default value for '{column}'";
    multiple_pri_key() = 1068, b"42000", "Multiple primary key defined";
    too_many_keys(max) = 1069, b"42000", "Too many keys specified; max {max} keys allowed";
    too_many_key_parts(max) = 1070, b"42000", "Too many key parts specified; max {max} parts allowed";
    too_long_key(max) = 1071, b"42000", "Specified key was too long; max key length is {max} bytes";
    key_column_does_not_exist(column) = 1072, b"42000", "Key column '{column}' doesn't exist in table";
    blob_used_as_key(column) = 1073, b"42000", "BLOB column '{column}' can't be used in key specification with the used table type";
    too_big_fieldlength(column, max) = 1074, b"42000", "Column length too big for column '{column}' (max = {max}); use BLOB or TEXT instead";
    wrong_auto_key() = 1075, b"42000", "Incorrect table definition; there can be only one auto column and it must be defined as a key";
    wrong_sub_key() = 1089, b"HY000", "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys";
    cant_remove_all_fields() = 1090, b"42000", "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
    cant_drop_field_or_key(name) = 1091, b"42000", "Can't DROP '{name}'; check that column/key exists";
    update_table_used(table) = 1093, b"HY000", "You can't specify target table '{table}' for update in FROM clause";
    no_such_thread(id) = 1094, b"HY000", "Unknown thread id: {id}";
    no_tables_used() = 1096, b"HY000", "No tables used";
    blob_cant_have_default(column) = 1101, b"42000", "BLOB, TEXT, GEOMETRY or JSON column '{column}' can't have a default value";
    wrong_db_name(db) = 1102, b"42000", "Incorrect database name '{db}'";
    wrong_table_name(table) = 1103, b"42000", "Incorrect table name '{table}'";
    unknown_error() = 1105, b"HY000", "Unknown error";
    unknown_table(table, clause) = 1109, b"42S02", "Unknown table '{table}' in {clause}";
    field_specified_twice(column) = 1110, b"42000", "Column '{column}' specified twice";
    invalid_group_func_use() = 1111, b"HY000", "Invalid use of group function";
    table_must_have_columns() = 1113, b"42000", "A table must have at least 1 column";
    unknown_character_set(name) = 1115, b"42000", "Unknown character set: '{name}'";
    too_many_fields() = 1117, b"42000", "Too many columns";
    too_big_rowsize(max) = 1118, b"42000", "Row size too large. The maximum row size for the used table type, not counting BLOBs, is {max}. This includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs";
    wrong_value_count_on_row(row) = 1136, b"21S01", "Column count doesn't match value count at row {row}";
    invalid_use_of_null() = 1138, b"22004", "Invalid use of NULL value";
    mix_of_group_func_and_fields(number, column) = 1140, b"42000", "In aggregated query without GROUP BY, expression #{number} of SELECT list contains nonaggregated column '{column}'; this is incompatible with sql_mode=only_full_group_by";
    columnaccess_denied(command, user, host, column, table) = 1143, b"42000", "{command} command denied to user '{user}'@'{host}' for column '{column}' in table '{table}'";
    tableaccess_denied(command, user, host, table) = 1142, b"42000", "{command} command denied to user '{user}'@'{host}' for table '{table}'";
    no_such_table(db, table) = 1146, b"42S02", "Table '{db}.{table}' doesn't exist";
    too_big_row_for_packet(max) = 1162, b"42000", "Result string is longer than 'max_allowed_packet' bytes ({max})";
    primary_cant_have_null() = 1171, b"42000", "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead";
    too_many_rows() = 1172, b"42000", "Result consisted of more than one row";
    update_without_key() = 1175, b"HY000", "You are using safe update mode and you tried to update a table without a WHERE that uses a KEY column";
    key_does_not_exist(key, table) = 1176, b"42000", "Key '{key}' doesn't exist in table '{table}'";
    error_during_commit(detail) = 1180, b"HY000", "Got error {detail} during COMMIT";
    unknown_system_variable(name) = 1193, b"HY000", "Unknown system variable '{name}'";
    lock_wait_timeout() = 1205, b"HY000", "Lock wait timeout exceeded; try restarting transaction";
    wrong_arguments(name) = 1210, b"HY000", "Incorrect arguments to {name}";
    lock_deadlock() = 1213, b"40001", "Deadlock found when trying to get lock; try restarting transaction";
    cannot_add_foreign() = 1215, b"HY000", "Cannot add foreign key constraint";
    wrong_number_of_columns_in_select() = 1222, b"21000", "The used SELECT statements have a different number of columns";
    wrong_value_for_var(name, value) = 1231, b"42000", "Variable '{name}' can't be set to the value of '{value}'";
    not_supported_yet(what) = 1235, b"42000", "This version of Omnibus doesn't yet support '{what}'";
    operand_columns(columns) = 1241, b"21000", "Operand should contain {columns} column(s)";
    too_big_select() = 1104, b"42000", "The SELECT would examine more than MAX_JOIN_SIZE rows; check your WHERE and use SET SQL_BIG_SELECTS=1 or SET MAX_JOIN_SIZE=# if the SELECT is okay";
    subquery_no_1_row() = 1242, b"21000", "Subquery returns more than 1 row";
    derived_must_have_alias() = 1248, b"42000", "Every derived table must have its own alias";
    warn_too_few_records(row) = 1261, b"01000", "Row {row} doesn't contain data for all columns";
    warn_null_to_notnull(column, row) = 1263, b"22004", "Column set to default value; NULL supplied to NOT NULL column '{column}' at row {row}";
    warn_data_out_of_range(column, row) = 1264, b"22003", "Out of range value for column '{column}' at row {row}";
    warn_data_truncated(column, row) = 1265, b"01000", "Data truncated for column '{column}' at row {row}";
    warn_using_other_handler(engine, table) = 1266, b"HY000", "Using storage engine {engine} for table '{table}'";
    cant_aggregate_3collations(a, b, c, op) = 1270, b"HY000", "Illegal mix of collations ({a}), ({b}), ({c}) for operation '{op}'";
    cant_aggregate_ncollations(op) = 1271, b"HY000", "Illegal mix of collations for operation '{op}'";
    cant_aggregate_2collations(a, b, op) = 1267, b"HY000", "Illegal mix of collations ({a}) and ({b}) for operation '{op}'";
    unknown_collation(name) = 1273, b"HY000", "Unknown collation: '{name}'";
    wrong_name_for_index(name) = 1280, b"42000", "Incorrect index name '{name}'";
    unknown_storage_engine(name) = 1286, b"42000", "Unknown storage engine '{name}'";
    option_prevents_statement(option) = 1290, b"HY000", "The MySQL server is running with the {option} option so it cannot execute this statement";
    duplicated_value_in_type(column, value, kind) = 1291, b"HY000", "Column '{column}' has duplicated value '{value}' in {kind}";
    truncated_wrong_value(kind, value) = 1292, b"22007", "Truncated incorrect {kind} value: '{value}'";
    incorrect_value(kind, value, column, row) = 1292, b"22007", "Incorrect {kind} value: '{value}' for column '{column}' at row {row}";
    collation_charset_mismatch(collation, charset) = 1253, b"42000", "COLLATION '{collation}' is not valid for CHARACTER SET '{charset}'";
    conflicting_declarations(one, other) = 1302, b"HY000", "Conflicting declarations: 'CHARACTER SET {one}' and 'CHARACTER SET {other}'";
    sp_badstatement(what) = 1314, b"0A000", "{what} is not allowed in stored procedures";
    sp_wrong_no_of_args(kind, name, expected, given) = 1318, b"42000", "Incorrect number of arguments for {kind} {name}; expected {expected}, got {given}";
    sp_noreturnend(name) = 1321, b"2F005", "FUNCTION {name} ended without RETURN";
    sp_cursor_already_open() = 1325, b"24000", "Cursor is already open";
    sp_cursor_not_open() = 1326, b"24000", "Cursor is not open";
    sp_wrong_no_of_fetch_args() = 1328, b"HY000", "Incorrect number of FETCH variables";
    sp_fetch_no_data() = 1329, b"02000", "No data - zero rows fetched, selected, or processed";
    stmt_not_allowed_in_sf_or_trg(what) = 1336, b"0A000", "{what} is not allowed in stored function or trigger";
    sp_case_not_found() = 1339, b"20000", "Case not found for CASE statement";
    sp_not_var_arg(number, name) = 1414, b"42000", "OUT or INOUT argument {number} for routine {name} is not a variable or NEW pseudo-variable in BEFORE trigger";
    sp_no_retset(what) = 1415, b"0A000", "Not allowed to return a result set from a {what}";
    commit_not_allowed_in_sf_or_trg() = 1422, b"HY000", "Explicit or implicit commit is not allowed in stored function or trigger.";
    sp_no_recursion() = 1424, b"HY000", "Recursive stored functions and triggers are not allowed.";
    cant_update_used_table_in_sf_or_trg(table) = 1442, b"HY000", "Can't update table '{table}' in stored function/trigger because it is already used by statement which invoked this stored function/trigger";
    sp_recursion_limit(limit, name) = 1456, b"HY000", "Recursive limit {limit} (as set by the max_sp_recursion_depth variable) was exceeded for routine {name}";
    resignal_without_active_handler() = 1645, b"0K000", "RESIGNAL when handler not active";
    sp_already_exists(kind, name) = 1304, b"42000", "{kind} {name} already exists";
    sp_does_not_exist(kind, name) = 1305, b"42000", "{kind} {name} does not exist";
    query_interrupted() = 1317, b"70100", "Query execution was interrupted";
    wrong_object(db, name, kind) = 1347, b"HY000", "'{db}.{name}' is not {kind}";
    nonupdateable_column(column) = 1348, b"HY000", "Column '{column}' is not updatable";
    view_select_derived_clause(clause) = 1350, b"HY000", "View's SELECT contains a '{clause}' clause";
    view_select_variable() = 1351, b"HY000", "View's SELECT contains a variable or parameter";
    view_select_tmptable(table) = 1352, b"HY000", "View's SELECT refers to a temporary table '{table}'";
    view_wrong_list() = 1353, b"HY000", "In definition of view, derived table or common table expression, SELECT list and column names list have different column counts";
    warn_view_merge() = 1354, b"HY000", "View merge algorithm can't be used here for now (assumed undefined algorithm)";
    view_invalid(view) = 1356, b"HY000", "View '{view}' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack rights to use them";
    view_nonupd_check(view) = 1368, b"HY000", "CHECK OPTION on non-updatable view '{view}'";
    view_check_failed(view) = 1369, b"44000", "CHECK OPTION failed '{view}'";
    view_multiupdate(view) = 1393, b"HY000", "Can not modify more than one base table through a join view '{view}'";
    view_no_insert_field_list(view) = 1394, b"HY000", "Can not insert into join view '{view}' without fields list";
    view_delete_merge_view(view) = 1395, b"HY000", "Can not delete from join view '{view}'";
    no_default_for_view_field(view) = 1423, b"HY000", "Field of view '{view}' underlying table doesn't have a default value";
    view_prevent_update(view, verb, table) = 1443, b"HY000", "The definition of table '{view}' prevents operation {verb} on table '{table}'.";
    malformed_definer() = 1446, b"0L000", "Invalid definer";
    no_such_user(user, host) = 1449, b"HY000", "The user specified as a definer ('{user}'@'{host}') does not exist";
    forbid_schema_change(from, to) = 1450, b"HY000", "Changing schema from '{from}' to '{to}' is not allowed.";
    view_recursive(db, name) = 1462, b"HY000", "`{db}`.`{name}` contains view recursion";
    non_insertable_table(table, verb) = 1471, b"HY000", "The target table {table} of the {verb} is not insertable-into";
    non_updatable_table(table, verb) = 1288, b"HY000", "The target table {table} of the {verb} is not updatable";
    wrong_column_name(name) = 1166, b"42000", "Incorrect column name '{name}'";
    no_default_for_field(column) = 1364, b"HY000", "Field '{column}' doesn't have a default value";
    division_by_zero() = 1365, b"22012", "Division by 0";
    truncated_wrong_value_for_field(kind, value, column, row) = 1366, b"HY000", "Incorrect {kind} value: '{value}' for column '{column}' at row {row}";
    /// LOCAL without `local_infile`, or to a client that does not send files.
    stack_overrun() = 1436, b"HY000", "Thread stack overrun: the statement is nested too deeply";
    statement_timeout() = 1969, b"70100", "Query execution was interrupted (max_statement_time exceeded)";
    query_timeout() = 3024, b"HY000", "Query execution was interrupted, maximum statement execution time exceeded";
    local_files_disabled() = 3948, b"42000", "Loading local data is disabled; this must be enabled on both the client and server sides";
    illegal_value_for_type(kind, value) = 1367, b"22007", "Illegal {kind} '{value}' value found during parsing";
    xaer_nota() = 1397, b"XAE04", "XAER_NOTA: Unknown XID";
    xaer_inval() = 1398, b"XAE05", "XAER_INVAL: Invalid arguments (or unsupported command)";
    xaer_rmfail(state) = 1399, b"XAE07", "XAER_RMFAIL: The command cannot be executed when global transaction is in the  {state} state";
    xaer_outside() = 1400, b"XAE09", "XAER_OUTSIDE: Some work is done outside global transaction";
    xaer_rmerr() = 1401, b"XAE03", "XAER_RMERR: Fatal error occurred in the transaction branch - check your data for consistency";
    xa_rbrollback() = 1402, b"XA100", "XA_RBROLLBACK: Transaction branch was rolled back";
    data_too_long(column, row) = 1406, b"22001", "Data too long for column '{column}' at row {row}";
    column_does_not_exist_in_alter(column, table) = 1054, b"42S22", "Unknown column '{column}' in '{table}'";
    too_big_scale(scale, column, max) = 1425, b"42000", "Too big scale {scale} specified for column '{column}'. Maximum is {max}.";
    too_big_precision(precision, column, max) = 1426, b"42000", "Too-big precision {precision} specified for '{column}'. Maximum is {max}.";
    m_bigger_than_d(column) = 1427, b"42000", "For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{column}').";
    too_big_displaywidth(column, max) = 1439, b"42000", "Display width out of range for column '{column}' (max = {max})";
    xaer_dupid() = 1440, b"XAE08", "XAER_DUPID: The XID already exists";
    autoinc_read_failed() = 1467, b"HY000", "Failed to read auto-increment value from storage engine";
    cant_change_tx_characteristics() = 1568, b"25001", "Transaction characteristics can't be changed while a transaction is in progress";
    wrong_parameter_count_to_native_fct(name) = 1582, b"42000", "Incorrect parameter count in the call to native function '{name}'";
    dup_entry_autoincrement_case(entry, key) = 1569, b"23000", "ALTER TABLE causes auto_increment resequencing, resulting in duplicate entry '{entry}' for key '{key}'";
    xa_rbdeadlock() = 1614, b"XA102", "XA_RBDEADLOCK: Transaction branch was rolled back: deadlock was detected";
    data_out_of_range(kind, expression) = 1690, b"22003", "{kind} value is out of range in '{expression}'";
    cant_execute_in_read_only_transaction() = 1792, b"25006", "Cannot execute statement in a READ ONLY transaction.";
    read_only_mode() = 1836, b"HY000", "Running in read-only mode";
    memory_exceeded(bytes, name) = 3170, b"HY000", "Memory capacity of {bytes} bytes for '{name}' exceeded. The statement was given up.";
    lock_nowait() = 3572, b"HY000", "Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set.";
    cte_recursive_requires_union(table) = 3573, b"HY000", "Recursive Common Table Expression '{table}' should contain a UNION";
    cte_recursive_requires_nonrecursive_first(table) = 3574, b"HY000", "Recursive Common Table Expression '{table}' should have one or more non-recursive query blocks followed by one or more recursive ones";
    cte_recursive_forbids_aggregation(table) = 3575, b"HY000", "Recursive Common Table Expression '{table}' can contain neither aggregation nor window functions in recursive query block";
    cte_recursive_forbids_join_order(table) = 3576, b"HY000", "In recursive query block of Recursive Common Table Expression '{table}', the recursive table must neither be in the right argument of a LEFT JOIN, nor be forced to be non-first with join order hints";
    cte_recursive_requires_single_reference(table) = 3577, b"HY000", "In recursive query block of Recursive Common Table Expression '{table}', the recursive table must be referenced only once, and not in any subquery";
    binary_json() = 3144, b"22032", "Cannot create a JSON value from a string with CHARACTER SET 'binary'.";
    aggregate_order_for_union(number) = 3028, b"HY000", "Expression #{number} of ORDER BY contains aggregate function and applies to a UNION, EXCEPT or INTERSECT";
    aggregate_order_non_agg_query(number) = 3029, b"HY000", "Expression #{number} of ORDER BY contains aggregate function and applies to the result of a non-aggregated query";
    table_value_constructor_must_have_columns() = 3942, b"HY000", "Each row of a VALUES clause must have at least one column, unless when used as source in an INSERT statement.";
    table_value_constructor_cannot_have_default() = 3943, b"HY000", "A VALUES clause cannot use DEFAULT values, unless used as a source in an INSERT statement.";
    invalid_json_text(detail, position) = 3140, b"22032", "Invalid JSON text: \"{detail}\" at position {position}.";
    check_constraint_violated(name) = 3819, b"HY000", "Check constraint '{name}' is violated.";
    recursive_without_anchors(table) = 4005, b"HY000", "No anchors for recursive WITH element '{table}'";
    not_standard_compliant_recursive(table) = 4008, b"HY000", "Restrictions imposed on recursive definitions are violated for table '{table}'";
    table_must_have_a_visible_column() = 4028, b"HY000", "A table must have at least one visible column.";
    /// A failure below SQL that the client can do nothing about; details go to the log.
    internal(detail) = 1815, b"HY000", "Internal error: {detail}";
    /// The storage engine failed.
    get_errno(detail) = 1030, b"HY000", "Got error {detail} from storage engine";
    /// The log is poisoned or the server is stopping.
    server_shutdown() = 1053, b"08S01", "Server shutdown in progress";
}

impl SqlError {
    /// 1298. A machine without zone files knows offsets and UTC only, and says so.
    #[must_use]
    pub fn unknown_time_zone(name: &str) -> SqlError {
        let hint = match omnibus_value::temporal::Zone::no_files() {
            true => " (the server's machine has no time zone files: install tzdata, or use an offset)",
            false => "",
        };
        SqlError::new(1298, b"HY000", format!("Unknown or incorrect time zone: '{name}'{hint}"))
    }

    /// An error with a message of the caller's own.
    #[must_use]
    pub fn new(code: u16, state: &[u8; 5], message: impl Into<String>) -> SqlError {
        SqlError { code, state: *state, message: message.into() }
    }

    /// Whether it says that a limit of memory was met: `SqlError::memory_exceeded`.
    #[must_use]
    pub fn is_memory_exceeded(&self) -> bool {
        self.code == 3170
    }

    /// Whether both are the same condition. Of a long message the diagnostics area has the first part only.
    #[must_use]
    pub fn is_same(&self, other: &SqlError) -> bool {
        (self.code, self.state) == (other.code, other.state)
            && diagnostics::kept(&self.message) == diagnostics::kept(&other.message)
    }
}

/// No error of MySQL's: planning is too long for an async worker.
const NEEDS_BLOCKING: u16 = 0;

impl SqlError {
    /// The error that becomes [`Interrupt::NeedBlocking`] where a statement runs. Planning has no other way to say it.
    pub(crate) fn needs_blocking() -> SqlError {
        SqlError::new(NEEDS_BLOCKING, b"HY000", "To be run where it may block")
    }

    /// Whether this is about the statement that runs and not about what it looks at: it is to be run where it may block, or was
    /// killed, or has had its time.
    pub(crate) fn is_of_the_statement(&self) -> bool {
        matches!(self.code, NEEDS_BLOCKING | 1317 | 1969 | 3024)
    }

    /// The error of a commit that failed: 1180, or 1021 where there was no room.
    #[must_use]
    pub fn of_commit(error: omnibus_commit::CommitError) -> SqlError {
        match error {
            omnibus_commit::CommitError::DiskFull(what) => SqlError::disk_full(what),
            other => SqlError::error_during_commit(other),
        }
    }

    /// 1021: what was being written, and where.
    #[must_use]
    pub fn disk_full(what: impl std::fmt::Display) -> SqlError {
        SqlError::new(1021, b"HY000", format!("Disk full ({what}); free some space and try again"))
    }

    /// Whether it is that.
    #[must_use]
    pub fn is_needs_blocking(&self) -> bool {
        self.code == NEEDS_BLOCKING
    }
}

/// Whether there was no room: `SqlError::disk_full`.
#[must_use]
pub fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

impl From<omnibus_engine::EngineError> for SqlError {
    fn from(error: omnibus_engine::EngineError) -> SqlError {
        tracing::error!(%error, "storage engine failed under a statement");
        match &error {
            _ if error.is_full() => SqlError::disk_full(error),
            omnibus_engine::EngineError::Spill(source) => {
                SqlError::new(1026, b"HY000", format!("Error writing file in tmpdir ({source})"))
            }
            _ => SqlError::get_errno(error),
        }
    }
}

/// A statement of a procedure for the server.
#[derive(Debug)]
pub struct ServerStatement {
    /// Its tree.
    pub statement: Arc<Spanned<Statement>>,
    /// Its text.
    pub text: bytes::Bytes,
    /// In whose name it is run, if not in the client's: user and host.
    pub account: Option<(String, String)>,
}

/// Why a statement stopped before its end. Everything but `Error` means "run it again".
#[derive(Debug)]
pub enum Interrupt {
    /// It failed; its effects are undone.
    Error(SqlError),
    /// Inline mode met a row lock or metadata lock that is taken. Await it, then execute again
    /// from the start; the statement's effects are undone, its locks are kept.
    LockWait(omnibus_locks::LockWait),
    /// Too much work or too many waits for inline mode: run it again in `Mode::Blocking`.
    NeedBlocking,
    /// A procedure has come to a statement that the server executes: do so, hand its result to
    /// [`crate::SqlSession::answer`], and execute again.
    Server(Box<ServerStatement>),
    /// LOAD DATA LOCAL: get the client's file of this name, hand it over with
    /// [`crate::SqlSession::supply_file`], and execute again.
    NeedFile(bytes::Bytes),
}

impl From<SqlError> for Interrupt {
    fn from(error: SqlError) -> Interrupt {
        if error.code == NEEDS_BLOCKING { Interrupt::NeedBlocking } else { Interrupt::Error(error) }
    }
}

impl From<omnibus_engine::EngineError> for Interrupt {
    fn from(error: omnibus_engine::EngineError) -> Interrupt {
        Interrupt::Error(error.into())
    }
}

/// Result of executing anything that may meet a lock.
pub type ExecResult<T> = Result<T, Interrupt>;
