//! Routines, triggers and events as the catalog keeps them: the text that SHOW CREATE shows, and where it was written.
//!
//! Programs run in `crate::session::programs`. A program's tree is made from the text when somebody first needs it.

use super::{Definer, EventDef, charset};
use crate::error::{SqlError, SqlResult};
use bytes::Bytes;
use omnibus_parser::ParseOptions;
use omnibus_parser::ast::{CreateEvent, CreateRoutine, CreateTrigger, Program, ProgramKind, Statement};
use std::sync::{Arc, OnceLock};

/// A program's place in its schema: its kind and its name in lower case. Triggers' names are told apart by case.
pub type ProgramKey = (ProgramKind, Arc<str>);

/// The key of a name.
#[must_use]
pub fn program_key(kind: ProgramKind, name: &str) -> ProgramKey {
    match kind {
        ProgramKind::Trigger => (kind, Arc::from(name)),
        _ => (kind, Arc::from(name.to_lowercase())),
    }
}

/// A stored program.
#[derive(Clone, Debug, Default)]
pub struct ProgramDef {
    /// Its kind; none: not yet said.
    pub kind: Option<ProgramKind>,
    /// Its schema.
    pub db: Arc<str>,
    /// Its name as created.
    pub name: Arc<str>,
    /// The statement that makes it: with its DEFINER, and what was said of it in a fixed order.
    pub text: Arc<str>,
    /// Microseconds since 1970.
    pub created_us: i64,
    /// The last ALTER.
    pub modified_us: i64,
    /// The `sql_mode` that it is read and run under.
    pub sql_mode: u64,
    /// Collation of `character_set_client`.
    pub client: u16,
    /// `collation_connection`.
    pub connection: u16,
    /// `collation_database`.
    pub database: u16,
    /// Of a trigger: its place among those of its table, event and time.
    pub order: u64,
    /// Of an event: when it runs.
    pub event: Option<EventDef>,
    /// The result of `tree`.
    pub(crate) tree: OnceLock<SqlResult<Arc<Statement>>>,
}

impl ProgramDef {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> ProgramKind {
        self.kind.unwrap_or(ProgramKind::Procedure)
    }

    /// Its key.
    #[must_use]
    pub fn key(&self) -> ProgramKey {
        program_key(self.kind(), &self.name)
    }

    /// `db.name`, as errors have it.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.db, self.name)
    }

    /// Another text: no tree is known of it.
    pub fn set_text(&mut self, text: String) {
        self.text = text.into();
        self.tree = OnceLock::new();
    }

    /// The text for the parser and the program's own statements.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes::copy_from_slice(self.text.as_bytes())
    }

    /// The statement that makes it.
    ///
    /// # Errors
    /// 1457: its text does not parse any more.
    pub fn tree(&self) -> SqlResult<Arc<Statement>> {
        let parse = || {
            let parsed =
                omnibus_parser::parse_first(self.text.as_bytes(), &ParseOptions::of_sql_mode(self.sql_mode));
            parsed.map(|(statement, _)| Arc::new(statement.node)).map_err(|error| {
                tracing::error!(%error, program = self.full_name(), "a stored program does not parse");
                let (name, kind) = (self.full_name(), self.kind().name());
                SqlError::new(1457, b"HY000", format!("Failed to load {kind} {name}: {error}"))
            })
        };
        self.tree.get_or_init(parse).clone()
    }

    /// A routine's.
    ///
    /// # Errors
    /// As `tree`.
    pub fn routine(&self) -> SqlResult<CreateRoutine> {
        of_routine(self, CreateRoutine::clone)
    }

    /// A trigger's.
    ///
    /// # Errors
    /// As `tree`.
    pub fn trigger(&self) -> SqlResult<CreateTrigger> {
        of_trigger(self, CreateTrigger::clone)
    }

    /// An event's.
    ///
    /// # Errors
    /// As `tree`.
    pub fn event_tree(&self) -> SqlResult<CreateEvent> {
        match &*self.tree()? {
            Statement::CreateEvent(tree) => Ok((**tree).clone()),
            _ => Err(SqlError::internal("a stored event of another kind")),
        }
    }

    /// The account that made it.
    #[must_use]
    pub fn definer(&self) -> Definer {
        use omnibus_parser::ast::UserName;
        let tree = self.tree().ok();
        let definer = tree.as_deref().and_then(|tree| match tree {
            Statement::CreateRoutine(tree) => tree.definer.clone(),
            Statement::CreateTrigger(tree) => tree.definer.clone(),
            Statement::CreateEvent(tree) => tree.definer.clone(),
            _ => None,
        });
        match definer {
            Some(UserName::Named { user, host }) => {
                Definer { user: Arc::from(&*user), host: Arc::from(&*host) }
            }
            _ => Definer { user: Arc::from(""), host: Arc::from("") },
        }
    }

    /// The character sets and collations that SHOW shows of it: client, connection, database.
    #[must_use]
    pub fn charsets(&self) -> [&'static str; 3] {
        [
            charset::charset_name(self.client),
            charset::collation_name(self.connection),
            charset::collation_name(self.database),
        ]
    }

    /// An event's comment and program.
    ///
    /// # Errors
    /// As `tree`.
    pub(crate) fn event_parts(&self) -> SqlResult<(Bytes, Program)> {
        let tree = self.event_tree()?;
        let program =
            tree.clauses.program.ok_or_else(|| SqlError::internal("a stored event without a body"))?;
        Ok((tree.clauses.comment.unwrap_or_default(), program))
    }
}

/// Something of a routine's tree, which is not copied: it may be large.
///
/// # Errors
/// As `ProgramDef::tree`.
pub(crate) fn of_routine<T>(def: &ProgramDef, read: impl FnOnce(&CreateRoutine) -> T) -> SqlResult<T> {
    match &*def.tree()? {
        Statement::CreateRoutine(tree) => Ok(read(tree)),
        _ => Err(SqlError::internal("a stored routine of another kind")),
    }
}

/// Something of a trigger's tree, which is not copied: a statement asks this of all that its database has.
///
/// # Errors
/// As `ProgramDef::tree`.
pub(crate) fn of_trigger<T>(def: &ProgramDef, read: impl FnOnce(&CreateTrigger) -> T) -> SqlResult<T> {
    match &*def.tree()? {
        Statement::CreateTrigger(tree) => Ok(read(tree)),
        _ => Err(SqlError::internal("a stored trigger of another kind")),
    }
}
