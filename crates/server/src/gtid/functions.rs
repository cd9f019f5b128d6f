//! The functions over GTID sets and positions: GTID_SUBSET, GTID_SUBTRACT, WAIT_FOR_EXECUTED_GTID_SET, BINLOG_GTID_POS,
//! MASTER_GTID_WAIT, SOURCE_POS_WAIT (MASTER_POS_WAIT).
//!
//! Those that wait are waited for by the session's task before their statement runs (`wait_first`), where they are what
//! a SELECT shows, so that no thread is held. What they answer is decided when the statement runs. Anywhere else in a
//! statement they block the thread that runs it, which may block.

use super::error;
use crate::replica::Replicas;
use omnibus_commit::Coordinator;
use omnibus_format::{Dialect, GtidPosition, GtidSet};
use omnibus_parser::ast::{Expr, QueryBody, SelectItem, Statement};
use omnibus_replication::replica::SourcePosition;
use omnibus_sql::{KillFlag, SqlError, SqlResult};
use omnibus_value::Value;
use std::time::{Duration, Instant};

/// How often a waiting function looks, at first and later.
pub(crate) const LOOK: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// The sources of a function's answer.
pub(crate) struct Context<'a> {
    pub(crate) coordinator: &'a Coordinator,
    /// `gtid_slave_pos`.
    pub(crate) slave_pos: &'a dyn Fn() -> String,
    /// This server's channels as a replica.
    pub(crate) replicas: Option<&'a Replicas>,
    pub(crate) kill: &'a KillFlag,
    /// The statement has waited already: how many events went by.
    pub(crate) waited: Option<u64>,
}

/// The goal of a wait.
pub(crate) enum Goal {
    Executed(GtidSet),
    Applied(GtidPosition),
    /// Of a channel, or of the only one.
    Position(SourcePosition, Option<String>),
}

impl Goal {
    /// `None`: waiting for it is in vain.
    pub(crate) fn reached(&self, context: &Context<'_>) -> Option<bool> {
        match self {
            Goal::Executed(set) => Some(context.coordinator.gtids().has_published(set)),
            Goal::Applied(position) => {
                let now = (context.slave_pos)().parse::<GtidPosition>();
                Some(now.is_ok_and(|now| now.reaches(position)))
            }
            Goal::Position(position, channel) => context.replicas?.applied(channel.as_deref(), position),
        }
    }

    /// A position's channel: how many events it has applied so far.
    pub(crate) fn events(&self, replicas: Option<&Replicas>) -> u64 {
        match (self, replicas) {
            (Goal::Position(_, channel), Some(replicas)) => replicas.applied_events(channel.as_deref()),
            _ => 0,
        }
    }

    /// The function's answer when it is reached: how many events a position was waited for.
    fn answer(&self, waited: Option<u64>) -> i64 {
        match (self, waited) {
            (Goal::Position(..), Some(events)) => i64::try_from(events).unwrap_or(i64::MAX).max(1),
            _ => 0,
        }
    }

    /// The function's answer when it is not reached in time.
    fn late(&self) -> i64 {
        match self {
            Goal::Executed(_) => 1,
            Goal::Applied(_) | Goal::Position(..) => -1,
        }
    }
}

/// A wait as its arguments say: what for, and how long at most. `None` where an argument is NULL.
pub(crate) fn wish(name: &str, args: &[Value]) -> SqlResult<Option<(Goal, Option<Duration>)>> {
    let Some(text) = args.first().and_then(text_of) else { return Ok(None) };
    if name.ends_with("_POS_WAIT") {
        return Ok(wish_of_position(&text, args));
    }
    let goal = if name == "WAIT_FOR_EXECUTED_GTID_SET" {
        Goal::Executed(set_of(&text)?)
    } else {
        Goal::Applied(text.parse().map_err(|_| error(1941, "Could not parse GTID list"))?)
    };
    let seconds = match args.get(1) {
        None => 0.0,
        Some(value) => match text_of(value).and_then(|text| text.trim().parse::<f64>().ok()) {
            Some(seconds) => seconds,
            None => return Ok(None),
        },
    };
    let executed = name == "WAIT_FOR_EXECUTED_GTID_SET";
    if executed && seconds < 0.0 {
        return Err(SqlError::wrong_arguments(name));
    }
    // MySQL's 0 is no limit; MariaDB's only looks, and its default is no limit.
    let unlimited = if executed { seconds == 0.0 } else { args.len() < 2 || seconds < 0.0 };
    Ok(Some((goal, (!unlimited).then(|| Duration::from_secs_f64(seconds.clamp(0.0, 1e9))))))
}

