//! About the session and the server: DATABASE, USER, VERSION, LAST_INSERT_ID, SLEEP, GET_LOCK.

use super::{Def, text, ty};
use crate::error::{ExecResult, SqlError, SqlResult};
use crate::expr::types::{BINARY, Coercibility, Family};
use crate::expr::{BindContext, Context, Expr, ExprType, Kind, charset, convert};
use crate::memory::MemoryLimits;
use crate::state::{NamedLocks, NewInsertId};
use omnibus_value::Value;
use std::time::{Duration, Instant};

/// No name that a statement can have.
pub(crate) const NEW_INSERT_ID: &str = "\0NEW_INSERT_ID";

pub(super) const DEFS: &[Def] = &[
    Def::session("DATABASE", 0, 0, database_type, database),
    Def::session("SCHEMA", 0, 0, database_type, database),
    Def::session("USER", 0, 0, name_type, user),
    Def::session("SESSION_USER", 0, 0, name_type, user),
    Def::session("SYSTEM_USER", 0, 0, name_type, user),
    Def::session("CURRENT_USER", 0, 0, name_type, current_user),
    Def::session("CURRENT_ROLE", 0, 0, name_type, |_, _, cx| {
        Ok(cx.session.current_role().map_or(Value::Null, text))
    }),
    Def::session("VERSION", 0, 0, name_type, |_, _, cx| Ok(version(cx))),
    Def::session("CONNECTION_ID", 0, 0, ty::ubigint, |_, _, cx| {
        Ok(Value::UInt(u64::from(cx.session.thread_id())))
    }),
    // Threads have the numbers of their connections.
    Def::session("PS_CURRENT_THREAD_ID", 0, 0, ty::ubigint, |_, _, cx| {
        Ok(Value::UInt(u64::from(cx.session.thread_id())))
    }),
    Def::new("PS_THREAD_ID", 1, 1, ty::ubigint, |args, _, cx| {
        Ok(u64::try_from(super::int_arg!(args, 0, cx)).map_or(Value::Null, Value::UInt))
    }),
    Def::volatile("LAST_INSERT_ID", 0, 1, ty::ubigint, last_insert_id),
    Def::volatile(NEW_INSERT_ID, 0, 0, new_insert_id_type, new_insert_id),
    Def::session("ROW_COUNT", 0, 0, ty::bigint, |_, _, cx| Ok(Value::Int(cx.session.results.row_count))),
    Def::session("FOUND_ROWS", 0, 0, ty::bigint, |_, _, cx| {
        Ok(Value::Int(cx.session.results.found_rows as i64))
    }),
    Def::volatile("SLEEP", 1, 1, ty::int, sleep),
    Def::volatile("BENCHMARK", 2, 2, ty::int, benchmark),
    Def::new("CHARSET", 1, 1, ty::utf8mb3::<64>, charset_of),
    Def::new("COLLATION", 1, 1, ty::utf8mb3::<64>, collation_of),
    Def::new("COERCIBILITY", 1, 1, |_, _| Ok(ExprType::int(10)), coercibility_of),
    Def::volatile("GET_LOCK", 2, 2, ty::small_int, get_lock),
    Def::volatile("RELEASE_LOCK", 1, 1, ty::small_int, release_lock),
    Def::volatile("RELEASE_ALL_LOCKS", 0, 0, ty::ubigint, release_all_locks),
    Def::volatile("IS_FREE_LOCK", 1, 1, ty::small_int, is_free_lock),
    Def::volatile("IS_USED_LOCK", 1, 1, ty::ubigint, is_used_lock),
    Def::volatile("MYSQL_QUERY_ATTRIBUTE_STRING", 1, 1, attribute_type, query_attribute),
    Def::volatile("NAME_CONST", 2, 2, second_type, |a, _, cx| a[1].eval(cx)),
];

/// The value of VERSION(); the wire greeting has the same.
const VERSION: &str = "8.4.0-omnibus";

fn version(cx: &Context<'_>) -> Value {
    let known = cx.session.connection.host.variable(crate::api::VariableScope::Global, "version");
    known.map_or_else(|_| text(VERSION), |(value, _)| value)
}

fn database_type(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::varchar(64, 33).coercible(Coercibility::SystemConstant).nullable(true))
}

fn name_type(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::varchar(288, 33).coercible(Coercibility::SystemConstant).nullable(true))
}

fn attribute_type(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::varchar(16_383, 45).nullable(true))
}

fn query_attribute(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let name = args[0].eval(cx)?;
    if name.is_null() {
        return Ok(Value::Null);
    }
    let name = name.to_bytes(&args[0].ty.column);
    let name = String::from_utf8_lossy(&name);
    let found = cx.session.command.attributes.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name));
    Ok(match found.map(|(_, value)| value) {
        None | Some(Value::Null) => Value::Null,
        Some(Value::Bytes(text)) => Value::Bytes(text.clone()),
        Some(value) => {
            let fraction = match value {
                Value::DateTime(t) => t.micros() > 0,
                Value::Time(t) => t.micros() > 0,
                _ => false,
            };
            Value::Bytes(convert::print(value, if fraction { 6 } else { 0 }).into())
        }
    })
}

fn second_type(args: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(args[1].ty.clone())
}

fn database(_: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(cx.session.database.as_ref().map_or(Value::Null, |db| text(db.to_string())))
}

