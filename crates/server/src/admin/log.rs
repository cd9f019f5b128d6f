//! PURGE BINARY LOGS, and the SHOW forms of the log.

use super::Admin;
use crate::log_admin::LogEvent;
use crate::result_set::{ResultSet, integer_column, text_column};
use crate::server::Server;
use bytes::Bytes;
use omnibus_parser::ast::{Purge, ShowEvents};
use omnibus_sql::memory::memory_of;
use omnibus_sql::{SqlError, SqlResult};
use omnibus_value::Value;

fn text(s: &str) -> Value {
    Value::Bytes(Bytes::copy_from_slice(s.as_bytes()))
}

pub(super) async fn purge(admin: &mut Admin<'_>, purge: &Purge) -> SqlResult<()> {
    admin.await_backups().await?;
    let warning = match purge {
        Purge::To(file) => {
            let file = String::from_utf8_lossy(file).into_owned();
            crate::net::blocking(|| admin.server.log.purge_to(&file))?
        }
        Purge::Before(when) => {
            let (value, _) = admin.evaluate(when).await?;
            let zone = admin.sql.state.settings.zone;
            let unix = unix_of(&value, zone).ok_or_else(|| SqlError::wrong_arguments("PURGE LOGS BEFORE"))?;
            crate::net::blocking(|| admin.server.log.purge_before(unix))?
        }
    };
    if let Some(warning) = warning {
        admin.sql.state.diagnostics.warn(warning);
    }
    Ok(())
}

pub(super) fn show_binary_log_status(server: &Server) -> SqlResult<ResultSet> {
    let status = server.log.status();
    let mut columns = vec![
        text_column("File", 255),
        integer_column("Position"),
        text_column("Binlog_Do_DB", 255),
        text_column("Binlog_Ignore_DB", 255),
    ];
    let mut row = vec![text(&status.file), Value::UInt(status.position), text(""), text("")];
    if !server.is_mariadb() {
        columns.push(text_column("Executed_Gtid_Set", 65_535));
        row.push(text(&server.log.gtid_executed()));
    }
    Ok(ResultSet { columns, rows: vec![row] })
}

/// SHOW REPLICAS, SHOW SLAVE HOSTS: who registered.
pub(super) fn show_replicas(server: &Server, old_names: bool) -> SqlResult<ResultSet> {
    let mariadb = server.is_mariadb();
    let (id, source, uuid) = if old_names || mariadb {
        ("Server_id", "Master_id", "Slave_UUID")
    } else {
        ("Server_Id", "Source_Id", "Replica_UUID")
    };
    let own_id = server.globals.named("server_id").as_u64();
    let row = |replica: crate::dump::Replica| {
        let r = replica.registration;
        let numbers = [u64::from(r.server_id), u64::from(r.port), own_id].map(Value::UInt);
        let [id, port, source] = numbers;
        vec![id, text(&r.host), port, source, text(&replica.uuid)]
    };
    let mut columns = vec![
        integer_column(id),
        text_column("Host", 255),
        integer_column("Port"),
        integer_column(source),
        text_column(uuid, 36),
    ];
    let mut rows: Vec<_> = server.dumps.replicas().into_iter().map(row).collect();
    if mariadb {
        columns.truncate(4);
        rows.iter_mut().for_each(|row| row.truncate(4));
    }
    Ok(ResultSet { columns, rows })
}

pub(super) fn show_binary_logs(server: &Server) -> SqlResult<ResultSet> {
    let files = crate::net::blocking(|| server.log.files())?;
    let mut columns = vec![text_column("Log_name", 255), integer_column("File_size")];
    let mut rows: Vec<_> = files.iter().map(|f| vec![text(&f.name), Value::UInt(f.size)]).collect();
    if !server.is_mariadb() {
        columns.push(text_column("Encrypted", 3));
        rows.iter_mut()
            .zip(&files)
            .for_each(|(row, file)| row.push(text(if file.encrypted { "Yes" } else { "No" })));
    }
    Ok(ResultSet { columns, rows })
}

pub(super) async fn show_binlog_events(admin: &mut Admin<'_>, show: &ShowEvents) -> SqlResult<ResultSet> {
    let file = show.file.as_ref().map(|f| String::from_utf8_lossy(f).into_owned());
    let (skip, count) = match &show.limit {
        None => (0, u64::MAX),
        Some(limit) => admin.limit(limit).await?,
    };
    let from = show.position.unwrap_or(4);
    let (mut passed, mut rows) = (0, Vec::new());
    let (kill, state) = (&admin.client.process.kill, &mut admin.sql.state);
    let mut each = |event: LogEvent| {
        kill.check()?;
        passed += 1;
        if passed > skip && count > 0 {
            let row = event_row(&event);
            state.ask(memory_of(&row))?;
            rows.push(row);
        }
        Ok((rows.len() as u64) < count)
    };
    crate::net::blocking(|| admin.server.log.events(file.as_deref(), from, &mut each))?;
    Ok(ResultSet {
        columns: vec![
            text_column("Log_name", 255),
            integer_column("Pos"),
            text_column("Event_type", 64),
            integer_column("Server_id"),
            integer_column("End_log_pos"),
            text_column("Info", 1 << 20),
        ],
        rows,
    })
}

fn event_row(event: &LogEvent) -> Vec<Value> {
    vec![
        text(&event.file),
        Value::UInt(event.position),
        text(&event.kind),
        Value::UInt(u64::from(event.server_id)),
        Value::UInt(event.end),
        text(&event.info),
    ]
}

/// Seconds since the epoch of a DATETIME, a date, a text of either, or a number of seconds.
fn unix_of(value: &Value, zone: omnibus_value::temporal::Zone) -> Option<i64> {
    use omnibus_value::temporal::{DateMode, DateTime, Instant, Time, parse_datetime};
    let local = match value {
        Value::DateTime(t) => *t,
        Value::Date(d) => DateTime::from_parts(*d, Time::ZERO)?,
        Value::Bytes(b) => parse_datetime(b, 0, DateMode::RELAXED).ok()?.value,
        Value::Int(n) => return Some(*n),
        Value::UInt(n) => return i64::try_from(*n).ok(),
        _ => return None,
    };
    local.instant(zone).map(Instant::unix)
}
