//! What each command does. A command that breaks off here gets an error packet; only a broken
//! connection ends the session.

use super::Session;
use super::observe::Observed;
use super::prepared::{NamedValues, attribute_values};
use crate::account::Account;
use crate::errors;
use crate::net::NetError;
use crate::process::Activity;
use crate::query_log::Operation;
use crate::status::Counter;
use bytes::Bytes;
use omnibus_sql::api::client_text::to_parser;
use omnibus_sql::{AccessCheck, Priv, SqlError, SqlResult};
use omnibus_wire::{Capability, Command};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

type Flow = ControlFlow<()>;
const GO_ON: Result<Flow, NetError> = Ok(ControlFlow::Continue(()));

fn activity(command: &Command<'_>) -> Activity {
    match command {
        Command::Query(_) => Activity::Query,
        Command::StmtExecute(_) | Command::StmtFetch { .. } => Activity::Execute,
        Command::StmtPrepare(_) => Activity::Prepare,
        Command::StmtClose(_) => Activity::CloseStmt,
        Command::StmtReset(_) => Activity::ResetStmt,
        Command::InitDb(_) => Activity::InitDb,
        Command::FieldList { .. } => Activity::FieldList,
        Command::ProcessKill(_) => Activity::Kill,
        Command::ChangeUser(_) => Activity::ChangeUser,
        Command::ResetConnection => Activity::ResetConnection,
        Command::Statistics => Activity::Statistics,
        Command::BinlogDump(_) => Activity::BinlogDump,
        Command::BinlogDumpGtid(_) => Activity::BinlogDumpGtid,
        Command::RegisterSlave(_) => Activity::RegisterSlave,
        Command::Quit => Activity::Quit,
        Command::Ping => Activity::Ping,
        _ => Activity::Other,
    }
}

/// What the general log says behind the command's name.
fn argument(command: &Command<'_>) -> Bytes {
    match command {
        Command::InitDb(text) | Command::FieldList { table: text, .. } => Bytes::copy_from_slice(text),
        Command::ProcessKill(id) => id.to_string().into(),
        _ => Bytes::new(),
    }
}

/// Some clients (mysqlslap) send the NUL that ends their string.
fn without_nul(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|c| *c != 0).map_or(0, |at| at + 1);
    &text[..end]
}

