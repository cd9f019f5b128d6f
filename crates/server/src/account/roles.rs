//! Roles: which an account has, and which are in force in a session.
//!
//! A role is an account that nobody logs in to. What a role has is asked of it each time (`Account::active`), so a change of a role
//! reaches its holders at once.

use super::grants::{Grants, Restrictions};
use super::table::{AccessTable, Account};
use std::collections::HashSet;
use std::sync::Arc;

/// An account's name and host part.
pub type AccountName = (String, String);

/// The variables about roles.
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

    /// Whether everybody has this role.
    #[must_use]
    pub fn is_mandatory(&self, role: &Account) -> bool {
        self.mandatory.iter().any(|(user, host)| role.is(user, host))
    }
}

/// The roles that an account may put in force: its own, and those that everybody has.
#[must_use]
pub fn available(table: &AccessTable, account: &Account, rules: &RoleRules) -> Vec<AccountName> {
    let own = account
        .grants
        .roles
        .iter()
        .filter(|role| role.granted)
        .map(|role| (role.user.clone(), role.host.clone()));
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
        account.grants.roles.iter().any(|role| role.default && role.user == *user && role.host == *host)
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
    let privileges =
        active.iter().fold(account.grants.privileges, |set, role| set.with(role.grants.privileges));
    let all = std::iter::once(&account.grants).chain(active.iter().map(|role| &role.grants));
    let restrictions = Restrictions::together(all);
    let grants = Grants { privileges, restrictions, ..account.grants.clone() };
    Arc::new(Account { grants, active, ..Account::clone(account) })
}

/// Roles, and all that they have.
#[must_use]
pub fn reachable(table: &AccessTable, names: &[AccountName]) -> Vec<Arc<Account>> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let mut left: Vec<AccountName> = names.to_vec();
    while let Some((user, host)) = left.pop() {
        let Some(role) = table.exact(&user, &host) else { continue };
        if seen.insert((role.user.clone(), role.host.as_str().to_owned())) {
            let own = role.grants.roles.iter().filter(|grant| grant.granted);
            left.extend(own.map(|grant| (grant.user.clone(), grant.host.clone())));
            found.push(role);
        }
    }
    found
}
