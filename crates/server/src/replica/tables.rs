//! Rows of `performance_schema`'s tables of replication; their columns are `omnibus_sql`'s.
//!
//! On a session's thread, which takes each channel's short locks one after the other.

use super::Replicas;
use super::channel::Channel;
use super::threads::{Lane, Tries};
use bytes::Bytes;
use omnibus_replication::replica::{AssignGtids, ErrorAt, IoRunning, TrxTimes};
use omnibus_sql::{SqlError, SqlResult};
use omnibus_value::Value;
use omnibus_value::json::Json;
use omnibus_value::temporal::DateTime;
use std::path::PathBuf;

type Row = Vec<Value>;

fn text(s: impl AsRef<str>) -> Value {
    Value::Bytes(Bytes::copy_from_slice(s.as_ref().as_bytes()))
}

fn yes(b: bool) -> Value {
    text(if b { "YES" } else { "NO" })
}

fn on(b: bool) -> Value {
    text(if b { "ON" } else { "OFF" })
}

fn one(b: bool) -> Value {
    text(if b { "1" } else { "0" })
}

fn file(path: Option<&PathBuf>) -> Value {
    text(path.map(|path| path.display().to_string()).unwrap_or_default())
}

/// Microseconds since 1970; all zeros for never.
fn stamp(us: i64) -> Value {
    let at = match us {
        0 => None,
        us => DateTime::from_unix(us.div_euclid(1_000_000), us.rem_euclid(1_000_000) as u32),
    };
    Value::DateTime(at.unwrap_or_default())
}

fn error(row: &mut Row, error: &ErrorAt) {
    row.extend([Value::UInt(u64::from(error.code)), text(&error.message)]);
    row.push(stamp(if error.code == 0 { 0 } else { error.at_us }));
}

/// A transaction's id and when it was committed elsewhere.
fn trx(row: &mut Row, times: &TrxTimes) {
    let name = times.trx.map(|trx| trx.gtid.map_or("ANONYMOUS".to_owned(), |gtid| gtid.to_string()));
    let (original, immediate) =
        times.trx.map_or((0, 0), |trx| (trx.original_commit_us, trx.immediate_commit_us));
    row.push(text(name.unwrap_or_default()));
    row.extend([original, immediate].map(|us| stamp(i64::try_from(us).unwrap_or(0))));
}

/// One that is done, then one that is not.
fn done_and_doing(row: &mut Row, done: &TrxTimes, doing: &TrxTimes) {
    trx(row, done);
    row.extend([stamp(done.began_us), stamp(done.ended_us)]);
    trx(row, doing);
    row.push(stamp(doing.began_us));
}

fn thread(id: Option<u32>) -> Value {
    id.map_or(Value::Null, |id| Value::UInt(u64::from(id)))
}

impl Replicas {
    /// Rows of one table, in the order of its columns.
    pub(crate) fn table(&self, name: &str) -> SqlResult<Vec<Row>> {
        let channels = self.all();
        let configured = channels.iter().filter(|channel| !channel.config().host.is_empty());
        let each = |row: fn(&Replicas, &Channel) -> Row| configured.clone().map(|c| row(self, c)).collect();
        Ok(match name {
            "replication_connection_configuration" => each(Replicas::connection_configuration),
            "replication_connection_status" => each(Replicas::connection_status),
            "replication_applier_configuration" => each(|_, channel| applier_configuration(channel)),
            "replication_applier_status" => each(|_, channel| applier_status(channel)),
            "replication_applier_status_by_coordinator" => each(|_, channel| coordinator(channel)),
            "replication_applier_status_by_worker" => {
                configured.flat_map(|channel| workers(channel)).collect()
            }
            "replication_applier_filters" => configured.flat_map(|channel| filters(channel)).collect(),
            "replication_applier_global_filters" => self.global_filters(),
            "log_status" => vec![self.log_status()?],
            other => return Err(SqlError::internal(format!("performance_schema.{other}"))),
        })
    }

    fn connection_configuration(&self, channel: &Channel) -> Row {
        let config = channel.config();
        let heartbeat = config.heartbeat(self.net_timeout());
        let tls = &config.tls;
        vec![
            text(channel.name()),
            text(&config.host),
            Value::UInt(u64::from(config.port)),
            text(&config.user),
            text(config.shown("source_bind")),
            one(config.auto_position),
            yes(tls.required),
            file(tls.ca.as_ref()),
            text(config.shown("source_ssl_capath")),
            file(tls.cert.as_ref()),
            text(config.shown("source_ssl_cipher")),
            file(tls.key.as_ref()),
            yes(tls.verify_host),
            file(tls.crl.as_ref()),
            text(config.shown("source_ssl_crlpath")),
            Value::UInt(u64::from(config.connect_retry)),
            Value::UInt(config.retry_count),
            Value::Double(heartbeat.as_secs_f64()),
            text(config.shown("source_tls_version")),
            file(config.public_key.as_ref()),
            yes(config.ask_public_key),
            text(""),
            text(config.compression.names()),
            Value::UInt(u64::from(config.compression.zstd_level)),
            text(config.shown("source_tls_ciphersuites")),
            one(false),
            one(false),
        ]
    }

