//! Global transaction ids as clients meet them: variables that are computed or do something when they are set, and the
//! functions over sets and positions. Sessions' tasks call this; what blocks says so.
//!
//! Not here: what an id is (`omnibus_format`), which one a transaction gets (`omnibus_commit`).

mod functions;
mod mode;
mod tables;

pub(crate) use functions::{Context, Goal, LOOK, call, shown_wait, wish};
pub(crate) use mode::ModeContext;
pub(crate) use tables::table;

use crate::sysvars::VarValue;
use omnibus_commit::Coordinator;
use omnibus_engine::CommitNo;
use omnibus_format::{AnyGtid, GtidPosition};
use omnibus_sql::SqlError;

pub(crate) fn error(code: u16, message: impl Into<String>) -> SqlError {
    SqlError::new(code, b"HY000", message.into())
}

/// Ids in a list, as text.
fn join(list: &[AnyGtid]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// The value of a variable of ids that is not kept but known. `last` is the session's last commit.
#[must_use]
pub fn computed(
    coordinator: &Coordinator,
    name: &str,
    slave_pos: impl Fn() -> String,
    last: u64,
) -> Option<VarValue> {
    if !name.contains("gtid") {
        return None;
    }
    let text = match name {
        "gtid_owned" => join(&coordinator.gtids().owned()),
        "gtid_binlog_pos" => coordinator.gtids().state().to_string(),
        "gtid_binlog_state" => coordinator.gtids().binlog_state().to_string(),
        "gtid_current_pos" => current_position(coordinator, &slave_pos()).to_string(),
        "last_gtid" => {
            coordinator.gtids().of(CommitNo(last)).map_or_else(String::new, |gtid| gtid.to_string())
        }
        _ => return None,
    };
    Some(VarValue::Str(text.into()))
}

/// `gtid_current_pos`: what was applied from sources, and in each domain what was committed here after that.
fn current_position(coordinator: &Coordinator, slave_pos: &str) -> GtidPosition {
    let mut position: GtidPosition = slave_pos.parse().unwrap_or_default();
    let server_id = coordinator.log().server_id();
    for gtid in coordinator.gtids().binlog_state().position().0.into_values() {
        let behind = position.get(gtid.domain).is_none_or(|applied| applied.sequence < gtid.sequence);
        if gtid.server == server_id && behind {
            position.set(gtid);
        }
    }
    position
}
