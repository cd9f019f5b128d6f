//! One file per event family: a struct with `decode(body)` and `encode(&mut Vec<u8>)`.
//!
//! Bodies exclude the common header and the checksum. Structs borrow from the body they were
//! decoded from. Events without a struct here are passed through as raw bytes (`scan::RawEvent`).

mod format_description;
mod gtid;
mod gtid_tagged;
mod load;
mod mariadb;
mod old;
mod previous_gtids;
mod query;
mod rows;
mod small;
mod status_vars;
mod table_map;
mod table_metadata;
mod user_var;

pub use format_description::FormatDescription;
pub use gtid::{Gtid, GtidTimes, SERVER_VERSION_NUMBER};
pub use load::{BeginLoadQuery, ExecuteLoadQuery};
pub use mariadb::{AlterPhase, MariadbGtid, MariadbGtidEvent, MariadbGtidList};
pub use old::{Modern, OldLoad, SlaveStart, StartV3};
pub use previous_gtids::PreviousGtids;
pub use query::Query;
pub use rows::{
    ROWS_FLAG_FOREIGN_KEYS_ARE_KEPT, ROWS_FLAG_NO_FOREIGN_KEY_CHECKS, ROWS_FLAG_RELAXED_UNIQUE_CHECKS,
    ROWS_FLAG_STMT_END, Rows, RowsKind, put_rows_header,
};
pub use small::{
    Heartbeat, INTVAR_INSERT_ID, INTVAR_LAST_INSERT_ID, Incident, IntVar, Rand, Rotate, RowsQuery, XaPrepare,
    Xid,
};
pub use status_vars::{StatusVars, flags2};
pub use table_map::{ColumnMetadata, OptionalMetadata, PrimaryKeyPart, TableMap};
pub use user_var::{UserVar, UserVarValue};
