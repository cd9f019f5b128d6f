//! COM_STMT_: prepared statements of the binary protocol.
//!
//! A cursor is answered with the whole result at once, as the protocol allows; COM_STMT_FETCH is then
//! never needed.

use super::Session;
use super::drive::Job;
use super::observe::{self, Observed};
use super::query::count_use;
use super::statements::{Statement, Statements};
use crate::admin::administration_with;
use crate::connection::{Client, SessionAccess, SessionShared, put_column, status};
use crate::errors;
use crate::parsed::{Parsed, filled, parse_to_prepare};
use crate::process::Activity;
use crate::result_set::column;
use crate::status::Counter;
use bytes::Bytes;
use omnibus_sql::api::client_text::parameter;
use omnibus_sql::memory::MemoryLimits;
use omnibus_sql::{AccessCheck, Mode, Prepared, SessionState, SqlError, SqlResult, SqlSession};
use omnibus_value::Value;
use omnibus_wire::stmt::{Attributes, Execute, Param, ParamType, PrepareOk, memory_of_params};
use omnibus_wire::{Capability, Command};
use std::ops::Range;
use std::sync::Arc;

/// A parameter's value; its text is in `client`'s character set and is wanted in `connection`'s.
fn value_of(
    param: &Param<'_>,
    ty: ParamType,
    client: u16,
    connection: u16,
    long: impl FnOnce() -> Bytes,
) -> SqlResult<Value> {
    Ok(match param.to_value(long).map_err(|_| errors::malformed_packet())? {
        Value::Bytes(text) if ty.is_text() => Value::Bytes(parameter(text, client, connection)),
        value => value,
    })
}

/// Query attributes, their text in utf8mb4.
pub(super) type NamedValues = Vec<(String, Value)>;

/// Query attributes as `mysql_query_attribute_string()` finds them.
pub(super) fn attribute_values(attributes: &Attributes<'_>, client: u16) -> SqlResult<NamedValues> {
    let utf8 = crate::charset::DEFAULT_ID;
    let one = |(name, ty, param): &(Vec<u8>, ParamType, Param<'_>)| {
        let name = parameter(Bytes::copy_from_slice(name), client, utf8);
        let value = value_of(param, *ty, client, utf8, Bytes::new)?;
        Ok((String::from_utf8_lossy(&name).into_owned(), value))
    };
    attributes.iter().map(one).collect()
}

impl Session {
    pub(super) async fn stmt_prepare(&mut self, text: Bytes) {
        self.client.process.counters.add(Counter::StmtPrepare, 1);
        self.client.process.counters.add(Counter::Queries, 1);
        self.refresh();
        if let Err(error) = self.try_prepare(&text) {
            self.failed(error);
        }
    }

    fn try_prepare(&mut self, text: &Bytes) -> SqlResult<()> {
        let place = self.prepared.admit()?;
        let (parsed, next) = parse_to_prepare(&mut self.sql, text)?;
        if next.is_some() {
            return Err(SqlError::not_supported_yet("several statements in one prepared statement"));
        }
        self.login.access.check_statement(&parsed.statement.node)?;
        let prepared = plan_prepared(&mut self.sql, &self.login.access, &parsed)?;
        let params = parsed.statement.params as usize;
        let columns = prepared.columns.clone();
        let id =
            self.prepared.add(Statement::new(parsed, prepared, place, &self.sql.state.connection.memory));
        reply_prepare(&mut self.client, &self.sql, id, params, &columns);
        Ok(())
    }

    /// Returns when the statement ended, if it was run.
    pub(super) async fn stmt_execute(&mut self, range: Range<usize>, came_us: i64) -> Option<i64> {
        self.client.process.counters.add(Counter::StmtExecute, 1);
        self.client.process.counters.add(Counter::Questions, 1);
        self.client.process.counters.add(Counter::Queries, 1);
        let (id, decoded) = decode_execute(&self.client, &mut self.prepared, &mut self.sql, range);
        match decoded {
            Ok(params) => self.execute_statement(id, &params, came_us).await,
            Err(error) => {
                self.failed(error);
                if let Some(statement) = self.prepared.get_mut(id) {
                    statement.executed();
                }
                None
            }
        }
    }

    async fn execute_statement(&mut self, id: u32, params: &[Value], came_us: i64) -> Option<i64> {
        self.settings.note_conditions(&self.sql);
        self.refresh();
        let mut statement = self.prepared.take(id)?;
        let (begun, start) = (self.begin_observed(came_us), self.client.reply_start());
        let parsed = statement.parsed.clone();
        self.client.process.begin(Activity::Execute, &parsed.text, self.client.process.since_us());
        self.client.process.counters.statement(parsed.kind);
        if self.observer().logs_commands() {
            self.observer().log_command(Activity::Execute, filled(&self.sql, &parsed.text, params));
        }
        let result = match count_use(&self.server, self.login.account(), &parsed) {
            Ok(()) => administration_with(&mut self.admin(), &parsed, params).await,
            Err(error) => Some(Err(error)),
        };
        let result = match result {
            Some(Ok(())) => Ok(None),
            Some(Err(error)) => Err(error),
            None => self.drive(Job::Prepared(&parsed, &mut statement.handle, params)).await.map(Some),
        };
        self.follow_statement(&parsed);
        let failed = result.is_err();
        match result {
            Ok(outcome) => {
                if let Some(outcome) = outcome {
                    self.client.reply_outcome(&self.sql, &outcome, false);
                }
            }
            Err(error) => {
                self.client.failed_in_sql(&mut self.sql, error);
            }
        }
        self.client.settle(&mut self.sql, start).await;
        let text = || filled(&self.sql, &parsed.text, params);
        let observed =
            observe::Statement { parsed: &parsed, text: &text, failed, kept: Some(&mut statement.digest) };
        let ended = self.observer().end(begun, Observed::Statement(observed));
        statement.executed();
        self.prepared.put_back(id, statement);
        Some(ended)
    }