fn user(_: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(text(format!("{}@{}", cx.session.login.user, cx.session.login.host_name)))
}

fn current_user(_: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(text(cx.session.login.account.clone()))
}

fn new_insert_id_type(_: &[Expr], _: &BindContext<'_>) -> SqlResult<ExprType> {
    Ok(ExprType::ubigint().nullable(true))
}

/// The value that `sql_auto_is_null` compares with.
fn new_insert_id(_: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    if cx.session.results.new_insert_id == NewInsertId::None {
        return Ok(Value::Null);
    }
    cx.session.results.new_insert_id = NewInsertId::Asked;
    Ok(Value::UInt(cx.session.results.last_insert_id))
}

fn last_insert_id(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let Some(arg) = args.first() else { return Ok(Value::UInt(cx.session.results.last_insert_id)) };
    let id = arg.eval_int(cx)?;
    let remembered = id.unwrap_or(0) as u64;
    cx.session.results.last_insert_id_set = Some(remembered);
    cx.session.results.last_insert_id = remembered;
    Ok(id.map_or(Value::Null, |id| Value::UInt(id as u64)))
}

fn sleep(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let seconds = match args[0].eval_f64(cx)? {
        Some(seconds) if seconds >= 0.0 => seconds.min(1e9),
        _ => {
            let error = SqlError::wrong_arguments("sleep.");
            let settings = &cx.session.settings;
            if !settings.mariadb && settings.strict() {
                return Err(error.into());
            }
            cx.complain(error)?;
            return Ok(Value::Int(0));
        }
    };
    if seconds == 0.0 {
        return Ok(Value::Int(0));
    }
    cx.storage.need_blocking()?;
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    // KILL QUERY ends a SLEEP with 1 and no error only when it is the whole statement; an error ends both cases.
    cx.session.budget.end();
    cx.session.budget.kill().sleep(end)?;
    Ok(Value::Int(0))
}

fn benchmark(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let times = super::int_arg!(args, 0, cx);
    if times < 0 {
        let message = format!("Incorrect count value: '{times}' for function benchmark");
        cx.warn(SqlError::new(1411, b"HY000", message));
        return Ok(Value::Null);
    }
    for _ in 0..times {
        cx.tick()?;
        args[1].eval(cx)?;
    }
    Ok(Value::Int(0))
}

fn charset_of(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(text(charset::charset_name(collation_id(&args[0], cx))))
}

fn collation_of(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    Ok(text(charset::collation_name(collation_id(&args[0], cx))))
}

/// MySQL says that documents are bytes.
fn collation_id(e: &Expr, cx: &Context<'_>) -> u16 {
    match e.ty.family() == Family::Json && !cx.session.settings.mariadb {
        true => BINARY,
        false => e.ty.column.collation,
    }
}

fn coercibility_of(args: &[Expr], _: &ExprType, _: &mut Context<'_>) -> ExecResult<Value> {
    let ty = &args[0].ty;
    if matches!(args[0].kind, Kind::UserVariable(_)) {
        return Ok(Value::Int(Coercibility::Implicit as i64));
    }
    let numeric = !matches!(ty.family(), Family::String | Family::Json);
    Ok(Value::Int(if numeric && !ty.is_null() { 5 } else { ty.coercibility as i64 }))
}

/// Does something with the session's locks by name. Arguments are evaluated before: they may be such calls themselves.
fn with_locks<T>(
    cx: &mut Context<'_>,
    work: impl FnOnce(&mut NamedLocks, &mut Context<'_>) -> ExecResult<T>,
) -> ExecResult<T> {
    let Some(mut locks) = cx.session.held.locks.take() else {
        return Err(SqlError::internal("a lock by name outside of a session").into());
    };
    let result = work(&mut locks, cx);
    cx.session.held.locks = Some(locks);
    result
}

fn get_lock(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    cx.storage.need_blocking()?;
    let name = args[0].eval_str(cx)?;
    let seconds = args[1].eval_f64(cx)?.unwrap_or(0.0);
    let limits = MemoryLimits::of(&cx.session.settings);
    let taken = with_locks(cx, |locks, cx| {
        let storage = &mut *cx.storage;
        locks.get(name.as_deref(), seconds, limits, &mut || storage.check_killed())
    })?;
    Ok(Value::Int(i64::from(taken)))
}

fn release_lock(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    cx.storage.need_blocking()?;
    let name = args[0].eval_str(cx)?;
    let released = with_locks(cx, |locks, _| Ok(locks.release(name.as_deref())?))?;
    Ok(released.map_or(Value::Null, |released| Value::Int(i64::from(released))))
}

fn release_all_locks(_: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    cx.storage.need_blocking()?;
    with_locks(cx, |locks, _| Ok(Value::UInt(locks.release_all())))
}

fn is_free_lock(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let name = args[0].eval_str(cx)?;
    let holder = with_locks(cx, |locks, _| Ok(locks.holder(name.as_deref())?))?;
    Ok(Value::Int(i64::from(holder.is_none())))
}

fn is_used_lock(args: &[Expr], _: &ExprType, cx: &mut Context<'_>) -> ExecResult<Value> {
    let name = args[0].eval_str(cx)?;
    let holder = with_locks(cx, |locks, _| Ok(locks.holder(name.as_deref())?))?;
    Ok(holder.map_or(Value::Null, Value::UInt))
}