fn utf8(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Session {
    /// A name that the client sent by itself, from its character set.
    fn client_name(&self, name: &[u8]) -> String {
        utf8(&to_parser(name, self.runner.state().settings.collation_client))
    }

    /// The text of COM_QUERY, and what stands in front of it.
    fn without_attributes<'a>(&self, text: &'a [u8]) -> SqlResult<(&'a [u8], NamedValues)> {
        if text.is_empty() || !self.channel.caps.has(Capability::QUERY_ATTRIBUTES) {
            return Ok((text, Vec::new()));
        }
        let malformed = |_| errors::malformed_packet();
        let (attributes, text) = omnibus_wire::stmt::query_attributes(text).map_err(malformed)?;
        let client = self.runner.state().settings.collation_client;
        Ok((text, attribute_values(&attributes, client)?))
    }

    /// Runs the command in the input buffer and collects its reply.
    pub(super) async fn command(&mut self, range: Range<usize>) -> Result<Flow, NetError> {
        let command = match Command::decode(self.channel.payload(range.clone())) {
            Ok(command) => command,
            Err(_) => {
                self.channel.error(&errors::malformed_packet());
                return GO_ON;
            }
        };
        let now = crate::clock::now_us();
        let start = self.reply_start();
        if self.process.kill.check().is_err() {
            self.process.kill.reset();
            self.runner.clear_kill();
        }
        let text = if let Command::Query(text) = command { text } else { &[] };
        let (text, attributes) = match self.without_attributes(text) {
            Ok(split) => split,
            Err(error) => {
                self.channel.error(&error);
                return GO_ON;
            }
        };
        self.process.begin(activity(&command), text, now);
        let mut ended = None;
        let flow = match command {
            Command::Query(_) => {
                let text = Bytes::copy_from_slice(without_nul(text));
                self.runner.state_mut().query_attributes = attributes;
                ended = self.query(text, now).await;
                GO_ON
            }
            Command::StmtExecute(_) => {
                ended = self.stmt_execute(range.start + 1..range.end, now).await;
                GO_ON
            }
            Command::StmtPrepare(text) => {
                let text = Bytes::copy_from_slice(without_nul(text));
                self.log_command(Activity::Prepare, text.clone());
                self.stmt_prepare(text).await;
                GO_ON
            }
            _ => {
                let (activity, begun) = (activity(&command), self.begin_observed(now));
                let flow = self.other_command(range).await;
                ended = Some(self.end_observed(begun, Observed::Command(activity)));
                flow
            }
        };
        self.settle(start).await;
        self.runner.state_mut().command_over();
        self.process.end(ended.unwrap_or_else(crate::clock::now_us));
        flow
    }

    async fn other_command(&mut self, range: Range<usize>) -> Result<Flow, NetError> {
        self.refresh();
        let Ok(command) = Command::decode(self.channel.payload(range.clone())) else { return GO_ON };
        self.process.counters.add(Counter::Queries, 1);
        if self.logs_commands() && !matches!(command, Command::ProcessInfo | Command::StmtSendLongData { .. })
        {
            self.log_command(activity(&command), argument(&command));
        }
        if let Err(error) = self.identity.access.check_command(&command) {
            self.failed(error);
            return GO_ON;
        }
        match command {
            Command::Quit => return Ok(ControlFlow::Break(())),
            Command::Ping => self.ok(0, 0, ""),
            Command::InitDb(name) => {
                let name = name.to_vec();
                let name = self.client_name(&name);
                let done = self.use_database(&name);
                self.reply(done);
            }
            Command::StmtClose(id) => self.stmt_close(id),
            Command::StmtReset(id) => self.stmt_reset(id),
            Command::StmtSendLongData { .. } => self.stmt_long_data(range),
            Command::StmtFetch { id, rows } => self.stmt_fetch(id, rows),
            Command::SetOption(option) => self.set_option(option),
            Command::Statistics => self.statistics(),
            Command::ProcessKill(id) => {
                let done = self.kill(u64::from(id), false);
                self.reply(done);
            }
            Command::ProcessInfo => {
                let text = Bytes::from_static(b"SHOW FULL PROCESSLIST");
                self.query(text, crate::clock::now_us()).await;
            }
            Command::Refresh(_) | Command::Debug => self.ok(0, 0, ""),
            Command::Shutdown => {
                self.ok(0, 0, "");
                self.server.stop("COM_SHUTDOWN");
            }
            Command::ResetConnection => self.reset_connection(),
            Command::ChangeUser(payload) => {
                let payload = payload.to_vec();
                return self.change_user(&payload).await;
            }
            Command::FieldList { table, .. } => {
                let table = table.to_vec();
                self.field_list(&table).await;
            }
            Command::RegisterSlave(payload) => {
                let payload = payload.to_vec();
                let done = self.register_replica(&payload);
                self.reply(done);
            }
            Command::BinlogDump(payload) | Command::BinlogDumpGtid(payload) => {
                let by_gtid = matches!(command, Command::BinlogDumpGtid(_));
                let payload = payload.to_vec();
                // Boxed: every connection would carry its state.
                if Box::pin(self.binlog_dump(payload, by_gtid)).await? {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Command::Unknown(_) => self.channel.error(&errors::unknown_command()),
            Command::Query(_) | Command::StmtExecute(_) | Command::StmtPrepare(_) => {}
        }
        GO_ON
    }

    /// OK or an error.
    pub(crate) fn reply(&mut self, done: SqlResult<()>) {
        match done {
            Ok(()) => self.ok(0, 0, ""),
            Err(error) => {
                self.failed(error);
            }
        }
    }

    /// USE.
    pub(crate) fn use_database(&mut self, name: &str) -> SqlResult<()> {
        let computed = ["information_schema", "performance_schema", "sys"]
            .into_iter()
            .find(|s| name.eq_ignore_ascii_case(s));
        if computed.is_none() {
            self.identity.access.check(name, None, Priv::Any)?;
            let exists = self.server.runners.database_exists(name);
            if let Some(floor) = &self.replies.floor {
                floor.see_definitions();
            }
            if !exists {
                return Err(SqlError::bad_db(name));
            }
        }
        let name: Arc<str> = computed.unwrap_or(name).into();
        self.runner.state_mut().database = Some(name.clone());
        self.process.identity.lock().db = Some(name);
        self.replies.schema_changed = true;
        Ok(())
    }

    fn set_option(&mut self, option: u16) {
        match option {
            0 => self.replies.multi_statements = true,
            1 => self.replies.multi_statements = false,
            _ => {
                self.channel.error(&errors::unknown_command());
                return;
            }
        }
        // The reply has always been an EOF packet.
        let (caps, status) = (self.channel.caps, self.status());
        if caps.has(Capability::DEPRECATE_EOF) {
            self.end_of_rows(false);
        } else {
            self.channel.out.packet(|out| omnibus_wire::reply::encode_eof(out, 0, status));
        }
    }

    fn statistics(&mut self) {
        use omnibus_sql::{SessionHost, VariableScope};
        let status = self.shared.status(VariableScope::Global);
        let get = |name: &str| status.iter().find(|(n, _)| n == name).map_or("0", |(_, v)| v.as_str());
        let uptime: u64 = get("Uptime").parse().unwrap_or(0);
        let questions: u64 = get("Questions").parse().unwrap_or(0);
        let text = format!(
            "Uptime: {uptime}  Threads: {}  Questions: {questions}  Slow queries: {}  Opens: 0  Flush tables: 1  \
             Open tables: 0  Queries per second avg: {:.3}",
            get("Threads_connected"),
            get("Slow_queries"),
            questions as f64 / uptime.max(1) as f64
        );
        self.channel.out.packet(|out| out.extend_from_slice(text.as_bytes()));
    }

    fn reset_connection(&mut self) {
        tokio::task::block_in_place(|| self.runner.reset());
        self.prepared.close_all();
        *self.shared.vars.lock() = crate::sysvars::SessionVars::new(&self.server.globals);
        self.gtids.anonymous = None;
        // Whoever has to change the password goes on having to, and so do roles that a REVOKE has taken.
        let _ = self.set_role(&omnibus_parser::ast::RoleSet::Default);
        self.apply_settings();
        self.ok(0, 0, "");
    }

    async fn change_user(&mut self, payload: &[u8]) -> Result<Flow, NetError> {
        use crate::auth::{AuthFailure, Authenticated, authenticate, new_scramble};
        let refused = |error| -> Result<Flow, SqlError> { Err(error) };
        let attempt = async {
            let Ok(login) = omnibus_wire::Login::decode_change_user(payload, self.channel.caps) else {
                return refused(errors::malformed_packet());
            };
            let user = utf8(&login.user);
            let table = self.server.accounts.table();
            let plugin = self.server.default_plugin();
            let authenticator = self.server.authenticator(&table, &plugin);
            // The answer was made for the greeting's salt, which is gone: asking for a switch with a
            // fresh one is what MySQL does too.
            let scramble = new_scramble();
            let answer = if login.auth.is_empty() { &[][..] } else { &login.auth };
            let plugin = if answer.is_empty() { login.plugin.as_deref() } else { Some(&b"?"[..]) };
            let done = if self.server.skips_grants() {
                Ok(Authenticated { account: Arc::new(Account::anybody()), proxy: None })
            } else {
                let (channel, client) = (&mut self.channel, &self.identity.client);
                let done = authenticate(&authenticator, channel, scramble, &user, client, plugin, answer);
                done.await
            };
            let Authenticated { account, proxy } = match done {
                Ok(done) => done,
                Err(AuthFailure::Refused(error)) => return refused(error),
                Err(AuthFailure::Net(error)) => {
                    tracing::debug!(%error, "COM_CHANGE_USER broken off");
                    return Ok(ControlFlow::Break(()));
                }
            };
            let proved = proxy.as_ref().unwrap_or(&account);
            let confined = self.server.has_to_change_password(proved, self.channel.caps)?;
            self.identity.place.hand_over(&account)?;
            tokio::task::block_in_place(|| self.runner.reset());
            self.prepared.close_all();
            self.become_account(account, proxy.as_deref(), user);
            self.identity.access.confine(confined);
            *self.shared.vars.lock() = crate::sysvars::SessionVars::new(&self.server.globals);
            self.gtids.anonymous = None;
            self.shared.set_login_collation(login.collation);
            self.apply_settings();
            self.runner.state_mut().database = None;
            {
                let mut identity = self.process.identity.lock();
                (identity.db, identity.attributes) = (None, self.server.kept_attributes(&login.attrs));
            }
            if let Some(db) = login.database {
                self.use_database(&utf8(&db))?;
            }
            Ok(ControlFlow::Continue(()))
        };
        match attempt.await {
            Ok(ControlFlow::Continue(())) => {
                self.audit_connection(Operation::ChangeUser, self.runner.state().database.clone(), 0);
                self.ok(0, 0, "");
                GO_ON
            }
            Ok(ControlFlow::Break(())) => Err(NetError::Closed),
            Err(error) => {
                self.audit_connection(Operation::ChangeUser, None, error.code);
                let start = self.reply_start();
                self.channel.error(&error);
                self.settle(start).await;
                self.channel.close().await;
                Ok(ControlFlow::Break(()))
            }
        }
    }

    fn become_account(&mut self, account: Arc<Account>, proxy: Option<&Account>, user: String) {
        self.identity.access = super::SessionAccess::new(
            account.clone(),
            &user,
            &self.identity.client.name(),
            &self.server.accounts,
        )
        .behind(proxy)
        .logged_in();
        self.shared.set_account(&self.identity.access);
        {
            let mut identity = self.process.identity.lock();
            (identity.user, identity.account) = (user.clone(), account.plain());
        }
        let state = self.runner.state_mut();
        state.user = user.clone();
        state.account = account.plain();
        self.identity.user = user;
    }

    /// COM_FIELD_LIST: the definitions alone, which are those of an empty SELECT.
    async fn field_list(&mut self, table: &[u8]) {
        let mut text = b"SELECT * FROM `".to_vec();
        for &byte in table {
            text.push(byte);
            if byte == b'`' {
                text.push(byte);
            }
        }
        text.extend_from_slice(b"` LIMIT 0");
        let text = Bytes::from(text);
        let prepared = match self.parse(&text) {
            Ok((parsed, _)) => self.plan_prepared(&parsed),
            Err(error) => Err(error),
        };
        match prepared {
            Ok(info) => {
                let collation = self.runner.state().settings.collation_results;
                for column in &info.columns {
                    super::sink::put_field(&mut self.channel.out, column, collation);
                }
                self.end_of_rows(false);
            }
            Err(error) => {
                self.failed(error);
            }
        }
    }
}
