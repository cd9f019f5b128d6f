//! Tables whose rows the server makes: statements by digest, threads, what they run, their transactions, who waits for whom.
//!
//! Their columns are those of `empty.txt`, MySQL's. The server (`SessionHost::monitoring`) names the columns that it has something
//! to say of; the others are 0 where they count and NULL elsewhere.

use super::computed::{Reader, Ty};
use super::{empty, usage};
use crate::error::ExecResult;
use omnibus_value::Value;

/// A function that computes a table's rows.
pub(super) type Rows = fn(&mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>>;

macro_rules! hosted {
    ($($name:ident)*) => {
        $(fn $name(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
            rows(reader, stringify!($name))
        })*
        /// By name.
        pub(super) const TABLES: &[(&str, Rows)] = &[
            $((stringify!($name), $name),)*
            ("INNODB_TRX", innodb_trx),
            ("OMNIBUS_OLD_VERSIONS", omnibus_old_versions),
            ("INNODB_LOCKS", innodb_locks),
            ("INNODB_LOCK_WAITS", innodb_lock_waits),
            ("table_io_waits_summary_by_table", usage::table_io_waits_summary_by_table),
            ("table_io_waits_summary_by_index_usage", usage::table_io_waits_summary_by_index_usage),
        ];
    };
}

hosted! {
    accounts
    events_statements_summary_by_account_by_event_name
    events_statements_summary_by_host_by_event_name
    events_statements_summary_by_user_by_event_name
    hosts
    users
    binary_log_transaction_compression_stats
    data_lock_waits
    data_locks
    events_stages_current
    events_statements_current
    events_transactions_current
    events_transactions_history
    events_statements_summary_by_digest
    events_waits_summary_global_by_event_name
    file_summary_by_event_name
    file_summary_by_instance
    memory_summary_by_account_by_event_name
    memory_summary_by_host_by_event_name
    memory_summary_by_thread_by_event_name
    memory_summary_by_user_by_event_name
    memory_summary_global_by_event_name
    metadata_locks
    persisted_variables
    session_account_connect_attrs
    session_connect_attrs
    setup_actors
    setup_consumers
    setup_instruments
    setup_objects
    setup_threads
    threads
}

fn innodb_trx(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    in_zone(reader, "INNODB_TRX")
}

fn omnibus_old_versions(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    in_zone(reader, "OMNIBUS_OLD_VERSIONS")
}

/// Rows whose times are the session's zone's.
fn in_zone(reader: &mut Reader<'_, '_>, name: &'static str) -> ExecResult<Vec<Vec<Value>>> {
    let mut rows = rows(reader, name)?;
    for value in rows.iter_mut().flatten() {
        if let Value::DateTime(at) = value {
            *at = reader.cx.to_local(*at);
        }
    }
    Ok(rows)
}

fn innodb_locks(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    rows(reader, "INNODB_LOCKS")
}

fn innodb_lock_waits(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    rows(reader, "INNODB_LOCK_WAITS")
}

fn rows(reader: &mut Reader<'_, '_>, name: &'static str) -> ExecResult<Vec<Vec<Value>>> {
    let given = reader.cx.session.connection.host.monitoring(name)?;
    Ok(filled(name, given))
}

/// Rows of which only some columns are given, as whole ones.
pub(super) fn filled(name: &str, given: Vec<Vec<(&'static str, Value)>>) -> Vec<Vec<Value>> {
    // No two schemas have a table of one name here.
    let Some(def) = empty::tables().find(|def| def.name == name) else { return Vec::new() };
    let row = |mut given: Vec<(&'static str, Value)>| {
        let value = |(name, ty): &(&str, Ty)| match given.iter().position(|(column, _)| column == name) {
            Some(at) => given.swap_remove(at).1,
            None if matches!(ty, Ty::UInt | Ty::UInt4) && !name.ends_with("_ID") => Value::UInt(0),
            None => Value::Null,
        };
        def.columns.iter().map(value).collect()
    };
    given.into_iter().map(row).collect()
}
