//! Accounts and roles as rows: information_schema's tables of roles, and tables of the `mysql` schema as other servers have them, which
//! dump programs and tools read. They are made up when they are read.

use crate::account::attributes::attributes;
use crate::account::credentials::OldPassword;
use crate::account::grants::{PRIVILEGES, Privileges, ProxyGrant, RoutineGrant, TableGrant};
use crate::account::roles::{AccountName, RoleRules, available};
use crate::account::table::{AccessTable, Account};
use bytes::Bytes;
use omnibus_value::Value;
use omnibus_value::temporal::DateTime;
use std::sync::Arc;

type Rows = Vec<Vec<Value>>;

fn text(s: &str) -> Value {
    Value::Bytes(Bytes::copy_from_slice(s.as_bytes()))
}

fn texts(parts: &[&str]) -> Vec<Value> {
    parts.iter().map(|part| text(part)).collect()
}

fn yes(is: bool) -> &'static str {
    if is { "YES" } else { "NO" }
}

fn y(is: bool) -> &'static str {
    if is { "Y" } else { "N" }
}

/// The rows of one of information_schema's tables of roles, as `me` sees it with these roles in force. `None`: it is another table.
#[must_use]
pub fn role_rows(
    table: &AccessTable,
    me: &Account,
    rules: &RoleRules,
    active: &[AccountName],
    name: &str,
) -> Option<Rows> {
    let stored = table.exact(&me.user, me.host.as_str()).unwrap_or_else(|| Arc::new(me.clone()));
    Some(match name {
        "APPLICABLE_ROLES" => applicable(table, me, &stored, rules, |_| true),
        "ADMINISTRABLE_ROLE_AUTHORIZATIONS" => applicable(table, me, &stored, rules, |admin| admin),
        "ENABLED_ROLES" => {
            let row = |(user, host): &AccountName| {
                let default =
                    stored.grants.roles.iter().any(|r| r.default && r.user == *user && r.host == *host);
                let mandatory = rules.mandatory.contains(&(user.clone(), host.clone()));
                texts(&[user, host, yes(default), yes(mandatory)])
            };
            active.iter().map(row).collect()
        }
        "ROLE_TABLE_GRANTS" | "ROLE_COLUMN_GRANTS" | "ROLE_ROUTINE_GRANTS" => {
            me.active.iter().flat_map(|role| object_grants(role, name)).collect()
        }
        _ => return None,
    })
}

/// The roles of an account, its own and those through other roles.
fn applicable(
    table: &AccessTable,
    me: &Account,
    own: &Account,
    rules: &RoleRules,
    shown: impl Fn(bool) -> bool,
) -> Rows {
    let mut rows = Vec::new();
    let mut left: Vec<Arc<Account>> = vec![Arc::new(own.clone())];
    let mut seen: Vec<AccountName> = Vec::new();
    while let Some(holder) = left.pop() {
        let is_own = holder.is(&own.user, own.host.as_str());
        let names = if is_own {
            available(table, &holder, rules)
        } else {
            available(table, &holder, &RoleRules::default())
        };
        for (user, host) in names {
            let grant = holder.grants.roles.iter().find(|role| role.user == user && role.host == host);
            let (admin, default) = grant.map_or((false, false), |role| (role.admin, role.default));
            let mandatory = rules.mandatory.contains(&(user.clone(), host.clone()));
            if shown(admin) {
                rows.push(texts(&[
                    &me.user,
                    me.host.as_str(),
                    &holder.user,
                    holder.host.as_str(),
                    &user,
                    &host,
                    yes(admin),
                    yes(default),
                    yes(mandatory),
                ]));
            }
            if !seen.contains(&(user.clone(), host.clone())) {
                left.extend(table.exact(&user, &host));
                seen.push((user, host));
            }
        }
    }
    rows
}

/// Privileges as the SETs of system tables have them: `Select,Create View`.
fn as_set(set: Privileges) -> String {
    let word = |word: &str| word[..1].to_owned() + &word[1..].to_ascii_lowercase();
    let name = |name: &str| match name {
        "GRANT OPTION" => "Grant".to_owned(),
        "SHOW VIEW" => "Show view".to_owned(),
        other => other.split(' ').map(word).collect::<Vec<_>>().join(" "),
    };
    PRIVILEGES.iter().filter(|p| set.has(p.bit)).map(|p| name(p.name)).collect::<Vec<_>>().join(",")
}

fn object_grants(role: &Account, name: &str) -> Rows {
    let (user, host) = (role.user.as_str(), role.host.as_str());
    let head = ["", "", user, host, "def"];
    let option = |set: Privileges| yes(set.has(Privileges::GRANT_OPTION));
    match name {
        "ROLE_TABLE_GRANTS" => {
            let row = |grant: &TableGrant| {
                let set = as_set(grant.privileges.without(Privileges::GRANT_OPTION));
                texts(&[&head[..], &[&grant.db, &grant.table, &set, option(grant.privileges)]].concat())
            };
            role.grants.tables.iter().map(row).collect()
        }
        "ROLE_COLUMN_GRANTS" => {
            let row = |grant: &TableGrant| -> Rows {
                let column = |(column, own): &(String, Privileges)| {
                    let option = option(grant.privileges);
                    texts(&[&head[..], &[&grant.db, &grant.table, column, &as_set(*own), option]].concat())
                };
                grant.columns.iter().map(column).collect()
            };
            role.grants.tables.iter().flat_map(row).collect()
        }
        _ => {
            let row = |grant: &RoutineGrant| {
                let set = as_set(grant.privileges.without(Privileges::GRANT_OPTION));
                let (db, name) = (grant.db.as_str(), grant.name.as_str());
                texts(&[&head[..], &[db, name, "def", db, name, &set, option(grant.privileges)]].concat())
            };
            role.grants.routines.iter().map(row).collect()
        }
    }
}

