//! SHOW GRANTS and SHOW CREATE USER as a MariaDB prints them, so that it and its dump program read them.
//!
//! Privileges that MariaDB lacks (its own ones' counterparts apart) stand in a comment of ours, which it passes over.

use super::options;
use super::show::{database_lines, with_grant};
use crate::account::credentials::{AccountOptions, Lifetime, Requirement};
use crate::account::grants::{self, PRIVILEGES, PrivilegeInfo, Privileges};
use crate::account::table::Account;
use omnibus_parser::OWN_VERSION;
use omnibus_value::literal::{doubled as quote, name as backquoted};

/// Privileges that have another name there, in the order in which they are listed behind the others.
const RENAMED: [(Privileges, &str); 5] = [
    (Privileges::SET_USER_ID, "SET USER"),
    (Privileges::CONNECTION_ADMIN, "CONNECTION ADMIN"),
    (Privileges::REPLICATION_SLAVE_ADMIN, "REPLICATION SLAVE ADMIN"),
    (Privileges::BINLOG_ADMIN, "BINLOG ADMIN"),
    (Privileges::REPLICATION_APPLIER, "BINLOG REPLAY"),
];
/// The privileges that it has no word for: CREATE USER is enough.
const NO_WORD: Privileges = Privileges::CREATE_ROLE.with(Privileges::DROP_ROLE);

/// How the account is told: IDENTIFIED and REQUIRE.
fn identity(account: &Account) -> String {
    if account.is_role {
        return String::new();
    }
    let secret = quote(&String::from_utf8_lossy(&account.credentials.auth));
    let mut text = match (account.credentials.plugin.as_str(), account.credentials.auth.is_empty()) {
        ("mysql_native_password", true) => String::new(),
        ("mysql_native_password", false) => format!(" IDENTIFIED BY PASSWORD '{secret}'"),
        (plugin, true) => format!(" IDENTIFIED VIA {plugin}"),
        (plugin, false) => format!(" IDENTIFIED VIA {plugin} USING '{secret}'"),
    };
    if account.require != Requirement::Nothing {
        text.push_str(" REQUIRE ");
        text.push_str(&account.require.clause(true));
    }
    text
}

/// Names and numbers of what WITH says.
fn limits(account: &Account) -> String {
    let resources = &account.options.resources;
    [
        ("MAX_QUERIES_PER_HOUR", resources.queries),
        ("MAX_UPDATES_PER_HOUR", resources.updates),
        ("MAX_CONNECTIONS_PER_HOUR", resources.connections),
        ("MAX_USER_CONNECTIONS", resources.at_once),
    ]
    .iter()
    .filter(|(_, limit)| *limit > 0)
    .map(|(name, limit)| format!(" {name} {limit}"))
    .collect()
}

/// SHOW CREATE USER.
#[must_use]
pub fn show_create_user(account: &Account) -> String {
    let AccountOptions { expired, lifetime, .. } = &account.options;
    let mut text = format!("CREATE USER {}{}", account.backquoted(), identity(account));
    let limits = limits(account);
    if !limits.is_empty() {
        text.push_str(" WITH");
        text.push_str(&limits);
    }
    if account.locked {
        text.push_str(" ACCOUNT LOCK");
    }
    match (expired, lifetime) {
        (true, _) => text.push_str(" PASSWORD EXPIRE"),
        (false, Lifetime::Default) => {}
        (false, Lifetime::Never) => text.push_str(" PASSWORD EXPIRE NEVER"),
        (false, Lifetime::Days(days)) => text.push_str(&format!(" PASSWORD EXPIRE INTERVAL {days} DAY")),
    }
    let own = options::own_clauses(account);
    if !own.is_empty() {
        text.push_str(&format!(" /*!{OWN_VERSION}{own} */"));
    }
    text
}

