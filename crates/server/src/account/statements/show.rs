//! SHOW GRANTS and SHOW CREATE USER as text.

use super::grant::add_grants;
use super::options;
use crate::account::grants::{
    self, DB_PRIVILEGES, DbGrant, PRIVILEGES, PrivilegeInfo, Privileges, ProxyGrant, TABLE_PRIVILEGES,
};
use crate::account::table::Account;
use omnibus_value::Value;
use omnibus_value::literal::{doubled as quote, name as backquoted};

pub(super) fn with_grant(set: Privileges) -> &'static str {
    if set.has(Privileges::GRANT_OPTION) { " WITH GRANT OPTION" } else { "" }
}

pub(super) fn list(set: Privileges, whole: Privileges, dynamic: bool) -> String {
    let set = set.without(Privileges::GRANT_OPTION);
    let names: Vec<_> =
        PRIVILEGES.iter().filter(|p| p.dynamic == dynamic && set.has(p.bit)).map(|p| p.name).collect();
    if names.is_empty() {
        "USAGE".into()
    } else if set == whole.without(Privileges::GRANT_OPTION) {
        "ALL PRIVILEGES".into()
    } else {
        names.join(", ")
    }
}

/// The lines of SHOW GRANTS, as MySQL 8.4 prints them.
#[must_use]
pub fn show_grants(account: &Account) -> Vec<String> {
    let who = account.backquoted();
    let set = account.grants.privileges;
    // MySQL spells the static privileges out; so do tools that compare grants.
    let fixed = list(fixed(set), Privileges(u128::MAX), false);
    let mut lines = vec![format!("GRANT {fixed} ON *.* TO {who}{}", with_grant(set))];
    let dynamic: Vec<_> = PRIVILEGES.iter().filter(|p| p.dynamic && set.has(p.bit)).map(|p| p.name).collect();
    if !dynamic.is_empty() {
        lines.push(format!("GRANT {} ON *.* TO {who}{}", dynamic.join(","), with_grant(set)));
    }
    lines.extend(database_lines(account, &who));
    lines.extend(restriction_lines(account, &who));
    lines.extend(object_lines(account, &who));
    lines.extend(proxy_lines(account, &who));
    for (admin, option) in [(false, ""), (true, " WITH ADMIN OPTION")] {
        let roles = account.grants.roles.iter().filter(|role| role.granted && role.admin == admin);
        let mut names: Vec<_> =
            roles.map(|role| format!("{}@{}", backquoted(&role.user), backquoted(&role.host))).collect();
        names.sort();
        if !names.is_empty() {
            lines.push(format!("GRANT {} TO {who}{option}", names.join(",")));
        }
    }
    lines
}

/// Rights on whole databases, as both dialects print them.
pub(super) fn database_lines(account: &Account, who: &str) -> Vec<String> {
    let mut databases: Vec<_> = account.grants.databases.iter().collect();
    databases.sort_by(|a, b| a.pattern.cmp(&b.pattern));
    let line = |grant: &&DbGrant| {
        let (what, on) = (list(grant.privileges, DB_PRIVILEGES, false), backquoted(&grant.pattern));
        format!("GRANT {what} ON {on}.* TO {who}{}", with_grant(grant.privileges))
    };
    databases.iter().map(line).collect()
}

/// The lines about rights that do not hold in some databases.
pub(super) fn restriction_lines(account: &Account, who: &str) -> Vec<String> {
    let line = |(db, set): (&str, Privileges)| {
        let mut names: Vec<_> = PRIVILEGES.iter().filter(|p| set.has(p.bit)).map(|p| p.name).collect();
        names.sort_by_key(|name| *name == "GRANT OPTION");
        format!("REVOKE {} ON {}.* FROM {who}", names.join(", "), backquoted(db))
    };
    account.grants.restrictions.iter().map(line).collect()
}

/// The lines about accounts that it may act as.
pub(super) fn proxy_lines(account: &Account, who: &str) -> Vec<String> {
    let line = |own: &ProxyGrant| {
        let option = if own.grant_option { " WITH GRANT OPTION" } else { "" };
        let proxied = format!("{}@{}", backquoted(&own.user), backquoted(&own.host));
        format!("GRANT PROXY ON {proxied} TO {who}{option}")
    };
    account.grants.proxies.iter().map(line).collect()
}

/// An account with the grants of the roles in force as its own: for SHOW GRANTS.
#[must_use]
pub fn with_own_roles(account: &Account) -> Account {
    let mut all = Account { active: Vec::new(), ..account.clone() };
    for role in &account.active {
        all.grants.privileges = all.grants.privileges.with(role.grants.privileges);
        add_grants(&mut all, role);
    }
    all
}

