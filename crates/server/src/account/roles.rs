//! Roles: which an account has, which are in force in a session, and the statements that make, give and take them.
//!
//! A role is an account that nobody logs in to. What a role has is asked of it each time (`Account::active`), so a change of a role
//! reaches its holders at once.

use super::manage::{check_name, exists_note, failed, resolve};
use super::objects::RoleGrant;
use super::privilege::Privileges;
use super::restrictions::Restrictions;
use super::store::Record;
use super::table::{AccessTable, Account};
use crate::errors;
use omnibus_parser::ast::{CreateRole, Grant, Revoke, RoleSet, SetDefaultRole, UserName};
use omnibus_sql::{SqlError, SqlResult};
use std::sync::Arc;

/// An account's name and host part.
pub type AccountName = (String, String);

/// What variables say of roles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoleRules {
    /// `mandatory_roles`: everybody has them.
    pub mandatory: Vec<AccountName>,
    /// `activate_all_roles_on_login`.
    pub activate_all: bool,
    /// `partial_revokes`: roles and accounts may have less in some databases than everywhere.
    pub partial_revokes: bool,
}

impl RoleRules {
    /// From the texts of the variables. What is no name is passed over.
    #[must_use]
    pub fn new(mandatory: &str, activate_all: bool) -> RoleRules {
        let bare = |text: &str| text.trim().trim_matches(['`', '\'', '"']).to_owned();
        let name = |text: &str| match text.rsplit_once('@') {
            Some((user, host)) => (bare(user), bare(host).to_ascii_lowercase()),
            None => (bare(text), "%".to_owned()),
        };
        let mandatory = mandatory.split(',').filter(|text| !text.trim().is_empty()).map(name).collect();
        RoleRules { mandatory, activate_all, partial_revokes: false }
    }

    fn is_mandatory(&self, role: &Account) -> bool {
        self.mandatory.iter().any(|(user, host)| role.is(user, host))
    }
}

/// A statement about roles, and whose it is.
pub struct RoleContext<'a> {
    /// The accounts as they are.
    pub table: &'a AccessTable,
    /// On whose behalf.
    pub me: &'a Account,
    /// What variables say.
    pub rules: &'a RoleRules,
    /// Errors and conditions are MariaDB's.
    pub mariadb: bool,
}

impl Account {
    /// Whether it has a role by itself.
    fn has_role(&self, role: &Account) -> Option<&RoleGrant> {
        self.roles.iter().find(|grant| grant.granted && role.is(&grant.user, &grant.host))
    }

    /// Whether it may give a role to others.
    fn administers(&self, role: &Account) -> bool {
        let sources = std::iter::once(self).chain(self.active.iter().map(|active| &**active));
        self.privileges.any(Privileges::ROLE_ADMIN.with(Privileges::SUPER))
            || sources.flat_map(|source| source.has_role(role)).any(|grant| grant.admin)
    }

    /// `` `r`@`%` ``.
    fn backquoted(&self) -> String {
        super::show::who(self)
    }
}

/// The roles that an account may put in force: its own, and those that everybody has.
#[must_use]
pub fn available(table: &AccessTable, account: &Account, rules: &RoleRules) -> Vec<AccountName> {
    let own =
        account.roles.iter().filter(|role| role.granted).map(|role| (role.user.clone(), role.host.clone()));
    let mut names: Vec<AccountName> = own.collect();
    for name in &rules.mandatory {
        if !names.contains(name) && !account.is(&name.0, &name.1) {
            names.push(name.clone());
        }
    }
    names.retain(|(user, host)| table.exact(user, host).is_some());
    names
}

/// The roles in force after login.
#[must_use]
pub fn at_login(table: &AccessTable, account: &Account, rules: &RoleRules) -> Vec<AccountName> {
    let mut names = available(table, account, rules);
    let default = |(user, host): &AccountName| {
        account.roles.iter().any(|role| role.default && role.user == *user && role.host == *host)
    };
    names.retain(|name| rules.activate_all || default(name));
    names
}

