//! Generates a statement with its whole context as events: INTVAR, RAND and USER_VAR for the values that it reads, then
//! QUERY; or the file that it loads, block by block, and EXECUTE_LOAD_QUERY.
//!
//! The input is a [`StatementView`], of a session that has just executed the statement or of events of another log.
//! Called where the transaction's events are made; one statement at a time.

use omnibus_format::EventType;
use omnibus_format::events::{
    BeginLoadQuery, ExecuteLoadQuery, INTVAR_INSERT_ID, INTVAR_LAST_INSERT_ID, IntVar, Query, Rand,
    StatusVars, flags2,
};
use omnibus_format::header::{FLAG_SUPPRESS_USE, FLAG_THREAD_SPECIFIC};

use super::sink::EventSink;
use crate::model::{LoadedFile, StatementView};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

/// Writes the events of a statement.
///
/// # Errors
/// The sink's error; the statement must then be rolled back.
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
    let mut status = Vec::with_capacity(64);
    status_vars(view).encode(&mut status);
    let query = Query {
        thread_id: view.thread_id(),
        exec_time: view.exec_time_s(),
        error_code: view.error_code(),
        status: &status,
        database: view.database(),
        sql: view.sql(),
    };
    let mut flags = 0;
    if view.independent_of_database() || view.database().is_empty() {
        flags |= FLAG_SUPPRESS_USE;
    }
    if view.uses_temporary_tables() {
        flags |= FLAG_THREAD_SPECIFIC;
    }
    if let Some(file) = view.loaded_file() {
        return loaded_file(sink, query, flags, file);
    }
    body.clear();
    query.encode(&mut body);
    sink.event(EventType::QUERY.0, flags, &body)
}

/// Bytes of a file in one event.
const BLOCK: usize = 128 << 10;

/// Writes a file in blocks, then the statement that reads it.
fn loaded_file<S: EventSink>(
    sink: &mut S,
    query: Query<'_>,
    flags: u16,
    file: &dyn LoadedFile,
) -> Result<(), S::Error> {
    // The number tells this file from others whose statement has not come yet; files of one server never overlap in its log.
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let file_id = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut body = Vec::with_capacity(BLOCK + 4);
    let mut kind = EventType::BEGIN_LOAD_QUERY;
    let mut failed = None;
    let read = file.blocks(&mut |block| {
        for data in block.chunks(BLOCK) {
            body.clear();
            BeginLoadQuery { file_id, data }.encode(&mut body);
            if let Err(error) = sink.event(kind.0, 0, &body) {
                failed = Some(error);
                return Err(io::ErrorKind::Other.into());
            }
            kind = EventType::APPEND_BLOCK;
        }
        Ok(())
    });
    if let Some(error) = failed {
        return Err(error);
    }
    if let Err(error) = read {
        return Err(sink.lost(error));
    }
    body.clear();
    if kind == EventType::BEGIN_LOAD_QUERY {
        // An empty file is a file.
        BeginLoadQuery { file_id, data: &[] }.encode(&mut body);
        sink.event(kind.0, 0, &body)?;
        body.clear();
    }
    ExecuteLoadQuery {
        query,
        file_id,
        file_name_span: file.name_span(),
        duplicate_handling: file.duplicate_handling(),
    }
    .encode(&mut body);
    sink.event(EventType::EXECUTE_LOAD_QUERY.0, flags, &body)
}

/// Returns the context as status variables.
fn status_vars(view: &dyn StatementView) -> StatusVars {
    let mut bits = 0;
    for (on, bit) in [
        (view.autocommit() == Some(false), flags2::NOT_AUTOCOMMIT),
        (view.foreign_key_checks() == Some(false), flags2::NO_FOREIGN_KEY_CHECKS),
        (view.check_constraint_checks() == Some(false), flags2::NO_CHECK_CONSTRAINT_CHECKS),
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
        table_map_for_update: view.updated_tables(),
        default_collation_for_utf8mb4: view.default_collation_for_utf8mb4(),
        microseconds: (fraction != 0).then_some(fraction),
        ..StatusVars::default()
    }
}