    pub(super) fn stmt_reset(&mut self, id: u32) {
        self.client.process.counters.add(Counter::StmtReset, 1);
        match self.prepared.get_mut(id) {
            Some(statement) => {
                statement.reset();
                self.ok();
            }
            None => {
                self.failed(errors::unknown_stmt_handler(id, "mysqld_stmt_reset"));
            }
        }
    }

    pub(super) fn stmt_fetch(&mut self, id: u32, _rows: u32) {
        self.client.process.counters.add(Counter::StmtFetch, 1);
        let error = match self.prepared.get_mut(id) {
            // Its rows have been sent.
            Some(_) => errors::no_open_cursor(id),
            None => errors::unknown_stmt_handler(id, "mysqld_stmt_fetch"),
        };
        self.failed(error);
    }
}

/// Plans a statement, on a thread that may block if that takes long.
pub(super) fn plan_prepared(
    sql: &mut SqlSession,
    access: &SessionAccess,
    parsed: &Arc<Parsed>,
) -> SqlResult<Prepared> {
    if parsed.first_mode() == Mode::Inline {
        match sql.prepare_alone(&parsed.text, Mode::Inline, access) {
            Err(error) if error.is_needs_blocking() => {}
            done => return done,
        }
    }
    crate::net::blocking(|| sql.prepare_alone(&parsed.text, Mode::Blocking, access))
}

fn reply_prepare(
    client: &mut Client,
    sql: &SqlSession,
    id: u32,
    params: usize,
    columns: &[omnibus_sql::ResultColumn],
) {
    let warnings = sql.state.diagnostics.own_count();
    let head = PrepareOk { id, columns: columns.len() as u16, params: params as u16, warnings };
    let collation = sql.state.settings.collation_results;
    let (caps, status) = (client.packets.caps, status(sql));
    let out = &mut client.packets.out;
    out.packet(|out| head.encode(out));
    let marker = column("?", crate::sysvars::text_type(0));
    let eof = !caps.has(Capability::DEPRECATE_EOF);
    let mut section = |list: &mut dyn Iterator<Item = &omnibus_sql::ResultColumn>| {
        let mut any = false;
        for column in list {
            any = true;
            put_column(out, column, collation);
        }
        if any && eof {
            out.packet(|out| omnibus_wire::reply::encode_eof(out, 0, status));
        }
    };
    section(&mut std::iter::repeat_n(&marker, params));
    section(&mut columns.iter());
}

/// The statement's id and its parameters.
fn decode_execute(
    client: &Client,
    prepared: &mut Statements,
    sql: &mut SqlSession,
    range: Range<usize>,
) -> (u32, SqlResult<Vec<Value>>) {
    let malformed = |_| errors::malformed_packet();
    let execute = match Execute::decode(client.packets.payload(range.clone())) {
        Ok(execute) => execute,
        Err(error) => return (0, Err(malformed(error))),
    };
    let id = execute.id;
    let Some(statement) = prepared.get_mut(id) else {
        return (id, Err(errors::unknown_stmt_handler(id, "mysqld_stmt_execute")));
    };
    if let Some(error) = statement.long_data_error.take() {
        return (id, Err(error));
    }
    // Parameters are copies of what is in the packet, or of what came before.
    let count = statement.params;
    let asked = match execute.given(count, client.packets.caps) {
        Ok(all) if all > count => memory_of_params(all, range.len()),
        Ok(_) => range.len(),
        Err(error) => return (id, Err(malformed(error))),
    };
    if let Err(error) = sql.state.ask(asked) {
        return (id, Err(error));
    }
    let (bound, long) = (&mut statement.bound, &mut statement.long_data);
    let given =
        execute.params(statement.params, bound, client.packets.caps, |i| long.contains_key(&(i as u16)));
    let (given, attributes) = match given {
        Ok(given) => given,
        Err(error) => return (id, Err(malformed(error))),
    };
    let settings = &sql.state.settings;
    let limits = MemoryLimits::of(settings);
    let (from, connection) = (settings.collation_client, settings.collation_connection);
    let values = given.iter().zip(&bound.types).enumerate().map(|(i, (param, ty))| {
        let long = || long.remove(&(i as u16)).unwrap_or_default().into();
        value_of(param, *ty, from, connection, long)
    });
    let values = values.collect();
    let attributes = attribute_values(&attributes, from);
    if let Err(error) = statement.keep_bound(limits) {
        return (id, Err(error));
    }
    match attributes {
        Ok(attributes) => sql.state.command.attributes = attributes,
        Err(error) => return (id, Err(error)),
    }
    (id, values)
}

pub(super) fn stmt_close(client: &Client, prepared: &mut Statements, id: u32) {
    client.process.counters.add(Counter::StmtClose, 1);
    prepared.close(id);
}

/// COM_STMT_SEND_LONG_DATA, which has no reply.
pub(super) fn stmt_long_data(
    client: &Client,
    prepared: &mut Statements,
    shared: &SessionShared,
    state: &SessionState,
    range: Range<usize>,
) {
    client.process.counters.add(Counter::StmtSendLongData, 1);
    let max = shared.max_allowed_packet();
    let limits = MemoryLimits::of(&state.settings);
    if let Ok(Command::StmtSendLongData { id, param, data }) = Command::decode(client.packets.payload(range))
        && let Some(statement) = prepared.get_mut(id)
    {
        statement.add_long_data(param, data, max, limits);
    }
}
