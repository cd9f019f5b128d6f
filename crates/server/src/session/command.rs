//! Commands of the protocol. A command that breaks off here gets an error packet; only a broken
//! connection ends the session.

use super::Session;
use super::dumping::{binlog_dump, register_replica};
use super::observe::{Observed, Observer};
use super::prepared::{NamedValues, attribute_values, plan_prepared, stmt_close, stmt_long_data};
use crate::account::Account;
use crate::admin;
use crate::connection::{Client, SessionAccess, SessionShared, has_to_change_password, put_field, status};
use crate::errors;
use crate::net::{NetError, PacketStream};
use crate::parsed::parse;
use crate::process::Activity;
use crate::query_log::Operation;
use crate::status::Counter;
use bytes::Bytes;
use omnibus_sql::api::client_text::to_parser;
use omnibus_sql::{AccessCheck, Priv, SessionState, SqlError, SqlResult, SqlSession};
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

/// The argument of a command, as the general log has it.
fn argument(command: &Command<'_>) -> Bytes {
    match command {
        Command::InitDb(text) | Command::FieldList { table: text, .. } => Bytes::copy_from_slice(text),
        Command::ProcessKill(id) => id.to_string().into(),
        _ => Bytes::new(),
    }
}

/// Tells the general log of a command that is no statement.
fn log(observer: &Observer<'_>, command: &Command<'_>) {
    if observer.logs_commands() && !matches!(command, Command::ProcessInfo | Command::StmtSendLongData { .. })
    {
        observer.log_command(activity(command), argument(command));
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

/// A name that the client sent by itself, from its character set.
fn client_name(state: &SessionState, name: &[u8]) -> String {
    utf8(&to_parser(name, state.settings.collation_client))
}

/// The text of COM_QUERY, and what stands in front of it.
fn without_attributes<'t>(
    caps: Capability,
    state: &mut SessionState,
    text: &'t [u8],
) -> SqlResult<(&'t [u8], NamedValues)> {
    if text.is_empty() || !caps.has(Capability::QUERY_ATTRIBUTES) {
        return Ok((text, Vec::new()));
    }
    let malformed = |_| errors::malformed_packet();
    let count = omnibus_wire::stmt::query_attribute_count(text).map_err(malformed)?;
    if count > 0 {
        state.ask(omnibus_wire::stmt::memory_of_params(count, text.len()))?;
    }
    let client = state.settings.collation_client;
    let (attributes, text) = omnibus_wire::stmt::query_attributes(text).map_err(malformed)?;
    Ok((text, attribute_values(&attributes, client)?))
}

impl Session {
    /// Runs the command in the input buffer and collects its reply.
    pub(super) async fn command(&mut self, range: Range<usize>) -> Result<Flow, NetError> {
        crate::net::end_turn();
        let command = match Command::decode(self.client.packets.payload(range.clone())) {
            Ok(command) => command,
            Err(_) => {
                self.client.packets.error(&errors::malformed_packet());
                return GO_ON;
            }
        };
        let now = crate::clock::now_us();
        let start = self.client.reply_start();
        if self.client.process.kill.check().is_err() {
            self.client.process.kill.reset();
            self.sql.watch().clear_kill();
        }
        let text = if let Command::Query(text) = command { text } else { &[] };
        let caps = self.client.packets.caps;
        let (text, attributes) = match without_attributes(caps, &mut self.sql.state, text) {
            Ok(split) => split,
            Err(error) => {
                self.client.packets.error(&error);
                self.sql.state.command.end();
                return GO_ON;
            }
        };
        self.client.process.begin(activity(&command), text, now);
        let mut ended = None;
        let flow = match command {
            Command::Query(_) => {
                let text = Bytes::copy_from_slice(without_nul(text));
                self.sql.state.command.attributes = attributes;
                ended = self.query(text, now).await;
                GO_ON
            }
            Command::StmtExecute(_) => {
                ended = self.stmt_execute(range.start + 1..range.end, now).await;
                GO_ON
            }
            Command::StmtPrepare(text) => {
                let text = Bytes::copy_from_slice(without_nul(text));
                self.observer().log_command(Activity::Prepare, text.clone());
                self.stmt_prepare(text).await;
                GO_ON
            }
            _ => {
                let (activity, begun) = (activity(&command), self.begin_observed(now));
                let flow = self.other_command(range).await;
                ended = Some(self.observer().end(begun, Observed::Command(activity)));
                flow
            }
        };
        self.client.settle(&mut self.sql, start).await;
        self.sql.state.command.end();
        self.client.process.end(ended.unwrap_or_else(crate::clock::now_us));
        if self.settings.leaves {
            self.client.flush().await?;
            return Ok(ControlFlow::Break(()));
        }
        flow
    }

    async fn other_command(&mut self, range: Range<usize>) -> Result<Flow, NetError> {
        self.refresh();
        let Ok(command) = Command::decode(self.client.packets.payload(range.clone())) else { return GO_ON };
        self.client.process.counters.add(Counter::Queries, 1);
        log(&self.observer(), &command);
        if let Err(error) = self.login.access.check_command(&command) {
            self.failed(error);
            return GO_ON;
        }
        match command {
            Command::Quit => return Ok(ControlFlow::Break(())),
            Command::Ping => self.ok(),
            Command::InitDb(name) => {
                let name = client_name(&self.sql.state, name);
                let done = self.use_database(&name);
                self.client.reply(&mut self.sql, done);
            }
            Command::StmtClose(id) => stmt_close(&self.client, &mut self.prepared, id),
            Command::StmtReset(id) => self.stmt_reset(id),
            Command::StmtSendLongData { .. } => stmt_long_data(
                &self.client,
                &mut self.prepared,
                &self.settings.shared,
                &self.sql.state,
                range,
            ),
            Command::StmtFetch { id, rows } => self.stmt_fetch(id, rows),
            Command::SetOption(option) => set_option(&mut self.client, &self.sql, option),
            Command::Statistics => statistics(&mut self.client.packets, &self.settings.shared),
            Command::ProcessKill(id) => {
                let process = &self.client.process;
                let done = admin::kill(&self.server, process, &self.login, u64::from(id), false);
                self.client.reply(&mut self.sql, done);
            }
            Command::ProcessInfo => {
                let text = Bytes::from_static(b"SHOW FULL PROCESSLIST");
                self.query(text, crate::clock::now_us()).await;
            }
            Command::Refresh(_) | Command::Debug => self.ok(),
            Command::Shutdown => {
                self.ok();
                self.server.stop("COM_SHUTDOWN");
            }
            Command::ResetConnection => self.reset_connection(),
            Command::ChangeUser(payload) => {
                let payload = payload.to_vec();
                return self.change_user(&payload).await;
            }
            Command::FieldList { table, .. } => {
                let table = table.to_vec();
                field_list(&mut self.client, &mut self.sql, &self.login.access, &table);
            }
            Command::RegisterSlave(payload) => {
                let payload = payload.to_vec();
                let done = register_replica(self, &payload);
                self.client.reply(&mut self.sql, done);
            }
            Command::BinlogDump(payload) | Command::BinlogDumpGtid(payload) => {
                let by_gtid = matches!(command, Command::BinlogDumpGtid(_));
                let payload = payload.to_vec();
                // Boxed: every connection would carry its state.
                if Box::pin(binlog_dump(self, payload, by_gtid)).await? {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Command::Unknown(_) => self.client.packets.error(&errors::unknown_command()),
            Command::Query(_) | Command::StmtExecute(_) | Command::StmtPrepare(_) => {}
        }
        GO_ON
    }

    /// USE.
    pub(crate) fn use_database(&mut self, name: &str) -> SqlResult<()> {
        let computed = ["information_schema", "performance_schema", "sys"]
            .into_iter()
            .find(|s| name.eq_ignore_ascii_case(s));
        if computed.is_none() {
            self.login.access.check(name, None, Priv::Any)?;
            let exists = self.server.database.catalog().schema(name).is_ok();
            self.client.replies.floor.see_definitions();
            if !exists {
                return Err(SqlError::bad_db(name));
            }
        }
        let name: Arc<str> = computed.unwrap_or(name).into();
        self.sql.state.database = Some(name.clone());
        self.client.process.identity.lock().db = Some(name);
        self.client.told.schema_changed();
        Ok(())
    }

    fn reset_connection(&mut self) {
        crate::net::blocking(|| self.sql.reset());
        self.prepared.close_all();
        self.settings.begin_anew(&self.server.globals);
        // Whoever has to change the password goes on having to, and so do roles that a REVOKE has taken.
        let _ = self.admin().set_role(&omnibus_parser::ast::RoleSet::Default);
        self.admin().apply_settings();
        self.ok();
    }

    async fn change_user(&mut self, payload: &[u8]) -> Result<Flow, NetError> {
        use crate::auth::{AuthFailure, Authenticated, authenticate, new_scramble};
        let refused = |error| -> Result<Flow, SqlError> { Err(error) };
        let attempt = async {
            let Ok(login) = omnibus_wire::Login::decode_change_user(payload, self.client.packets.caps) else {
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
                let (packets, client) = (&mut self.client.packets, &self.login.host);
                let done = authenticate(&authenticator, packets, scramble, &user, client, plugin, answer);
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
            let confined = has_to_change_password(&self.server, proved, self.client.packets.caps)?;
            self.login.place.hand_over(&account)?;
            crate::net::blocking(|| self.sql.reset());
            self.prepared.close_all();
            self.become_account(account, proxy.as_deref(), user);
            self.login.access.confine(confined);
            self.settings.begin_anew(&self.server.globals);
            self.settings.shared.set_login_collation(login.collation);
            self.admin().apply_settings();
            self.sql.state.database = None;
            {
                let mut identity = self.client.process.identity.lock();
                (identity.db, identity.attributes) = (None, self.server.kept_attributes(&login.attrs));
            }
            if let Some(db) = login.database {
                self.use_database(&utf8(&db))?;
            }
            Ok(ControlFlow::Continue(()))
        };
        match attempt.await {
            Ok(ControlFlow::Continue(())) => {
                self.observer().audit_connection(Operation::ChangeUser, self.sql.state.database.clone(), 0);
                self.ok();
                GO_ON
            }
            Ok(ControlFlow::Break(())) => Err(NetError::Closed),
            Err(error) => {
                self.observer().audit_connection(Operation::ChangeUser, None, error.code);
                let start = self.client.reply_start();
                self.client.packets.error(&error);
                self.client.settle(&mut self.sql, start).await;
                self.client.packets.close().await;
                Ok(ControlFlow::Break(()))
            }
        }
    }

    fn become_account(&mut self, account: Arc<Account>, proxy: Option<&Account>, user: String) {
        self.login.access =
            SessionAccess::new(account.clone(), &user, &self.login.host.name(), &self.server.accounts)
                .behind(proxy)
                .logged_in();
        self.settings.shared.set_account(&self.login.access);
        {
            let mut identity = self.client.process.identity.lock();
            (identity.user, identity.account) = (user.clone(), account.plain());
        }
        let state = &mut self.sql.state;
        state.login.user = user.clone();
        state.login.account = account.plain();
        self.login.user = user;
    }
}

/// COM_SET_OPTION.
fn set_option(client: &mut Client, sql: &SqlSession, option: u16) {
    match option {
        0 => client.replies.multi_statements = true,
        1 => client.replies.multi_statements = false,
        _ => {
            client.packets.error(&errors::unknown_command());
            return;
        }
    }
    // The reply has always been an EOF packet.
    let (caps, status) = (client.packets.caps, status(sql));
    if caps.has(Capability::DEPRECATE_EOF) {
        client.end_of_rows(sql, false);
    } else {
        client.packets.out.packet(|out| omnibus_wire::reply::encode_eof(out, 0, status));
    }
}

/// COM_STATISTICS.
fn statistics(packets: &mut PacketStream, shared: &SessionShared) {
    use omnibus_sql::{SessionHost, VariableScope};
    let status = shared.status(VariableScope::Global);
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
    packets.out.packet(|out| out.extend_from_slice(text.as_bytes()));
}

/// COM_FIELD_LIST: the definitions alone, which are those of an empty SELECT.
fn field_list(client: &mut Client, sql: &mut SqlSession, access: &SessionAccess, table: &[u8]) {
    let mut text = b"SELECT * FROM ".to_vec();
    omnibus_value::literal::write_name(table, &mut text);
    text.extend_from_slice(b" LIMIT 0");
    let text = Bytes::from(text);
    let prepared = match parse(sql, &text) {
        Ok((parsed, _)) => plan_prepared(sql, access, &parsed),
        Err(error) => Err(error),
    };
    match prepared {
        Ok(prepared) => {
            let collation = sql.state.settings.collation_results;
            for column in prepared.columns.iter() {
                put_field(&mut client.packets.out, column, collation);
            }
            client.end_of_rows(sql, false);
        }
        Err(error) => {
            client.failed(sql, error);
        }
    }
}
