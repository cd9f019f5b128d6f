//! ROUTINES, PARAMETERS, TRIGGERS, EVENTS.

use super::columns::type_facts;
use super::computed::{Def, Reader, Ty, text, yes_no};
use crate::catalog::{Column, EventTimes, ProgramDef};
use crate::error::ExecResult;
use crate::expr::context::unix_us;
use crate::state::Signature;
use omnibus_parser::ast::{EventStatus, ProgramKind, Security, TriggerEvent, TriggerTime};
use omnibus_value::Value;
use omnibus_value::temporal::DateTime;
use std::collections::HashMap;
use std::sync::Arc;

const UNITS: &[&str] = &[
    "YEAR",
    "QUARTER",
    "MONTH",
    "DAY",
    "HOUR",
    "MINUTE",
    "WEEK",
    "SECOND",
    "MICROSECOND",
    "YEAR_MONTH",
    "DAY_HOUR",
    "DAY_MINUTE",
    "DAY_SECOND",
    "HOUR_MINUTE",
    "HOUR_SECOND",
    "MINUTE_SECOND",
    "DAY_MICROSECOND",
    "HOUR_MICROSECOND",
    "MINUTE_MICROSECOND",
    "SECOND_MICROSECOND",
];

const KINDS: &[&str] = &["FUNCTION", "PROCEDURE"];

pub(super) const DEFS: &[Def] = &[
    Def {
        schema: "information_schema",
        name: "EVENTS",
        columns: &[
            ("EVENT_CATALOG", Ty::Text(64)),
            ("EVENT_SCHEMA", Ty::Name),
            ("EVENT_NAME", Ty::Text(64)),
            ("DEFINER", Ty::Text(288)),
            ("TIME_ZONE", Ty::Text(64)),
            ("EVENT_BODY", Ty::Text(3)),
            ("EVENT_DEFINITION", Ty::Long),
            ("EVENT_TYPE", Ty::Text(9)),
            ("EXECUTE_AT", Ty::Time),
            ("INTERVAL_VALUE", Ty::Text(256)),
            ("INTERVAL_FIELD", Ty::Enum(UNITS)),
            ("SQL_MODE", Ty::Text(512)),
            ("STARTS", Ty::Time),
            ("ENDS", Ty::Time),
            ("STATUS", Ty::Text(21)),
            ("ON_COMPLETION", Ty::Text(12)),
            ("CREATED", Ty::Time),
            ("LAST_ALTERED", Ty::Time),
            ("LAST_EXECUTED", Ty::Time),
            ("EVENT_COMMENT", Ty::Text(2048)),
            ("ORIGINATOR", Ty::UInt4),
            ("CHARACTER_SET_CLIENT", Ty::Text(64)),
            ("COLLATION_CONNECTION", Ty::Text(64)),
            ("DATABASE_COLLATION", Ty::Text(64)),
        ],
        rows: events,
    },
    Def {
        schema: "information_schema",
        name: "PARAMETERS",
        columns: &[
            ("SPECIFIC_CATALOG", Ty::Text(64)),
            ("SPECIFIC_SCHEMA", Ty::Name),
            ("SPECIFIC_NAME", Ty::Text(64)),
            ("ORDINAL_POSITION", Ty::UInt),
            ("PARAMETER_MODE", Ty::Text(5)),
            ("PARAMETER_NAME", Ty::Text(64)),
            ("DATA_TYPE", Ty::Long),
            ("CHARACTER_MAXIMUM_LENGTH", Ty::Int),
            ("CHARACTER_OCTET_LENGTH", Ty::Int),
            ("NUMERIC_PRECISION", Ty::UInt4),
            ("NUMERIC_SCALE", Ty::Int),
            ("DATETIME_PRECISION", Ty::UInt4),
            ("CHARACTER_SET_NAME", Ty::Text(64)),
            ("COLLATION_NAME", Ty::Text(64)),
            ("DTD_IDENTIFIER", Ty::Long),
            ("ROUTINE_TYPE", Ty::Enum(KINDS)),
        ],
        rows: parameters,
    },
    Def {
        schema: "information_schema",
        name: "ROUTINES",
        columns: &[
            ("SPECIFIC_NAME", Ty::Text(64)),
            ("ROUTINE_CATALOG", Ty::Text(64)),
            ("ROUTINE_SCHEMA", Ty::Name),
            ("ROUTINE_NAME", Ty::Text(64)),
            ("ROUTINE_TYPE", Ty::Enum(KINDS)),
            ("DATA_TYPE", Ty::Long),
            ("CHARACTER_MAXIMUM_LENGTH", Ty::Int),
            ("CHARACTER_OCTET_LENGTH", Ty::Int),
            ("NUMERIC_PRECISION", Ty::UInt4),
            ("NUMERIC_SCALE", Ty::UInt4),
            ("DATETIME_PRECISION", Ty::UInt4),
            ("CHARACTER_SET_NAME", Ty::Text(64)),
            ("COLLATION_NAME", Ty::Text(64)),
            ("DTD_IDENTIFIER", Ty::Long),
            ("ROUTINE_BODY", Ty::Text(8)),
            ("ROUTINE_DEFINITION", Ty::Long),
            ("EXTERNAL_NAME", Ty::Text(0)),
            ("EXTERNAL_LANGUAGE", Ty::Text(64)),
            ("PARAMETER_STYLE", Ty::Text(3)),
            ("IS_DETERMINISTIC", Ty::Text(3)),
            ("SQL_DATA_ACCESS", Ty::Enum(&["CONTAINS SQL", "NO SQL", "READS SQL DATA", "MODIFIES SQL DATA"])),
            ("SQL_PATH", Ty::Text(0)),
            ("SECURITY_TYPE", Ty::Enum(&["DEFAULT", "INVOKER", "DEFINER"])),
            ("CREATED", Ty::Time),
            ("LAST_ALTERED", Ty::Time),
            ("SQL_MODE", Ty::Text(512)),
            ("ROUTINE_COMMENT", Ty::Long),
            ("DEFINER", Ty::Text(288)),
            ("CHARACTER_SET_CLIENT", Ty::Text(64)),
            ("COLLATION_CONNECTION", Ty::Text(64)),
            ("DATABASE_COLLATION", Ty::Text(64)),
        ],
        rows: routines,
    },
    Def {
        schema: "information_schema",
        name: "TRIGGERS",
        columns: &[
            ("TRIGGER_CATALOG", Ty::Text(64)),
            ("TRIGGER_SCHEMA", Ty::Name),
            ("TRIGGER_NAME", Ty::Text(64)),
            ("EVENT_MANIPULATION", Ty::Enum(&["INSERT", "UPDATE", "DELETE"])),
            ("EVENT_OBJECT_CATALOG", Ty::Text(64)),
            ("EVENT_OBJECT_SCHEMA", Ty::Name),
            ("EVENT_OBJECT_TABLE", Ty::Name),
            ("ACTION_ORDER", Ty::UInt4),
            ("ACTION_CONDITION", Ty::Text(0)),
            ("ACTION_STATEMENT", Ty::Long),
            ("ACTION_ORIENTATION", Ty::Text(3)),
            ("ACTION_TIMING", Ty::Enum(&["BEFORE", "AFTER"])),
            ("ACTION_REFERENCE_OLD_TABLE", Ty::Text(0)),
            ("ACTION_REFERENCE_NEW_TABLE", Ty::Text(0)),
            ("ACTION_REFERENCE_OLD_ROW", Ty::Text(3)),
            ("ACTION_REFERENCE_NEW_ROW", Ty::Text(3)),
            ("CREATED", Ty::Hundredths),
            ("SQL_MODE", Ty::Text(512)),
            ("DEFINER", Ty::Text(288)),
            ("CHARACTER_SET_CLIENT", Ty::Text(64)),
            ("COLLATION_CONNECTION", Ty::Text(64)),
            ("DATABASE_COLLATION", Ty::Text(64)),
        ],
        rows: triggers,
    },
];

