//! What a kind of program may not do, said when it is made.

use crate::error::{SqlError, SqlResult};
use omnibus_parser::ast::{Flush, FlushTarget, Program, ProgramKind, ProgramNode, Statement};

/// Fails if a body has what its kind of program may not have.
///
/// # Errors
/// 1314, 1336, 1415, 1422.
pub(super) fn body(kind: ProgramKind, program: &Program) -> SqlResult<()> {
    if matches!(kind, ProgramKind::Function | ProgramKind::Trigger) && program.returns_rows {
        let what = if kind == ProgramKind::Function { "function" } else { "trigger" };
        return Err(SqlError::sp_no_retset(what));
    }
    node(kind, &program.body)
}

fn list(kind: ProgramKind, nodes: &[ProgramNode]) -> SqlResult<()> {
    nodes.iter().try_for_each(|each| node(kind, each))
}

fn node(kind: ProgramKind, each: &ProgramNode) -> SqlResult<()> {
    match each {
        ProgramNode::Block(block) => {
            block.handlers.iter().try_for_each(|handler| node(kind, &handler.body))?;
            list(kind, &block.body)
        }
        ProgramNode::Statement(inner) => statement(kind, &inner.statement.node),
        ProgramNode::If { branches, otherwise } => {
            branches.iter().try_for_each(|(_, body)| list(kind, body))?;
            list(kind, otherwise)
        }
        ProgramNode::Case { whens, otherwise, .. } => {
            whens.iter().try_for_each(|(_, body)| list(kind, body))?;
            list(kind, otherwise.as_deref().unwrap_or_default())
        }
        ProgramNode::Loop { body, .. } => list(kind, body),
        _ => Ok(()),
    }
}

fn statement(kind: ProgramKind, statement: &Statement) -> SqlResult<()> {
    let bad = match statement {
        Statement::Use(_) => Some("USE"),
        Statement::LoadData(_) => Some("LOAD DATA"),
        Statement::LockTables(_) => Some("LOCK"),
        Statement::UnlockTables => Some("UNLOCK"),
        Statement::CreateRoutine(tree) => {
            let what = tree.kind.name();
            let message = format!("Can't create a {what} from within another stored routine");
            return Err(SqlError::new(1303, b"2F003", message));
        }
        Statement::CreateTrigger(_) => {
            return Err(SqlError::new(
                1303,
                b"2F003",
                "Can't create a TRIGGER from within another stored routine",
            ));
        }
        Statement::AlterRoutine(_) => Some("ALTER ROUTINE"),
        Statement::DropProgram(drop) if drop.kind != ProgramKind::Event => {
            let message =
                format!("Can't drop or alter a {} from within another stored routine", drop.kind.name());
            return Err(SqlError::new(1357, b"HY000", message));
        }
        Statement::Binlog(_) => Some("BINLOG"),
        _ => None,
    };
    if let Some(what) = bad {
        return Err(SqlError::sp_badstatement(what));
    }
    match kind {
        ProgramKind::Function | ProgramKind::Trigger => inside_statement(statement),
        _ => Ok(()),
    }
}

/// What a program may not do that runs inside of a statement.
pub(super) fn inside_statement(statement: &Statement) -> SqlResult<()> {
    let temporary = match statement {
        Statement::CreateTable(tree) => tree.temporary,
        Statement::DropTable(tree) => tree.temporary,
        _ => false,
    };
    match statement {
        Statement::Prepare { .. }
        | Statement::Execute { .. }
        | Statement::ExecuteImmediate { .. }
        | Statement::Deallocate(_) => Err(SqlError::stmt_not_allowed_in_sf_or_trg("Dynamic SQL")),
        Statement::Flush(flush) if !is_harmless(flush) => {
            Err(SqlError::stmt_not_allowed_in_sf_or_trg("FLUSH"))
        }
        Statement::Reset(_) => Err(SqlError::stmt_not_allowed_in_sf_or_trg("RESET")),
        _ if temporary => Ok(()),
        statement if statement.ends_transaction() => Err(SqlError::commit_not_allowed_in_sf_or_trg()),
        _ => Ok(()),
    }
}

/// Whether a statement that the SQL layer runs has a result set for the client.
pub(super) fn gives_rows(statement: &Statement) -> bool {
    match statement {
        Statement::Select(query) => query.into.is_none(),
        Statement::Insert(insert) => !insert.returning.is_empty(),
        Statement::Delete(delete) => !delete.returning.is_empty(),
        _ => false,
    }
}

fn is_harmless(flush: &Flush) -> bool {
    flush.targets.iter().all(|target| matches!(target, FlushTarget::Status))
}
