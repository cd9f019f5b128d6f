//! ENGINES, PROCESSLIST, variables and status: what the server knows, through the session's host.

use super::computed::{Def, Reader, Ty, text, yes_no};
use crate::api::VariableScope;
use crate::error::ExecResult;
use omnibus_engine::EngineInfo;
use omnibus_value::Value;

const PAIRS: &[(&str, Ty)] = &[("VARIABLE_NAME", Ty::Text(64)), ("VARIABLE_VALUE", Ty::Text(2048))];

const PROCESSES: &[(&str, Ty)] = &[
    ("ID", Ty::UInt),
    ("USER", Ty::Text(32)),
    ("HOST", Ty::Text(261)),
    ("DB", Ty::Text(64)),
    ("COMMAND", Ty::Text(16)),
    ("TIME", Ty::Int),
    ("STATE", Ty::Text(64)),
    ("INFO", Ty::Long),
];

pub(super) const DEFS: &[Def] = &[
    Def {
        schema: "information_schema",
        name: "ENGINES",
        columns: &[
            ("ENGINE", Ty::Text(64)),
            ("SUPPORT", Ty::Text(8)),
            ("COMMENT", Ty::Text(80)),
            ("TRANSACTIONS", Ty::Text(3)),
            ("XA", Ty::Text(3)),
            ("SAVEPOINTS", Ty::Text(3)),
        ],
        rows: engines,
    },
    Def {
        schema: "information_schema",
        name: "USER_ATTRIBUTES",
        columns: &[("USER", Ty::Text(32)), ("HOST", Ty::Text(255)), ("ATTRIBUTE", Ty::Long)],
        rows: user_attributes,
    },
    Def { schema: "information_schema", name: "PROCESSLIST", columns: PROCESSES, rows: processlist },
    Def { schema: "information_schema", name: "GLOBAL_VARIABLES", columns: PAIRS, rows: global_variables },
    Def { schema: "information_schema", name: "SESSION_VARIABLES", columns: PAIRS, rows: session_variables },
    Def { schema: "information_schema", name: "GLOBAL_STATUS", columns: PAIRS, rows: global_status },
    Def { schema: "information_schema", name: "SESSION_STATUS", columns: PAIRS, rows: session_status },
    Def { schema: "performance_schema", name: "processlist", columns: PROCESSES, rows: processlist },
    Def { schema: "performance_schema", name: "global_variables", columns: PAIRS, rows: global_variables },
    Def { schema: "performance_schema", name: "session_variables", columns: PAIRS, rows: session_variables },
    Def { schema: "performance_schema", name: "global_status", columns: PAIRS, rows: global_status },
    Def { schema: "performance_schema", name: "session_status", columns: PAIRS, rows: session_status },
];

fn engines(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    let default = reader.cx.session.settings.default_storage_engine;
    let row = |engine: &EngineInfo| {
        let support = if engine.name == default { "DEFAULT" } else { "YES" };
        let comment =
            format!("{}; transactions, row-level locking, recovery from the binary log", engine.comment);
        vec![text(engine.name), text(support), text(&comment), yes_no(true), yes_no(true), yes_no(true)]
    };
    Ok(reader.engines.iter().map(row).collect())
}

fn user_attributes(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(reader.cx.session.connection.host.user_attributes().into_iter().map(Vec::from).collect())
}

fn processlist(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(reader.cx.session.connection.host.processlist().into_iter().map(Vec::from).collect())
}

fn pairs(mut list: Vec<(String, String)>) -> Vec<Vec<Value>> {
    list.sort_unstable();
    list.into_iter().map(|(name, value)| vec![text(name), text(value)]).collect()
}

fn global_variables(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(pairs(reader.cx.session.connection.host.variables(VariableScope::Global)))
}

fn session_variables(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(pairs(reader.cx.session.connection.host.variables(VariableScope::Session)))
}

fn global_status(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(pairs(reader.cx.session.connection.host.status(VariableScope::Global)))
}

fn session_status(reader: &mut Reader<'_, '_>) -> ExecResult<Vec<Vec<Value>>> {
    Ok(pairs(reader.cx.session.connection.host.status(VariableScope::Session)))
}
