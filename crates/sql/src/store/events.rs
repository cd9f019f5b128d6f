//! A transaction's binlog events: BEGIN before its first rows, rows events per statement, XID.
//!
//! A transaction under `sql_log_bin=0` has no events but one private write set, which only
//! recovery reads. One with a statement that is logged as text has all its writes in private events
//! beside it, because recovery executes no SQL.

use super::private_events::{all_writes_events, unlogged_event, write_set_event};
use super::trx::cache_error;
use crate::api::{RowImage, SessionSettings};
use crate::catalog::Table;
use crate::error::{SqlError, SqlResult};
use crate::xa::Xid;
use bytes::Bytes;
use omnibus_commit::{CacheError, TrxCache};
use omnibus_engine::WriteSet;
use omnibus_format::events::{OptionalMetadata, StatusVars, XaPrepare, flags2};
use omnibus_replication::generate::{
    self, EventSink, GenerateError, QueryContext, RowImageMode, RowsBuilder, RowsOptions,
};
use omnibus_replication::model::StatementView;

/// The description of a statement in its events.
#[derive(Clone, Copy, Debug)]
pub struct StatementInfo<'a> {
    /// The session's variables.
    pub settings: &'a SessionSettings,
    /// The current database, empty if none.
    pub database: &'a str,
    /// The statement's text.
    pub sql: &'a [u8],
    /// Its start, seconds since 1970.
    pub timestamp: u32,
    /// The same in microseconds.
    pub now_us: i64,
    /// CONNECTION_ID().
    pub connection_id: u32,
}

/// The cache as the generators want it.
struct Sink<'a>(&'a mut TrxCache);

impl EventSink for Sink<'_> {
    type Error = CacheError;

    fn event(&mut self, event_type: u8, flags: u16, body: &[u8]) -> Result<(), CacheError> {
        self.0.append_event(event_type, flags, body)
    }

    fn lost(&self, source: std::io::Error) -> CacheError {
        CacheError::Spill { dir: "LOAD DATA's file".into(), source }
    }
}

/// The variables a QUERY event carries; its context is encoded anew when they change.
#[derive(Clone, PartialEq, Eq)]
struct ContextKey {
    flags2: u32,
    sql_mode: u64,
    auto_increment: (u16, u16),
    charset: [u16; 3],
    time_zone: String,
    connection_id: u32,
}

/// How a statement's changes are logged.
#[derive(Default)]
pub(super) struct Logging {
    logged: bool,
    /// `binlog_transaction_compression`, if it is on: zstd's level.
    pub compression: Option<i32>,
    /// It is logged as text; whether it has changed anything.
    as_text: bool,
    changed: bool,
}

impl Logging {
    /// As rows, if the session logs anything.
    pub(super) fn of(settings: &SessionSettings) -> Logging {
        Logging {
            logged: settings.sql_log_bin,
            compression: settings.binlog_transaction_compression,
            as_text: false,
            changed: false,
        }
    }

    /// Its changes are logged as a whole write set.
    pub(super) fn stop(&mut self) {
        self.logged = false;
    }

    /// It is logged as text: its rows make no events.
    pub(super) fn log_as_text(&mut self) {
        self.as_text = true;
        self.changed = false;
    }

    /// Whether its rows are events; notes that there was one.
    #[inline]
    fn wants_row(&mut self) -> bool {
        self.changed = true;
        self.logged && !self.as_text
    }
}

/// Generates the events of a session's transactions.
#[derive(Default)]
pub(crate) struct StatementEvents {
    rows: RowsBuilder,
    options: RowsOptions,
    context: Option<(ContextKey, QueryContext)>,
    database: String,
    /// The transaction has what cannot be told from its row events: statements as text, rows with hidden columns.
    needs_all_writes: bool,
    /// A statement that wrote what was there already is in the log, so that the transaction is even if it changed nothing.
    tells_of_equal_rows: bool,
    /// The transaction is this XA branch.
    pub(super) branch: Option<Xid>,
}

