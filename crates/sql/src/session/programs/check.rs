//! What a kind of program may not do, said when it is made.

use crate::error::{SqlError, SqlResult};
use omnibus_parser::ast::{Commits, InPrograms, Program, ProgramKind, ProgramNode, Statement};

/// Fails if a body has what its kind of program may not have.
///
/// # Errors
/// 1303, 1314, 1336, 1357, 1415, 1422.
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
    match statement.traits().programs {
        InPrograms::Never(what) => Err(SqlError::sp_badstatement(what)),
        InPrograms::NoCreate(what) => {
            let message = format!("Can't create a {what} from within another stored routine");
            Err(SqlError::new(1303, b"2F003", message))
        }
        InPrograms::NoDrop(what) => {
            let message = format!("Can't drop or alter a {what} from within another stored routine");
            Err(SqlError::new(1357, b"HY000", message))
        }
        InPrograms::Allowed | InPrograms::OutsideStatements(_) => match kind {
            ProgramKind::Function | ProgramKind::Trigger => inside_statement(statement),
            ProgramKind::Procedure | ProgramKind::Event => Ok(()),
        },
    }
}

/// What a program may not do that runs inside of a statement.
pub(super) fn inside_statement(statement: &Statement) -> SqlResult<()> {
    let traits = statement.traits();
    match (traits.programs, traits.commits) {
        (InPrograms::OutsideStatements(what), _) => Err(SqlError::stmt_not_allowed_in_sf_or_trg(what)),
        (_, Commits::No) => Ok(()),
        (_, Commits::First | Commits::Itself | Commits::AsItGoes) => {
            Err(SqlError::commit_not_allowed_in_sf_or_trg())
        }
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
