//! Privileges that statements need, and who says whether the account has them.
//!
//! Accounts and grants themselves are the server's.

use crate::catalog::Definer;
use crate::error::{SqlError, SqlResult};
use omnibus_format::Dialect;
use omnibus_parser::ast::{ProgramKind, Statement, VarScope};
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
    /// EVENT, on a database.
    Event,
    /// Any privilege at all (SHOW, USE).
    Any,
    /// Any privilege on all of a table: one on columns is not enough (SHOW CREATE TABLE).
    AnyOfAll,
}

impl Priv {
    /// As error 1142 names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Priv::Select | Priv::Any | Priv::AnyOfAll => "SELECT",
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
            Priv::Event => "EVENT",
        }
    }
}

/// A procedure or function by name.
#[derive(Clone, Copy, Debug)]
pub struct Routine<'a> {
    /// Procedure or function.
    pub kind: ProgramKind,
    /// Its database.
    pub db: &'a str,
    /// Its name.
    pub name: &'a str,
}

/// The columns of a table or view that an account may do something with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Columns {
    /// All.
    All,
    /// Those that are granted by name.
    Some(ColumnGrants),
}

/// Columns that are granted by name, and what an error tells of the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnGrants {
    names: Arc<[String]>,
    privilege: Priv,
    /// The account that asks: user and host.
    account: (Arc<str>, Arc<str>),
    table: Arc<str>,
}

impl ColumnGrants {
    /// `privilege` on these columns of `table`, for the account that a client goes by.
    #[must_use]
    pub fn new(
        names: Vec<String>,
        privilege: Priv,
        account: (Arc<str>, Arc<str>),
        table: &str,
    ) -> ColumnGrants {
        ColumnGrants { names: names.into(), privilege, account, table: table.into() }
    }

    /// Whether a column is one of them.
    #[must_use]
    pub fn has(&self, column: &str) -> bool {
        self.names.iter().any(|own| crate::catalog::same_name(own, column))
    }

    /// Error 1142 for what needs all columns.
    #[must_use]
    pub fn denied(&self) -> SqlError {
        SqlError::tableaccess_denied(self.privilege.name(), &self.account.0, &self.account.1, &self.table)
    }
}

impl Columns {
    /// Fails with 1142 unless all of these are among them.
    pub fn check_all<'n>(&self, mut columns: impl Iterator<Item = &'n str>) -> SqlResult<()> {
        match self {
            Columns::Some(granted) if !columns.all(|column| granted.has(column)) => Err(granted.denied()),
            _ => Ok(()),
        }
    }

    /// Fails with 1143 for a column that is none of them.
    pub fn check(&self, column: &str) -> SqlResult<()> {
        match self {
            Columns::Some(granted) if !granted.has(column) => Err(SqlError::columnaccess_denied(
                granted.privilege.name(),
                &granted.account.0,
                &granted.account.1,
                column,
                &granted.table,
            )),
            _ => Ok(()),
        }
    }
}

/// Says whether the session's account may do something. Called before a statement runs.
pub trait AccessCheck: Send + Sync {
    /// Fails with 1044 or 1142 if not.
    fn check(&self, db: &str, table: Option<&str>, privilege: Priv) -> SqlResult<()>;

    /// The columns of a table that the account may do this with. Whoever asks looks at each that it uses.
    ///
    /// # Errors
    /// As `check`, if there is none.
    fn columns(&self, db: &str, table: &str, privilege: Priv) -> SqlResult<Columns> {
        self.check(db, Some(table), privilege).map(|()| Columns::All)
    }

    /// Fails unless the account may run this kind of statement at all. Asked before every statement, however it came.
    fn check_statement(&self, _: &Statement) -> SqlResult<()> {
        Ok(())
    }

    /// Fails unless the account may write rows of a table that no statement of its own named (BINLOG).
    fn check_rows(&self, _db: &str, _table: &str) -> SqlResult<()> {
        Ok(())
    }

    /// Fails unless the account may set a system variable: the server's, or one of the session's that few may set in this dialect.
    fn check_variable(&self, _name: &str, _scope: Option<VarScope>, _dialect: Dialect) -> SqlResult<()> {
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

    /// Whether there is a role of this name, in MariaDB's dialect.
    fn is_role(&self, _name: &str) -> bool {
        false
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
        _routine: Routine<'_>,
        _definer: Option<&Definer>,
        _privilege: Priv,
    ) -> SqlResult<()> {
        Ok(())
    }

    /// Whether the account may read what routines of this definer do.
    ///
    /// # Errors
    /// It may not; whoever asks shows nothing in its place.
    fn check_body(&self, _definer: &Definer) -> SqlResult<()> {
        Ok(())
    }

    /// Changes whenever answers may have changed: plans are checked when they are made, and made
    /// again when this differs.
    fn version(&self) -> u64 {
        0
    }

    /// Does something during which it is this account that asks the session's host, as in a program it is its definer.
    fn asks_during(&self, work: &mut dyn FnMut()) {
        work();
    }
}

/// The rights that are asked: the session's, or those of an account that a definition names.
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
    // A log names accounts with their hosts, and roles without.
    fn is_role(&self, _: &str) -> bool {
        true
    }

    fn check(&self, _: &str, _: Option<&str>, _: Priv) -> SqlResult<()> {
        Ok(())
    }
}
