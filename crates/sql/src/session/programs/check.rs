//! Statements that a kind of program may not contain, refused when it is made.

use crate::api::VariableScope;
use crate::ddl;
use crate::error::{SqlError, SqlResult};
use crate::state::SessionState;
use bytes::Bytes;
use omnibus_parser::ast::{Commits, InPrograms, Program, ProgramKind, ProgramNode, SetItem, Statement};

/// A look at one statement of a body.
type Look<'a> = &'a mut dyn FnMut(&Statement) -> SqlResult<()>;

/// Fails if a body has what its kind of program may not have.
///
/// # Errors
/// 1303, 1314, 1336, 1357, 1415, 1422.
pub(super) fn body(kind: ProgramKind, program: &Program) -> SqlResult<()> {
    if matches!(kind, ProgramKind::Function | ProgramKind::Trigger) && program.returns_rows {
        let what = if kind == ProgramKind::Function { "function" } else { "trigger" };
        return Err(SqlError::sp_no_retset(what));
    }
    node(&program.body, &mut |each| statement(kind, each))
}

/// Fails if a program that a client makes sets a system variable that there is not.
///
/// # Errors
/// 1193.
pub(super) fn variables(state: &SessionState, program: &Program) -> SqlResult<()> {
    if state.settings.replicated || state.settings.mariadb {
        return Ok(());
    }
    node(&program.body, &mut |statement| {
        let Statement::Set(items) = statement else { return Ok(()) };
        for item in items {
            let SetItem::System { name, .. } = item else { continue };
            match state.connection.host.variable(VariableScope::Either, name) {
                Err(error) if error.code == 1193 => return Err(error),
                _ => {}
            }
        }
        Ok(())
    })
}

/// The characters of a routine's comment.
const LONGEST_COMMENT: usize = 65_535;

/// Fails if a routine's name or a parameter's has characters that MySQL's identifiers have not.
///
/// # Errors
/// 1300.
pub(super) fn routine_names<'n>(mut names: impl Iterator<Item = &'n str>) -> SqlResult<()> {
    let Some((name, at)) = names.find_map(|name| Some((name, beyond_utf8mb3(name)?))) else { return Ok(()) };
    let shown = format!("{}{}", &name[..at], in_hex(&name.as_bytes()[at..]));
    Err(SqlError::new(1300, b"HY000", format!("Invalid utf8mb3 character string: '{shown}'")))
}

/// Fails if a routine's comment is too long, or is no utf8mb3. `what` stands for the routine in the error.
///
/// # Errors
/// 3511, 4088.
pub(super) fn comment(comment: Option<&Bytes>, what: &str) -> SqlResult<()> {
    let Some(comment) = comment else { return Ok(()) };
    let text = String::from_utf8_lossy(comment);
    if text.chars().count() > LONGEST_COMMENT {
        let shown: String = text.chars().take(64).collect();
        let message = format!("Comment for routine '{shown}' is too long (max = {LONGEST_COMMENT})");
        return Err(SqlError::new(3511, b"HY000", message));
    }
    let Some(at) = beyond_utf8mb3(&text) else { return Ok(()) };
    let shown = in_hex(&text.as_bytes()[at..at + 3]);
    let message = format!("Comment for {what} contains an invalid utf8mb3 character string: '{shown}'.");
    Err(SqlError::new(4088, b"HY000", message))
}

/// Where the first character is that needs four bytes.
fn beyond_utf8mb3(text: &str) -> Option<usize> {
    text.char_indices().find(|(_, c)| c.len_utf8() > 3).map(|(at, _)| at)
}

fn in_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| text + &format!("\\x{byte:02X}"))
}

/// Looks at each statement of a list of nodes.
fn list(nodes: &[ProgramNode], look: Look<'_>) -> SqlResult<()> {
    nodes.iter().try_for_each(|each| node(each, look))
}

fn node(each: &ProgramNode, look: Look<'_>) -> SqlResult<()> {
    match each {
        ProgramNode::Block(block) => {
            block.handlers.iter().try_for_each(|handler| node(&handler.body, look))?;
            list(&block.body, look)
        }
        ProgramNode::Statement(inner) => look(&inner.statement.node),
        ProgramNode::If { branches, otherwise } => {
            branches.iter().try_for_each(|(_, body)| list(body, look))?;
            list(otherwise, look)
        }
        ProgramNode::Case { whens, otherwise, .. } => {
            whens.iter().try_for_each(|(_, body)| list(body, look))?;
            list(otherwise.as_deref().unwrap_or_default(), look)
        }
        ProgramNode::Loop { body, .. } => list(body, look),
        _ => Ok(()),
    }
}

fn statement(kind: ProgramKind, statement: &Statement) -> SqlResult<()> {
    if let Statement::CreateView(view) = statement {
        ddl::check_view_text(&view.query)?;
    }
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

/// Fails if a statement is one that a program may not have which runs inside of another statement.
pub(super) fn inside_statement(statement: &Statement) -> SqlResult<()> {
    let is_autocommit =
        |item: &SetItem| matches!(item, SetItem::System { name, .. } if name.is("autocommit"));
    if matches!(statement, Statement::Set(items) if items.iter().any(is_autocommit)) {
        let message = "Not allowed to set autocommit from a stored function or trigger";
        return Err(SqlError::new(1445, b"HY000", message));
    }
    let traits = statement.traits();
    match (traits.programs, traits.commits) {
        (InPrograms::OutsideStatements(what), _) => Err(SqlError::stmt_not_allowed_in_sf_or_trg(what)),
        // These end a transaction, too, where there is one.
        (..) if steers_replication(statement) => Err(SqlError::commit_not_allowed_in_sf_or_trg()),
        (_, Commits::No) => Ok(()),
        (_, Commits::First | Commits::Itself | Commits::AsItGoes) => {
            Err(SqlError::commit_not_allowed_in_sf_or_trg())
        }
    }
}

fn steers_replication(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::ChangeSource(_)
            | Statement::ChangeReplicationFilter(_)
            | Statement::StartReplica(_)
            | Statement::StopReplica(_)
    )
}
