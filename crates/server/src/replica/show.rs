//! SHOW REPLICA STATUS in both namings, and MariaDB's SHOW ALL SLAVES STATUS.

use super::Replicas;
use super::change::channel_name;
use super::channel::Channel;
use super::threads::sql_state;
use crate::process::state_in;
use crate::result_set::{ResultSet, integer_column, text_column};
use bytes::Bytes;
use omnibus_format::Dialect;
use omnibus_replication::replica::{ChannelConfig, ErrorAt, Filters, GtidUse, IoRunning, StatusData, Until};
use omnibus_sql::SqlResult;
use omnibus_value::Value;
use std::sync::Arc;
use std::time::Duration;

/// A row with the names of its columns.
struct Line {
    old_names: bool,
    columns: Vec<(String, Value)>,
}

impl Line {
    /// A column by its present name; older servers say Slave and Master.
    fn put(&mut self, name: &str, value: Value) {
        let name = if self.old_names {
            name.replace("Replica_", "Slave_").replace("Source", "Master").replace("_source_", "_master_")
        } else {
            name.to_owned()
        };
        self.columns.push((name, value));
    }

    fn text(&mut self, name: &str, value: &str) {
        self.put(name, Value::Bytes(Bytes::copy_from_slice(value.as_bytes())));
    }

    fn number(&mut self, name: &str, value: u64) {
        self.put(name, Value::UInt(value));
    }

    fn yes(&mut self, name: &str, value: bool) {
        self.text(name, if value { "Yes" } else { "No" });
    }
}

fn stamp(error: &ErrorAt) -> String {
    if error.code == 0 {
        return String::new();
    }
    crate::clock::compact_stamp(error.at_us)
}

