//! START REPLICA, STOP REPLICA, RESET REPLICA.

use super::Replicas;
use super::change::channel_name;
use super::channel::{Channel, Login};
use omnibus_parser::ast::{SourceValue, StartReplica, StopReplica};
use omnibus_replication::replica::{SourcePosition, Until};
use omnibus_sql::{SqlError, SqlResult};
use std::cmp::Ordering;
use std::sync::Arc;

fn string(value: &SourceValue) -> String {
    match value {
        SourceValue::Str(s) => String::from_utf8_lossy(s).into_owned(),
        SourceValue::Int(n) => n.to_string(),
        SourceValue::Word(word) => word.to_string(),
        SourceValue::Decimal(text) => String::from_utf8_lossy(text).into_owned(),
        SourceValue::Ids(_) => String::new(),
    }
}

fn until_of(start: &StartReplica) -> SqlResult<Option<Until>> {
    let bad = || {
        SqlError::new(
            1277,
            b"HY000",
            "Incorrect parameter or combination of parameters for START REPLICA UNTIL",
        )
    };
    let get = |name: &str| start.until.iter().find(|(n, _)| **n == *name).map(|(_, value)| string(value));
    let gtids = |text: String| text.parse().map_err(|_| crate::errors::malformed_gtid_set(&text));
    let mut found = Vec::new();
    match (get("SOURCE_LOG_FILE"), get("SOURCE_LOG_POS")) {
        (Some(file), Some(position)) => {
            let position = position.parse().map_err(|_| bad())?;
            found.push(Until::Source(SourcePosition::new(&file, position)));
        }
        (None, None) => {}
        _ => return Err(bad()),
    }
    if let Some(text) = get("SQL_BEFORE_GTIDS") {
        found.push(Until::BeforeGtids(gtids(text)?));
    }
    if let Some(text) = get("SQL_AFTER_GTIDS") {
        found.push(Until::AfterGtids(gtids(text)?));
    }
    if get("SQL_AFTER_MTS_GAPS").is_some() {
        found.push(Until::NoGaps);
    }
    if let Some(text) = get("SOURCE_GTID_POS") {
        found.push(Until::MariadbGtids(text.parse().map_err(|_| bad())?));
    }
    let used = if matches!(found.first(), Some(Until::Source(_))) { 2 } else { 1 };
    if found.len() > 1 || (!start.until.is_empty() && (found.is_empty() || start.until.len() != used)) {
        return Err(bad());
    }
    Ok(found.pop())
}

fn login_of(start: &StartReplica) -> SqlResult<Option<Login>> {
    let (mut user, mut password) = (None, None);
    for (name, value) in &start.connection {
        match &**name {
            "USER" => user = Some(string(value)),
            "PASSWORD" => password = Some(string(value)),
            "DEFAULT_AUTH" | "PLUGIN_DIR" => {}
            other => return Err(SqlError::wrong_arguments(format!("START REPLICA {other}"))),
        }
    }
    Ok((user.is_some() || password.is_some()).then_some((user, password)))
}

/// A channel is as it should become already.
fn state_note(code: u16, is: &str, channel: &str) -> SqlError {
    SqlError::new(code, b"HY000", format!("Replication thread(s) for channel '{channel}' are already {is}."))
}

impl Replicas {
    /// The channels that a statement is about: the one that it names, or all.
    fn meant(&self, name: Option<&[u8]>) -> SqlResult<Vec<Arc<Channel>>> {
        match name {
            Some(name) => Ok(vec![self.find(&channel_name(Some(name))?)?]),
            None => Ok(self.all()),
        }
    }

    /// START REPLICA, and notes of what ran already. Blocks.
    pub(crate) fn start(&self, start: &StartReplica) -> SqlResult<Vec<SqlError>> {
        let _control = self.control.lock();
        let until = until_of(start)?;
        let login = login_of(start)?;
        let mut channels = self.meant(start.channel.as_deref())?;
        if start.channel.is_none() {
            // One that has only a position so far.
            channels.retain(|channel| !channel.config().host.is_empty());
        }
        if channels.is_empty() && !start.all {
            return Err(super::not_configured());
        }
        if channels.len() > 1 && until.is_some() {
            return Err(several());
        }
        let both = !start.io_thread && !start.sql_thread;
        if until.is_some() && start.io_thread && !start.sql_thread {
            return Err(SqlError::new(
                1277,
                b"HY000",
                "Incorrect parameter or combination of parameters for START REPLICA UNTIL",
            ));
        }
        let (io, sql) = (both || start.io_thread, both || start.sql_thread);
        let mut notes = Vec::new();
        for channel in channels {
            if (channel.io_runs() || !io) && (channel.sql_runs() || !sql) {
                notes.push(state_note(3083, "running", channel.name()));
            }
            channel.start(io, sql, until.clone(), login.clone())?;
        }
        Ok(notes)
    }

