//! SET of variables that do something: `gtid_purged`, `gtid_binlog_state`, `gtid_next`, and of those that say the next id in MariaDB's dialect.
//!
//! On the session's task; what rotates the log runs where it may block.

use super::Admin;
use crate::errors::malformed_gtid_set;
use crate::gtid::error;
use crate::server::Server;
use crate::sysvars::{VarDef, VarValue};
use omnibus_commit::{Ownership, SetGtidsError};
use omnibus_format::{AnyGtid, BinlogState, GtidMode, GtidSet, Origin, Tag};
use omnibus_sql::{GivenGtid, SqlError, SqlResult};

/// Sets one of them.
pub(crate) async fn set_special(admin: &mut Admin<'_>, def: &VarDef, value: &VarValue) -> SqlResult<()> {
    match def.name {
        "gtid_next" => set_gtid_next(admin, value.as_str()).await,
        "gtid_purged" => crate::net::blocking(|| set_gtid_purged(admin.server, value.as_str())),
        _ => crate::net::blocking(|| set_binlog_state(admin.server, value.as_str())),
    }
}

fn set_gtid_purged(server: &Server, text: &str) -> SqlResult<()> {
    let coordinator = server.log.coordinator().ok_or_else(|| error(1290, "no binary log"))?;
    let (add, plain) = match text.trim().strip_prefix('+') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let set: GtidSet = plain.parse().map_err(|_| malformed_gtid_set(text))?;
    coordinator.gtids().set_purged(&set, add).map_err(|failed| match failed {
        SetGtidsError::Overlaps | SetGtidsError::Owned | SetGtidsError::NotSuperset => {
            error(3546, format!("@@GLOBAL.GTID_PURGED cannot be changed: {failed}"))
        }
        other => error(1026, format!("Error writing the binary log: {other}")),
    })
}

fn set_binlog_state(server: &Server, text: &str) -> SqlResult<()> {
    let coordinator = server.log.coordinator().ok_or_else(|| error(1290, "no binary log"))?;
    let state: BinlogState = text.parse().map_err(|_| bad_list())?;
    coordinator.gtids().set_binlog_state(state).map_err(|failed| match failed {
        SetGtidsError::NotEmpty => error(
            1956,
            "This operation is not allowed if any GTID has been logged to the binary log. Run RESET MASTER first to erase the log",
        ),
        other => error(1026, format!("Error writing the binary log: {other}")),
    })
}

async fn set_gtid_next(admin: &mut Admin<'_>, text: &str) -> SqlResult<()> {
    if admin.sql.in_transaction() {
        return Err(error(
            1766,
            "The system variable gtid_next cannot be set when there is an ongoing transaction.",
        ));
    }
    let text = text.trim();
    if text.eq_ignore_ascii_case("AUTOMATIC") {
        admin.settings.anonymous = None;
        return give(admin, GivenGtid::Automatic, "AUTOMATIC");
    }
    if let Some(tag) = automatic_tag(text) {
        let tag: Tag =
            tag.parse().map_err(|_| error(1774, format!("Malformed GTID specification '{text}'.")))?;
        let mode = admin.server.log.coordinator().map(|coordinator| coordinator.gtids().mode());
        if mode == Some(GtidMode::Off) {
            return Err(off("AUTOMATIC:TAG"));
        }
        admin.settings.anonymous = None;
        return give(admin, GivenGtid::Automatic, &format!("AUTOMATIC:{tag}"));
    }
    if text.eq_ignore_ascii_case("ANONYMOUS") {
        let coordinator = admin.server.log.coordinator();
        let guard = coordinator.and_then(|coordinator| coordinator.gtids().own_anonymity());
        let guard = guard.ok_or_else(|| {
            error(1782, "@@SESSION.GTID_NEXT cannot be set to ANONYMOUS when @@GLOBAL.GTID_MODE = ON.")
        })?;
        give(admin, GivenGtid::Automatic, "ANONYMOUS")?;
        admin.settings.anonymous = Some(guard);
        return Ok(());
    }
    let gtid = AnyGtid::parse_mysql(text)
        .ok_or_else(|| error(1774, format!("Malformed GTID specification '{text}'.")))?;
    // What was owned before is given back first: it may be this one.
    give(admin, GivenGtid::Automatic, "AUTOMATIC")?;
    admin.settings.anonymous = None;
    let given = own(admin, gtid).await?;
    give(admin, given, &gtid.to_string())
}

/// Takes an id, or learns that its transaction is over; waits for another session that has it.
async fn own(admin: &mut Admin<'_>, gtid: AnyGtid) -> SqlResult<GivenGtid> {
    let Some(coordinator) = admin.server.log.coordinator().cloned() else {
        return Ok(GivenGtid::Automatic);
    };
    loop {
        match coordinator.gtids().own(gtid) {
            Ownership::Owned(guard) => {
                let server_id = admin.sql.state.settings.server_id;
                let origin = Origin { gtid: Some(gtid), server_id, ..Origin::default() };
                return Ok(GivenGtid::Owned { origin, guard });
            }
            Ownership::Executed(no) => {
                coordinator.wait_published(no).await.map_err(SqlError::of_commit)?;
                return Ok(GivenGtid::Executed(gtid));
            }
            Ownership::Off => {
                return Err(off("UUID:NUMBER"));
            }
            Ownership::Busy(ticket) => {
                tokio::select! {
                    result = ticket => drop(result),
                    () = admin.client.process.killed.notified() => {}
                }
                admin.client.process.kill.check()?;
            }
        }
    }
}

fn give(admin: &mut Admin<'_>, given: GivenGtid, shown: &str) -> SqlResult<()> {
    admin.sql.gtid_next().give(given)?;
    admin.settings.shared.vars.lock().set_named("gtid_next", VarValue::Str(shown.into()));
    admin.apply_settings();
    Ok(())
}

/// 1941.
fn bad_list() -> SqlError {
    error(1941, "Could not parse GTID list")
}

/// 1781.
fn off(what: &str) -> SqlError {
    error(1781, format!("@@SESSION.GTID_NEXT cannot be set to {what} when @@GLOBAL.GTID_MODE = OFF."))
}

/// The tag behind `AUTOMATIC:`.
fn automatic_tag(text: &str) -> Option<&str> {
    let (word, tag) = text.split_once(':')?;
    word.trim().eq_ignore_ascii_case("AUTOMATIC").then(|| tag.trim())
}