/// File, position, seconds (0 for no limit), channel.
fn wish_of_position(file: &str, args: &[Value]) -> Option<(Goal, Option<Duration>)> {
    let number = |at: usize| args.get(at).and_then(text_of)?.trim().parse::<f64>().ok();
    let position = number(1).filter(|position| *position >= 0.0)?;
    let seconds = if args.len() > 2 { number(2)? } else { 0.0 };
    let channel = if args.len() > 3 { Some(args.get(3).and_then(text_of)?.to_lowercase()) } else { None };
    let goal = Goal::Position(SourcePosition::new(file, position as u64), channel);
    Some((goal, (seconds > 0.0).then(|| Duration::from_secs_f64(seconds.min(1e9)))))
}

/// Answers a function. `None`: not one of these, or not of the server's dialect.
pub(crate) fn call(context: &Context<'_>, name: &str, args: &[Value]) -> Option<SqlResult<Value>> {
    let mysql = context.coordinator.log().dialect() == Dialect::Mysql;
    match name {
        "GTID_SUBSET" | "GTID_SUBTRACT" if mysql => Some(sets(name, args)),
        "WAIT_FOR_EXECUTED_GTID_SET" if mysql => Some(wait(context, name, args)),
        "MASTER_GTID_WAIT" if !mysql => Some(wait(context, name, args)),
        "MASTER_POS_WAIT" | "SOURCE_POS_WAIT" => Some(wait(context, name, args)),
        "BINLOG_GTID_POS" if !mysql => Some(position_at(context.coordinator, args)),
        _ => None,
    }
}

fn sets(name: &str, args: &[Value]) -> SqlResult<Value> {
    let (Some(first), Some(second)) = (args.first().and_then(text_of), args.get(1).and_then(text_of)) else {
        return Ok(Value::Null);
    };
    let (mut first, second) = (set_of(&first)?, set_of(&second)?);
    if name == "GTID_SUBSET" {
        return Ok(Value::Int(i64::from(second.contains_set(&first))));
    }
    first.subtract(&second);
    Ok(Value::Bytes(first.to_string().into()))
}

fn wait(context: &Context<'_>, name: &str, args: &[Value]) -> SqlResult<Value> {
    let Some((goal, limit)) = wish(name, args)? else { return Ok(Value::Null) };
    let counted = context.coordinator.gtids().count_wait();
    if matches!(goal, Goal::Executed(_)) && counted.is_none() {
        return Err(error(3062, format!("Cannot use {name} when GTID_MODE = OFF.")));
    }
    let started = Instant::now();
    let mut pause = LOOK.0;
    let before = goal.events(context.replicas);
    let mut waited = context.waited;
    loop {
        match goal.reached(context) {
            None => return Ok(Value::Null),
            Some(true) => return Ok(Value::Int(goal.answer(waited))),
            Some(false) => {}
        }
        if context.waited.is_some() || limit.is_some_and(|limit| started.elapsed() >= limit) {
            return Ok(Value::Int(goal.late()));
        }
        context.kill.check()?;
        std::thread::sleep(pause);
        pause = (pause * 2).min(LOOK.1);
        waited = Some(goal.events(context.replicas).saturating_sub(before));
    }
}

fn position_at(coordinator: &Coordinator, args: &[Value]) -> SqlResult<Value> {
    let (Some(file), Some(offset)) = (args.first().and_then(text_of), args.get(1).and_then(text_of)) else {
        return Ok(Value::Null);
    };
    let Ok(offset) = offset.trim().parse::<u64>() else { return Ok(Value::Null) };
    let found = coordinator.gtids().position_at(&file, offset);
    let found =
        found.map_err(|failed| error(1220, format!("Error when reading the binary log: {failed}")))?;
    Ok(found.map_or(Value::Null, |position| Value::Bytes(position.to_string().into())))
}

fn set_of(text: &str) -> SqlResult<GtidSet> {
    text.parse().map_err(|_| crate::errors::malformed_gtid_set(text))
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bytes(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::Int(n) => Some(n.to_string()),
        Value::UInt(n) => Some(n.to_string()),
        Value::Double(x) => Some(x.to_string()),
        Value::Decimal(d) => Some(d.to_string()),
        _ => Some(String::new()),
    }
}

/// A call of a waiting function that is shown by a SELECT of nothing else.
pub(crate) fn shown_wait(statement: &Statement) -> Option<(&str, &[Expr])> {
    let Statement::Select(query) = statement else { return None };
    let QueryBody::Select(select) = &query.body else { return None };
    let [SelectItem::Expr { expr: Expr::Function(call), .. }] = select.items.as_slice() else { return None };
    let name = ["WAIT_FOR_EXECUTED_GTID_SET", "MASTER_GTID_WAIT", "SOURCE_POS_WAIT", "MASTER_POS_WAIT"]
        .into_iter()
        .find(|name| call.name.as_str().eq_ignore_ascii_case(name))?;
    Some((name, &call.args))
}
