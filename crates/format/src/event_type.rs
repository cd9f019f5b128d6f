//! Event type codes: MySQL 8.4 (1-42) and MariaDB (160-169), and their printable names.

/// An event's type code. Unknown codes are kept, never refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventType(pub u8);

macro_rules! event_types {
    ($($name:ident = $code:literal $text:literal)*) => {
        #[allow(missing_docs)] // The names are MySQL's own; see `name`.
        impl EventType {
            $(pub const $name: EventType = EventType($code);)*

            /// The name that SHOW BINLOG EVENTS and mysqlbinlog print.
            pub fn name(self) -> &'static str {
                match self.0 {
                    $($code => $text,)*
                    _ => "Unknown",
                }
            }
        }
    };
}

event_types! {
    START_V3 = 1 "Start_v3"
    QUERY = 2 "Query"
    STOP = 3 "Stop"
    ROTATE = 4 "Rotate"
    INTVAR = 5 "Intvar"
    LOAD = 6 "Load"
    SLAVE = 7 "Slave"
    CREATE_FILE = 8 "Create_file"
    APPEND_BLOCK = 9 "Append_block"
    EXEC_LOAD = 10 "Exec_load"
    DELETE_FILE = 11 "Delete_file"
    NEW_LOAD = 12 "New_load"
    RAND = 13 "RAND"
    USER_VAR = 14 "User_var"
    FORMAT_DESCRIPTION = 15 "Format_desc"
    XID = 16 "Xid"
    BEGIN_LOAD_QUERY = 17 "Begin_load_query"
    EXECUTE_LOAD_QUERY = 18 "Execute_load_query"
    TABLE_MAP = 19 "Table_map"
    PRE_GA_WRITE_ROWS = 20 "Write_rows_event_old"
    PRE_GA_UPDATE_ROWS = 21 "Update_rows_event_old"
    PRE_GA_DELETE_ROWS = 22 "Delete_rows_event_old"
    WRITE_ROWS_V1 = 23 "Write_rows_v1"
    UPDATE_ROWS_V1 = 24 "Update_rows_v1"
    DELETE_ROWS_V1 = 25 "Delete_rows_v1"
    INCIDENT = 26 "Incident"
    HEARTBEAT = 27 "Heartbeat"
    IGNORABLE = 28 "Ignorable"
    ROWS_QUERY = 29 "Rows_query"
    WRITE_ROWS = 30 "Write_rows"
    UPDATE_ROWS = 31 "Update_rows"
    DELETE_ROWS = 32 "Delete_rows"
    GTID = 33 "Gtid"
    ANONYMOUS_GTID = 34 "Anonymous_Gtid"
    PREVIOUS_GTIDS = 35 "Previous_gtids"
    TRANSACTION_CONTEXT = 36 "Transaction_context"
    VIEW_CHANGE = 37 "View_change"
    XA_PREPARE = 38 "XA_prepare"
    PARTIAL_UPDATE_ROWS = 39 "Update_rows_partial"
    TRANSACTION_PAYLOAD = 40 "Transaction_payload"
    HEARTBEAT_V2 = 41 "Heartbeat"
    GTID_TAGGED = 42 "Gtid_tagged_log_event"
    MARIADB_ANNOTATE_ROWS = 160 "Annotate_rows"
    MARIADB_BINLOG_CHECKPOINT = 161 "Binlog_checkpoint"
    MARIADB_GTID = 162 "Gtid"
    MARIADB_GTID_LIST = 163 "Gtid_list"
    MARIADB_START_ENCRYPTION = 164 "Start_encryption"
    MARIADB_QUERY_COMPRESSED = 165 "Query_compressed"
    MARIADB_WRITE_ROWS_COMPRESSED_V1 = 166 "Write_rows_compressed_v1"
    MARIADB_UPDATE_ROWS_COMPRESSED_V1 = 167 "Update_rows_compressed_v1"
    MARIADB_DELETE_ROWS_COMPRESSED_V1 = 168 "Delete_rows_compressed_v1"
    MARIADB_WRITE_ROWS_COMPRESSED = 169 "Write_rows_compressed"
    MARIADB_UPDATE_ROWS_COMPRESSED = 170 "Update_rows_compressed"
    MARIADB_DELETE_ROWS_COMPRESSED = 171 "Delete_rows_compressed"
}

impl EventType {
    /// Returns whether this is a WRITE, UPDATE (also partial) or DELETE rows event, version 1, 2 or older,
    /// uncompressed.
    pub fn is_rows(self) -> bool {
        matches!(self.0, 20..=25 | 30..=32 | 39)
    }
}