fn is_routine(def: &ProgramDef) -> bool {
    matches!(def.kind(), ProgramKind::Procedure | ProgramKind::Function)
}

/// A routine's parameters and what it gives; nothing of one that does not parse any more.
fn signature(reader: &Reader<'_, '_>, def: &Arc<ProgramDef>) -> Signature {
    let session = &reader.cx.session;
    let known = session.programs.runner.as_ref().map(|runner| runner.signature(def, &session.settings));
    known.and_then(Result::ok).unwrap_or_default()
}

fn at_time(reader: &Reader<'_, '_>, us: i64) -> Value {
    Value::DateTime(unix_us(reader.cx.zone().local_us(us - us.rem_euclid(1_000_000))))
}

fn definer(def: &ProgramDef) -> Value {
    text(def.definer().plain())
}

fn charsets(def: &ProgramDef) -> [Value; 3] {
    def.charsets().map(text)
}

fn sql_mode(reader: &Reader<'_, '_>, def: &ProgramDef) -> Value {
    text(reader.cx.session.connection.host.sql_mode_text(def.sql_mode))
}

/// Events, for those who may make and change them.
fn events(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for def in reader.programs() {
        let (Some(event), Ok(tree)) = (&def.event, def.event_tree()) else { continue };
        let zone = event.zone();
        // In the event's own time zone.
        let moment = |seconds: Option<i64>| {
            let local = seconds.and_then(|at| DateTime::from_unix(at + i64::from(zone.offset_at(at)), 0));
            local.map_or(Value::Null, Value::DateTime)
        };
        let (at, starts, ends, unit) = match event.times {
            EventTimes::At(at) => (Some(at), None, None, None),
            EventTimes::Every { starts, ends, unit, .. } => (None, Some(starts), ends, Some(unit)),
        };
        let status = match event.status {
            EventStatus::Enabled => "ENABLED",
            EventStatus::Disabled => "DISABLED",
            EventStatus::ReplicaSideDisabled if reader.cx.session.settings.mariadb => "SLAVESIDE_DISABLED",
            EventStatus::ReplicaSideDisabled => "REPLICA_SIDE_DISABLED",
        };
        let body = tree.clauses.program.as_ref().map(|program| program.text.clone());
        let mut row = vec![
            text("def"),
            text(&*def.db),
            text(&*def.name),
            definer(&def),
            text(&event.zone),
            text("SQL"),
            text(String::from_utf8_lossy(&body.unwrap_or_default())),
            text(if at.is_some() { "ONE TIME" } else { "RECURRING" }),
            moment(at),
            event.times.interval_value().map_or(Value::Null, text),
            unit.map_or(Value::Null, |unit| text(unit.word())),
            sql_mode(reader, &def),
            moment(starts),
            moment(ends),
            text(status),
            text(event.completion()),
            at_time(reader, def.created_us),
            at_time(reader, def.modified_us),
            moment(Some(event.executed()).filter(|at| *at != 0)),
            text(String::from_utf8_lossy(&tree.clauses.comment.unwrap_or_default())),
            Value::UInt(event.originator.into()),
        ];
        row.extend(charsets(&def));
        reader.made(std::slice::from_ref(&row))?;
        rows.push(row);
    }
    Ok(rows)
}

