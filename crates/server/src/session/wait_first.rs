//! A statement that waits for transactions is waited for before it runs, without a thread.

use super::Session;
use crate::connection::{SessionShared, evaluate_plain};
use crate::gtid::{Context, Goal, LOOK, shown_wait, wish};
use crate::process::{Process, Stage};
use crate::server::Server;
use omnibus_commit::Coordinator;
use omnibus_parser::ast::Statement;
use omnibus_sql::SqlResult;
use omnibus_value::Value;

/// Waits for what the statement is going to wait for, if it is that kind of statement. Errors are left to it.
pub(super) async fn wait_first(session: &mut Session, statement: &Statement) -> SqlResult<()> {
    let Some((name, args)) = shown_wait(statement) else { return Ok(()) };
    let Some(coordinator) = session.server.log.coordinator().cloned() else { return Ok(()) };
    let (server, shared, process) =
        (session.server.clone(), session.settings.shared.clone(), session.client.process.clone());
    let state = &session.sql.state;
    let values: Option<Vec<Value>> =
        args.iter().map(|arg| Some(evaluate_plain(&shared, state, arg)?.ok()?.0)).collect();
    let Some(Ok(Some((goal, limit)))) = values.map(|values| wish(name, &values)) else { return Ok(()) };
    let Some(_counted) = coordinator.gtids().count_wait() else { return Ok(()) };
    let started = tokio::time::Instant::now();
    let mut pause = LOOK.0;
    let events = || goal.events(server.replicas.get().map(|replicas| &**replicas));
    let before = events();
    let position = matches!(goal, Goal::Position(..));
    process.stage(if position { Stage::WaitingForPosition } else { Stage::WaitingForGtid });
    let mut waited = None;
    loop {
        if reached(&server, &process, &shared, &goal, &coordinator) != Some(false)
            || limit.is_some_and(|limit| started.elapsed() >= limit)
        {
            break;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = process.killed.notified() => {}
        }
        process.kill.check()?;
        pause = (pause * 2).min(LOOK.1);
        waited = Some(events().saturating_sub(before));
    }
    process.stage(Stage::Executing);
    // What needs no waiting is seen again by the statement.
    shared.set_waited(waited);
    Ok(())
}

fn reached(
    server: &Server,
    process: &Process,
    shared: &SessionShared,
    goal: &Goal,
    coordinator: &Coordinator,
) -> Option<bool> {
    let slave_pos = || shared.slave_position();
    let (kill, replicas) = (&process.kill, server.replicas.get().map(|replicas| &**replicas));
    goal.reached(&Context { coordinator, slave_pos: &slave_pos, replicas, kill, waited: None })
}