    /// STOP REPLICA, and notes of what had stopped already. Waits for the threads; what is being applied is finished.
    pub(crate) fn stop(&self, stop: &StopReplica) -> SqlResult<Vec<SqlError>> {
        let _control = self.control.lock();
        let both = !stop.io_thread && !stop.sql_thread;
        let (io, sql) = (both || stop.io_thread, both || stop.sql_thread);
        let mut notes = Vec::new();
        for channel in self.meant(stop.channel.as_deref())? {
            if !(io && channel.io_runs() || sql && channel.sql_runs()) {
                notes.push(state_note(3084, "stopped", channel.name()));
            }
            channel.stop_for_good(io, sql)?;
        }
        Ok(notes)
    }

    /// RESET REPLICA. Blocks.
    pub(crate) fn reset(&self, all: bool, channel: Option<&[u8]>) -> SqlResult<()> {
        let _control = self.control.lock();
        let channels = self.meant(channel)?;
        for channel in &channels {
            if channel.io_runs() || channel.sql_runs() {
                return Err(SqlError::new(
                    3081,
                    b"HY000",
                    format!(
                        "This operation cannot be performed with running replication threads; run STOP REPLICA FOR \
                         CHANNEL '{}' first",
                        channel.name()
                    ),
                ));
            }
        }
        for channel in channels {
            channel.reset(all)?;
            if all {
                self.channels.lock().remove(channel.name());
            }
        }
        Ok(())
    }

    fn named_or_only(&self, channel: Option<&str>) -> Option<Arc<Channel>> {
        let Some(name) = channel else {
            let mut all = self.all();
            let one = all.pop().filter(|_| all.is_empty());
            return one.or_else(|| self.find("").ok());
        };
        self.find(name).ok()
    }

    /// How many events the same channel has applied since it began.
    pub(crate) fn applied_events(&self, channel: Option<&str>) -> u64 {
        self.named_or_only(channel).map_or(0, |channel| channel.look().0.applied_events)
    }

    /// Whether everything up to a position is applied: of the channel named, or of the only one. `None`: there is no such
    /// channel, it does not apply, or its files have other names.
    pub(crate) fn applied(&self, channel: Option<&str>, position: &SourcePosition) -> Option<bool> {
        let channel = self.named_or_only(channel)?;
        let (status, ..) = channel.look();
        let order = status.applied.source.compare(position);
        match order {
            Some(Ordering::Equal | Ordering::Greater) => Some(true),
            // Nothing is applied yet, and no file has a name.
            _ if status.applied.source.file.is_empty() => channel.sql_runs().then_some(false),
            order => order.filter(|_| channel.sql_runs()).map(|_| false),
        }
    }

    /// MariaDB: `gtid_slave_pos`, of all channels.
    #[must_use]
    pub fn gtid_slave_pos(&self) -> String {
        let mut all = omnibus_format::GtidPosition::default();
        for channel in self.all() {
            for gtid in channel.look().0.applied.gtids.0.into_values() {
                if all.get(gtid.domain).is_none_or(|known| known.sequence < gtid.sequence) {
                    all.set(gtid);
                }
            }
        }
        all.to_string()
    }

    /// MariaDB: SET GLOBAL gtid_slave_pos. Blocks.
    pub(crate) fn set_gtid_slave_pos(&self, text: &str) -> SqlResult<()> {
        let _control = self.control.lock();
        let position: omnibus_format::GtidPosition =
            text.parse().map_err(|_| SqlError::new(1941, b"HY000", "Could not parse GTID list"))?;
        for channel in self.all() {
            if channel.io_runs() || channel.sql_runs() {
                return Err(SqlError::new(
                    1198,
                    b"HY000",
                    "This operation cannot be performed as you have a running replica; run STOP REPLICA first",
                ));
            }
        }
        let channels = self.all();
        if channels.is_empty() {
            // CHANGE MASTER comes later and begins here.
            let channel = Channel::open(
                self.env.clone(),
                String::new(),
                Default::default(),
                self.filters.lock().for_channel(),
            )?;
            channel.set_gtids(position)?;
            self.channels.lock().insert(String::new(), channel);
            return Ok(());
        }
        channels.iter().try_for_each(|channel| channel.set_gtids(position.clone()))
    }
}

fn several() -> SqlError {
    SqlError::new(
        3079,
        b"HY000",
        "Multiple channels exist on the replica. Please provide channel name as an argument.",
    )
}
