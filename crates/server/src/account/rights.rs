//! The rights of an account: its own, and those of the roles in force.

use super::grants::{DB_PRIVILEGES, Grants, Privileges, TableGrant};
use super::table::Account;
use omnibus_parser::ast::ProgramKind;

/// The account's grants and its roles'.
#[derive(Clone, Copy)]
pub struct Rights<'a>(&'a Account);

impl Account {
    /// All that it has.
    #[must_use]
    pub fn rights(&self) -> Rights<'_> {
        Rights(self)
    }
}

impl<'a> Rights<'a> {
    /// Privileges on a database: the global ones and those of the most specific grant, the account's and each role's.
    #[must_use]
    pub fn on_database(self, db: &str) -> Privileges {
        self.sources().fold(Privileges::NONE, |set, grants| set.with(grants.on_database(db)))
    }

    /// Privileges on every database that a pattern may mean: whoever gives them away must have them on all of these.
    #[must_use]
    pub fn on_databases_of(self, pattern: &str) -> Privileges {
        self.sources().fold(Privileges::NONE, |set, grants| set.with(grants.on_databases_of(pattern)))
    }

    /// Whether the account may know that a database exists.
    #[must_use]
    pub fn sees_database(self, db: &str) -> bool {
        let restricted = self.0.grants.restrictions.of(db).with(Privileges::GRANT_OPTION);
        let anything = self.0.grants.privileges.without(restricted);
        let global = DB_PRIVILEGES.with(Privileges::SHOW_DATABASES);
        anything.any(global) || self.on_database(db).any(DB_PRIVILEGES) || self.has_objects_in(db)
    }

    /// Whether the account may know that a table is there, and what it looks like.
    #[must_use]
    pub fn sees_table(self, db: &str, table: &str) -> bool {
        let any = DB_PRIVILEGES.without(Privileges::GRANT_OPTION);
        self.on_any_column(db, table).any(any)
    }

    /// Those of the account and of the roles in force.
    fn sources(self) -> impl Iterator<Item = &'a Grants> {
        let roles = self.0.active.iter().map(|role| &role.grants);
        std::iter::once(&self.0.grants).chain(roles)
    }

    fn table_grants<'n>(self, db: &'n str, table: &'n str) -> impl Iterator<Item = &'n TableGrant>
    where
        'a: 'n,
    {
        let own = move |grant: &&TableGrant| grant.db == db && grant.table == table;
        self.sources().flat_map(|source| source.tables.iter()).filter(own)
    }

    /// Privileges on all of a table: of every level.
    #[must_use]
    pub fn on_table(self, db: &str, table: &str) -> Privileges {
        self.table_grants(db, table).fold(self.on_database(db), |set, grant| set.with(grant.privileges))
    }

    /// The columns of a table that a privilege is granted on by name.
    #[must_use]
    pub fn columns_with(self, db: &str, table: &str, privilege: Privileges) -> Vec<String> {
        let columns = self.table_grants(db, table).flat_map(|grant| &grant.columns);
        columns.filter(|(_, own)| own.has(privilege)).map(|(name, _)| name.clone()).collect()
    }

    /// Privileges on one column.
    #[must_use]
    pub fn on_column(self, db: &str, table: &str, column: &str) -> Privileges {
        let columns = self.table_grants(db, table).flat_map(|grant| &grant.columns);
        let own = columns.filter(|(name, _)| name.to_lowercase() == column.to_lowercase());
        own.fold(self.on_table(db, table), |set, (_, own)| set.with(*own))
    }

    /// Privileges on a routine: of every level.
    #[must_use]
    pub fn on_routine(self, kind: ProgramKind, db: &str, name: &str) -> Privileges {
        let grants = self.sources().flat_map(|source| source.routines.iter());
        let own = grants.filter(|grant| grant.is(kind, db, name));
        own.fold(self.on_database(db), |set, grant| set.with(grant.privileges))
    }

    /// Whether anything in a database is granted by name.
    #[must_use]
    fn has_objects_in(self, db: &str) -> bool {
        self.sources().any(|source| {
            source.tables.iter().any(|grant| grant.db == db)
                || source.routines.iter().any(|grant| grant.db == db)
        })
    }

    /// Privileges on a table, and those on some of its columns.
    #[must_use]
    fn on_any_column(self, db: &str, table: &str) -> Privileges {
        let grants = self.table_grants(db, table);
        grants.fold(self.on_table(db, table), |set, grant| set.with(grant.of_columns()))
    }
}
