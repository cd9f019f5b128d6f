//! CHANGE REPLICATION SOURCE TO and CHANGE REPLICATION FILTER, in MySQL's and MariaDB's words.

use super::channel::Channel;
use super::{Replicas, gtid_rules, store};
use crate::errors;
use omnibus_parser::ast::{ChangeSource, SourceValue};
use omnibus_replication::client::{CompressionChoice, NoAlgorithm};
use omnibus_replication::replica::{ChannelConfig, ChannelPosition, GtidUse, SourcePosition};
use omnibus_sql::{SqlError, SqlResult};
use std::path::PathBuf;

/// The parts of a list of options that are no settings.
#[derive(Default)]
struct Said {
    host: bool,
    file: Option<String>,
    position: Option<u64>,
    /// Something that only the receiver needs to be stopped for.
    receiver: bool,
    /// Something that only the applier needs to be stopped for.
    applier: bool,
}

fn wrong(name: &str) -> SqlError {
    SqlError::wrong_arguments(format!("CHANGE REPLICATION SOURCE TO {name}"))
}

fn text(name: &str, value: &SourceValue) -> SqlResult<String> {
    match value {
        SourceValue::Str(s) => {
            let s = std::str::from_utf8(s).map_err(|_| wrong(name))?;
            if s.len() > 512 || s.contains(['\n', '\0']) { Err(wrong(name)) } else { Ok(s.to_owned()) }
        }
        SourceValue::Word(word) if word.eq_ignore_ascii_case("NULL") => Ok(String::new()),
        SourceValue::Word(word) => Ok(word.to_string()),
        _ => Err(wrong(name)),
    }
}

fn number(name: &str, value: &SourceValue, max: u64) -> SqlResult<u64> {
    match value {
        SourceValue::Int(n) if *n <= max => Ok(*n),
        SourceValue::Str(s) => {
            let n = std::str::from_utf8(s).ok().and_then(|s| s.trim().parse().ok());
            n.filter(|n| *n <= max).ok_or_else(|| wrong(name))
        }
        _ => Err(wrong(name)),
    }
}

fn flag(name: &str, value: &SourceValue) -> SqlResult<bool> {
    match value {
        SourceValue::Word(word) if word.eq_ignore_ascii_case("ON") => Ok(true),
        SourceValue::Word(word) if word.eq_ignore_ascii_case("OFF") => Ok(false),
        other => Ok(number(name, other, 1)? != 0),
    }
}

fn path(name: &str, value: &SourceValue) -> SqlResult<Option<PathBuf>> {
    let text = text(name, value)?;
    Ok((!text.is_empty()).then(|| PathBuf::from(text)))
}

fn ids(name: &str, value: &SourceValue) -> SqlResult<Vec<u32>> {
    let SourceValue::Ids(ids) = value else { return Err(wrong(name)) };
    ids.iter().map(|id| u32::try_from(*id).map_err(|_| wrong(name))).collect()
}

/// Seconds with decimals, in milliseconds.
fn milliseconds(name: &str, value: &SourceValue) -> SqlResult<u64> {
    let seconds: f64 = match value {
        SourceValue::Int(n) => *n as f64,
        SourceValue::Decimal(text) => {
            std::str::from_utf8(text).ok().and_then(|t| t.parse().ok()).ok_or_else(|| wrong(name))?
        }
        _ => return Err(wrong(name)),
    };
    if seconds > 4_294_967.0 {
        return Err(SqlError::new(
            1703,
            b"HY000",
            "The requested value for the heartbeat period is either negative or exceeds the maximum allowed \
             (4294967 seconds).",
        ));
    }
    Ok((seconds * 1000.0).round() as u64)
}

fn gtid_use(name: &str, value: &SourceValue) -> SqlResult<GtidUse> {
    match text(name, value)?.to_ascii_lowercase().as_str() {
        "no" => Ok(GtidUse::No),
        "slave_pos" => Ok(GtidUse::SlavePos),
        "current_pos" => Ok(GtidUse::CurrentPos),
        _ => Err(wrong(name)),
    }
}

fn remember(config: &mut ChannelConfig, name: &str, value: String) {
    let key = format!("shown_{}", name.to_ascii_lowercase());
    config.shown.retain(|(known, _)| *known != key);
    if !value.is_empty() {
        config.shown.push((key, value));
    }
}

fn set_compression(choice: &mut CompressionChoice, name: &str, value: &SourceValue) -> SqlResult<()> {
    if name == "SOURCE_COMPRESSION_ALGORITHMS" {
        let refused = |error: NoAlgorithm| errors::wrong_compression_algorithm(&error.0);
        let list: CompressionChoice = text(name, value)?.parse().map_err(refused)?;
        *choice = list.at_level(choice.zstd_level);
        return Ok(());
    }
    let level = number(name, value, u64::from(u8::MAX))? as u8;
    if !(1..=22).contains(&level) {
        return Err(errors::wrong_compression_level(level));
    }
    choice.zstd_level = level;
    Ok(())
}

