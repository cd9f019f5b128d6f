//! The statements that make, give and take roles, and choose those in force.

use super::holders::{edit, follow, follow_dropped};
use super::names::{absent_note, check_name, exists_note, failed, resolve};
use crate::account::grants::{Privileges, RoleGrant};
use crate::account::roles::{AccountName, RoleRules, at_login, available, reachable};
use crate::account::store::Record;
use crate::account::table::{AccessTable, Account};
use crate::errors;
use omnibus_parser::ast::{CreateRole, Grant, Revoke, RoleSet, SetDefaultRole, UserName};
use omnibus_sql::{KillFlag, SqlError, SqlResult};
use omnibus_value::literal::doubled as quote;
use std::sync::Arc;

/// A statement about roles, and whose it is.
pub struct RoleContext<'a> {
    /// The accounts as they are.
    pub table: &'a AccessTable,
    /// On whose behalf.
    pub me: &'a Account,
    /// The variables about roles.
    pub rules: &'a RoleRules,
    /// Errors and conditions are MariaDB's.
    pub mariadb: bool,
}

/// The grant by which an account has a role itself.
fn grant_of<'a>(account: &'a Account, role: &Account) -> Option<&'a RoleGrant> {
    account.grants.roles.iter().find(|grant| grant.granted && role.is(&grant.user, &grant.host))
}

/// Whether an account may give a role to others.
fn administers(account: &Account, role: &Account) -> bool {
    let sources = std::iter::once(account).chain(account.active.iter().map(|active| &**active));
    account.grants.privileges.any(Privileges::ROLE_ADMIN.with(Privileges::SUPER))
        || sources.flat_map(|source| grant_of(source, role)).any(|grant| grant.admin)
}

/// The names that SET ROLE means.
pub fn choose(cx: &RoleContext<'_>, account: &Account, set: &RoleSet) -> SqlResult<Vec<AccountName>> {
    let available = available(cx.table, account, cx.rules);
    match set {
        RoleSet::None => Ok(Vec::new()),
        RoleSet::Default => Ok(at_login(cx.table, account, cx.rules)),
        RoleSet::All => Ok(available),
        RoleSet::AllExcept(list) => {
            let without: Vec<AccountName> = list.iter().map(|name| resolve(name, cx.me)).collect();
            Ok(available.into_iter().filter(|name| !without.contains(name)).collect())
        }
        RoleSet::List(list) => list.iter().map(|name| cx.held(account, name, &available)).collect(),
    }
}

impl RoleContext<'_> {
    fn held(&self, account: &Account, name: &UserName, available: &[AccountName]) -> SqlResult<AccountName> {
        let name = resolve(name, self.me);
        if available.contains(&name) {
            return Ok(name);
        }
        if self.mariadb {
            return Err(errors::invalid_role(&name.0));
        }
        Err(errors::role_not_granted(Account::new(&name.0, &name.1).backquoted(), account.backquoted()))
    }

    /// The role of a name.
    fn role(&self, name: &UserName) -> SqlResult<Arc<Account>> {
        let (user, host) = resolve(name, self.me);
        let found = self.table.exact(&user, &host).filter(|role| role.is_role || !self.mariadb);
        found.ok_or_else(|| match self.mariadb {
            true => errors::invalid_role(&user),
            false => errors::unknown_authorization(&user, &host),
        })
    }

    fn account(&self, name: &UserName) -> SqlResult<Arc<Account>> {
        let (user, host) = resolve(name, self.me);
        self.table.exact(&user, &host).ok_or_else(|| match self.mariadb {
            true => errors::no_matching_user(),
            false => errors::unknown_authorization(&user, &host),
        })
    }

    fn may_give(&self, role: &Account) -> SqlResult<()> {
        if administers(self.me, role) {
            return Ok(());
        }
        match self.mariadb {
            true => Err(errors::access_denied_to(&self.me.user, self.me.host.as_str())),
            false => Err(errors::specific_access_denied("WITH ADMIN, ROLE_ADMIN, SUPER")),
        }
    }

    fn not_mandatory(&self, role: &Account) -> SqlResult<()> {
        match self.rules.is_mandatory(role) {
            true => Err(errors::mandatory_role(role.backquoted())),
            false => Ok(()),
        }
    }
}

