//! Whether the session's account may do something.

use super::acting::ActingAccount;
use super::rule::{self, Rule};
use crate::account::{
    self, Account, AccountName, Accounts, COLUMN_PRIVILEGES, Privileges, RoleContext, TABLE_PRIVILEGES,
};
use crate::errors;
use crate::sysvars::rights;
use omnibus_format::Dialect;
use omnibus_parser::ast::{RoleSet, Statement, VarScope};
use omnibus_sql::{AccessCheck, ColumnGrants, Columns, Definer, Priv, Routine, SqlError, SqlResult};
use omnibus_wire::Command;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// An account and the name its client goes by in errors.
#[derive(Clone, Debug)]
pub struct SessionAccess {
    /// With its roles that are in force.
    account: Arc<Account>,
    roles: Vec<AccountName>,
    generation: u64,
    /// Stands for the account, its roles in force and the generation: plans are made for one version. Programs have their
    /// statements' plans to themselves, whoever's rights they run with.
    version: u64,
    /// The state of a password that has to be changed before anything else: whether it had expired, and since when it was.
    confined: Option<(bool, Option<i64>)>,
    user: Arc<str>,
    host: Arc<str>,
    accounts: Arc<Accounts>,
    /// The account that proved itself, where this is another one, as error messages quote it.
    proxy: Option<Arc<str>>,
    /// Where it acts when a program of it asks the server, if that is known.
    acting: Option<Arc<ActingAccount>>,
}

impl SessionAccess {
    /// For a session that logged in to `account`.
    #[must_use]
    pub fn new(account: Arc<Account>, user: &str, host: &str, accounts: &Arc<Accounts>) -> SessionAccess {
        let mut access = SessionAccess {
            account,
            roles: Vec::new(),
            generation: u64::MAX,
            version: 0,
            confined: None,
            user: user.into(),
            host: host.into(),
            accounts: accounts.clone(),
            proxy: None,
            acting: None,
        };
        access.stamp();
        access
    }

    /// It was another account that proved itself.
    #[must_use]
    pub fn behind(self, proxy: Option<&Account>) -> SessionAccess {
        SessionAccess { proxy: proxy.map(|account| account.quoted().into()), ..self }
    }

    /// `proxy_user`.
    #[must_use]
    pub fn proxy(&self) -> Option<Arc<str>> {
        self.proxy.clone()
    }

    fn stamp(&mut self) {
        let mut hasher = DefaultHasher::new();
        (&self.account.user, self.account.host.as_str(), self.generation).hash(&mut hasher);
        for role in &self.roles {
            role.hash(&mut hasher);
        }
        self.version = hasher.finish();
    }

    /// The same rights as another access of this version has.
    #[must_use]
    pub fn of_version(self, version: u64) -> SessionAccess {
        SessionAccess { version, ..self }
    }

    /// The rights in a program of a session whose questions come from this account.
    pub(super) fn acting_in(self, acting: &Arc<ActingAccount>) -> SessionAccess {
        SessionAccess { acting: Some(acting.clone()), ..self }
    }

    /// Puts the roles in force that are so after login.
    #[must_use]
    pub fn logged_in(mut self) -> SessionAccess {
        if !self.account.is_anybody() {
            let roles = account::at_login(&self.accounts.table(), &self.account, &self.accounts.rules());
            self.put_roles(roles);
        }
        self
    }

    /// Of a role that acts as a definer: what it has of others is in force, too.
    #[must_use]
    pub fn of_role(mut self) -> SessionAccess {
        self.put_roles(vec![(self.account.user.clone(), self.account.host.as_str().to_owned())]);
        self
    }

    /// SET ROLE.
    pub fn set_role(&mut self, set: &RoleSet, mariadb: bool) -> SqlResult<()> {
        let (table, rules) = (self.accounts.table(), self.accounts.rules());
        let stored = self.stored();
        let cx = RoleContext { table: &table, me: &stored, rules: &rules, mariadb };
        let roles = account::choose(&cx, &stored, set)?;
        self.put_roles(roles);
        Ok(())
    }

    fn put_roles(&mut self, roles: Vec<AccountName>) {
        self.account = account::with_roles(&self.accounts.table(), &self.stored(), &roles);
        self.roles = roles;
        self.stamp();
    }

    /// The account by itself.
    fn stored(&self) -> Arc<Account> {
        let (user, host) = (&self.account.user, self.account.host.as_str());
        self.accounts.table().exact(user, host).unwrap_or_else(|| Arc::new(Account::new(user, host)))
    }

    /// The roles in force.
    #[must_use]
    pub fn roles(&self) -> &[AccountName] {
        &self.roles
    }

