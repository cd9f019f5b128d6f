//! An event that runs: a session of its own, in its definer's name, whose results nobody reads.

use super::{Cleanup, Session, login};
use crate::account::Account;
use crate::connection::ConnectionPlace;
use crate::net::ClientHost;
use crate::net::{PacketStream, Stream};
use crate::parsed::{Parsed, parse};
use crate::process::Activity;
use crate::server::Server;
use bytes::Bytes;
use omnibus_parser::ast::{EventStatus, ObjectName, Span, Spanned, Statement};
use omnibus_sql::{Database, Level, ProgramDef, SqlError, quote_ident};
use omnibus_wire::Capability;
use std::sync::Arc;
use tokio::net::UnixStream;

/// Runs an event that is due, or one that will never be (`runs`: false). `last`: it will not be due again. What fails is told in the log.
pub(crate) async fn run_event(server: Arc<Server>, def: Arc<ProgramDef>, runs: bool, last: bool) {
    let process = server.processes.register();
    let _cleanup = Cleanup { server: server.clone(), process: process.clone() };
    let (definer, event) = (def.definer(), def.full_name());
    let tell = |error: &SqlError| {
        tracing::error!(code = error.code, "event {event} of {}: {}", definer.plain(), error.message);
    };
    let account = server.accounts.table().exact(definer.account().0, definer.account().1);
    let Some(account) = account else {
        tell(&SqlError::no_such_user(&definer.user, &definer.host));
        return;
    };
    let opened = ConnectionPlace::aside(&server, &account)
        .and_then(|place| of_event(&server, &process, account, place))
        .inspect_err(tell);
    let Ok(mut session) = opened else { return };
    keep_zone(&mut session, &def);
    let is_current = !last
        || is_last(&mut session, &def).await.unwrap_or_else(|error| {
            tell(&error);
            false
        });
    if is_current && runs {
        let body = def.event_tree().ok().and_then(|tree| tree.clauses.program).map(|program| program.text);
        run_body(&mut session, &def, body.unwrap_or_default()).await;
        for (level, condition) in session.sql.state.diagnostics.conditions() {
            match level {
                Level::Error => tell(condition),
                _ => tracing::warn!(code = condition.code, "event {event}: {}", condition.message),
            }
        }
    }
    session.close();
    if is_current && last {
        drop_if_over(&server, &def).await;
    }
}

/// The events of all databases. Does not block.
pub(crate) fn events(database: &Database) -> Vec<Arc<ProgramDef>> {
    let catalog = database.catalog();
    catalog.programs().filter(|def| def.event.is_some()).cloned().collect()
}

/// Drops an event that has run for the last time, unless its body, or somebody, has made another one of it.
pub(crate) async fn drop_if_over(server: &Arc<Server>, def: &ProgramDef) {
    let known = events(&server.database);
    let current = known.iter().find(|now| now.key() == def.key() && now.db == def.db);
    let over = |now: &Arc<ProgramDef>| {
        let (Some(now), Some(old)) = (&now.event, &def.event) else { return false };
        let same = Arc::ptr_eq(&now.executed, &old.executed);
        same && !now.preserve && now.status == EventStatus::Disabled
    };
    if !current.is_some_and(over) {
        return;
    }
    let process = server.processes.register();
    let _cleanup = Cleanup { server: server.clone(), process: process.clone() };
    // Whoever made it need not be allowed to drop it any more.
    let anybody = Arc::new(Account::anybody());
    let place = ConnectionPlace::aside(server, &anybody);
    let opened = place.and_then(|place| of_event(server, &process, anybody, place));
    let Ok(mut session) = opened else { return };
    let text = format!("DROP EVENT IF EXISTS {}.{}", quote_ident(&def.db), quote_ident(&def.name));
    if let Ok((parsed, _)) = parse(&mut session.sql, &Bytes::from(text)) {
        run_alone(&mut session, &parsed).await;
    }
    for (_, condition) in session.sql.state.diagnostics.conditions() {
        tracing::error!(
            code = condition.code,
            "event {} is over and stays: {}",
            def.full_name(),
            condition.message
        );
    }
    session.close();
}

fn of_event(
    server: &Arc<Server>,
    process: &Arc<crate::process::Process>,
    account: Arc<Account>,
    place: ConnectionPlace,
) -> Result<Session, SqlError> {
    let (ours, theirs) = UnixStream::pair().map_err(|error| SqlError::internal(error.to_string()))?;
    tokio::spawn(async move {
        let mut theirs = theirs;
        let _ = tokio::io::copy(&mut theirs, &mut tokio::io::sink()).await;
    });
    let mut packets = PacketStream::new(Stream::from(ours));
    packets.caps = Capability::PROTOCOL_41.with(Capability::DEPRECATE_EOF).with(Capability::MULTI_RESULTS);
    {
        let mut identity = process.identity.lock();
        identity.user.clone_from(&account.user);
        identity.account = account.plain();
        identity.host = "localhost".into();
    }
    let collation = server.globals.named("collation_server");
    let collation = crate::charset::by_name(collation.as_str()).map_or(crate::charset::DEFAULT_ID, |c| c.id);
    let login = login::LoggedIn {
        user: account.user.clone(),
        account,
        proxy: None,
        database: None,
        collation,
        compression: None,
        attributes: Default::default(),
        must_change_password: false,
        place,
    };
    Ok(Session::open(server.clone(), packets, process.clone(), ClientHost::local(), login))
}

/// An event runs in the time zone that it was made in.
fn keep_zone(session: &mut Session, def: &ProgramDef) {
    let Some(event) = &def.event else { return };
    let zone = crate::sysvars::VarValue::Str((*event.zone).into());
    session.settings.shared.vars.lock().set_named("time_zone", zone);
    session.admin().apply_settings();
}

/// Notes that the event runs for the last time. `false`: it is another one meanwhile, or gone.
async fn is_last(session: &mut Session, def: &Arc<ProgramDef>) -> Result<bool, SqlError> {
    let noted = crate::net::blocking(|| session.sql.event_is_over(def));
    let ticket = noted.map_err(|interrupt| match interrupt {
        omnibus_sql::Interrupt::Error(error) => error,
        _ => SqlError::internal("the end of an event can't be noted"),
    })?;
    let Some(ticket) = ticket else { return Ok(false) };
    ticket.await.map_err(SqlError::of_commit)?;
    Ok(true)
}

async fn run_body(session: &mut Session, def: &ProgramDef, body: Bytes) {
    let name = ObjectName { schema: Some((&*def.db).into()), name: (&*def.name).into() };
    let node = Statement::RunEvent(name);
    let kind = crate::status::com_index(node.kind());
    let span = Span { start: 0, end: body.len() as u32 };
    let statement = Arc::new(Spanned { node, span, params: 0 });
    run_alone(session, &Arc::new(Parsed { text: body, statement, kind, values: Vec::new() })).await;
}

async fn run_alone(session: &mut Session, parsed: &Arc<Parsed>) {
    session.client.process.begin(Activity::Connect, &parsed.text, crate::clock::now_us());
    session.statement(parsed, false).await;
    let _ = session.client.packets.flush().await;
    session.client.process.end(crate::clock::now_us());
}
