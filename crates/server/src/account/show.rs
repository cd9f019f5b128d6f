//! SHOW GRANTS and SHOW CREATE USER as text.

use super::privilege::{self, DB_PRIVILEGES, PRIVILEGES, PrivilegeInfo, Privileges};
use super::table::{Account, quote};
use omnibus_value::Value;

pub(super) fn backquoted(text: &str) -> String {
    format!("`{}`", text.replace('`', "``"))
}

pub(super) fn who(account: &Account) -> String {
    format!("{}@{}", backquoted(&account.user), backquoted(account.host.as_str()))
}

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
    let who = who(account);
    let set = account.privileges;
    // MySQL spells the static privileges out; so do tools that compare grants.
    let fixed = list(set.fixed(), Privileges(u128::MAX), false);
    let mut lines = vec![format!("GRANT {fixed} ON *.* TO {who}{}", with_grant(set))];
    let dynamic: Vec<_> = PRIVILEGES.iter().filter(|p| p.dynamic && set.has(p.bit)).map(|p| p.name).collect();
    if !dynamic.is_empty() {
        lines.push(format!("GRANT {} ON *.* TO {who}{}", dynamic.join(","), with_grant(set)));
    }
    let mut databases: Vec<_> = account.databases.iter().collect();
    databases.sort_by(|a, b| a.pattern.cmp(&b.pattern));
    for grant in databases {
        let what = list(grant.privileges, DB_PRIVILEGES, false);
        let on = backquoted(&grant.pattern);
        lines.push(format!("GRANT {what} ON {on}.* TO {who}{}", with_grant(grant.privileges)));
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
        "USER_PRIVILEGES" => granted(account.privileges, &[]),
        "SCHEMA_PRIVILEGES" => {
            account.databases.iter().flat_map(|grant| granted(grant.privileges, &[&grant.pattern])).collect()
        }
        _ => Vec::new(),
    }
}

impl Privileges {
    /// The part that is not dynamic.
    fn fixed(self) -> Privileges {
        Privileges(self.0 & privilege::all_static().0)
    }
}

/// SHOW CREATE USER. The stored hash is shown, as MySQL does to whoever may see `mysql.user`.
#[must_use]
pub fn show_create_user(account: &Account) -> String {
    let who = who(account);
    let auth = if account.auth.is_empty() {
        String::new()
    } else {
        format!(" AS '{}'", quote(&String::from_utf8_lossy(&account.auth)))
    };
    let require = if account.require_ssl { "SSL" } else { "NONE" };
    format!(
        "CREATE USER {who} IDENTIFIED WITH '{}'{auth} REQUIRE {require}{}",
        account.plugin,
        super::options::shown(account)
    )
}