/// CREATE ROLE.
pub fn create_role(
    cx: &RoleContext<'_>,
    statement: &CreateRole,
    plugin: &str,
    notes: &mut Vec<SqlError>,
) -> SqlResult<Vec<Record>> {
    let (mut changes, mut bad) = (Vec::new(), Vec::new());
    for name in &statement.roles {
        let (user, host) = resolve(name, cx.me);
        check_name(&user, &host)?;
        let mut role = Account::new(&user, &host);
        let old = cx.table.exact(&user, &host);
        if old.is_some() && !statement.or_replace {
            match statement.if_not_exists {
                true => notes.push(exists_note(&role)),
                false => bad.push(role.quoted()),
            }
            continue;
        }
        if let Some(old) = &old {
            cx.me.may_change(old)?;
            follow(cx.table, &mut changes, old, None);
        }
        (role.credentials.plugin, role.is_role, role.locked) = (plugin.to_owned(), true, true);
        role.options.expired = true;
        changes.push(Record::Put(Box::new(role)));
        let admin = match &statement.admin {
            Some(name) => Some(cx.account(name)?),
            // Who makes a role of a MariaDB has it.
            None if cx.mariadb => cx.table.exact(&cx.me.user, cx.me.host.as_str()),
            None => None,
        };
        if let Some(admin) = admin {
            let (granted, default, admin_option) = (true, false, true);
            let grant = RoleGrant { user, host, admin: admin_option, default, granted };
            edit(&mut changes, &admin, |admin| admin.grants.roles.push(grant));
        }
    }
    failed("CREATE ROLE", &bad)?;
    Ok(changes)
}

/// DROP ROLE.
pub fn drop_role(
    cx: &RoleContext<'_>,
    roles: &[UserName],
    if_exists: bool,
    notes: &mut Vec<SqlError>,
) -> SqlResult<Vec<Record>> {
    let (mut changes, mut bad) = (Vec::new(), Vec::new());
    for name in roles {
        let (user, host) = resolve(name, cx.me);
        match cx.table.exact(&user, &host).filter(|role| role.is_role || !cx.mariadb) {
            Some(role) => {
                cx.me.may_change(&role)?;
                cx.not_mandatory(&role)?;
                changes.push(Record::Delete { user, host });
            }
            None if if_exists => notes.push(absent_note(&user, &host)),
            None => bad.push(format!("'{user}'@'{host}'")),
        }
    }
    failed("DROP ROLE", &bad)?;
    follow_dropped(cx.table, &mut changes);
    Ok(changes)
}

/// GRANT of roles. KILL ends it: each role is asked for all that it has, and each account for all that it is given.
pub fn grant_roles(
    cx: &RoleContext<'_>,
    names: &[UserName],
    statement: &Grant,
    kill: &KillFlag,
) -> SqlResult<Vec<Record>> {
    let mut changes = Vec::new();
    for name in names {
        let role = cx.role(name)?;
        cx.may_give(&role)?;
        let all = with_its_own(cx, &role);
        for spec in &statement.users {
            kill.check()?;
            let account = cx.account(&spec.user)?;
            // Only an administrator makes administrators of others.
            may_have(&account, cx, &role, &all)?;
            edit(&mut changes, &account, |holder| {
                let at = holder.grants.roles.iter().position(|grant| role.is(&grant.user, &grant.host));
                let at = at.unwrap_or_else(|| {
                    let (user, host) = (role.user.clone(), role.host.as_str().to_owned());
                    let (admin, default, granted) = (false, false, false);
                    holder.grants.roles.push(RoleGrant { user, host, admin, default, granted });
                    holder.grants.roles.len() - 1
                });
                holder.grants.roles[at].granted = true;
                holder.grants.roles[at].admin |= statement.admin_option;
            });
        }
    }
    Ok(changes)
}

/// A role, and the roles that it has.
fn with_its_own(cx: &RoleContext<'_>, role: &Account) -> Vec<Arc<Account>> {
    reachable(cx.table, &[(role.user.clone(), role.host.as_str().to_owned())])
}

/// Whether a role may be given to an account: it may not come to have itself, and a role with SYSTEM_USER is an
/// administrator's to give. `all`: the role, and those that it has.
fn may_have(
    account: &Account,
    cx: &RoleContext<'_>,
    role: &Arc<Account>,
    all: &[Arc<Account>],
) -> SqlResult<()> {
    cx.me.may_change(account)?;
    all.iter().try_for_each(|role| cx.me.may_change(role))?;
    if !all.iter().any(|other| other.is(&account.user, account.host.as_str())) {
        return Ok(());
    }
    match cx.mariadb {
        true => Err(errors::cannot_grant_role(&role.user, &account.user)),
        false => Err(errors::role_granted_to_itself(role.backquoted(), account.backquoted())),
    }
}

