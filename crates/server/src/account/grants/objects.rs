//! Grants on less than a database: tables and views with their columns, routines, roles, and other accounts to act as.

use super::privilege::Privileges;
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
    /// Procedure or function.
    pub kind: ProgramKind,
    /// Database.
    pub db: String,
    /// Name; compared without case.
    pub name: String,
    /// The privileges granted on it.
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

/// An account that another one may act as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyGrant {
    /// Its name; empty is anybody.
    pub user: String,
    /// And its host part.
    pub host: String,
    /// WITH GRANT OPTION.
    pub grant_option: bool,
}

impl ProxyGrant {
    /// Whether the grant belongs to this account.
    #[must_use]
    pub fn is(&self, (user, host): &(String, String)) -> bool {
        self.user == *user && self.host == *host
    }
}
