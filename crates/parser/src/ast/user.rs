//! Accounts and privileges.

use bytes::Bytes;

use super::{Ident, UserName};

/// CREATE USER and ALTER USER.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateUser {
    /// MariaDB.
    pub or_replace: bool,
    /// IF NOT EXISTS of CREATE, IF EXISTS of ALTER.
    pub if_clause: bool,
    pub users: Vec<UserSpec>,
    /// DEFAULT ROLE.
    pub default_roles: Option<RoleSet>,
    pub require: Option<Require>,
    /// MAX_QUERIES_PER_HOUR and its kind, upper case.
    pub resources: Vec<(Ident, u64)>,
    pub password: PasswordOptions,
    pub account_locked: Option<bool>,
    /// COMMENT or ATTRIBUTE, as text.
    pub comment: Option<Bytes>,
    pub attribute: Option<Bytes>,
}

/// One account with how it proves itself.
#[derive(Clone, Debug, PartialEq)]
pub struct UserSpec {
    pub user: UserName,
    pub auth: Option<Auth>,
    /// ALTER USER: REPLACE 'current password'.
    pub replaces: Option<Bytes>,
    /// ALTER USER: DISCARD OLD PASSWORD.
    pub discard_old: bool,
    /// ALTER USER: RETAIN CURRENT PASSWORD.
    pub retain_current: bool,
}

impl UserSpec {
    /// An account without such a clause.
    #[must_use]
    pub fn of(user: UserName) -> UserSpec {
        UserSpec { user, auth: None, replaces: None, discard_old: false, retain_current: false }
    }
}

/// IDENTIFIED ...
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    pub plugin: Option<Ident>,
    pub secret: AuthSecret,
}

/// The secret behind BY or AS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthSecret {
    /// Plugin without a secret.
    None,
    /// BY 'clear text'
    Clear(Bytes),
    /// AS 'stored form' (also MariaDB's BY PASSWORD 'hash')
    Stored(Bytes),
    /// BY RANDOM PASSWORD
    Random,
}

/// REQUIRE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Require {
    None,
    Ssl,
    X509,
    /// (SUBJECT | ISSUER | CIPHER, text)
    Specified(Vec<(Ident, Bytes)>),
}

/// Password options; `None` is not written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PasswordOptions {
    /// PASSWORD EXPIRE and what follows.
    pub expire: Option<PasswordExpire>,
    /// The rest (HISTORY, REUSE INTERVAL, REQUIRE CURRENT, FAILED_LOGIN_ATTEMPTS, PASSWORD_LOCK_TIME), as
    /// upper-case names with a number; no number is DEFAULT or UNBOUNDED.
    pub others: Vec<(Ident, Option<u64>)>,
}

/// PASSWORD EXPIRE ...
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordExpire {
    Now,
    Default,
    Never,
    Days(u64),
}

/// A privilege and its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Privilege {
    /// Upper case, single spaces: `SELECT`, `REPLICATION SLAVE`, `BINLOG_ADMIN`. ALL PRIVILEGES is `ALL`.
    pub name: Ident,
    pub columns: Vec<Ident>,
}

/// The object of a privilege.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantTarget {
    /// `*.*`
    Global,
    /// `db.*` (may hold `%` and `_` patterns)
    Schema(Ident),
    /// `*`: the current database.
    CurrentSchema,
    /// `[db.]t`
    Table(super::ObjectName),
    Procedure(super::ObjectName),
    Function(super::ObjectName),
}

/// Some of the roles that an account has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleSet {
    None,
    /// Those that are in force after login.
    Default,
    All,
    AllExcept(Vec<UserName>),
    List(Vec<UserName>),
}

/// CREATE ROLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateRole {
    /// MariaDB.
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub roles: Vec<UserName>,
    /// MariaDB: WITH ADMIN.
    pub admin: Option<UserName>,
}

/// SET DEFAULT ROLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetDefaultRole {
    pub roles: RoleSet,
    /// None is the current account (MariaDB).
    pub users: Vec<UserName>,
}

/// GRANT.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    pub what: GrantWhat,
    pub users: Vec<UserSpec>,
    pub grant_option: bool,
    /// WITH ADMIN OPTION, of roles.
    pub admin_option: bool,
    /// MariaDB and MySQL 5.7.
    pub require: Option<Require>,
    pub resources: Vec<(Ident, u64)>,
}

/// REVOKE.
#[derive(Clone, Debug, PartialEq)]
pub struct Revoke {
    pub if_exists: bool,
    pub what: GrantWhat,
    /// GRANT OPTION was in the list.
    pub grant_option: bool,
    pub users: Vec<UserName>,
    /// MariaDB: ADMIN OPTION FOR a role alone.
    pub admin_option_for: bool,
    pub ignore_unknown_user: bool,
}

/// The privileges or roles that are granted or revoked.
#[derive(Clone, Debug, PartialEq)]
pub enum GrantWhat {
    Privileges {
        privileges: Vec<Privilege>,
        target: GrantTarget,
    },
    /// REVOKE ALL PRIVILEGES, GRANT OPTION FROM
    Everything,
    Roles(Vec<UserName>),
    Proxy(UserName),
}