fn set(config: &mut ChannelConfig, said: &mut Said, name: &str, value: &SourceValue) -> SqlResult<()> {
    said.receiver |= name != "SOURCE_DELAY";
    match name {
        "SOURCE_HOST" => {
            let host = text(name, value)?;
            if host.is_empty() {
                return Err(wrong(name));
            }
            said.host |= host != config.host;
            config.host = host;
        }
        "SOURCE_PORT" => {
            let port = number(name, value, 65_535)? as u16;
            said.host |= port != config.port;
            config.port = port;
        }
        "SOURCE_USER" => config.user = text(name, value)?,
        "SOURCE_PASSWORD" => config.password = text(name, value)?,
        "SOURCE_LOG_FILE" => said.file = Some(text(name, value)?),
        "SOURCE_LOG_POS" => said.position = Some(number(name, value, u64::MAX)?),
        "SOURCE_AUTO_POSITION" => config.auto_position = flag(name, value)?,
        "SOURCE_USE_GTID" => config.gtid_use = gtid_use(name, value)?,
        "SOURCE_CONNECT_RETRY" => config.connect_retry = number(name, value, 31_536_000)? as u32,
        "SOURCE_RETRY_COUNT" => config.retry_count = number(name, value, u64::MAX)?,
        "SOURCE_DELAY" => {
            config.delay = number(name, value, 2_147_483_647)? as u32;
            said.applier = true;
        }
        "SOURCE_HEARTBEAT_PERIOD" => config.heartbeat_ms = Some(milliseconds(name, value)?),
        "SOURCE_SSL" => config.tls.required = flag(name, value)?,
        "SOURCE_SSL_CA" => config.tls.ca = path(name, value)?,
        "SOURCE_SSL_CRL" => config.tls.crl = path(name, value)?,
        "SOURCE_SSL_CERT" => config.tls.cert = path(name, value)?,
        "SOURCE_SSL_KEY" => config.tls.key = path(name, value)?,
        "SOURCE_SSL_VERIFY_SERVER_CERT" => config.tls.verify_host = flag(name, value)?,
        "SOURCE_PUBLIC_KEY_PATH" => config.public_key = path(name, value)?,
        "GET_SOURCE_PUBLIC_KEY" | "GET_MASTER_PUBLIC_KEY" => config.ask_public_key = flag(name, value)?,
        "IGNORE_SERVER_IDS" => config.ignore_server_ids = ids(name, value)?,
        "DO_DOMAIN_IDS" => config.do_domains = ids(name, value)?,
        "IGNORE_DOMAIN_IDS" => config.ignore_domains = ids(name, value)?,
        "SOURCE_SSL_CAPATH" | "SOURCE_SSL_CRLPATH" | "SOURCE_BIND" => {
            remember(config, name, text(name, value)?)
        }
        "SOURCE_SSL_CIPHER" | "SOURCE_TLS_VERSION" | "SOURCE_TLS_CIPHERSUITES" => {
            let list = text(name, value)?;
            if list.is_empty() && !matches!(value, SourceValue::Word(_)) && name == "SOURCE_TLS_CIPHERSUITES"
            {
                return Err(SqlError::not_supported_yet(
                    "SOURCE_TLS_CIPHERSUITES=''; SOURCE_TLS_VERSION='TLSv1.2'",
                ));
            }
            remember(config, name, list);
        }
        // Their defaults are how it is here.
        "NETWORK_NAMESPACE" | "PRIVILEGE_CHECKS_USER" if text(name, value)?.is_empty() => {}
        "SOURCE_COMPRESSION_ALGORITHMS" | "SOURCE_ZSTD_COMPRESSION_LEVEL" => {
            set_compression(&mut config.compression, name, value)?;
        }
        "REQUIRE_ROW_FORMAT" | "GTID_ONLY" | "SOURCE_CONNECTION_AUTO_FAILOVER" if !flag(name, value)? => {}
        "REQUIRE_TABLE_PRIMARY_KEY_CHECK"
            if matches!(text(name, value)?.to_ascii_uppercase().as_str(), "STREAM" | "OFF") => {}
        "ASSIGN_GTIDS_TO_ANONYMOUS_TRANSACTIONS" => {
            config.assign_gtids = text(name, value)?.parse().map_err(|_| wrong(name))?;
            said.applier = true;
        }
        "RELAY_LOG_FILE" | "RELAY_LOG_POS" => {
            return Err(SqlError::not_supported_yet(format!(
                "{name} (there are no relay logs: what is not applied is asked from the source again)"
            )));
        }
        other => return Err(SqlError::not_supported_yet(format!("CHANGE REPLICATION SOURCE TO {other}"))),
    }
    Ok(())
}

