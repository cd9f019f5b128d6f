//! The checks of what PREPARE gets: kinds of statements, their parameters, and names that need a database.

use crate::error::{SqlError, SqlResult};
use crate::state::SessionState;
use omnibus_parser::ast::{ObjectName, Preparing, Show, Spanned, Statement};

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
    let traits = node.traits();
    if mysql && statement.params > 0 && traits.without_params {
        let message = "Dynamic parameters can only be used in DML statements.";
        return Err(SqlError::new(6413, b"HY000", message));
    }
    match traits.prepared {
        Preparing::Never => return Err(not_to_be_prepared()),
        Preparing::InMariadb if mysql => return Err(not_to_be_prepared()),
        Preparing::InMariadb | Preparing::Always => {}
    }
    if mysql && state.database.is_none() && needs_database(node) {
        return Err(SqlError::no_db());
    }
    Ok(())
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

pub(super) fn not_to_be_prepared() -> SqlError {
    SqlError::new(1295, b"HY000", "This command is not supported in the prepared statement protocol yet")
}
