//! What is granted on less than a database: tables and views with their columns, routines, and roles.
//!
//! An account's own grants are in its lists; those of the roles in force are the roles', and `Account` asks them, too.

use super::privilege::Privileges;
use super::table::Account;
use omnibus_parser::ast::ProgramKind;

/// Privileges on a table or view, and on columns of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableGrant {
    /// Database, by its exact name.
    pub db: String,
    /// Table or view.
    pub table: String,
    /// On all of it.
    pub privileges: Privileges,
    /// On some columns, in the order of their names.
    pub columns: Vec<(String, Privileges)>,
}

impl TableGrant {
    /// Whether nothing is left of it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.privileges == Privileges::NONE && self.columns.is_empty()
    }

    /// All privileges that some column has.
    #[must_use]
    pub fn of_columns(&self) -> Privileges {
        self.columns.iter().fold(Privileges::NONE, |set, (_, own)| set.with(*own))
    }

    /// Changes what a column has.
    pub fn change_column(&mut self, name: &str, f: impl Fn(Privileges) -> Privileges) {
        let at = self.columns.binary_search_by(|(column, _)| column.as_str().cmp(name));
        match at {
            Ok(at) => self.columns[at].1 = f(self.columns[at].1),
            Err(at) => self.columns.insert(at, (name.to_owned(), f(Privileges::NONE))),
        }
        self.columns.retain(|(_, own)| *own != Privileges::NONE);
    }
}

/// Privileges on a stored procedure or function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutineGrant {
    /// Which of the two.
    pub kind: ProgramKind,
    /// Database.
    pub db: String,
    /// Name; compared without case.
    pub name: String,
    /// What is granted.
    pub privileges: Privileges,
}

impl RoutineGrant {
    /// Whether it is this routine's.
    #[must_use]
    pub fn is(&self, kind: ProgramKind, db: &str, name: &str) -> bool {
        self.kind == kind && self.db == db && self.name.to_lowercase() == name.to_lowercase()
    }
}

/// A role that an account has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleGrant {
    /// The role's name.
    pub user: String,
    /// And its host part.
    pub host: String,
    /// WITH ADMIN OPTION: may be granted on.
    pub admin: bool,
    /// In force after login.
    pub default: bool,
    /// Granted: one may be a default and not granted, because every account has it (`mandatory_roles`).
    pub granted: bool,
}

impl Account {
    /// The account and the roles in force.
    fn sources(&self) -> impl Iterator<Item = &Account> {
        std::iter::once(self).chain(self.active.iter().map(|role| &**role))
    }

    fn table_grants<'a>(&'a self, db: &'a str, table: &'a str) -> impl Iterator<Item = &'a TableGrant> {
        let own = move |grant: &&TableGrant| grant.db == db && grant.table == table;
        self.sources().flat_map(|source| source.tables.iter()).filter(own)
    }

    /// Privileges on all of a table: of every level.
    #[must_use]
    pub fn on_table(&self, db: &str, table: &str) -> Privileges {
        self.table_grants(db, table).fold(self.on_database(db), |set, grant| set.with(grant.privileges))
    }

    /// The columns of a table that a privilege is granted on by name.
    #[must_use]
    pub fn columns_with(&self, db: &str, table: &str, privilege: Privileges) -> Vec<String> {
        let columns = self.table_grants(db, table).flat_map(|grant| &grant.columns);
        columns.filter(|(_, own)| own.has(privilege)).map(|(name, _)| name.clone()).collect()
    }

    /// Privileges on one column.
    #[must_use]
    pub fn on_column(&self, db: &str, table: &str, column: &str) -> Privileges {
        let columns = self.table_grants(db, table).flat_map(|grant| &grant.columns);
        let own = columns.filter(|(name, _)| name.to_lowercase() == column.to_lowercase());
        own.fold(self.on_table(db, table), |set, (_, own)| set.with(*own))
    }

    /// Privileges on a routine: of every level.
    #[must_use]
    pub fn on_routine(&self, kind: ProgramKind, db: &str, name: &str) -> Privileges {
        let grants = self.sources().flat_map(|source| source.routines.iter());
        let own = grants.filter(|grant| grant.is(kind, db, name));
        own.fold(self.on_database(db), |set, grant| set.with(grant.privileges))
    }

    /// Whether anything in a database is granted by name.
    #[must_use]
    pub(super) fn has_objects_in(&self, db: &str) -> bool {
        self.sources().any(|source| {
            source.tables.iter().any(|grant| grant.db == db)
                || source.routines.iter().any(|grant| grant.db == db)
        })
    }

    /// Privileges on a table, and those on some of its columns.
    #[must_use]
    pub(super) fn on_any_column(&self, db: &str, table: &str) -> Privileges {
        let grants = self.table_grants(db, table);
        grants.fold(self.on_table(db, table), |set, grant| set.with(grant.of_columns()))
    }
}