fn parameters(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    for def in reader.programs().iter().filter(|def| is_routine(def)) {
        let Signature { params, returns } = signature(reader, def);
        let from = rows.len();
        let mut row = |number: usize, mode: Value, name: Value, column: &Column| {
            let mut row =
                vec![text("def"), text(&*def.db), text(&*def.name), Value::UInt(number as u64), mode, name];
            row.extend(type_facts(&column.ty));
            row.push(text(def.kind().name()));
            rows.push(row);
        };
        if let Some(returns) = &returns {
            row(0, Value::Null, Value::Null, returns);
        }
        for (number, (mode, column)) in params.iter().enumerate() {
            row(number + 1, text(mode.name()), text(&*column.name), column);
        }
        reader.made(&rows[from..])?;
    }
    Ok(rows)
}

fn routines(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    let access = reader.access();
    for def in reader.programs().iter().filter(|def| is_routine(def)) {
        let Ok(tree) = def.routine() else { continue };
        let body = access.check_body(&def.definer()).ok().map(|()| &tree.program.text);
        let what = &tree.characteristics;
        let mut row =
            vec![text(&*def.name), text("def"), text(&*def.db), text(&*def.name), text(def.kind().name())];
        match signature(reader, def).returns {
            Some(returns) => row.extend(type_facts(&returns.ty)),
            None => {
                row.push(text(""));
                row.resize(14, Value::Null);
            }
        }
        let security = what.security.unwrap_or_default();
        row.extend([
            text("SQL"),
            body.map_or(Value::Null, |body| text(String::from_utf8_lossy(body))),
            Value::Null,
            text("SQL"),
            text("SQL"),
            yes_no(what.deterministic == Some(true)),
            text(what.access.unwrap_or_default().text()),
            Value::Null,
            text(if security == Security::Definer { "DEFINER" } else { "INVOKER" }),
            at_time(reader, def.created_us),
            at_time(reader, def.modified_us),
            sql_mode(reader, def),
            text(String::from_utf8_lossy(what.comment.as_deref().unwrap_or_default())),
            // Only here a role has no `@`.
            def.definer().role().map_or_else(|| definer(def), text),
        ]);
        row.extend(charsets(def));
        reader.made(std::slice::from_ref(&row))?;
        rows.push(row);
    }
    Ok(rows)
}

fn triggers(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let mut rows = Vec::new();
    let mut orders: HashMap<(Arc<str>, Box<str>, TriggerTime, TriggerEvent), u64> = HashMap::new();
    let mut all: Vec<_> =
        reader.programs().into_iter().filter(|def| def.kind() == ProgramKind::Trigger).collect();
    all.sort_by_key(|def| def.order);
    for def in &all {
        let Ok(tree) = def.trigger() else { continue };
        let table = tree.table.name.as_str();
        let order = orders.entry((def.db.clone(), table.into(), tree.time, tree.event)).or_default();
        *order += 1;
        let mut row = vec![
            text("def"),
            text(&*def.db),
            text(&*def.name),
            text(tree.event.name()),
            text("def"),
            text(&*def.db),
            text(table),
            Value::UInt(*order),
            Value::Null,
            text(String::from_utf8_lossy(&tree.program.text)),
            text("ROW"),
            text(tree.time.name()),
            Value::Null,
            Value::Null,
            text("OLD"),
            text("NEW"),
            at_time(reader, def.created_us),
            sql_mode(reader, def),
            definer(def),
        ];
        row.extend(charsets(def));
        reader.made(std::slice::from_ref(&row))?;
        rows.push(row);
    }
    // As in MySQL, by event and time as they come.
    let place = |value: &Value, names: [&str; 3]| match value {
        Value::Bytes(text) => names.iter().position(|name| name.as_bytes() == &text[..]),
        _ => None,
    };
    rows.sort_by_cached_key(|row| {
        let event = place(&row[3], ["INSERT", "UPDATE", "DELETE"]);
        let time = place(&row[11], ["BEFORE", "AFTER", ""]);
        (format!("{:?} {:?}", row[1], row[6]), event, time, format!("{:?}", row[7]))
    });
    Ok(rows)
}