    /// Until its password is another one, the session may do nothing but see to that.
    pub fn confine(&mut self, confined: bool) {
        let options = &self.account.options;
        self.confined = confined.then_some((options.expired, options.changed));
    }

    /// The account.
    #[must_use]
    pub fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// Follows GRANT, REVOKE and DROP USER. An account that is gone keeps its name and loses all else.
    /// Says whether it may be another one now.
    pub fn refresh(&mut self, accounts: &Accounts) -> bool {
        let generation = accounts.generation();
        if generation == self.generation || self.account.is_anybody() {
            return false;
        }
        self.generation = generation;
        let (table, stored) = (accounts.table(), self.stored());
        let held = account::available(&table, &stored, &accounts.rules());
        self.roles.retain(|role| held.contains(role));
        self.account = account::with_roles(&table, &stored, &self.roles);
        self.stamp();
        let options = &self.account.options;
        self.confined = self
            .confined
            .filter(|(expired, changed)| *changed == options.changed && (options.expired || !expired));
        true
    }

    /// Fails with 1227 unless the account has one of these globally.
    pub fn require(&self, any_of: Privileges) -> SqlResult<()> {
        if self.account.grants.privileges.any(any_of) {
            return Ok(());
        }
        let names: Vec<_> = any_of.names().collect();
        Err(errors::specific_access_denied(names.join(" or ")))
    }

    /// Whether it has one of these globally.
    #[must_use]
    pub fn has(&self, any_of: Privileges) -> bool {
        self.account.grants.privileges.any(any_of)
    }

    /// Whether `read_only` does not hold it back.
    #[must_use]
    pub fn may_write_read_only(&self) -> bool {
        self.has(Privileges::SUPER.with(Privileges::CONNECTION_ADMIN))
    }

    /// Error 1044 for a database.
    #[must_use]
    pub fn database_denied(&self, db: &str) -> SqlError {
        SqlError::dbaccess_denied(&self.user, &self.host, db)
    }
}

fn is_virtual(db: &str) -> bool {
    db.eq_ignore_ascii_case("information_schema") || db.eq_ignore_ascii_case("performance_schema")
}