/// The lines of SHOW GRANTS.
#[must_use]
pub fn show_grants(account: &Account) -> Vec<String> {
    let (who, set) = (holder(account), account.grants.privileges);
    let renamed = RENAMED.iter().fold(Privileges::NONE, |all, (bit, _)| all.with(*bit));
    let every = grants::all_static().without(Privileges::GRANT_OPTION).without(NO_WORD).with(renamed);
    let mut names: Vec<&str> = PRIVILEGES
        .iter()
        .filter(|p| !p.dynamic && set.has(p.bit) && !NO_WORD.has(p.bit) && p.bit != Privileges::GRANT_OPTION)
        .map(|p| if p.bit == Privileges::REPLICATION_CLIENT { "BINLOG MONITOR" } else { p.name })
        .collect();
    names.extend(RENAMED.iter().filter(|(bit, _)| set.has(*bit)).map(|(_, name)| *name));
    let names = match names.is_empty() {
        true => "USAGE".to_owned(),
        false if set.has(every) => "ALL PRIVILEGES".to_owned(),
        false => names.join(", "),
    };
    let limits = limits(account);
    let with = match (set.has(Privileges::GRANT_OPTION), limits.is_empty()) {
        (true, _) => format!(" WITH GRANT OPTION{limits}"),
        (false, true) => String::new(),
        (false, false) => format!(" WITH{limits}"),
    };
    let mut lines = role_lines(account, &who);
    lines.push(format!("GRANT {names} ON *.* TO {who}{}{with}", identity(account)));
    // ALL PRIVILEGES is all of them here, too.
    let unknown =
        |p: &&PrivilegeInfo| set.has(p.bit) && (p.dynamic && !renamed.has(p.bit) || NO_WORD.has(p.bit));
    let own: Vec<_> = PRIVILEGES.iter().filter(unknown).map(|p| p.name).collect();
    if !own.is_empty() && !set.has(every) {
        let grant = with_grant(set);
        lines.push(format!("/*!{OWN_VERSION} GRANT {} ON *.* TO {who}{grant} */", own.join(", ")));
    }
    lines.extend(database_lines(account, &who));
    let restrictions = super::show::restriction_lines(account, &who);
    lines.extend(restrictions.iter().map(|line| format!("/*!{OWN_VERSION} {line} */")));
    lines.extend(super::show::object_lines(account, &who));
    lines.extend(super::show::proxy_lines(account, &who));
    for role in account.grants.roles.iter().filter(|role| role.default) {
        lines.push(format!("SET DEFAULT ROLE {} FOR {who}", backquoted(&role.user)));
    }
    lines
}

/// The name of a holder: a role has no host part there.
fn holder(account: &Account) -> String {
    if account.is_role { backquoted(&account.user) } else { account.backquoted() }
}

fn role_lines(account: &Account, who: &str) -> Vec<String> {
    let mut roles: Vec<_> = account.grants.roles.iter().filter(|role| role.granted).collect();
    roles.sort_by(|a, b| a.user.cmp(&b.user));
    let option = |admin| if admin { " WITH ADMIN OPTION" } else { "" };
    roles
        .iter()
        .map(|role| format!("GRANT {} TO {who}{}", backquoted(&role.user), option(role.admin)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::grants::DbGrant;

    /// As a MariaDB 10.11 prints them.
    #[test]
    fn accounts_are_printed_as_mariadb_does() {
        let mut a = Account::new("a", "%");
        a.credentials.plugin = "mysql_native_password".into();
        assert_eq!(show_create_user(&a), "CREATE USER `a`@`%`");
        assert_eq!(show_grants(&a), ["GRANT USAGE ON *.* TO `a`@`%`"]);
        a.credentials.auth = b"*B6".to_vec();
        a.require = Requirement::Tls;
        a.locked = true;
        a.options.lifetime = Lifetime::Days(5);
        a.options.resources.queries = 5;
        a.options.resources.at_once = 2;
        assert_eq!(
            show_create_user(&a),
            "CREATE USER `a`@`%` IDENTIFIED BY PASSWORD '*B6' REQUIRE SSL WITH MAX_QUERIES_PER_HOUR 5 MAX_USER_CONNECTIONS 2 \
             ACCOUNT LOCK PASSWORD EXPIRE INTERVAL 5 DAY"
        );
        a.grants.privileges = Privileges::RELOAD
            .with(Privileges::REPLICATION_CLIENT)
            .with(Privileges::BINLOG_ADMIN)
            .with(Privileges::BACKUP_ADMIN)
            .with(Privileges::GRANT_OPTION);
        a.grants.databases.push(DbGrant { pattern: "p".into(), privileges: Privileges::SELECT });
        let told = "TO `a`@`%` IDENTIFIED BY PASSWORD '*B6' REQUIRE SSL WITH GRANT OPTION MAX_QUERIES_PER_HOUR 5 MAX_USER_CONNECTIONS 2";
        assert_eq!(
            show_grants(&a),
            [
                format!("GRANT RELOAD, BINLOG MONITOR, BINLOG ADMIN ON *.* {told}"),
                format!("/*!{OWN_VERSION} GRANT BACKUP_ADMIN ON *.* TO `a`@`%` WITH GRANT OPTION */"),
                "GRANT SELECT ON `p`.* TO `a`@`%`".to_owned(),
            ]
        );
        let root = show_grants(&Account::root());
        assert_eq!(root[0].split(" TO ").next(), Some("GRANT ALL PRIVILEGES ON *.*"));
        assert_eq!(root.len(), 1);
    }
}
