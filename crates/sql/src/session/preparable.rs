//! The checks of what PREPARE gets: kinds of statements, their parameters, and names that need a database.

use crate::error::{SqlError, SqlResult};
use crate::state::SessionState;
use omnibus_parser::ast::{MaintenanceKind, ObjectName, ProgramKind, Show, Spanned, Statement};

/// Fails if a statement is none that may be prepared.
///
/// # Errors
/// 1046, 1295, 1390, 6413.
pub(super) fn check(statement: &Spanned<Statement>, state: &SessionState) -> SqlResult<()> {
    // The protocol counts them in two bytes.
    if statement.params > u32::from(u16::MAX) {
        return Err(SqlError::new(1390, b"HY000", "Prepared statement contains too many placeholders"));
    }
    let node = &statement.node;
    let mysql = !state.settings.mariadb;
    if mysql && statement.params > 0 && has_no_params(node) {
        let message = "Dynamic parameters can only be used in DML statements.";
        return Err(SqlError::new(6413, b"HY000", message));
    }
    if is_never_prepared(node) || mysql && is_not_prepared(node) {
        return Err(not_to_be_prepared());
    }
    if mysql && state.database.is_none() && needs_database(node) {
        return Err(SqlError::no_db());
    }
    Ok(())
}

fn is_never_prepared(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Prepare { .. }
            | Statement::Execute { .. }
            | Statement::Deallocate(_)
            | Statement::Use(_)
            | Statement::Xa(_)
            | Statement::LoadData(_)
            | Statement::Handler(_)
            | Statement::SetStatement(_)
            | Statement::Binlog(_)
    )
}

/// Whether no value of a statement may come from outside.
fn has_no_params(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::AlterTable(_) | Statement::CreateIndex(_) | Statement::Kill(_) | Statement::Purge(_)
    )
}

/// Whether a statement that is not planned yet names something in the current database.
fn needs_database(statement: &Statement) -> bool {
    let bare = |name: &ObjectName| name.schema.is_none();
    match statement {
        Statement::CreateTable(create) => bare(&create.name),
        Statement::AlterTable(alter) => bare(&alter.table),
        Statement::DropTable(drop) | Statement::DropView(drop) => drop.tables.iter().any(bare),
        Statement::Truncate(table) => bare(table),
        Statement::Maintenance(maintenance) => maintenance.tables.iter().any(bare),
        Statement::Show(show) => {
            matches!(**show, Show::Tables { schema: None, .. } | Show::TableStatus { schema: None, .. })
        }
        _ => false,
    }
}

/// Whether MySQL runs a statement as a text only.
fn is_not_prepared(statement: &Statement) -> bool {
    match statement {
        Statement::Begin(_)
        | Statement::Savepoint(_)
        | Statement::RollbackTo(_)
        | Statement::ReleaseSavepoint(_)
        | Statement::LockTables(_)
        | Statement::UnlockTables
        | Statement::LockInstance
        | Statement::UnlockInstance
        | Statement::CreateRoutine(_)
        | Statement::AlterRoutine(_)
        | Statement::CreateTrigger(_)
        | Statement::Signal(_)
        | Statement::GetDiagnostics(_)
        | Statement::AlterDatabase(_)
        | Statement::CreateRole(_)
        | Statement::DropRole { .. }
        | Statement::Purge(_) => true,
        Statement::CreateView(view) => view.alter,
        Statement::DropProgram(drop) => drop.kind != ProgramKind::Event,
        Statement::Maintenance(maintenance) => maintenance.kind == MaintenanceKind::Check,
        Statement::Show(show) => matches!(**show, Show::Warnings { .. } | Show::Errors { .. }),
        _ => false,
    }
}

pub(super) fn not_to_be_prepared() -> SqlError {
    SqlError::new(1295, b"HY000", "This command is not supported in the prepared statement protocol yet")
}
