//! COM_STMT_: prepared statements of the binary protocol.
//!
//! A cursor is answered with the whole result at once, as the protocol allows; COM_STMT_FETCH is then
//! never needed.

use super::Session;
use super::drive::Job;
use super::observe::{self, Observed};
use super::sink::put_column;
use super::statements::Statement;
use crate::errors;
use crate::process::Activity;
use crate::result_set::column;
use crate::runner::{Parsed, PreparedInfo, RunContext};
use crate::status::Counter;
use bytes::Bytes;
use omnibus_sql::api::client_text::parameter;
use omnibus_sql::memory::MemoryLimits;
use omnibus_sql::{AccessCheck, Mode, SqlError, SqlResult};
use omnibus_value::Value;
use omnibus_wire::stmt::{Attributes, Execute, Param, ParamType, PrepareOk};
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
        self.process.counters.add(Counter::StmtPrepare, 1);
        self.process.counters.add(Counter::Queries, 1);
        self.refresh();
        if let Err(error) = self.try_prepare(&text) {
            self.failed(error);
        }
    }

    fn try_prepare(&mut self, text: &Bytes) -> SqlResult<()> {
        self.prepared.admit()?;
        let (parsed, next) = super::query::parse_to_prepare(self, text)?;
        if next.is_some() {
            return Err(SqlError::not_supported_yet("several statements in one prepared statement"));
        }
        self.identity.access.check_statement(&parsed.statement.node)?;
        let info = self.plan_prepared(&parsed)?;
        let params = parsed.statement.params as usize;
        let id = self.prepared.add(Statement::new(parsed, info.handle, &self.runner.state().memory));
        self.reply_prepare(id, params, &info.columns);
        Ok(())
    }

    /// Plans a statement, on a thread that may block if that takes long.
    pub(super) fn plan_prepared(&mut self, parsed: &Arc<Parsed>) -> SqlResult<PreparedInfo> {
        let context = |mode| RunContext { mode, access: &self.identity.access };
        if parsed.first_mode() == Mode::Inline {
            match self.runner.prepare(parsed, &context(Mode::Inline)) {
                Err(error) if error.is_needs_blocking() => {}
                done => return done,
            }
        }
        tokio::task::block_in_place(|| self.runner.prepare(parsed, &context(Mode::Blocking)))
    }

    fn reply_prepare(&mut self, id: u32, params: usize, columns: &[omnibus_sql::ResultColumn]) {
        let warnings = self.runner.state().diagnostics.own_count();
        let head = PrepareOk { id, columns: columns.len() as u16, params: params as u16, warnings };
        let collation = self.runner.state().settings.collation_results;
        let (caps, status) = (self.channel.caps, self.status());
        let out = &mut self.channel.out;
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

    /// Returns when the statement ended, if it was run.
    pub(super) async fn stmt_execute(&mut self, range: Range<usize>, came_us: i64) -> Option<i64> {
        self.process.counters.add(Counter::StmtExecute, 1);
        self.process.counters.add(Counter::Questions, 1);
        self.process.counters.add(Counter::Queries, 1);
        let (id, decoded) = self.decode_execute(range);
        let ended = match decoded {
            Ok(params) => self.execute_statement(id, &params, came_us).await,
            Err(error) => {
                self.failed(error);
                None
            }
        };
        if let Some(statement) = self.prepared.get_mut(id) {
            statement.executed();
        }
        ended
    }

    /// The statement's id and its parameters.
    fn decode_execute(&mut self, range: Range<usize>) -> (u32, SqlResult<Vec<Value>>) {
        let malformed = |_| errors::malformed_packet();
        let execute = match Execute::decode(self.channel.payload(range.clone())) {
            Ok(execute) => execute,
            Err(error) => return (0, Err(malformed(error))),
        };
        let id = execute.id;
        let Some(statement) = self.prepared.get_mut(id) else {
            return (id, Err(errors::unknown_stmt_handler(id, "mysqld_stmt_execute")));
        };
        if let Some(error) = statement.long_data_error.take() {
            return (id, Err(error));
        }
        // Parameters are copies of what is in the packet, or of what came before.
        if let Err(error) = self.runner.state_mut().ask(range.len()) {
            return (id, Err(error));
        }
        let (bound, long) = (&mut statement.bound, &mut statement.long_data);
        let given =
            execute.params(statement.params, bound, self.channel.caps, |i| long.contains_key(&(i as u16)));
        let (given, attributes) = match given {
            Ok(given) => given,
            Err(error) => return (id, Err(malformed(error))),
        };
        let settings = &self.runner.state().settings;
        let (client, connection) = (settings.collation_client, settings.collation_connection);
        let values = given.iter().zip(&bound.types).enumerate().map(|(i, (param, ty))| {
            let long = || long.remove(&(i as u16)).unwrap_or_default().into();
            value_of(param, *ty, client, connection, long)
        });
        let values = values.collect();
        let attributes = attribute_values(&attributes, client);
        match attributes {
            Ok(attributes) => self.runner.state_mut().query_attributes = attributes,
            Err(error) => return (id, Err(error)),
        }
        (id, values)
    }

    async fn execute_statement(&mut self, id: u32, params: &[Value], came_us: i64) -> Option<i64> {
        self.note_conditions();
        self.refresh();
        let mut statement = self.prepared.take(id)?;
        let (begun, start) = (self.begin_observed(came_us), self.reply_start());
        let parsed = statement.parsed.clone();
        self.process.begin(Activity::Execute, &parsed.text, self.process.since_us());
        self.process.counters.statement(parsed.kind);
        if self.logs_commands() {
            self.log_command(Activity::Execute, self.runner.with_params(&parsed.text, params));
        }
        let result = match self.count_use(&parsed) {
            Ok(()) => self.administration_with(&parsed, params).await,
            Err(error) => Some(Err(error)),
        };
        let result = match result {
            Some(Ok(())) => Ok(None),
            Some(Err(error)) => Err(error),
            None => self.drive(Job::Prepared(&parsed, &mut statement.handle, params)).await.map(Some),
        };
        let mut digest = statement.digest.take();
        self.prepared.put_back(id, statement);
        self.follow_statement(&parsed);
        let failed = result.is_err();
        match result {
            Ok(outcome) => {
                if let Some(outcome) = outcome {
                    self.reply_outcome(&outcome, false);
                }
            }
            Err(error) => {
                self.failed_in_sql(error);
            }
        }
        self.settle(start).await;
        let text = |session: &Session| session.runner.with_params(&parsed.text, params);
        let observed = observe::Statement { parsed: &parsed, text: &text, failed, kept: Some(&mut digest) };
        let ended = self.end_observed(begun, Observed::Statement(observed));
        if let Some(statement) = self.prepared.get_mut(id) {
            statement.digest = digest;
        }
        Some(ended)
    }

    pub(super) fn stmt_close(&mut self, id: u32) {
        self.process.counters.add(Counter::StmtClose, 1);
        self.prepared.close(id);
    }

    pub(super) fn stmt_reset(&mut self, id: u32) {
        self.process.counters.add(Counter::StmtReset, 1);
        match self.prepared.get_mut(id) {
            Some(statement) => {
                statement.reset();
                self.ok(0, 0, "");
            }
            None => {
                self.failed(errors::unknown_stmt_handler(id, "mysqld_stmt_reset"));
            }
        }
    }

    /// COM_STMT_SEND_LONG_DATA, which has no reply.
    pub(super) fn stmt_long_data(&mut self, range: Range<usize>) {
        self.process.counters.add(Counter::StmtSendLongData, 1);
        let max = self.shared.max_allowed_packet();
        let limits = MemoryLimits::of(&self.runner.state().settings);
        if let Ok(Command::StmtSendLongData { id, param, data }) =
            Command::decode(self.channel.payload(range))
            && let Some(statement) = self.prepared.get_mut(id)
        {
            statement.add_long_data(param, data, max, limits);
        }
    }

    pub(super) fn stmt_fetch(&mut self, id: u32, _rows: u32) {
        self.process.counters.add(Counter::StmtFetch, 1);
        self.failed(errors::unknown_stmt_handler(id, "mysqld_stmt_fetch"));
    }
}
