//! Definitions that close the session's own handlers.

use crate::session::StatementContext;
use omnibus_parser::ast::{ObjectName, Statement};

/// Closes the handlers of the tables that a definition statement is about.
pub(in crate::session) fn close_changed(cx: &mut StatementContext<'_>, statement: &Statement) {
    if cx.state.held.handlers.is_empty() {
        return;
    }
    if let Statement::DropDatabase { name, .. } = statement {
        cx.state.held.handlers.close_database(name);
    }
    for name in changed(statement) {
        if let Ok(db) = cx.schema_of(name) {
            cx.state.held.handlers.close_table(&db, &name.name);
        }
    }
}

fn changed(statement: &Statement) -> Vec<&ObjectName> {
    match statement {
        Statement::AlterTable(tree) => vec![&tree.table],
        Statement::CreateTable(tree) => vec![&tree.name],
        Statement::CreateIndex(tree) => vec![&tree.table],
        Statement::DropIndex(tree) => vec![&tree.table],
        Statement::DropTable(tree) => tree.tables.iter().collect(),
        Statement::Truncate(name) => vec![name],
        Statement::RenameTable(pairs) => pairs.iter().map(|(from, _)| from).collect(),
        _ => Vec::new(),
    }
}