impl StatementEvents {
    /// Prepares for a statement's rows.
    pub(super) fn begin(&mut self, info: &StatementInfo<'_>) {
        let settings = info.settings;
        if !settings.sql_log_bin {
            return;
        }
        let options = options(settings);
        if options != self.options {
            self.options = options;
            self.rows.set_options(options);
        }
        self.rows.begin_statement(info.sql);
        if self.database != info.database {
            self.database.clear();
            self.database.push_str(info.database);
        }
        self.refresh_context(settings, info.connection_id);
    }

    /// Prepares for a definition whose rows follow, and opens its transaction.
    pub(super) fn begin_definition(
        &mut self,
        cache: &mut TrxCache,
        info: &StatementInfo<'_>,
    ) -> SqlResult<()> {
        self.refresh_context(info.settings, info.connection_id);
        self.database.clear();
        self.database.push_str(info.database);
        self.open(cache)
    }

    fn refresh_context(&mut self, settings: &SessionSettings, connection_id: u32) {
        if let Some((key, _)) = &self.context
            && key.sql_mode == settings.sql_mode
            && key.flags2 == flags(settings)
            && key.charset == charsets(settings)
            && key.time_zone == settings.time_zone
            && key.auto_increment == auto_increment(settings)
            && key.connection_id == connection_id
        {
            return;
        }
        let key = ContextKey {
            flags2: flags(settings),
            sql_mode: settings.sql_mode,
            auto_increment: auto_increment(settings),
            charset: charsets(settings),
            time_zone: settings.time_zone.clone(),
            connection_id,
        };
        let vars = StatusVars {
            flags2: Some(key.flags2),
            sql_mode: Some(key.sql_mode),
            auto_increment: (key.auto_increment != (1, 1)).then_some(key.auto_increment),
            charset: Some(key.charset),
            time_zone: Some(key.time_zone.clone().into_bytes()),
            ..StatusVars::default()
        };
        let context = QueryContext::new(connection_id, &vars);
        self.context = Some((key, context));
    }

    /// The statement wrote a row that is there already: its text is logged all the same.
    pub(super) fn wrote_equal_row(&mut self, logging: &mut Logging) {
        logging.changed = true;
        self.tells_of_equal_rows |= logging.as_text && logging.logged;
    }

    /// Whether a transaction is to be logged though it changed nothing, if it has events.
    pub(super) fn tells_of_equal_rows(&self) -> bool {
        self.tells_of_equal_rows
    }

    /// Logs a statement that was run with [`Logging::log_as_text`], unless it changed nothing.
    pub(super) fn text(
        &mut self,
        logging: &Logging,
        cache: &mut TrxCache,
        view: &dyn StatementView,
    ) -> SqlResult<()> {
        if !logging.as_text || !logging.changed || !logging.logged {
            return Ok(());
        }
        self.open(cache)?;
        self.needs_all_writes = true;
        generate::statement(&mut Sink(cache), view).map_err(cache_error)
    }

    /// The transaction is over.
    pub(super) fn end(&mut self) {
        self.discard();
        self.needs_all_writes = false;
        self.tells_of_equal_rows = false;
    }

    /// Forgets rows not yet in the cache.
    pub(super) fn discard(&mut self) {
        self.rows.discard();
    }

    fn open(&mut self, cache: &mut TrxCache) -> SqlResult<()> {
        if cache.is_empty()
            && let Some((_, context)) = &mut self.context
        {
            let (sink, database) = (&mut Sink(cache), self.database.as_bytes());
            match &self.branch {
                None => generate::begin(context, sink, database),
                Some(xid) => generate::xa(context, sink, database, format!("XA START {xid}").as_bytes()),
            }
            .map_err(cache_error)?;
        }
        Ok(())
    }

    /// The transaction is logged even if nothing follows.
    pub(super) fn begin_empty(&mut self, logging: &Logging, cache: &mut TrxCache) -> SqlResult<()> {
        if logging.logged { self.open(cache) } else { Ok(()) }
    }