/// REVOKE of roles, or of ADMIN OPTION FOR them.
pub fn revoke_roles(
    cx: &RoleContext<'_>,
    names: &[UserName],
    statement: &Revoke,
    kill: &KillFlag,
) -> SqlResult<Vec<Record>> {
    let mut changes = Vec::new();
    for name in names {
        let role = match cx.role(name) {
            Err(_) if statement.if_exists => continue,
            role => role?,
        };
        cx.may_give(&role)?;
        cx.not_mandatory(&role)?;
        for user in &statement.users {
            kill.check()?;
            let account = match cx.account(user) {
                Err(_) if statement.ignore_unknown_user => continue,
                account => account?,
            };
            cx.me.may_change(&account)?;
            if grant_of(&account, &role).is_none() {
                match cx.mariadb {
                    true => return Err(errors::cannot_revoke_role(&role.user, &account.user)),
                    false => continue,
                }
            }
            edit(&mut changes, &account, |holder| {
                if statement.admin_option_for {
                    let own =
                        holder.grants.roles.iter_mut().filter(|grant| role.is(&grant.user, &grant.host));
                    own.for_each(|grant| grant.admin = false);
                } else {
                    holder.grants.roles.retain(|grant| !role.is(&grant.user, &grant.host));
                }
            });
        }
    }
    Ok(changes)
}

/// SET DEFAULT ROLE, of the accounts or of one's own.
pub fn set_default_role(cx: &RoleContext<'_>, statement: &SetDefaultRole) -> SqlResult<Vec<Record>> {
    let own = [UserName::CurrentUser];
    let users = if statement.users.is_empty() { &own[..] } else { &statement.users };
    let mut changes = Vec::new();
    for name in users {
        let account = cx.account(name)?;
        if !cx.me.is(&account.user, account.host.as_str())
            && !cx.me.grants.privileges.any(Privileges::CREATE_USER)
        {
            return Err(errors::specific_access_denied("CREATE USER"));
        }
        cx.me.may_change(&account)?;
        let chosen = choose(cx, &account, &statement.roles)?;
        edit(&mut changes, &account, |account| put_defaults(account, chosen));
    }
    Ok(changes)
}

/// Gives an account that is being made the roles that its DEFAULT ROLE names.
pub fn give_roles(cx: &RoleContext<'_>, account: &mut Account, names: &[UserName]) -> SqlResult<()> {
    for name in names {
        let role = cx.role(name)?;
        cx.may_give(&role)?;
        may_have(account, cx, &role, &with_its_own(cx, &role))?;
        let (user, host) = (role.user.clone(), role.host.as_str().to_owned());
        account.grants.roles.push(RoleGrant { user, host, admin: false, default: true, granted: true });
    }
    Ok(())
}

/// Makes these the roles that are in force after login.
pub fn put_defaults(account: &mut Account, chosen: Vec<AccountName>) {
    for role in &mut account.grants.roles {
        role.default = false;
    }
    for (user, host) in chosen {
        match account.grants.roles.iter_mut().find(|role| role.user == user && role.host == host) {
            Some(role) => role.default = true,
            None => account.grants.roles.push(RoleGrant {
                user,
                host,
                admin: false,
                default: true,
                granted: false,
            }),
        }
    }
    account.grants.roles.retain(|role| role.granted || role.default);
}

/// The text of SET DEFAULT ROLE for the log, of what was changed.
#[must_use]
pub fn default_role_text(changes: &[Record], mariadb: bool) -> String {
    let mut text = String::new();
    for record in changes {
        let Record::Put(account) = record else { continue };
        let roles = account.grants.roles.iter().filter(|role| role.default);
        let name = |role: &RoleGrant| Account::new(&role.user, &role.host).quoted();
        let names: Vec<String> = match mariadb {
            true => roles.map(|role| format!("'{}'", quote(&role.user))).collect(),
            false => roles.map(name).collect(),
        };
        let names = if names.is_empty() { "NONE".to_owned() } else { names.join(", ") };
        if text.is_empty() {
            let word = if mariadb { "FOR" } else { "TO" };
            text = format!("SET DEFAULT ROLE {names} {word} {}", account.quoted());
        } else {
            text.push_str(&format!(", {}", account.quoted()));
        }
    }
    text
}