/// The account with these roles in force, and those that these have.
#[must_use]
pub fn with_roles(table: &AccessTable, account: &Arc<Account>, names: &[AccountName]) -> Arc<Account> {
    let active = reachable(table, names);
    if active.is_empty() {
        return account.clone();
    }
    let privileges = active.iter().fold(account.privileges, |set, role| set.with(role.privileges));
    let restrictions = Restrictions::together(std::iter::once(&**account).chain(active.iter().map(|r| &**r)));
    Arc::new(Account { privileges, restrictions, active, ..Account::clone(account) })
}

/// Roles, and all that they have.
fn reachable(table: &AccessTable, names: &[AccountName]) -> Vec<Arc<Account>> {
    let mut found: Vec<Arc<Account>> = Vec::new();
    let mut left: Vec<AccountName> = names.to_vec();
    while let Some((user, host)) = left.pop() {
        let Some(role) = table.exact(&user, &host) else { continue };
        if !found.iter().any(|other| other.is(&role.user, role.host.as_str())) {
            let own = role.roles.iter().filter(|grant| grant.granted);
            left.extend(own.map(|grant| (grant.user.clone(), grant.host.clone())));
            found.push(role);
        }
    }
    found
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
        if self.me.administers(role) {
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

/// Changes an account on, as the changes so far leave it.
fn edit(changes: &mut Vec<Record>, account: &Account, f: impl FnOnce(&mut Account)) {
    let put = changes.iter_mut().find_map(|record| match record {
        Record::Put(put) if put.is(&account.user, account.host.as_str()) => Some(put),
        _ => None,
    });
    if let Some(put) = put {
        return f(put);
    }
    let mut changed = account.clone();
    f(&mut changed);
    changes.push(Record::Put(Box::new(changed)));
}

/// After an account was dropped or got another name: whoever has it as a role follows.
pub fn follow(table: &AccessTable, changes: &mut Vec<Record>, old: &Account, new: Option<&AccountName>) {
    let gone = |changes: &[Record], account: &Account| {
        changes.iter().any(|record| matches!(record, Record::Delete { user, host } if account.is(user, host)))
    };
    for holder in table.all() {
        let holds = holder.roles.iter().any(|role| old.is(&role.user, &role.host));
        if !holds || gone(changes, &holder) {
            continue;
        }
        edit(changes, &holder, |holder| match new {
            None => holder.roles.retain(|role| !old.is(&role.user, &role.host)),
            Some((user, host)) => {
                for role in holder.roles.iter_mut().filter(|role| old.is(&role.user, &role.host)) {
                    (role.user, role.host) = (user.clone(), host.clone());
                }
            }
        });
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
        (role.plugin, role.is_role, role.locked) = (plugin.to_owned(), true, true);
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
            edit(&mut changes, &admin, |admin| admin.roles.push(grant));
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
            None if if_exists => notes.push(super::manage::absent_note(&user, &host)),
            None => bad.push(format!("'{user}'@'{host}'")),
        }
    }
    failed("DROP ROLE", &bad)?;
    follow_dropped(cx.table, &mut changes);
    Ok(changes)
}

/// Takes accounts that go from those that have them as roles.
pub fn follow_dropped(table: &AccessTable, changes: &mut Vec<Record>) {
    let name = |record: &Record| match record {
        Record::Delete { user, host } => table.exact(user, host),
        Record::Put(_) => None,
    };
    let dropped: Vec<_> = changes.iter().filter_map(name).collect();
    for account in dropped {
        follow(table, changes, &account, None);
    }
}

/// GRANT of roles.
pub fn grant_roles(cx: &RoleContext<'_>, names: &[UserName], statement: &Grant) -> SqlResult<Vec<Record>> {
    let mut changes = Vec::new();
    for name in names {
        let role = cx.role(name)?;
        cx.may_give(&role)?;
        for spec in &statement.users {
            let account = cx.account(&spec.user)?;
            // Only an administrator makes administrators of others.
            account.may_have(cx, &role)?;
            edit(&mut changes, &account, |holder| {
                let at = holder.roles.iter().position(|grant| role.is(&grant.user, &grant.host));
                let at = at.unwrap_or_else(|| {
                    let (user, host) = (role.user.clone(), role.host.as_str().to_owned());
                    let (admin, default, granted) = (false, false, false);
                    holder.roles.push(RoleGrant { user, host, admin, default, granted });
                    holder.roles.len() - 1
                });
                holder.roles[at].granted = true;
                holder.roles[at].admin |= statement.admin_option;
            });
        }
    }
    Ok(changes)
}

impl Account {
    /// Whether a role may be given to this account: it may not come to have itself, and a role with SYSTEM_USER is an
    /// administrator's to give.
    fn may_have(&self, cx: &RoleContext<'_>, role: &Arc<Account>) -> SqlResult<()> {
        cx.me.may_change(self)?;
        let all = reachable(cx.table, &[(role.user.clone(), role.host.as_str().to_owned())]);
        all.iter().try_for_each(|role| cx.me.may_change(role))?;
        if !all.iter().any(|other| other.is(&self.user, self.host.as_str())) {
            return Ok(());
        }
        match cx.mariadb {
            true => Err(errors::cannot_grant_role(&role.user, &self.user)),
            false => Err(errors::role_granted_to_itself(role.backquoted(), self.backquoted())),
        }
    }
}

/// REVOKE of roles, or of ADMIN OPTION FOR them.
pub fn revoke_roles(cx: &RoleContext<'_>, names: &[UserName], statement: &Revoke) -> SqlResult<Vec<Record>> {
    let mut changes = Vec::new();
    for name in names {
        let role = match cx.role(name) {
            Err(_) if statement.if_exists => continue,
            role => role?,
        };
        cx.may_give(&role)?;
        cx.not_mandatory(&role)?;
        for user in &statement.users {
            let account = match cx.account(user) {
                Err(_) if statement.ignore_unknown_user => continue,
                account => account?,
            };
            cx.me.may_change(&account)?;
            if account.has_role(&role).is_none() {
                match cx.mariadb {
                    true => return Err(errors::cannot_revoke_role(&role.user, &account.user)),
                    false => continue,
                }
            }
            edit(&mut changes, &account, |holder| {
                if statement.admin_option_for {
                    let own = holder.roles.iter_mut().filter(|grant| role.is(&grant.user, &grant.host));
                    own.for_each(|grant| grant.admin = false);
                } else {
                    holder.roles.retain(|grant| !role.is(&grant.user, &grant.host));
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
        if !cx.me.is(&account.user, account.host.as_str()) && !cx.me.privileges.any(Privileges::CREATE_USER) {
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
        account.may_have(cx, &role)?;
        let (user, host) = (role.user.clone(), role.host.as_str().to_owned());
        account.roles.push(RoleGrant { user, host, admin: false, default: true, granted: true });
    }
    Ok(())
}

/// Makes these the roles that are in force after login.
pub fn put_defaults(account: &mut Account, chosen: Vec<AccountName>) {
    for role in &mut account.roles {
        role.default = false;
    }
    for (user, host) in chosen {
        match account.roles.iter_mut().find(|role| role.user == user && role.host == host) {
            Some(role) => role.default = true,
            None => account.roles.push(RoleGrant { user, host, admin: false, default: true, granted: false }),
        }
    }
    account.roles.retain(|role| role.granted || role.default);
}

/// The text of SET DEFAULT ROLE for the log, of what was changed.
#[must_use]
pub fn default_role_text(changes: &[Record], mariadb: bool) -> String {
    let mut text = String::new();
    for record in changes {
        let Record::Put(account) = record else { continue };
        let roles = account.roles.iter().filter(|role| role.default);
        let name = |role: &RoleGrant| Account::new(&role.user, &role.host).quoted();
        let names: Vec<String> = match mariadb {
            true => roles.map(|role| format!("'{}'", super::table::quote(&role.user))).collect(),
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
