//! `mysql.gtid_executed` and `mysql.gtid_slave_pos`: sets and positions as rows, for those who read them there.
//!
//! Computed when they are read, so there is nothing to compress or to clean up. Each is known in its own dialect only.
//! On the thread of the statement; does not block.

use crate::log_admin::LogAdmin;
use omnibus_format::{Dialect, GtidPosition, GtidSet};
use omnibus_sql::{SqlError, SqlResult};
use omnibus_value::Value;

type Rows = Vec<Vec<Value>>;

/// The rows of one of the two; `None` for any other table.
pub(crate) fn table(
    log: &dyn LogAdmin,
    slave_pos_text: impl Fn() -> String,
    name: &str,
) -> Option<SqlResult<Rows>> {
    let mysql = log.dialect() == Dialect::Mysql;
    let rows = match (name, mysql) {
        ("gtid_executed", true) => executed(&log.gtid_executed().parse().unwrap_or_default()),
        ("gtid_slave_pos", false) => slave_pos(slave_pos_text().parse().unwrap_or_default()),
        ("gtid_executed" | "gtid_slave_pos", _) => return Some(Err(SqlError::no_such_table("mysql", name))),
        _ => return None,
    };
    Some(Ok(rows))
}

fn executed(set: &GtidSet) -> Rows {
    let text = |text: String| Value::Bytes(text.into());
    let rows = set.iter().flat_map(|(source, intervals)| {
        intervals.iter().map(move |interval| {
            let (first, last) = (Value::Int(interval.start as i64), Value::Int(interval.end as i64 - 1));
            vec![text(source.uuid.to_string()), first, last, text(source.tag.to_string())]
        })
    });
    rows.collect()
}

fn slave_pos(position: GtidPosition) -> Rows {
    let row = |(at, gtid): (usize, omnibus_format::events::MariadbGtid)| {
        let domain = Value::UInt(gtid.domain.into());
        vec![domain, Value::UInt(at as u64 + 1), Value::UInt(gtid.server.into()), Value::UInt(gtid.sequence)]
    };
    position.0.into_values().enumerate().map(row).collect()
}