/// The rows of a table of the `mysql` schema about accounts.
#[must_use]
pub fn system_rows(table: &AccessTable, name: &str) -> Rows {
    table.all().iter().flat_map(|account| of_account(account, name)).collect()
}

fn of_account(account: &Account, name: &str) -> Rows {
    let (user, host) = (account.user.as_str(), account.host.as_str());
    match name {
        "user" => vec![user_row(account)],
        "password_history" => {
            let row = |old: &OldPassword| {
                let set = DateTime::from_unix(old.set_us.div_euclid(1_000_000), 0);
                let mut row = texts(&[host, user]);
                row.push(set.map_or(Value::Null, Value::DateTime));
                row.push(Value::Bytes(old.auth.clone().into()));
                row
            };
            account.credentials.passwords.iter().rev().map(row).collect()
        }
        "proxies_priv" => {
            let row = |own: &ProxyGrant| {
                let mut row = texts(&[host, user, &own.host, &own.user]);
                row.extend([Value::Int(own.grant_option.into()), text(""), Value::Null]);
                row
            };
            account.grants.proxies.iter().map(row).collect()
        }
        "tables_priv" => {
            let row = |grant: &TableGrant| {
                let mut row = texts(&[host, &grant.db, user, &grant.table, ""]);
                let columns = as_set(grant.of_columns());
                row.extend([Value::Null, text(&as_set(grant.privileges)), text(&columns)]);
                row
            };
            account.grants.tables.iter().map(row).collect()
        }
        "columns_priv" => {
            let row = |grant: &TableGrant| -> Rows {
                let column = |(column, own): &(String, Privileges)| {
                    let mut row = texts(&[host, &grant.db, user, &grant.table, column]);
                    row.extend([Value::Null, text(&as_set(*own))]);
                    row
                };
                grant.columns.iter().map(column).collect()
            };
            account.grants.tables.iter().flat_map(row).collect()
        }
        "procs_priv" => {
            let row = |grant: &RoutineGrant| {
                let kind = grant.kind.name();
                let mut row =
                    texts(&[host, &grant.db, user, &grant.name, kind, "", &as_set(grant.privileges)]);
                row.push(Value::Null);
                row
            };
            account.grants.routines.iter().map(row).collect()
        }
        "role_edges" => {
            let granted = account.grants.roles.iter().filter(|role| role.granted);
            granted.map(|role| texts(&[&role.host, &role.user, host, user, y(role.admin)])).collect()
        }
        "default_roles" => {
            let default = account.grants.roles.iter().filter(|role| role.default);
            default.map(|role| texts(&[host, user, &role.host, &role.user])).collect()
        }
        // A role has no host part there.
        "roles_mapping" => {
            let host = if account.is_role { "" } else { host };
            let granted = account.grants.roles.iter().filter(|role| role.granted);
            granted.map(|role| texts(&[host, user, &role.user, y(role.admin)])).collect()
        }
        _ => Vec::new(),
    }
}

/// The columns of privileges of `mysql.user`, in their order.
const COLUMNS: [Privileges; 29] = [
    Privileges::SELECT,
    Privileges::INSERT,
    Privileges::UPDATE,
    Privileges::DELETE,
    Privileges::CREATE,
    Privileges::DROP,
    Privileges::RELOAD,
    Privileges::SHUTDOWN,
    Privileges::PROCESS,
    Privileges::FILE,
    Privileges::GRANT_OPTION,
    Privileges::REFERENCES,
    Privileges::INDEX,
    Privileges::ALTER,
    Privileges::SHOW_DATABASES,
    Privileges::SUPER,
    Privileges::CREATE_TEMPORARY,
    Privileges::LOCK_TABLES,
    Privileges::EXECUTE,
    Privileges::REPLICATION_SLAVE,
    Privileges::REPLICATION_CLIENT,
    Privileges::CREATE_VIEW,
    Privileges::SHOW_VIEW,
    Privileges::CREATE_ROUTINE,
    Privileges::ALTER_ROUTINE,
    Privileges::CREATE_USER,
    Privileges::EVENT,
    Privileges::TRIGGER,
    Privileges::CREATE_TABLESPACE,
];

fn user_row(account: &Account) -> Vec<Value> {
    let own = |bit: Privileges| text(y(account.grants.privileges.has(bit)));
    let limits = &account.options.resources;
    let mut row = texts(&[account.host.as_str(), &account.user]);
    row.extend(COLUMNS.map(own));
    let names = account.require.specified();
    row.extend(texts(&[account.require.kind(), &names.cipher, &names.issuer, &names.subject]));
    row.extend(
        [limits.queries, limits.updates, limits.connections, limits.at_once].map(|n| Value::UInt(n.into())),
    );
    row.push(text(&account.credentials.plugin));
    row.push(Value::Bytes(account.credentials.auth.clone().into()));
    row.push(text(y(account.options.expired)));
    row.push(text(y(account.locked)));
    row.extend([own(Privileges::CREATE_ROLE), own(Privileges::DROP_ROLE)]);
    let rules = &account.options.passwords;
    row.extend([rules.history, rules.reuse_days].map(|n| n.map_or(Value::Null, |n| Value::UInt(n.into()))));
    row.push(rules.require_current.map_or(Value::Null, |asked| text(y(asked))));
    row.push(attributes(account).map_or(Value::Null, |attributes| text(&attributes)));
    row.push(text(y(account.is_role)));
    let default = account.grants.roles.iter().find(|role| role.default);
    row.push(text(default.map_or("", |role| &role.user)));
    row
}
