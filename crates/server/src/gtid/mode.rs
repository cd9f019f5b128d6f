//! SET GLOBAL of `gtid_mode` and `enforce_gtid_consistency`: what must hold first, in MySQL's words.
//!
//! Every statement here is consistent with GTIDs, whatever the engine and the format: a transaction is one group of the log,
//! CREATE TABLE ... SELECT is a definition and rows, and temporary tables are rows. So `enforce_gtid_consistency` refuses
//! nothing and warns of nothing; only its rule with `gtid_mode` is kept. On the task that sets; blocks for a new log file.

use super::error;
use crate::replica::Replicas;
use crate::sysvars::{GlobalVars, VarValue};
use omnibus_commit::{Coordinator, GtidModeError};
use omnibus_format::GtidMode;
use omnibus_sql::SqlResult;

/// The state that the modes depend on.
pub(crate) struct ModeContext<'a> {
    pub(crate) globals: &'a GlobalVars,
    /// None: there is no log.
    pub(crate) coordinator: Option<&'a Coordinator>,
    /// This server's channels as a replica.
    pub(crate) replicas: Option<&'a Replicas>,
}

impl ModeContext<'_> {
    /// Before a server's variable gets its value. Of other variables it knows nothing.
    pub(crate) fn before_set(&self, name: &str, value: &VarValue) -> SqlResult<()> {
        match name {
            "gtid_mode" => self.set_mode(GtidMode::from_name(value.as_str()).unwrap_or_default()),
            "enforce_gtid_consistency" if value.as_str() != "ON" && self.is_on("gtid_mode") => {
                Err(error(1779, "GTID_MODE = ON requires ENFORCE_GTID_CONSISTENCY = ON."))
            }
            _ => Ok(()),
        }
    }

    fn is_on(&self, name: &str) -> bool {
        self.globals.named(name).as_str() == "ON"
    }

    fn set_mode(&self, new: GtidMode) -> SqlResult<()> {
        let Some(coordinator) = self.coordinator else { return Ok(()) };
        if !new.is_a_step_from(coordinator.gtids().mode()) {
            return Err(failed(new, &GtidModeError::NotAStep));
        }
        if new == GtidMode::On && !self.is_on("enforce_gtid_consistency") {
            return Err(not_allowed(new, "ENFORCE_GTID_CONSISTENCY is not ON"));
        }
        if let Some(why) = self.replicas.and_then(|replicas| replicas.needs_gtids(new)) {
            return Err(not_allowed(new, &why));
        }
        crate::net::blocking(|| coordinator.gtids().change_mode(new)).map_err(|why| failed(new, &why))
    }
}

/// 3111.
fn not_allowed(new: GtidMode, why: &str) -> omnibus_sql::SqlError {
    error(3111, format!("SET @@GLOBAL.GTID_MODE = {new} is not allowed because {why}."))
}

fn failed(new: GtidMode, why: &GtidModeError) -> omnibus_sql::SqlError {
    match why {
        GtidModeError::NotAStep => error(
            1788,
            "The value of @@GLOBAL.GTID_MODE can only be changed one step at a time: OFF <-> OFF_PERMISSIVE <-> \
             ON_PERMISSIVE <-> ON. Also note that this value must be stepped up or down simultaneously on all servers.",
        ),
        GtidModeError::Anonymous => not_allowed(
            new,
            "there are ongoing anonymous transactions. Before setting @@GLOBAL.GTID_MODE = ON, wait until SHOW STATUS \
             LIKE 'ONGOING_ANONYMOUS_TRANSACTION_COUNT' shows zero on all servers",
        ),
        GtidModeError::Owned => not_allowed(
            new,
            "there are ongoing transactions that have a GTID. Before you set @@GLOBAL.GTID_MODE = OFF, wait until \
             SELECT @@GLOBAL.GTID_OWNED returns the empty string",
        ),
        GtidModeError::Awaited => not_allowed(
            new,
            "there are ongoing calls to WAIT_FOR_EXECUTED_GTID_SET. Before you set @@GLOBAL.GTID_MODE = OFF, wait until \
             all other clients have stopped waiting for GTIDs",
        ),
        other => error(1026, format!("Error writing the binary log: {other}")),
    }
}
