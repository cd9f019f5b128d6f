//! `gtid_mode` and replication channels: which of them need GTIDs, and what a transaction may come with.
//!
//! MySQL's rules, of logs in its dialect: a source and a replica may differ by one step, a channel with SOURCE_AUTO_POSITION
//! never takes an anonymous transaction, and with ON none is left anonymous: the channel says what it gets
//! (ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS), or it stops. Transactions of MariaDB have GTIDs, though not the log's: they are
//! named as new ones are. A log in MariaDB's dialect names all.

use super::Replicas;
use super::applying::Applying;
use omnibus_commit::Coordinator;
use omnibus_format::{AnyGtid, Dialect, GtidMode};
use omnibus_replication::replica::{AssignGtids, ChannelConfig, Received, Refusal};
use omnibus_sql::{SqlError, SqlResult};

/// Our mode, if our log is one that knows modes.
pub(super) fn mode_of(coordinator: &Coordinator) -> Option<GtidMode> {
    (coordinator.log().dialect() == Dialect::Mysql).then(|| coordinator.gtids().mode())
}

/// CHANGE REPLICATION SOURCE TO: whether the server's mode and the channel's options go together.
pub(super) fn check(config: &ChannelConfig, mode: Option<GtidMode>) -> SqlResult<()> {
    let refuse = |code, message: &str| Err(SqlError::new(code, b"HY000", message.to_owned()));
    let assigns = config.assign_gtids != AssignGtids::Off;
    if config.auto_position && mode == Some(GtidMode::Off) {
        return refuse(
            1777,
            "CHANGE REPLICATION SOURCE TO SOURCE_AUTO_POSITION = 1 cannot be executed because @@GLOBAL.GTID_MODE = OFF.",
        );
    }
    if assigns && config.auto_position {
        return refuse(
            4014,
            "The options ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL or a UUID and SOURCE_AUTO_POSITION = 1 cannot be used \
             together: a source with SOURCE_AUTO_POSITION sends no anonymous transactions.",
        );
    }
    if assigns && mode.is_some_and(|mode| mode != GtidMode::On) {
        return refuse(
            4015,
            "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = LOCAL or a UUID requires @@GLOBAL.GTID_MODE = ON.",
        );
    }
    Ok(())
}

/// START REPLICA, of the receiver.
pub(super) fn check_start(config: &ChannelConfig, name: &str, mode: Option<GtidMode>) -> SqlResult<()> {
    if config.auto_position && mode == Some(GtidMode::Off) {
        let channel = if name.is_empty() { String::new() } else { format!(" for channel '{name}'") };
        let message = format!(
            "The replication receiver thread{channel} cannot start in AUTO_POSITION mode: this server uses \
             @@GLOBAL.GTID_MODE = OFF."
        );
        return Err(SqlError::new(3112, b"HY000", message));
    }
    Ok(())
}

impl Replicas {
    /// Why `gtid_mode` may not become `new`, for a channel's sake.
    pub(crate) fn needs_gtids(&self, new: GtidMode) -> Option<String> {
        for channel in self.all() {
            let (config, name) = (channel.config(), channel.name());
            if new == GtidMode::Off && config.auto_position {
                return Some(format!(
                    "replication channel '{name}' is configured in AUTO_POSITION mode. Execute CHANGE REPLICATION SOURCE \
                     TO SOURCE_AUTO_POSITION = 0 FOR CHANNEL '{name}' before you set @@GLOBAL.GTID_MODE = OFF"
                ));
            }
            if new != GtidMode::On && config.assign_gtids != AssignGtids::Off {
                return Some(format!(
                    "replication channel '{name}' assigns GTIDs to anonymous transactions. Execute CHANGE REPLICATION \
                     SOURCE TO ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS = OFF FOR CHANNEL '{name}' first"
                ));
            }
        }
        None
    }
}

impl Replicas {
    /// SET GLOBAL sql_replica_skip_counter. Under ON a transaction that has a GTID must be accounted for by that, so the
    /// counter is for channels whose transactions come without one of our kind.
    pub(crate) fn check_skip_counter(&self) -> SqlResult<()> {
        let without = |channel: &std::sync::Arc<super::channel::Channel>| {
            let status = channel.look().0;
            let mariadb = !status.applied.gtids.0.is_empty() || status.source_version.contains("MariaDB");
            mariadb || channel.config().assign_gtids != AssignGtids::Off
        };
        if mode_of(&self.env.coordinator) != Some(GtidMode::On) || self.all().iter().any(without) {
            return Ok(());
        }
        Err(SqlError::new(
            1858,
            b"HY000",
            "sql_replica_skip_counter can not be set when the server is running with @@GLOBAL.GTID_MODE = ON. Instead, for \
             each transaction that you want to skip, commit an empty one with its GTID: SET gtid_next = 'its GTID'; BEGIN; \
             COMMIT; SET gtid_next = 'AUTOMATIC'",
        ))
    }
}

impl Applying {
    /// Why a transaction cannot be applied with the GTID that it has, or without one: the error's number and text.
    pub(super) fn refusal(&self, received: &Received) -> Option<(u16, String)> {
        let (code, what) = refusal(mode_of(&self.env.coordinator), &self.plan.config, received.trx.gtid)?;
        let at = &received.start;
        Some((code, format!("{what}, at file {}, position {}.", at.file, at.position)))
    }
}

/// Why a channel cannot take a transaction with the GTID that it has, or without one. The receiver asks; the applier again,
/// because the mode may have changed since.
pub(super) fn refusal(
    mode: Option<GtidMode>,
    config: &ChannelConfig,
    gtid: Option<AnyGtid>,
) -> Option<Refusal> {
    let mode = mode?;
    match gtid {
        Some(AnyGtid::Mysql { .. }) if mode == GtidMode::Off => {
            Some((3115, "Cannot replicate GTID-transaction when @@GLOBAL.GTID_MODE = OFF"))
        }
        None if config.auto_position => {
            Some((3113, "Cannot replicate anonymous transaction when AUTO_POSITION = 1"))
        }
        None if mode == GtidMode::On && config.assign_gtids == AssignGtids::Off => {
            Some((3114, "Cannot replicate anonymous transaction when @@GLOBAL.GTID_MODE = ON"))
        }
        _ => None,
    }
}