impl Replicas {
    /// CHANGE REPLICATION SOURCE TO. Blocks.
    pub(crate) fn change_source(&self, change: &ChangeSource) -> SqlResult<()> {
        let _control = self.control.lock();
        let name = channel_name(change.channel.as_deref())?;
        let existing = self.channels.lock().get(&name).cloned();
        let before = existing.as_ref().map_or_else(ChannelConfig::default, |channel| channel.config());
        let mut config = before.clone();
        let mut said = Said::default();
        for (option, value) in &change.options {
            set(&mut config, &mut said, option, value)?;
        }
        check(&config, &said)?;
        gtid_rules::check(&config, gtid_rules::mode_of(&self.env.coordinator))?;
        if let Some(channel) = &existing {
            must_stand(channel, &said)?;
        }
        // A channel that never was has nothing applied; the MariaDB position may have been set beforehand.
        let applied =
            existing.as_ref().map_or_else(ChannelPosition::default, |channel| channel.look().0.applied);
        let place = new_place(&said, &mut config, applied, existing.is_none());
        let channel = match existing {
            Some(channel) => channel,
            None => {
                let filters = self.filters.lock().for_channel();
                store::put(&self.env, &name, &config)?;
                let channel = Channel::open(self.env.clone(), name.clone(), config.clone(), filters)?;
                self.channels.lock().insert(name, channel.clone());
                channel
            }
        };
        channel.reconfigure(config, place)
    }

    /// CHANGE REPLICATION FILTER.
    pub(crate) fn change_filter(&self, text: &str) -> SqlResult<()> {
        let _control = self.control.lock();
        let bad = |what: String| {
            SqlError::new(1064, b"42000", format!("You have an error in your SQL syntax; {what}"))
        };
        let named = self.filters.lock().clone().change(text, "").map_err(bad)?;
        let by = match &named {
            None => "CHANGE_REPLICATION_FILTER",
            Some(_) => "CHANGE_REPLICATION_FILTER_FOR_CHANNEL",
        };
        let channels = match &named {
            Some(name) => vec![self.find(name)?],
            None => self.all(),
        };
        if channels.iter().any(|channel| channel.sql_runs()) {
            return Err(SqlError::new(
                3085,
                b"HY000",
                "This operation cannot be performed with a running replica sql thread; run STOP REPLICA SQL_THREAD first",
            ));
        }
        for channel in channels {
            channel.change_filters(text, by).map_err(bad)?;
        }
        if named.is_none() {
            self.filters.lock().change(text, by).map_err(bad)?;
        }
        Ok(())
    }
}

/// A channel's name from a statement; `''` is the one without a name.
pub(super) fn channel_name(name: Option<&[u8]>) -> SqlResult<String> {
    let name = std::str::from_utf8(name.unwrap_or_default()).ok();
    let name = name.filter(|name| name.chars().count() <= 64 && !name.contains(['\n', '\0']));
    name.map(str::to_lowercase).ok_or_else(|| {
        SqlError::new(3073, b"HY000", "Couldn't create channel: Channel name is either invalid or too long.")
    })
}

fn check(config: &ChannelConfig, said: &Said) -> SqlResult<()> {
    // What the TLS here cannot do is told now; files may come later.
    config.tls_settings().check().map_err(SqlError::wrong_arguments)?;
    if config.auto_position && (said.file.is_some() || said.position.is_some()) {
        return Err(SqlError::new(
            1776,
            b"HY000",
            "Parameters SOURCE_LOG_FILE, SOURCE_LOG_POS, RELAY_LOG_FILE and RELAY_LOG_POS cannot be set when \
             SOURCE_AUTO_POSITION is active.",
        ));
    }
    Ok(())
}

fn must_stand(channel: &Channel, said: &Said) -> SqlResult<()> {
    let name = channel.name();
    let moves = said.host || said.file.is_some() || said.position.is_some();
    if (said.applier || moves) && channel.sql_runs() {
        return Err(SqlError::new(
            3085,
            b"HY000",
            format!(
                "This operation cannot be performed with a running replica sql thread; run STOP REPLICA SQL_THREAD FOR \
                 CHANNEL '{name}' first."
            ),
        ));
    }
    if said.receiver && channel.io_runs() {
        return Err(SqlError::new(
            3021,
            b"HY000",
            format!(
                "This operation cannot be performed with a running replica io thread; run STOP REPLICA IO_THREAD FOR \
                 CHANNEL '{name}' first."
            ),
        ));
    }
    Ok(())
}

/// Where to go on from, if the statement changes that.
fn new_place(
    said: &Said,
    config: &mut ChannelConfig,
    applied: ChannelPosition,
    new: bool,
) -> Option<ChannelPosition> {
    let moved = said.file.is_some() || said.position.is_some();
    let mut source = match (moved, said.host || new) {
        (false, false) => return None,
        // Another server: its first file.
        (_, true) => SourcePosition::default(),
        (true, false) => applied.source.clone(),
    };
    if let Some(file) = &said.file {
        source = SourcePosition::new(file, 4);
    }
    if let Some(position) = said.position {
        source.position = position.max(4);
    }
    config.start = source.clone();
    Some(ChannelPosition { source, ..applied })
}
