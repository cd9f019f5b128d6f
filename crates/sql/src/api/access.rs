//! Privileges that statements need, and who says whether the account has them.
//!
//! Accounts and grants themselves are the server's.

use crate::catalog::Definer;
use crate::error::SqlResult;
use omnibus_parser::ast::Statement;
use std::ops::Deref;
use std::sync::Arc;

/// A privilege that a statement needs on a table or database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Priv {
    /// SELECT.
    Select,
    /// INSERT.
    Insert,
    /// UPDATE.
    Update,
    /// DELETE.
    Delete,
    /// CREATE.
    Create,
    /// DROP.
    Drop,
    /// ALTER.
    Alter,
    /// INDEX.
    Index,
    /// REFERENCES.
    References,
    /// LOCK TABLES.
    LockTables,
    /// CREATE TEMPORARY TABLES, on a database.
    CreateTemporary,
    /// CREATE VIEW.
    CreateView,
    /// SHOW VIEW.
    ShowView,
    /// EXECUTE of a routine.
    Execute,
    /// CREATE ROUTINE, on a database.
    CreateRoutine,
    /// ALTER ROUTINE.
    AlterRoutine,
    /// TRIGGER, on a table.
    Trigger,
    /// Any privilege at all (SHOW, USE).
    Any,
}

impl Priv {
    /// As error 1142 names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Priv::Select | Priv::Any => "SELECT",
            Priv::Insert => "INSERT",
            Priv::Update => "UPDATE",
            Priv::Delete => "DELETE",
            Priv::Create => "CREATE",
            Priv::Drop => "DROP",
            Priv::Alter => "ALTER",
            Priv::Index => "INDEX",
            Priv::References => "REFERENCES",
            Priv::LockTables => "LOCK TABLES",
            Priv::CreateTemporary => "CREATE TEMPORARY TABLES",
            Priv::CreateView => "CREATE VIEW",
            Priv::ShowView => "SHOW VIEW",
            Priv::Execute => "EXECUTE",
            Priv::CreateRoutine => "CREATE ROUTINE",
            Priv::AlterRoutine => "ALTER ROUTINE",
            Priv::Trigger => "TRIGGER",
        }
    }
}

/// Says whether the session's account may do something. Called before a statement runs.
pub trait AccessCheck: Send + Sync {
    /// Fails with 1044 or 1142 if not.
    fn check(&self, db: &str, table: Option<&str>, privilege: Priv) -> SqlResult<()>;

    /// Fails unless the account may run this kind of statement at all. Asked before every statement, however it came.
    fn check_statement(&self, _: &Statement) -> SqlResult<()> {
        Ok(())
    }

    /// Fails unless the account may write rows of a table that no statement of its own named (BINLOG).
    fn check_rows(&self, _db: &str, _table: &str) -> SqlResult<()> {
        Ok(())
    }

    /// Fails unless the account may finish an XA branch that another one prepared.
    fn check_any_branch(&self) -> SqlResult<()> {
        Ok(())
    }

    /// Fails with 1045 unless the account may read and write the server's files (FILE).
    fn check_files(&self) -> SqlResult<()> {
        Ok(())
    }

    /// The rights of an account that a definition names, in the place of the session's.
    ///
    /// # Errors
    /// 1449: there is no such account.
    fn of_definer(&self, _definer: &Definer) -> SqlResult<Arc<dyn AccessCheck>> {
        Ok(Arc::new(AllowAll))
    }

    /// Whether the account may name another one as a definer.
    ///
    /// # Errors
    /// 1227 if not.
    fn check_names_definer(&self, _definer: &Definer) -> SqlResult<()> {
        Ok(())
    }

    /// Fails with 1370 unless the account may do this with a stored routine (1044: create one). Whoever it acts for may run,
    /// change and see it.
    fn check_routine(
        &self,
        _db: &str,
        _name: &str,
        _definer: Option<&Definer>,
        _privilege: Priv,
    ) -> SqlResult<()> {
        Ok(())
    }

    /// Changes whenever answers may have changed: plans are checked when they are made, and made
    /// again when this differs.
    fn version(&self) -> u64 {
        0
    }
}

/// Whose rights are asked: the session's, or those of an account that a definition names.
#[derive(Clone)]
pub enum Rights<'a> {
    /// The session's.
    Session(&'a dyn AccessCheck),
    /// A definer's.
    Definer(Arc<dyn AccessCheck>),
}

impl<'a> Deref for Rights<'a> {
    type Target = dyn AccessCheck + 'a;

    fn deref(&self) -> &Self::Target {
        match self {
            Rights::Session(access) => *access,
            Rights::Definer(access) => &**access,
        }
    }
}

/// Lets everything through: recovery, bootstrap, tests.
#[derive(Debug, Default)]
pub struct AllowAll;

impl AccessCheck for AllowAll {
    fn check(&self, _: &str, _: Option<&str>, _: Priv) -> SqlResult<()> {
        Ok(())
    }
}