/// Whether it is one of the tables that tell of everybody's transactions and data: InnoDB's own, all but the words that its full-text
/// indexes leave out, and this server's.
pub(super) fn tells_of_all(db: &str, table: Option<&str>) -> bool {
    let begins = |table: &str, with: &str| {
        table.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    let own = |table: &str| begins(table, "INNODB_") || begins(table, "OMNIBUS_");
    db.eq_ignore_ascii_case("information_schema")
        && table.is_some_and(|table| own(table) && !table.eq_ignore_ascii_case("INNODB_FT_DEFAULT_STOPWORD"))
}

/// Whether an account may know that a database, or a table of it, exists.
#[must_use]
pub fn may_see(account: &Account, db: &str, table: Option<&str>) -> bool {
    match table {
        _ if is_virtual(db) => true,
        Some(table) => account.rights().sees_table(db, table),
        None => account.rights().sees_database(db),
    }
}

/// ACCESS-1: tables of the `mysql` schema that only the server itself writes: by statements about accounts, by CHANGE REPLICATION SOURCE.
/// Whoever may write any table could make himself administrator, or shut everybody out.
const SYSTEM_TABLES: [&str; 4] = ["user", "db", "object_grants", "replica_channel"];

/// Whether it is one of these. They are not listed either, so that a dump of all databases has nothing in it that may not be written.
#[must_use]
pub fn is_system_table(db: &str, table: &str) -> bool {
    db.eq_ignore_ascii_case("mysql") && SYSTEM_TABLES.iter().any(|own| table.eq_ignore_ascii_case(own))
}

/// Whether it would change what only the server itself changes.
fn writes_system(db: &str, table: Option<&str>, privilege: Priv) -> bool {
    let reads =
        matches!(privilege, Priv::Select | Priv::LockTables | Priv::ShowView | Priv::Any | Priv::AnyOfAll);
    match table {
        _ if reads => false,
        Some(table) => is_system_table(db, table),
        // CREATE DATABASE IF NOT EXISTS is in every dump.
        None => {
            db.eq_ignore_ascii_case("mysql") && !matches!(privilege, Priv::Create | Priv::CreateTemporary)
        }
    }
}

/// The privileges to name another account as a definer, and one that is not there.
const NAMES_DEFINERS: Privileges =
    Privileges::SET_ANY_DEFINER.with(Privileges::SET_USER_ID).with(Privileges::SUPER);
const NAMES_ANYBODY: Privileges =
    Privileges::ALLOW_NONEXISTENT_DEFINER.with(Privileges::SET_USER_ID).with(Privileges::SUPER);

fn needed(privilege: Priv) -> Privileges {
    match privilege {
        Priv::Select => Privileges::SELECT,
        Priv::Insert => Privileges::INSERT,
        Priv::Update => Privileges::UPDATE,
        Priv::Delete => Privileges::DELETE,
        Priv::Create => Privileges::CREATE,
        Priv::Drop => Privileges::DROP,
        Priv::Alter => Privileges::ALTER,
        Priv::Index => Privileges::INDEX,
        Priv::References => Privileges::REFERENCES,
        Priv::LockTables => Privileges::LOCK_TABLES,
        Priv::CreateTemporary => Privileges::CREATE_TEMPORARY,
        Priv::CreateView => Privileges::CREATE_VIEW,
        Priv::ShowView => Privileges::SHOW_VIEW,
        Priv::Execute => Privileges::EXECUTE,
        Priv::CreateRoutine => Privileges::CREATE_ROUTINE,
        Priv::AlterRoutine => Privileges::ALTER_ROUTINE,
        Priv::Trigger => Privileges::TRIGGER,
        Priv::Event => Privileges::EVENT,
        Priv::Any | Priv::AnyOfAll => Privileges::NONE,
    }
}

/// The privileges of an account on a table. LOCK TABLES is of databases.
fn on_table(account: &Account, db: &str, table: &str, privilege: Priv) -> Privileges {
    match privilege {
        Priv::LockTables | Priv::CreateTemporary => account.rights().on_database(db),
        _ => account.rights().on_table(db, table),
    }
}

/// Whether an account has a privilege on a table, by itself or on all that it is in.
pub fn has(account: &Account, db: &str, table: &str, privilege: Priv) -> bool {
    on_table(account, db, table, privilege).has(needed(privilege))
}

impl SessionAccess {
    /// Fails unless the account may send this command, statements in it apart.
    pub fn check_command(&self, command: &Command<'_>) -> SqlResult<()> {
        let leaves = matches!(
            command,
            Command::Quit
                | Command::Ping
                | Command::ChangeUser(_)
                | Command::ResetConnection
                | Command::StmtClose(_)
        );
        if self.confined.is_some() && !leaves {
            return Err(errors::must_change_password());
        }
        self.allow(&rule::of_command(command))
    }

    /// Whether it may read what all routines do.
    fn reads_bodies(&self) -> SqlResult<()> {
        match self.has(Privileges::SELECT.with(Privileges::SHOW_ROUTINE)) {
            true => Ok(()),
            false => self.check("mysql", Some("proc"), Priv::Select),
        }
    }

    /// The one place that a rule of `rule` is asked in.
    fn allow(&self, rule: &Rule) -> SqlResult<()> {
        match rule {
            Rule::Free | Rule::Names | Rule::Parts => Ok(()),
            Rule::Each(sets) => sets.iter().try_for_each(|any_of| self.require(*any_of)),
        }
    }
}

impl AccessCheck for SessionAccess {
    fn check_statement(&self, statement: &Statement) -> SqlResult<()> {
        if self.confined.is_some() && !matches!(statement, Statement::AlterUser(_) | Statement::Set(_)) {
            return Err(errors::must_change_password());
        }
        let allowed = self.allow(&rule::of_statement(statement));
        match statement {
            // Errors of XA have codes of their own.
            Statement::Xa(_) => allowed.map_err(|_| SqlError::xaer_rmerr()),
            _ => allowed,
        }
    }

    fn check_rows(&self, db: &str, table: &str) -> SqlResult<()> {
        if is_system_table(db, table) {
            return Err(errors::command_denied("INSERT", &self.user, &self.host, table));
        }
        Ok(())
    }

    fn check_variable(&self, name: &str, scope: Option<VarScope>, dialect: Dialect) -> SqlResult<()> {
        rights::of_setting(name, scope, dialect).into_iter().try_for_each(|needed| self.require(needed))
    }

    fn check_any_branch(&self) -> SqlResult<()> {
        self.require(Privileges::XA_RECOVER_ADMIN)
    }

    fn check_files(&self) -> SqlResult<()> {
        if self.has(Privileges::FILE) {
            return Ok(());
        }
        Err(errors::access_denied(&self.user, &self.host, true))
    }

    fn of_definer(&self, definer: &Definer) -> SqlResult<Arc<dyn AccessCheck>> {
        let (user, host) = definer.account();
        if self.account.is_anybody() || self.account.is(user, host) {
            return Ok(Arc::new(self.clone()));
        }
        // Asked before the account: what changes in between makes another plan once more.
        let generation = self.accounts.generation();
        match self.accounts.table().exact(user, host) {
            Some(account) => {
                let access = SessionAccess::new(account, user, host, &self.accounts);
                let access = SessionAccess { generation, acting: self.acting.clone(), ..access };
                Ok(Arc::new(if definer.role().is_some() { access.of_role() } else { access.logged_in() }))
            }
            // Others need not know which accounts there are.
            None if self.has(NAMES_DEFINERS) => Err(SqlError::no_such_user(&definer.user, &definer.host)),
            None => Err(errors::access_denied(&self.user, &self.host, true)),
        }
    }

    fn is_role(&self, name: &str) -> bool {
        self.accounts.table().exact(name, "%").is_some_and(|account| account.is_role)
    }

    fn check_names_definer(&self, definer: &Definer) -> SqlResult<()> {
        let (user, host) = definer.account();
        let in_force = |role: &Arc<str>| self.roles().first().is_some_and(|(name, _)| *name == **role);
        if self.account.is(user, host) || definer.role().is_some_and(in_force) {
            return Ok(());
        }
        match self.accounts.table().exact(user, host) {
            Some(other) => {
                self.require(NAMES_DEFINERS)?;
                self.account.may_change(&other)
            }
            None => self.require(NAMES_ANYBODY),
        }
    }

    fn check_routine(
        &self,
        routine: Routine<'_>,
        definer: Option<&Definer>,
        privilege: Priv,
    ) -> SqlResult<()> {
        let Routine { kind, db, name } = routine;
        let own = definer.is_some_and(|definer| self.account.is(&definer.user, &definer.host));
        let held = self.account.rights().on_routine(kind, db, name);
        let routines = Privileges::EXECUTE.with(Privileges::CREATE_ROUTINE).with(Privileges::ALTER_ROUTINE);
        let allowed = match privilege {
            Priv::Any => own || held.any(routines) || self.reads_bodies().is_ok(),
            Priv::CreateRoutine => self.account.rights().on_database(db).has(Privileges::CREATE_ROUTINE),
            other => own || held.has(needed(other)),
        };
        if allowed {
            return Ok(());
        }
        if privilege == Priv::CreateRoutine {
            return Err(self.database_denied(db));
        }
        Err(errors::routine_denied(&privilege.name().to_lowercase(), &self.user, &self.host, db, name))
    }

    fn check_body(&self, definer: &Definer) -> SqlResult<()> {
        let (user, host) = definer.account();
        if self.account.is(user, host) { Ok(()) } else { self.reads_bodies() }
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn asks_during(&self, work: &mut dyn FnMut()) {
        match &self.acting {
            Some(acting) => acting.during(self, work),
            None => work(),
        }
    }

    fn columns(&self, db: &str, table: &str, privilege: Priv) -> SqlResult<Columns> {
        let denied = match self.check(db, Some(table), privilege) {
            Ok(()) => return Ok(Columns::All),
            Err(denied) => denied,
        };
        let names = self.account.rights().columns_with(db, table, needed(privilege));
        if names.is_empty()
            || !COLUMN_PRIVILEGES.has(needed(privilege))
            || writes_system(db, Some(table), privilege)
        {
            return Err(denied);
        }
        Ok(Columns::Some(ColumnGrants::new(names, privilege, (self.user.clone(), self.host.clone()), table)))
    }

    fn check(&self, db: &str, table: Option<&str>, privilege: Priv) -> SqlResult<()> {
        let needed = needed(privilege);
        let virtual_schema = is_virtual(db);
        let allowed = match privilege {
            // Asserts ACCESS-1: whatever the account's rights are.
            _ if writes_system(db, table, privilege) => false,
            Priv::Any => may_see(&self.account, db, table),
            Priv::AnyOfAll => match table {
                Some(table) if !virtual_schema => {
                    let any = TABLE_PRIVILEGES.without(Privileges::GRANT_OPTION);
                    self.account.rights().on_table(db, table).any(any)
                }
                _ => may_see(&self.account, db, table),
            },
            Priv::Select if virtual_schema => {
                return if tells_of_all(db, table) { self.require(Privileges::PROCESS) } else { Ok(()) };
            }
            _ if virtual_schema => false,
            _ => match table {
                Some(table) => on_table(&self.account, db, table, privilege).has(needed),
                None => self.account.rights().on_database(db).has(needed),
            },
        };
        match (allowed, table) {
            (true, _) => Ok(()),
            (false, Some(table)) if !virtual_schema => {
                Err(errors::command_denied(privilege.name(), &self.user, &self.host, table))
            }
            (false, _) => Err(self.database_denied(db)),
        }
    }
}