fn file(path: Option<&std::path::PathBuf>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

/// How far behind its source a channel is.
#[derive(Clone, Debug)]
pub(crate) struct Lag {
    /// Its name; empty for the default one.
    pub channel: String,
    /// `host:port` of its source.
    pub source: String,
    /// Replica_IO_Running.
    pub receives: bool,
    /// Replica_SQL_Running.
    pub applies: bool,
    /// Seconds_Behind_Source.
    pub seconds: Option<u64>,
    /// Bytes that were received and are not applied.
    pub queued_bytes: u64,
    /// Last_Error.
    pub error: String,
}

impl Replicas {
    /// Of all channels that have a source.
    pub(crate) fn lags(&self) -> Vec<Lag> {
        let lag = |channel: Arc<Channel>| {
            let (config, (status, ..)) = (channel.config(), channel.look());
            let last = if status.sql_error.code != 0 { &status.sql_error } else { &status.io_error };
            (!config.host.is_empty()).then(|| Lag {
                channel: channel.name().trim_end().to_owned(),
                source: format!("{}:{}", config.host, config.port),
                receives: status.io == IoRunning::Yes,
                applies: status.sql_running,
                seconds: status.seconds_behind(channel.queue().is_empty()),
                queued_bytes: channel.queue().bytes() as u64,
                error: last.message.clone(),
            })
        };
        self.all().into_iter().filter_map(lag).collect()
    }

    /// The rows of a SHOW; `name` chooses one channel.
    pub(crate) fn show(&self, all: bool, name: Option<&[u8]>, old_names: bool) -> SqlResult<ResultSet> {
        let channels = match name {
            Some(name) => vec![self.find(&channel_name(Some(name))?)?],
            None => self.all(),
        };
        let configured = channels.iter().filter(|channel| !channel.config().host.is_empty());
        let lines: Vec<Line> = configured.map(|channel| self.line(channel, all, old_names)).collect();
        let rules = self.filters.lock().for_channel();
        let empty = Channel::open(self.env.clone(), "\n".into(), ChannelConfig::default(), rules)?;
        let header = lines
            .first()
            .map_or_else(|| self.line(&empty, all, old_names).columns, |line| line.columns.clone());
        let columns = header.iter().map(|(name, value)| match value {
            Value::UInt(_) => integer_column(name),
            _ if name.starts_with("Seconds_Behind") || name == "SQL_Remaining_Delay" => integer_column(name),
            _ => text_column(name, 1024),
        });
        Ok(ResultSet {
            columns: columns.collect(),
            rows: lines
                .into_iter()
                .map(|line| line.columns.into_iter().map(|(_, value)| value).collect())
                .collect(),
        })
    }

    /// `replica_net_timeout`.
    pub(super) fn net_timeout(&self) -> Duration {
        Duration::from_secs(self.env.server.globals.named("replica_net_timeout").as_u64())
    }

    /// A row with the columns of MySQL, by their new names or their old ones, or those of MariaDB.
    fn line(&self, channel: &Channel, all: bool, old_names: bool) -> Line {
        let (status, until, workers) = channel.look();
        let config = channel.config();
        let dialect = self.env.coordinator.log().dialect();
        let old_names = old_names || dialect == Dialect::Mariadb;
        let sql_state = state_in(dialect, sql_state(&status, channel.queue()));
        let mut line = Line { old_names, columns: Vec::new() };
        if all && old_names {
            line.text("Connection_name", channel.name());
            line.text("Slave_SQL_State", sql_state);
        }
        line.text("Replica_IO_State", state_in(dialect, status.io_state));
        line.text("Source_Host", &config.host);
        line.text("Source_User", &config.user);
        line.number("Source_Port", u64::from(config.port));
        line.number("Connect_Retry", u64::from(config.connect_retry));
        line.text("Source_Log_File", &status.read.file);
        line.number("Read_Source_Log_Pos", status.read.position);
        line.text("Relay_Log_File", "");
        line.number("Relay_Log_Pos", 0);
        line.text("Relay_Source_Log_File", &status.applied.source.file);
        line.text("Replica_IO_Running", status.io.name());
        line.yes("Replica_SQL_Running", status.sql_running);
        put_filters(&mut line, &channel.filters());
        let last = if status.sql_error.code != 0 { &status.sql_error } else { &status.io_error };
        line.number("Last_Errno", u64::from(last.code));
        line.text("Last_Error", &last.message);
        let skip = self.env.server.globals.named("sql_replica_skip_counter").as_u64();
        line.number("Skip_Counter", skip);
        line.number("Exec_Source_Log_Pos", status.applied.source.position);
        line.number("Relay_Log_Space", channel.queue().bytes() as u64);
        put_until(&mut line, until.as_ref());
        line.yes("Source_SSL_Allowed", config.tls.required);
        line.text("Source_SSL_CA_File", &file(config.tls.ca.as_ref()));
        line.text("Source_SSL_CA_Path", config.shown("source_ssl_capath"));
        line.text("Source_SSL_Cert", &file(config.tls.cert.as_ref()));
        line.text("Source_SSL_Cipher", config.shown("source_ssl_cipher"));
        line.text("Source_SSL_Key", &file(config.tls.key.as_ref()));
        let behind = status.seconds_behind(channel.queue().is_empty());
        line.put("Seconds_Behind_Source", behind.map_or(Value::Null, Value::UInt));
        line.yes("Source_SSL_Verify_Server_Cert", config.tls.verify_host);
        line.number("Last_IO_Errno", u64::from(status.io_error.code));
        line.text("Last_IO_Error", &status.io_error.message);
        line.number("Last_SQL_Errno", u64::from(status.sql_error.code));
        line.text("Last_SQL_Error", &status.sql_error.message);
        let ignored: Vec<String> = config.ignore_server_ids.iter().map(u32::to_string).collect();
        line.text("Replicate_Ignore_Server_Ids", &ignored.join(","));
        line.number("Source_Server_Id", u64::from(status.source_id));
        if dialect == Dialect::Mariadb {
            put_mariadb(&mut line, channel, &config, &status, sql_state);
            if all {
                put_mariadb_counts(&mut line, &config, &status, self.net_timeout());
            }
            return line;
        }
        line.text("Source_UUID", &status.source_uuid);
        line.text("Source_Info_File", "mysql.replica_channel");
        line.number("SQL_Delay", u64::from(config.delay));
        line.put("SQL_Remaining_Delay", remaining_delay(&status));
        line.text("Replica_SQL_Running_State", sql_state);
        line.number("Source_Retry_Count", config.retry_count);
        line.text("Source_Bind", config.shown("source_bind"));
        line.text("Last_IO_Error_Timestamp", &stamp(&status.io_error));
        line.text("Last_SQL_Error_Timestamp", &stamp(&status.sql_error));
        line.text("Source_SSL_Crl", &file(config.tls.crl.as_ref()));
        line.text("Source_SSL_Crlpath", config.shown("source_ssl_crlpath"));
        line.text("Retrieved_Gtid_Set", &status.retrieved.to_string());
        line.text("Executed_Gtid_Set", &self.env.coordinator.gtids().executed().to_string());
        line.number("Auto_Position", u64::from(config.auto_position));
        line.text("Replicate_Rewrite_DB", &channel.filters().rewrite_shown());
        line.text("Channel_Name", channel.name().trim_end());
        line.text("Source_TLS_Version", config.shown("source_tls_version"));
        line.text("Source_public_key_path", &file(config.public_key.as_ref()));
        line.number("Get_Source_public_key", u64::from(config.ask_public_key));
        line.text("Network_Namespace", "");
        if old_names {
            let uses = config.gtid_use != GtidUse::No;
            line.text("Using_Gtid", config.gtid_use.name());
            let position = if uses { status.applied.gtids.to_string() } else { String::new() };
            line.text("Gtid_IO_Pos", &position);
            if all {
                line.number("Retried_transactions", status.retried);
                line.number("Executed_log_entries", status.applied_count);
                line.number("Slave_received_heartbeats", status.heartbeats);
                line.text("Gtid_Slave_Pos", &status.applied.gtids.to_string());
                line.number("Parallel_Workers", workers as u64);
            }
        }
        line
    }
}

fn remaining_delay(status: &StatusData) -> Value {
    let left = status.delayed_until - crate::clock::now_us() / 1_000_000;
    match status.delayed_until {
        0 => Value::Null,
        _ => Value::UInt(u64::try_from(left).unwrap_or(0)),
    }
}

/// Puts the columns that MariaDB has behind Master_Server_Id.
fn put_mariadb(
    line: &mut Line,
    channel: &Channel,
    config: &ChannelConfig,
    status: &StatusData,
    sql_state: &str,
) {
    let ids = |ids: &[u32]| ids.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    line.text("Source_SSL_Crl", &file(config.tls.crl.as_ref()));
    line.text("Source_SSL_Crlpath", config.shown("source_ssl_crlpath"));
    line.text("Using_Gtid", config.gtid_use.name());
    let uses = config.gtid_use != GtidUse::No;
    line.text("Gtid_IO_Pos", &if uses { status.read_gtids.to_string() } else { String::new() });
    line.text("Replicate_Do_Domain_Ids", &ids(&config.do_domains));
    line.text("Replicate_Ignore_Domain_Ids", &ids(&config.ignore_domains));
    line.text("Parallel_Mode", "optimistic");
    line.number("SQL_Delay", u64::from(config.delay));
    line.put("SQL_Remaining_Delay", remaining_delay(status));
    line.text("Slave_SQL_Running_State", sql_state);
    line.number("Slave_DDL_Groups", status.definitions);
    line.number("Slave_Non_Transactional_Groups", 0);
    line.number("Slave_Transactional_Groups", status.applied_count - status.definitions);
    line.text("Replicate_Rewrite_DB", &channel.filters().rewrite_shown());
}

/// Puts the further columns of SHOW ALL SLAVES STATUS.
fn put_mariadb_counts(line: &mut Line, config: &ChannelConfig, status: &StatusData, net_timeout: Duration) {
    line.number("Retried_transactions", status.retried);
    // There are no relay logs; MariaDB's default.
    line.number("Max_relay_log_size", 1 << 30);
    line.number("Executed_log_entries", status.applied_count);
    line.number("Slave_received_heartbeats", status.heartbeats);
    line.text("Slave_heartbeat_period", &format!("{:.3}", config.heartbeat(net_timeout).as_secs_f64()));
    line.text("Gtid_Slave_Pos", &status.applied.gtids.to_string());
}

fn put_filters(line: &mut Line, filters: &Filters) {
    line.text("Replicate_Do_DB", &Filters::shown(&filters.do_db));
    line.text("Replicate_Ignore_DB", &Filters::shown(&filters.ignore_db));
    line.text("Replicate_Do_Table", &Filters::shown(&filters.do_table));
    line.text("Replicate_Ignore_Table", &Filters::shown(&filters.ignore_table));
    line.text("Replicate_Wild_Do_Table", &Filters::shown(&filters.wild_do));
    line.text("Replicate_Wild_Ignore_Table", &Filters::shown(&filters.wild_ignore));
}

fn put_until(line: &mut Line, until: Option<&Until>) {
    let old_names = line.old_names;
    line.text("Until_Condition", until.map_or("None", |until| until.name(old_names)));
    let place = match until {
        Some(Until::Source(place)) => Some(place),
        _ => None,
    };
    line.text("Until_Log_File", place.map_or("", |place| &place.file));
    line.number("Until_Log_Pos", place.map_or(0, |place| place.position));
}
