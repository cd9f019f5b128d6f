//! A statement with its whole context as events: INTVAR, RAND, USER_VAR for what it reads, then QUERY.
//!
//! Made from a [`StatementView`], whatever is behind it: a session that has just run the statement, or the events of
//! another log. Called where the transaction's events are made; one statement at a time.

use omnibus_format::EventType;
use omnibus_format::events::{
    INTVAR_INSERT_ID, INTVAR_LAST_INSERT_ID, IntVar, Query, Rand, StatusVars, flags2,
};
use omnibus_format::header::{FLAG_SUPPRESS_USE, FLAG_THREAD_SPECIFIC};

use super::sink::EventSink;
use crate::model::StatementView;

/// Writes the events of a statement.
///
/// # Errors
/// The sink's; the statement must be taken back.
pub fn statement<S: EventSink>(sink: &mut S, view: &dyn StatementView) -> Result<(), S::Error> {
    let mut body = Vec::with_capacity(128 + view.sql().len());
    let integers = [(INTVAR_LAST_INSERT_ID, view.last_insert_id()), (INTVAR_INSERT_ID, view.insert_id())];
    for (kind, value) in integers {
        if let Some(value) = value {
            body.clear();
            IntVar { kind, value }.encode(&mut body);
            sink.event(EventType::INTVAR.0, 0, &body)?;
        }
    }
    if let Some((first, second)) = view.rand_seeds() {
        body.clear();
        Rand(first, second).encode(&mut body);
        sink.event(EventType::RAND.0, 0, &body)?;
    }
    let mut result = Ok(());
    view.user_variables(&mut |variable| {
        if result.is_ok() {
            body.clear();
            variable.encode(&mut body);
            result = sink.event(EventType::USER_VAR.0, 0, &body);
        }
    });
    result?;
    body.clear();
    let mut status = Vec::with_capacity(64);
    status_vars(view).encode(&mut status);
    Query {
        thread_id: view.thread_id(),
        exec_time: view.exec_time_s(),
        error_code: view.error_code(),
        status: &status,
        database: view.database(),
        sql: view.sql(),
    }
    .encode(&mut body);
    let mut flags = 0;
    if view.independent_of_database() || view.database().is_empty() {
        flags |= FLAG_SUPPRESS_USE;
    }
    if view.uses_temporary_tables() {
        flags |= FLAG_THREAD_SPECIFIC;
    }
    sink.event(EventType::QUERY.0, flags, &body)
}

/// The context as status variables.
fn status_vars(view: &dyn StatementView) -> StatusVars {
    let mut bits = 0;
    for (on, bit) in [
        (view.autocommit() == Some(false), flags2::NOT_AUTOCOMMIT),
        (view.foreign_key_checks() == Some(false), flags2::NO_FOREIGN_KEY_CHECKS),
        (view.unique_checks() == Some(false), flags2::RELAXED_UNIQUE_CHECKS),
        (view.sql_auto_is_null() == Some(true), flags2::AUTO_IS_NULL),
    ] {
        if on {
            bits |= bit;
        }
    }
    let fraction = view.timestamp_us().rem_euclid(1_000_000) as u32;
    StatusVars {
        flags2: Some(bits),
        sql_mode: view.sql_mode(),
        catalog: Some(b"std".to_vec()),
        auto_increment: view.auto_increment().filter(|pair| *pair != (1, 1)),
        charset: view.collations(),
        time_zone: view.time_zone().map(<[u8]>::to_vec),
        lc_time_names: view.lc_time_names().filter(|number| *number != 0),
        charset_database: view.database_collation(),
        microseconds: (fraction != 0).then_some(fraction),
        ..StatusVars::default()
    }
}