    fn connection_status(&self, channel: &Channel) -> Row {
        let (status, ..) = channel.look();
        let state = match status.io {
            IoRunning::Yes => "ON",
            IoRunning::No => "OFF",
            IoRunning::Connecting => "CONNECTING",
        };
        let mut row = vec![
            text(channel.name()),
            text(""),
            text(&status.source_uuid),
            thread(channel.receiver_id()),
            text(state),
            Value::UInt(status.heartbeats),
            stamp(status.last_heartbeat_us),
            text(status.retrieved.to_string()),
        ];
        error(&mut row, &status.io_error);
        done_and_doing(&mut row, &status.queued, &status.queueing);
        row
    }

    fn global_filters(&self) -> Vec<Row> {
        let rules = self.filters.lock().all();
        rules
            .into_iter()
            .map(|rule| {
                vec![text(rule.name), text(rule.text), text(rule.configured_by), stamp(rule.since_us)]
            })
            .collect()
    }

    /// Where the log and each channel are at one moment, as far as that can be had without stopping everything.
    fn log_status(&self) -> SqlResult<Row> {
        let server = &self.env.server;
        let string = |s: &str| Json::String(s.into());
        let at = server.log.status();
        let local = Json::object([
            ("gtid_executed".to_owned(), string(&server.log.gtid_executed())),
            ("binary_log_file".to_owned(), string(&at.file)),
            ("binary_log_position".to_owned(), Json::UInt(at.position)),
        ]);
        let channel = |channel: &std::sync::Arc<Channel>| {
            let applied = channel.look().0.applied.source;
            Json::object([
                ("channel_name".to_owned(), string(channel.name())),
                ("relay_log_file".to_owned(), string("")),
                ("relay_log_position".to_owned(), Json::UInt(0)),
                ("relay_source_log_file".to_owned(), string(&applied.file)),
                ("exec_source_log_position".to_owned(), Json::UInt(applied.position)),
            ])
        };
        let channels = self.all().iter().map(channel).collect();
        let replication = Json::object([("channels".to_owned(), Json::Array(channels))]);
        let json = |json: Json| json.encode().map(Value::Json).map_err(|e| SqlError::internal(e.to_string()));
        Ok(vec![
            text(server.globals.named("server_uuid").as_str()),
            json(local)?,
            json(replication)?,
            json(Json::object([]))?,
        ])
    }
}

fn applier_configuration(channel: &Channel) -> Row {
    let config = channel.config();
    let (kind, uuid) = match config.assign_gtids {
        AssignGtids::Off => ("OFF", Value::Null),
        AssignGtids::Local => ("LOCAL", Value::Null),
        AssignGtids::Uuid(uuid) => ("UUID", text(uuid.to_string())),
    };
    vec![
        text(channel.name()),
        Value::UInt(u64::from(config.delay)),
        Value::Null,
        yes(false),
        text("STREAM"),
        text(kind),
        uuid,
    ]
}

fn applier_status(channel: &Channel) -> Row {
    let (status, ..) = channel.look();
    let left = status.delayed_until - crate::clock::now_us() / 1_000_000;
    let left = match status.delayed_until {
        0 => Value::Null,
        _ => Value::UInt(u64::try_from(left).unwrap_or(0)),
    };
    vec![text(channel.name()), on(status.sql_running), left, Value::UInt(status.retried)]
}

fn coordinator(channel: &Channel) -> Row {
    let (status, lanes) = (channel.look().0, channel.lanes());
    let lane = &lanes.coordinator;
    let mut row =
        vec![text(channel.name()), thread(status.sql_running.then(|| lane.id())), on(status.sql_running)];
    error(&mut row, &status.sql_error);
    let facts = lane.facts();
    done_and_doing(&mut row, &facts.last, &facts.current);
    row
}

fn workers(channel: &Channel) -> Vec<Row> {
    let running = channel.look().0.sql_running;
    let lanes = channel.lanes();
    lanes.workers.iter().enumerate().map(|(at, lane)| worker(channel, at, lane, running)).collect()
}

fn worker(channel: &Channel, at: usize, lane: &Lane, running: bool) -> Row {
    let facts = lane.facts();
    let running = running && facts.error.code == 0;
    let mut row = vec![
        text(channel.name()),
        Value::UInt(at as u64 + 1),
        thread(running.then(|| lane.id())),
        on(running),
    ];
    error(&mut row, &facts.error);
    done_and_doing(&mut row, &facts.last, &facts.current);
    let tries = |row: &mut Row, tries: &Tries| {
        row.push(Value::UInt(tries.count));
        error(row, &tries.error);
    };
    tries(&mut row, &facts.last_tries);
    tries(&mut row, &facts.current_tries);
    row
}

fn filters(channel: &Channel) -> Vec<Row> {
    let row = |rule: super::filters::Rule| {
        vec![
            text(channel.name()),
            text(rule.name),
            text(rule.text),
            text(rule.configured_by),
            stamp(rule.since_us),
            Value::UInt(rule.matches),
        ]
    };
    channel.rules().into_iter().map(row).collect()
}