    /// Whether replicas check no foreign keys of the rows that follow: they have followed here.
    pub(super) fn unchecked(&mut self, unchecked: bool) {
        self.rows.set_unchecked(unchecked);
    }

    /// A row was inserted.
    pub(super) fn insert(
        &mut self,
        logging: &mut Logging,
        cache: &mut TrxCache,
        table: &Table,
        row_id: Option<u64>,
        row: &Bytes,
    ) -> SqlResult<()> {
        if !logging.wants_row() {
            return Ok(());
        }
        self.open(cache)?;
        self.needs_all_writes |= table.rows.has_hidden();
        let row = table.rows.image(row)?;
        self.rows.write(&mut Sink(cache), &table.binlog, &row, row_id).map_err(generate_error)
    }

    /// A row was changed.
    pub(super) fn update(
        &mut self,
        logging: &mut Logging,
        cache: &mut TrxCache,
        table: &Table,
        row_id: Option<u64>,
        before: &Bytes,
        after: &Bytes,
    ) -> SqlResult<()> {
        if !logging.wants_row() {
            return Ok(());
        }
        self.open(cache)?;
        self.needs_all_writes |= table.rows.has_hidden();
        let (before, after) = (table.rows.image(before)?, table.rows.image(after)?);
        self.rows.update(&mut Sink(cache), &table.binlog, &before, &after, row_id).map_err(generate_error)
    }

    /// A row was deleted.
    pub(super) fn delete(
        &mut self,
        logging: &mut Logging,
        cache: &mut TrxCache,
        table: &Table,
        row_id: Option<u64>,
        row: &Bytes,
    ) -> SqlResult<()> {
        if !logging.wants_row() {
            return Ok(());
        }
        self.open(cache)?;
        self.needs_all_writes |= table.rows.has_hidden();
        let row = table.rows.image(row)?;
        self.rows.delete(&mut Sink(cache), &table.binlog, &row, row_id).map_err(generate_error)
    }

    /// The statement is complete.
    pub(super) fn finish(&mut self, cache: &mut TrxCache) -> SqlResult<()> {
        if !self.rows.is_open() {
            return Ok(());
        }
        self.rows.end_statement(&mut Sink(cache)).map_err(generate_error)
    }

    /// Writes the last events of a transaction. Returns whether it has a GTID. `keys` are writes
    /// that no row event tells of.
    pub(super) fn commit(
        &mut self,
        logging: &Logging,
        cache: &mut TrxCache,
        writes: &WriteSet,
        xid: u64,
        keys: &[Bytes],
    ) -> SqlResult<bool> {
        if cache.is_empty() {
            write_set_event(cache, writes)?;
            return Ok(false);
        }
        self.private_writes(cache, writes, keys)?;
        if self.branch.is_some() {
            cache.open_as_transaction();
        }
        generate::xid(&mut Sink(cache), xid).map_err(cache_error)?;
        if let Some(level) = logging.compression {
            cache.compress(level).map_err(cache_error)?;
        }
        Ok(true)
    }

    /// Writes the private events that recovery needs beside the row events.
    fn private_writes(&self, cache: &mut TrxCache, writes: &WriteSet, keys: &[Bytes]) -> SqlResult<()> {
        if self.needs_all_writes {
            all_writes_events(cache, writes)
        } else {
            unlogged_event(cache, writes, keys)
        }
    }

    /// Writes the last events of an XA branch's first phase. `record` are the writes of the prepare. Returns whether
    /// it has a GTID.
    pub(super) fn prepare(
        &mut self,
        cache: &mut TrxCache,
        record: &WriteSet,
        keys: &[Bytes],
    ) -> SqlResult<bool> {
        // `sql_log_bin=0`, or it changed nothing: prepared all the same, it must be found after a restart.
        if cache.is_empty() {
            write_set_event(cache, record)?;
            return Ok(false);
        }
        self.open(cache)?;
        self.private_writes(cache, record, keys)?;
        self.close_branch(cache)?;
        Ok(true)
    }