/// The lines about tables and routines, as both dialects print them.
pub(super) fn object_lines(account: &Account, who: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut tables: Vec<_> = account.grants.tables.iter().collect();
    tables.sort_by(|a, b| (&a.db, &a.table).cmp(&(&b.db, &b.table)));
    for grant in tables {
        let set = grant.privileges;
        let mut what: Vec<String> = PRIVILEGES
            .iter()
            .filter(|p| p.bit != Privileges::GRANT_OPTION)
            .filter_map(|p| {
                let columns = grant.columns.iter().filter(|(_, own)| own.has(p.bit));
                let columns: Vec<_> = columns.map(|(name, _)| backquoted(name)).collect();
                match (set.has(p.bit), columns.is_empty()) {
                    (false, true) => None,
                    (true, true) => Some(p.name.to_owned()),
                    (true, false) => Some(format!("{}, {} ({})", p.name, p.name, columns.join(", "))),
                    (false, false) => Some(format!("{} ({})", p.name, columns.join(", "))),
                }
            })
            .collect();
        if set.has(TABLE_PRIVILEGES.without(Privileges::GRANT_OPTION)) && grant.columns.is_empty() {
            what = vec!["ALL PRIVILEGES".to_owned()];
        } else if what.is_empty() {
            what.push("USAGE".to_owned());
        }
        let on = format!("{}.{}", backquoted(&grant.db), backquoted(&grant.table));
        lines.push(format!("GRANT {} ON {on} TO {who}{}", what.join(", "), with_grant(set)));
    }
    let mut routines: Vec<_> = account.grants.routines.iter().collect();
    routines.sort_by(|a, b| (a.kind.name(), &a.db, &a.name).cmp(&(b.kind.name(), &b.db, &b.name)));
    for grant in routines {
        // Neither server says ALL of a routine.
        let what = list(grant.privileges, Privileges(u128::MAX), false);
        let on = format!("{} {}.{}", grant.kind.name(), backquoted(&grant.db), backquoted(&grant.name));
        lines.push(format!("GRANT {what} ON {on} TO {who}{}", with_grant(grant.privileges)));
    }
    lines
}

/// The rows of an account in one of information_schema's tables of privileges.
#[must_use]
pub fn privilege_rows(account: &Account, table: &str) -> Vec<Vec<Value>> {
    let text = |s: &str| Value::Bytes(bytes::Bytes::copy_from_slice(s.as_bytes()));
    let granted = |set: Privileges, place: &[&str]| -> Vec<Vec<Value>> {
        let grantable = if set.has(Privileges::GRANT_OPTION) { "YES" } else { "NO" };
        let has = |p: &&PrivilegeInfo| p.bit != Privileges::GRANT_OPTION && set.has(p.bit);
        let mut names: Vec<&str> = PRIVILEGES.iter().filter(has).map(|p| p.name).collect();
        if names.is_empty() && place.is_empty() {
            names.push("USAGE");
        }
        let row = |name: &str| {
            let head = [account.quoted(), "def".to_owned()];
            let mut row: Vec<Value> = head.iter().map(|part| text(part)).collect();
            row.extend(place.iter().map(|part| text(part)));
            row.extend([text(name), text(grantable)]);
            row
        };
        names.into_iter().map(row).collect()
    };
    match table {
        "USER_PRIVILEGES" => granted(account.grants.privileges, &[]),
        "SCHEMA_PRIVILEGES" => account
            .grants
            .databases
            .iter()
            .flat_map(|grant| granted(grant.privileges, &[&grant.pattern]))
            .collect(),
        "TABLE_PRIVILEGES" => account
            .grants
            .tables
            .iter()
            .flat_map(|grant| granted(grant.privileges, &[&grant.db, &grant.table]))
            .collect(),
        "COLUMN_PRIVILEGES" => {
            let mut rows = Vec::new();
            for grant in &account.grants.tables {
                let option = Privileges(grant.privileges.0 & Privileges::GRANT_OPTION.0);
                for (column, own) in &grant.columns {
                    rows.extend(granted(own.with(option), &[&grant.db, &grant.table, column]));
                }
            }
            rows
        }
        _ => Vec::new(),
    }
}

/// The part that is not dynamic.
fn fixed(set: Privileges) -> Privileges {
    Privileges(set.0 & grants::all_static().0)
}

/// SHOW CREATE USER. The stored hash is shown, as MySQL does to whoever may see `mysql.user`.
#[must_use]
pub fn show_create_user(account: &Account) -> String {
    let who = account.backquoted();
    let auth = if account.credentials.auth.is_empty() {
        String::new()
    } else {
        format!(" AS '{}'", quote(&String::from_utf8_lossy(&account.credentials.auth)))
    };
    let require = account.require.clause(false);
    let mut default: Vec<String> = account
        .grants
        .roles
        .iter()
        .filter(|role| role.default)
        .map(|role| format!("{}@{}", backquoted(&role.user), backquoted(&role.host)))
        .collect();
    default.sort();
    let default =
        if default.is_empty() { String::new() } else { format!(" DEFAULT ROLE {}", default.join(",")) };
    format!(
        "CREATE USER {who} IDENTIFIED WITH '{}'{auth}{default} REQUIRE {require}{}",
        account.credentials.plugin,
        options::shown(account)
    )
}
