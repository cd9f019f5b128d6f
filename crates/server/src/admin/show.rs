//! The SHOW forms that the server answers itself.

use super::Admin;
use crate::account::show_mariadb as mariadb;
use crate::account::{self, PRIVILEGES, RoleContext, show_create_user, show_grants};
use crate::connection::Login;
use crate::errors;
use crate::result_set::{ResultSet, integer_column, text_column};
use crate::server::Server;
use bytes::Bytes;
use omnibus_parser::ast::{Limit, Show, UserName};
use omnibus_sql::{AccessCheck, Level, Priv, SqlError, SqlResult};
use omnibus_value::Value;

fn text(s: &str) -> Value {
    Value::Bytes(Bytes::copy_from_slice(s.as_bytes()))
}

pub(super) async fn show(admin: &mut Admin<'_>, show: &Show, more: bool) -> SqlResult<()> {
    let rows = match show {
        Show::Warnings { count, limit } => conditions(admin, *count, limit.as_ref(), false).await?,
        Show::Errors { count, limit } => conditions(admin, *count, limit.as_ref(), true).await?,
        Show::Grants { user, using } => grants(admin.server, admin.login, user.as_ref(), using)?,
        Show::CreateUser(user) => create_user_text(admin.server, admin.login, user)?,
        Show::Privileges => privileges(),
        Show::BinaryLogs => super::log::show_binary_logs(admin.server)?,
        Show::BinaryLogStatus => super::log::show_binary_log_status(admin.server)?,
        Show::BinlogEvents(events) => super::log::show_binlog_events(admin, events).await?,
        Show::Profiles => empty(&["Query_ID", "Duration", "Query"]),
        Show::Profile => empty(&["Status", "Duration"]),
        Show::Replicas { old_names } => super::log::show_replicas(admin.server, *old_names)?,
        Show::ReplicaStatus { all, channel, old_names } => {
            super::replication::replica_status(admin.server, *all, channel.as_deref(), *old_names)?
        }
        _ => return Err(SqlError::internal("a SHOW form that is not the server's")),
    };
    admin.client.reply_rows(admin.sql, &rows, more)
}

/// SHOW WARNINGS and SHOW ERRORS: of the statement before, which they leave as it is.
async fn conditions(
    admin: &mut Admin<'_>,
    count: bool,
    limit: Option<&Limit>,
    errors_only: bool,
) -> SqlResult<ResultSet> {
    // It is not told of what it shows.
    admin.sql.state.diagnostics.keep();
    let diagnostics = admin.sql.state.diagnostics.clone();
    if count {
        let (name, n) = if errors_only {
            ("@@session.error_count", diagnostics.error_count())
        } else {
            ("@@session.warning_count", u64::from(diagnostics.count()))
        };
        return Ok(ResultSet { columns: vec![integer_column(name)], rows: vec![vec![Value::UInt(n)]] });
    }
    let (skip, take) = match limit {
        Some(limit) => admin.limit(limit).await?,
        None => (0, u64::MAX),
    };
    let shown = diagnostics.conditions().iter().filter(|(level, _)| !errors_only || *level == Level::Error);
    let rows = shown
        .skip(usize::try_from(skip).unwrap_or(usize::MAX))
        .take(usize::try_from(take).unwrap_or(usize::MAX))
        .map(|(level, c)| vec![text(level.name()), Value::UInt(u64::from(c.code)), text(&c.message)])
        .collect();
    let columns = vec![text_column("Level", 7), integer_column("Code"), text_column("Message", 512)];
    Ok(ResultSet { columns, rows })
}

/// The account a SHOW names: one's own, or another's with the right to read `mysql`.
fn named_account(
    server: &Server,
    login: &Login,
    user: Option<&UserName>,
) -> SqlResult<std::sync::Arc<crate::account::Account>> {
    let own = login.account();
    let role = match user {
        Some(UserName::CurrentRole) => {
            let none = || errors::nonexisting_grant(&own.user, own.host.as_str());
            let (role, host) = login.access.roles().first().ok_or_else(none)?;
            Some(UserName::Named { user: role.as_str().into(), host: host.as_str().into() })
        }
        _ => None,
    };
    let user = role.as_ref().or(user);
    let (user, host) = account::resolve(user.unwrap_or(&UserName::CurrentUser), own);
    let (user, host) = (user.as_str(), host.as_str());
    // What a role in force has, its holder knows.
    if own.is_anybody() {
        return Ok(own.clone());
    }
    if !own.is(user, host) && !own.active.iter().any(|role| role.is(user, host)) {
        login.access.check("mysql", None, Priv::Select)?;
    }
    server.accounts.table().exact(user, host).ok_or_else(|| errors::nonexisting_grant(user, host))
}

/// SHOW GRANTS: one's own with the roles in force, unless others are named.
fn grants(
    server: &Server,
    login: &Login,
    user: Option<&UserName>,
    using: &[UserName],
) -> SqlResult<ResultSet> {
    let (table, rules) = (server.accounts.table(), server.accounts.rules());
    let mariadb = server.is_mariadb();
    let me = named_account(server, login, user)?;
    let own = me.is(&login.account().user, login.account().host.as_str());
    let roles = match own && user.is_none() && using.is_empty() {
        true => login.access.roles().to_vec(),
        // What a role has of others is in force wherever it is.
        false if mariadb && me.is_role => account::available(&table, &me, &rules),
        false => {
            let cx = RoleContext { table: &table, me: &me, rules: &rules, mariadb };
            account::choose(&cx, &me, &omnibus_parser::ast::RoleSet::List(using.to_vec()))?
        }
    };
    let account = account::with_roles(&table, &me, &roles);
    let title = format!("Grants for {}", if me.is_role && mariadb { me.user.clone() } else { me.plain() });
    let lines = match mariadb {
        true => {
            let active = account.active.iter().flat_map(|role| mariadb::show_grants(role));
            mariadb::show_grants(&me).into_iter().chain(active).collect()
        }
        false => show_grants(&account::with_own_roles(&account)),
    };
    let rows = lines.iter().map(|line| vec![text(line)]).collect();
    Ok(ResultSet { columns: vec![text_column(&title, 1024)], rows })
}

fn create_user_text(server: &Server, login: &Login, user: &UserName) -> SqlResult<ResultSet> {
    let account = named_account(server, login, Some(user))?;
    let title = format!("CREATE USER for {}", account.plain());
    Ok(ResultSet {
        columns: vec![text_column(&title, 1024)],
        rows: vec![vec![text(&match server.is_mariadb() {
            true => mariadb::show_create_user(&account),
            false => show_create_user(&account),
        })]],
    })
}

fn empty(columns: &[&str]) -> ResultSet {
    ResultSet { columns: columns.iter().map(|c| text_column(c, 255)).collect(), rows: Vec::new() }
}

fn privileges() -> ResultSet {
    let title_case = |name: &str| {
        let lower = name.to_ascii_lowercase();
        let mut chars = lower.chars();
        chars.next().map_or_else(String::new, |c| c.to_ascii_uppercase().to_string() + chars.as_str())
    };
    let name =
        |p: &crate::account::PrivilegeInfo| if p.dynamic { p.name.to_owned() } else { title_case(p.name) };
    ResultSet {
        columns: vec![text_column("Privilege", 64), text_column("Context", 64), text_column("Comment", 128)],
        rows: PRIVILEGES.iter().map(|p| vec![text(&name(p)), text(p.context), text(p.comment)]).collect(),
    }
}