    /// XA END, and the event that ends the group.
    fn close_branch(&mut self, cache: &mut TrxCache) -> SqlResult<()> {
        let (Some((_, context)), Some(xid)) = (&mut self.context, &self.branch) else { return Ok(()) };
        let sink = &mut Sink(cache);
        generate::xa(context, sink, self.database.as_bytes(), format!("XA END {xid}").as_bytes())
            .map_err(cache_error)?;
        let event =
            XaPrepare { one_phase: false, format_id: xid.format_id, gtrid: &xid.gtrid, bqual: &xid.bqual };
        generate::xa_prepare(sink, &event).map_err(cache_error)
    }

    /// The whole of an XA branch's second phase: its statement, if the first phase is in the log. Returns whether it has a
    /// GTID.
    pub(super) fn finish_branch(
        &mut self,
        logging: &Logging,
        cache: &mut TrxCache,
        writes: &WriteSet,
        sql: Option<&str>,
    ) -> SqlResult<bool> {
        match (&mut self.context, sql) {
            (Some((_, context)), Some(sql)) if logging.logged => {
                generate::xa(context, &mut Sink(cache), self.database.as_bytes(), sql.as_bytes())
                    .map_err(cache_error)?;
                Ok(true)
            }
            _ => {
                write_set_event(cache, writes)?;
                Ok(false)
            }
        }
    }

    /// A DDL statement's QUERY event, which follows its private events.
    pub(crate) fn ddl(&mut self, cache: &mut TrxCache, info: &StatementInfo<'_>, xid: u64) -> SqlResult<()> {
        self.refresh_context(info.settings, info.connection_id);
        let Some((_, context)) = &mut self.context else { return Ok(()) };
        let (database, utf8mb4) = (info.database.as_bytes(), info.settings.default_collation_for_utf8mb4);
        // Replicas of other kinds refuse engines that they lack (1286).
        let options = info.settings.parse_options();
        let sql = omnibus_parser::set_engines_aside(info.sql, &options, crate::api::is_own_engine);
        generate::ddl(context, &mut Sink(cache), database, &sql, xid, utf8mb4).map_err(cache_error)
    }
}

fn options(settings: &SessionSettings) -> RowsOptions {
    RowsOptions {
        image: match settings.binlog_row_image {
            RowImage::Full => RowImageMode::Full,
            RowImage::Minimal => RowImageMode::Minimal,
            RowImage::NoBlob => RowImageMode::NoBlob,
        },
        metadata: if settings.binlog_row_metadata_full {
            OptionalMetadata::Full
        } else {
            OptionalMetadata::Minimal
        },
        rows_query: settings.binlog_rows_query_log_events,
        no_foreign_key_checks: !settings.foreign_key_checks,
        relaxed_unique_checks: !settings.unique_checks,
        ..RowsOptions::default()
    }
}

/// The settings that an event has in `flags2`: not `autocommit`, which stops a MySQL replica (1778), and which no peer logs.
fn flags(settings: &SessionSettings) -> u32 {
    let mut bits = 0;
    for (on, bit) in [
        (!settings.foreign_key_checks, flags2::NO_FOREIGN_KEY_CHECKS),
        (!settings.check_constraint_checks, flags2::NO_CHECK_CONSTRAINT_CHECKS),
        (!settings.unique_checks, flags2::RELAXED_UNIQUE_CHECKS),
        (settings.sql_auto_is_null, flags2::AUTO_IS_NULL),
    ] {
        if on {
            bits |= bit;
        }
    }
    bits
}

fn charsets(settings: &SessionSettings) -> [u16; 3] {
    [settings.collation_client, settings.collation_connection, settings.collation_server]
}

fn auto_increment(settings: &SessionSettings) -> (u16, u16) {
    (settings.auto_increment_increment as u16, settings.auto_increment_offset as u16)
}

fn generate_error(error: GenerateError<CacheError>) -> SqlError {
    match error {
        GenerateError::Sink(error) => cache_error(error),
        GenerateError::BadImage(error) => {
            tracing::error!(%error, "a row image does not match its table");
            SqlError::internal(format!("row image does not match its table: {error}"))
        }
    }
}
