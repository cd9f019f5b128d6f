//! SIGNAL, RESIGNAL and GET DIAGNOSTICS: in programs and outside.

use crate::api::Outcome;
use crate::error::{Diagnostics, ExecResult, Interrupt, Level, SqlError, SqlResult};
use crate::expr::{ExprType, assign, convert};
use crate::session::{Call, StatementContext, evaluate};
use crate::state::{SessionState, Signalled};
use bytes::Bytes;
use omnibus_parser::ast::{ConditionItem, DiagnosticsPart, GetDiagnostics, Signal, StatementItem};
use omnibus_value::{ColumnType, Value};
use std::sync::Arc;

/// The error number and text of a state that SIGNAL gives neither.
fn unhandled(state: &[u8; 5]) -> (u16, &'static str) {
    match &state[..2] {
        b"01" => (1642, "Unhandled user-defined warning condition"),
        b"02" => (1643, "Unhandled user-defined not found condition"),
        _ => (1644, "Unhandled user-defined exception condition"),
    }
}

/// SIGNAL and RESIGNAL.
pub(crate) fn signal(
    cx: &mut StatementContext<'_>,
    signal: &Signal,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let before = match (signal.resignal, cx.state.programs.stacked.last()) {
        (false, _) => None,
        (true, None) => return Err(SqlError::resignal_without_active_handler().into()),
        (true, Some(stacked)) => {
            let last = stacked.conditions().iter().rev().find(|(level, _)| *level != Level::Note);
            let Some((level, error)) = last.cloned() else {
                return Err(SqlError::resignal_without_active_handler().into());
            };
            if let Some(known) = cx.state.programs.stacked.last() {
                cx.state.diagnostics = known.clone();
            }
            Some((level, error))
        }
    };
    let mut error = match (&before, signal.state) {
        (Some((_, error)), None) => error.clone(),
        (_, state) => {
            let state = state.unwrap_or(*b"45000");
            let (code, message) = unhandled(&state);
            SqlError::new(code, &state, message)
        }
    };
    let old = cx
        .state
        .programs
        .signalled
        .clone()
        .filter(|known| before.as_ref().is_some_and(|(_, error)| known.error.is_same(error)));
    let mut items = old.map_or_else(Vec::new, |known| known.items.clone());
    for (item, value) in &signal.items {
        let (value, ty) = evaluate::value(cx, value, call.params, false, call.access)?;
        condition_item(cx.state, *item, (value, &ty), &mut error, &mut items)?;
    }
    // The condition that is raised again is no second one.
    if let (Some((_, old)), None) = (&before, signal.state) {
        cx.state.diagnostics.take_out(old);
    }
    cx.state.programs.signalled =
        Some(Arc::new(Signalled { error: error.clone(), items, new: signal.state.is_some() }));
    let was_warning = signal.state.is_none() && matches!(&before, Some((Level::Warning, _)));
    if was_warning || error.state.starts_with(b"01") {
        cx.state.diagnostics.warn(error);
        return Ok(Outcome::ok());
    }
    Err(error.into())
}

/// GET DIAGNOSTICS. What it fails with is a warning: the area that it reads stays.
pub(crate) fn get_diagnostics(
    cx: &mut StatementContext<'_>,
    get: &GetDiagnostics,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let area = match get.stacked {
        false => cx.state.diagnostics.clone(),
        true => match cx.state.programs.stacked.last() {
            Some(area) => area.clone(),
            None => {
                let message = "GET STACKED DIAGNOSTICS when handler not active";
                let code = if cx.state.settings.mariadb { 1887 } else { 3004 };
                return Err(SqlError::new(code, b"0Z002", message).into());
            }
        },
    };
    let result = give_diagnostics(cx, get, &area, call);
    if let Err(Interrupt::Error(error)) = result {
        cx.state.diagnostics.push(Level::Error, error);
    } else {
        result?;
    }
    Ok(Outcome::ok())
}

