//! An account's own grants: privileges on everything, on databases and on what is in them; roles, and accounts to act as.
//!
//! `Rights` adds those of the roles in force.

mod objects;
mod privilege;
mod restrictions;

pub use objects::{ProxyGrant, RoleGrant, RoutineGrant, TableGrant};
pub use privilege::{
    COLUMN_PRIVILEGES, DB_PRIVILEGES, PRIVILEGES, PrivilegeInfo, Privileges, ROUTINE_PRIVILEGES,
    TABLE_PRIVILEGES, all, all_dynamic, all_static, by_name,
};
pub use restrictions::Restrictions;

use super::host::{covers, like};

/// Privileges on a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DbGrant {
    /// Name, or a pattern with `%` and `_`.
    pub pattern: String,
    /// The privileges granted there.
    pub privileges: Privileges,
}

impl DbGrant {
    fn matches(&self, db: &str, literal: bool) -> bool {
        self.pattern == db || (!literal && like(db.as_bytes(), self.pattern.as_bytes()))
    }

    fn has_wildcard(&self) -> bool {
        self.pattern.contains(['%', '_'])
    }
}

/// The grants of one account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grants {
    /// Global privileges.
    pub privileges: Privileges,
    /// Databases in which some of them do not hold; of a session's account, those in which its roles do not give them either.
    pub restrictions: Restrictions,
    /// Database privileges.
    pub databases: Vec<DbGrant>,
    /// Whether the names of databases there are no patterns, as `partial_revokes` has it.
    pub literal: bool,
    /// Accounts that it may act as.
    pub proxies: Vec<ProxyGrant>,
    /// Privileges on tables, views and columns.
    pub tables: Vec<TableGrant>,
    /// Privileges on routines.
    pub routines: Vec<RoutineGrant>,
    /// The roles that it has.
    pub roles: Vec<RoleGrant>,
}

impl Grants {
    /// Every privilege everywhere.
    #[must_use]
    pub fn of_everything() -> Grants {
        Grants { privileges: all(), ..Grants::default() }
    }

    /// On a database without the roles: where the global ones hold, and those of the most specific grant.
    #[must_use]
    pub fn on_database(&self, db: &str) -> Privileges {
        let granted = self.most_specific(db, |grant| grant.matches(db, self.literal));
        self.privileges.without(self.restrictions.of(db)).with(granted)
    }

    /// On every database that a pattern may mean, without the roles.
    #[must_use]
    pub fn on_databases_of(&self, pattern: &str) -> Privileges {
        let covering =
            |grant: &DbGrant| grant.pattern == pattern || (!self.literal && covers(&grant.pattern, pattern));
        let own = self.privileges.without(self.restrictions.of(pattern));
        own.with(self.most_specific(pattern, covering))
    }

    fn most_specific(&self, name: &str, matches: impl Fn(&DbGrant) -> bool) -> Privileges {
        let found = self.databases.iter().filter(|grant| matches(grant));
        let first =
            found.min_by_key(|g| (g.pattern != name, g.has_wildcard(), std::cmp::Reverse(g.pattern.len())));
        first.map_or(Privileges::NONE, |grant| grant.privileges)
    }
}
