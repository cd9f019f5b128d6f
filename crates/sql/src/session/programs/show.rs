//! SHOW CREATE of stored programs.

use crate::api::sql_mode::ANSI_QUOTES;
use crate::api::{Outcome, Priv, Routine};
use crate::catalog::{ProgramDef, quote_ident};
use crate::error::{ExecResult, SqlError};
use crate::session::{Call, StatementContext, answer_column};
use bytes::Bytes;
use omnibus_parser::ast::{ObjectName, ProgramKind};
use omnibus_value::{ColumnKind, Value};

/// A program's `sql_mode` as text.
pub(crate) fn mode_text(state: &crate::state::SessionState, bits: u64) -> String {
    state.connection.host.sql_mode_text(bits)
}

/// Whether the account may know of a program. Who may not see an event has been told so.
fn may_see(def: &ProgramDef, call: &Call<'_>) -> bool {
    match def.kind() {
        ProgramKind::Event => true,
        ProgramKind::Trigger => def
            .trigger()
            .is_ok_and(|tree| call.access.check(&def.db, Some(&tree.table.name), Priv::Trigger).is_ok()),
        kind => {
            let routine = Routine { kind, db: &def.db, name: &def.name };
            call.access.check_routine(routine, Some(&def.definer()), Priv::Any).is_ok()
        }
    }
}

/// A definition's text with its names quoted as the program's own `sql_mode` has it, in MySQL's dialect.
fn in_mode(created: String, def: &ProgramDef, mariadb: bool) -> String {
    if mariadb || def.sql_mode & ANSI_QUOTES == 0 {
        return created;
    }
    let name = quote_ident(&def.name);
    let Some(end) = created.find(&name).map(|at| at + name.len()) else { return created };
    let (head, body) = created.split_at(end);
    // Accounts and names of programs, each whole.
    let head = head.replace('`', "\"");
    head + body
}

/// SHOW CREATE PROCEDURE, FUNCTION, TRIGGER and EVENT.
pub(crate) fn show_create_program(
    cx: &mut StatementContext<'_>,
    kind: ProgramKind,
    name: &ObjectName,
    call: &mut Call<'_>,
) -> ExecResult<Outcome> {
    let db = cx.schema_of(name)?;
    let found = cx.catalog().program(kind, &db, &name.name).cloned();
    if kind == ProgramKind::Event {
        call.access.check(&db, None, Priv::Event)?;
    }
    let visible = found.filter(|def| may_see(def, call));
    let Some(def) = visible else {
        return Err(match kind {
            ProgramKind::Trigger => SqlError::new(1360, b"HY000", "Trigger does not exist").into(),
            ProgramKind::Event => super::event::missing(name).into(),
            _ => SqlError::sp_does_not_exist(kind.name(), &name.name).into(),
        });
    };
    let (title, column) = match kind {
        ProgramKind::Function => ("Function", "Create Function"),
        ProgramKind::Trigger => ("Trigger", "SQL Original Statement"),
        ProgramKind::Event => ("Event", "Create Event"),
        _ => ("Procedure", "Create Procedure"),
    };
    let mut columns = vec![
        answer_column(title, ColumnKind::VarChar, 64),
        answer_column("sql_mode", ColumnKind::VarChar, 512),
        answer_column(column, ColumnKind::VarChar, 1024),
        answer_column("character_set_client", ColumnKind::VarChar, 32),
        answer_column("collation_connection", ColumnKind::VarChar, 32),
        answer_column("Database Collation", ColumnKind::VarChar, 32),
    ];
    let text = |text: &str| Value::Bytes(Bytes::copy_from_slice(text.as_bytes()));
    let [client, connection, database] = def.charsets();
    let guarded = matches!(kind, ProgramKind::Procedure | ProgramKind::Function);
    let shown = !guarded || call.access.check_body(&def.definer()).is_ok();
    let (event, mariadb) = (def.event.as_ref(), cx.state.settings.mariadb);
    let words = event.map_or("", |event| event.status.text(true));
    // Kept in MariaDB's words.
    let created = match event {
        Some(event) if !mariadb => {
            def.text.replacen(&format!(" {words}"), &format!(" {}", event.status.text(false)), 1)
        }
        _ => def.text.to_string(),
    };
    let mut row = vec![
        text(&def.name),
        text(&mode_text(cx.state, def.sql_mode)),
        if shown { text(&in_mode(created, &def, mariadb)) } else { Value::Null },
        text(client),
        text(connection),
        text(database),
    ];
    if let Some(event) = event {
        columns.insert(2, answer_column("time_zone", ColumnKind::VarChar, 64));
        row.insert(2, text(&event.zone));
    }
    if kind == ProgramKind::Trigger {
        columns.push(answer_column("Created", ColumnKind::VarChar, 32));
        let zone = cx.state.zone();
        let at = crate::expr::context::unix_us(zone.local_us(def.created_us));
        let mut written = Vec::new();
        at.write_text(2, &mut written);
        row.push(Value::Bytes(written.into()));
    }
    call.sink.columns(&columns)?;
    call.sink.row(&row)?;
    Ok(Outcome::rows())
}