fn give_diagnostics(
    cx: &mut StatementContext<'_>,
    get: &GetDiagnostics,
    area: &Diagnostics,
    call: &mut Call<'_>,
) -> ExecResult<()> {
    let number = ExprType::bigint().column;
    match &get.what {
        DiagnosticsPart::Statement(list) => {
            let row_count = cx.state.results.row_count;
            for (target, item) in list {
                let value = match item {
                    StatementItem::Number => Value::Int(area.conditions().len() as i64),
                    StatementItem::RowCount => Value::Int(row_count),
                };
                assign::to_target(cx.state, target, value, &number)?;
            }
        }
        DiagnosticsPart::Condition(which, list) => {
            let (value, _) = evaluate::value(cx, which, call.params, false, call.access)?;
            let at = match value {
                Value::Int(at) => usize::try_from(at).ok(),
                Value::UInt(at) => usize::try_from(at).ok(),
                Value::Bytes(text) => std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()),
                _ => None,
            };
            let found = at.and_then(|at| area.conditions().get(at.checked_sub(1)?)).cloned();
            let Some((_, error)) = found else {
                return Err(SqlError::new(1758, b"35000", "Invalid condition number").into());
            };
            for (target, item) in list {
                let (value, ty) = item_of(cx.state, *item, &error);
                assign::to_target(cx.state, target, value, &ty)?;
            }
        }
    }
    Ok(())
}

fn condition_item(
    state: &mut SessionState,
    item: ConditionItem,
    (value, ty): (Value, &ColumnType),
    error: &mut SqlError,
    items: &mut Vec<(ConditionItem, Bytes)>,
) -> SqlResult<()> {
    let bad = |shown: String| {
        let message = format!("Variable '{}' can't be set to the value of '{shown}'", item.name());
        Err(SqlError::new(1231, b"42000", message))
    };
    if matches!(value, Value::Null) {
        return bad("NULL".into());
    }
    let text = convert::to_text(&value, ty);
    let text = match item {
        ConditionItem::MysqlErrno => text,
        item => fit_item(state, item, &text)?,
    };
    match item {
        ConditionItem::MessageText => error.message = String::from_utf8_lossy(&text).into_owned(),
        ConditionItem::MysqlErrno => {
            let shown = String::from_utf8_lossy(&text).into_owned();
            match shown.parse::<u16>() {
                Ok(code) if code != 0 => error.code = code,
                _ => return bad(shown),
            }
        }
        item => {
            items.retain(|(known, _)| *known != item);
            items.push((item, text));
        }
    }
    Ok(())
}

/// An item's text as it is kept. What is too long is refused, or where `sql_mode` is not strict cut.
///
/// # Errors
/// 1648.
fn fit_item(state: &mut SessionState, item: ConditionItem, text: &[u8]) -> SqlResult<Bytes> {
    let text = String::from_utf8_lossy(text);
    let most = match item {
        ConditionItem::MessageText if state.settings.mariadb => 512,
        ConditionItem::MessageText => 128,
        _ => 64,
    };
    let Some((end, _)) = text.char_indices().nth(most) else {
        return Ok(Bytes::copy_from_slice(text.as_bytes()));
    };
    let name = item.name();
    if state.settings.strict() {
        return Err(SqlError::new(1648, b"HY000", format!("Data too long for condition item '{name}'")));
    }
    let message = format!("Data truncated for condition item '{name}'");
    state.diagnostics.warn(SqlError::new(1647, b"HY000", message));
    Ok(Bytes::copy_from_slice(&text.as_bytes()[..end]))
}

fn item_of(state: &SessionState, item: ConditionItem, error: &SqlError) -> (Value, ColumnType) {
    let text = |text: &[u8]| {
        let ty = ExprType::varchar(text.len() as u32, crate::catalog::charset::server_default());
        (Value::Bytes(Bytes::copy_from_slice(text)), ty.column)
    };
    let own = state.programs.signalled.as_deref().filter(|known| known.error.is_same(error));
    let given = own.and_then(|known| known.items.iter().find(|(known, _)| *known == item));
    match item {
        ConditionItem::MysqlErrno => (Value::UInt(u64::from(error.code)), ExprType::ubigint().column),
        ConditionItem::RowNumber => (Value::Int(0), ExprType::bigint().column),
        ConditionItem::ReturnedSqlstate => text(&error.state),
        ConditionItem::MessageText => text(error.message.as_bytes()),
        // MySQL knows no origin of what a SIGNAL raises, and makes no difference between the two of its own.
        ConditionItem::ClassOrigin | ConditionItem::SubclassOrigin
            if given.is_none() && !state.settings.mariadb && own.is_some_and(|known| known.new) =>
        {
            text(b"")
        }
        ConditionItem::ClassOrigin | ConditionItem::SubclassOrigin if given.is_none() => {
            let standard = matches!(error.state[0], b'0'..=b'4' | b'A'..=b'H')
                && (item == ConditionItem::ClassOrigin
                    || !state.settings.mariadb
                    || matches!(error.state[2], b'0'..=b'4' | b'A'..=b'H'));
            text(if standard { b"ISO 9075" } else { b"MySQL" })
        }
        _ => text(given.map_or(&b""[..], |(_, text)| text)),
    }
}
