//! CREATE USER, ALTER USER, DROP USER, RENAME USER, SET PASSWORD, GRANT, REVOKE: privileges to do so,
//! the change itself, and the statement for the log, which holds hashes and no clear password.

use super::Admin;
use crate::account::{
    self, AccessTable, Account, AccountName, By, NewPassword, Privileges, Record, SetPassword, plan_users,
    with_hashes,
};
use crate::errors;
use crate::result_set::{ResultSet, integer_column, text_column};
use crate::server::Server;
use bytes::Bytes;
use omnibus_parser::accounts_and_roles;
use omnibus_parser::ast::{
    Auth, AuthSecret, CreateUser, GrantWhat, PasswordOptions, PasswordValue, SetItem, Statement, UserName,
    UserSpec,
};
use omnibus_sql::catalog::Catalog;
use omnibus_sql::{SqlError, SqlResult};
use omnibus_value::Value;

/// The privileges to have, or to take away, a second password.
const SECOND_PASSWORDS: Privileges = Privileges::CREATE_USER.with(Privileges::APPLICATION_PASSWORD_ADMIN);

/// SET PASSWORD .. TO RANDOM, as the ALTER USER that it is.
pub(super) fn random_password(items: &[SetItem]) -> Option<Statement> {
    let [SetItem::Password { user, value: PasswordValue::Random, replaces, retain_current }] = items else {
        return None;
    };
    let auth = Auth { plugin: None, secret: AuthSecret::Random };
    let spec = UserSpec {
        user: user.clone().unwrap_or(UserName::CurrentUser),
        auth: Some(auth),
        replaces: replaces.clone(),
        discard_old: false,
        retain_current: *retain_current,
    };
    Some(Statement::AlterUser(Box::new(CreateUser { users: vec![spec], ..CreateUser::default() })))
}

/// Runs a statement about accounts and adds its reply: OK, or the passwords that were made up for it.
pub(super) async fn users(
    admin: &mut Admin<'_>,
    statement: &Statement,
    text: &Bytes,
    more: bool,
) -> SqlResult<()> {
    let named = name_current_role(admin, statement, text)?;
    let (statement, text) = named.as_ref().map_or((statement, text), |(statement, text)| (statement, text));
    let len = admin.settings.shared.vars.lock().named("generated_random_password_length").as_u64();
    let (with_passwords, made) = make_passwords(admin.login.account(), len, statement);
    let changed = run_users(admin, with_passwords.as_ref().unwrap_or(statement), text).await?;
    if made.is_empty() {
        admin.client.ok(admin.sql, more);
        return Ok(());
    }
    let text = |s: &str| Value::Bytes(Bytes::copy_from_slice(s.as_bytes()));
    let rows = made.iter().filter(|(name, _)| changed.contains(name));
    let rows =
        rows.map(|((user, host), password)| vec![text(user), text(host), text(password), Value::UInt(1)]);
    let columns = vec![
        text_column("user", 32),
        text_column("host", 255),
        text_column("generated password", 255),
        integer_column("auth_factor"),
    ];
    let rows = ResultSet { columns, rows: rows.collect() };
    admin.client.reply_rows(admin.sql, &rows, more)
}

/// The statement and its text with the role in force in the place of CURRENT_ROLE, if it has that.
fn name_current_role(
    admin: &Admin<'_>,
    statement: &Statement,
    text: &Bytes,
) -> SqlResult<Option<(Statement, Bytes)>> {
    let changes = matches!(
        statement,
        Statement::Grant(_) | Statement::Revoke(_) | Statement::CreateRole(_) | Statement::DropRole { .. }
    );
    if !changes {
        return Ok(None);
    }
    let mut named = statement.clone();
    let mut names = accounts_and_roles(&mut named);
    names.retain(|name| **name == UserName::CurrentRole);
    if names.is_empty() {
        return Ok(None);
    }
    let Some((role, _)) = admin.login.access.roles().first() else {
        return Err(no_current_role(statement));
    };
    let text = omnibus_parser::name_current_role(text, &admin.sql.state.settings.parse_options(), role);
    for name in names {
        *name = UserName::Named { user: role.as_str().into(), host: "%".into() };
    }
    Ok(Some((named, text.into())))
}

/// The statement with passwords in the place of BY RANDOM PASSWORD, if it has that; and whose they are.
fn make_passwords(
    me: &Account,
    len: u64,
    statement: &Statement,
) -> (Option<Statement>, Vec<(AccountName, String)>) {
    let (Statement::CreateUser(given) | Statement::AlterUser(given)) = statement else {
        return (None, Vec::new());
    };
    let is_random = |auth: &Auth| auth.secret == AuthSecret::Random;
    if !given.users.iter().any(|spec| spec.auth.as_ref().is_some_and(is_random)) {
        return (None, Vec::new());
    }
    let (mut filled, mut made) = (given.clone(), Vec::new());
    for spec in &mut filled.users {
        let Some(auth) = spec.auth.as_mut().filter(|auth| is_random(auth)) else { continue };
        let password = account::random_password(usize::try_from(len).unwrap_or(20));
        auth.secret = AuthSecret::Clear(password.clone().into());
        made.push((account::resolve(&spec.user, me), password));
    }
    let statement = match statement {
        Statement::CreateUser(_) => Statement::CreateUser(filled),
        _ => Statement::AlterUser(filled),
    };
    (Some(statement), made)
}

async fn run_users(
    admin: &mut Admin<'_>,
    statement: &Statement,
    text: &Bytes,
) -> SqlResult<Vec<AccountName>> {
    let me = admin.login.account().clone();
    let own_only = matches!(statement, Statement::AlterUser(s) if alters_own(s, &me));
    if matches!(statement, Statement::AlterUser(_)) && !own_only {
        admin.login.access.require(Privileges::CREATE_USER)?;
    }
    if let Statement::AlterUser(s) = statement
        && s.users.iter().any(|spec| spec.retain_current || spec.discard_old)
    {
        admin.login.access.require(SECOND_PASSWORDS)?;
    }
    refuse_without_grants(admin.server)?;
    if !enter_given(admin)? {
        return Ok(Vec::new());
    }
    let mut changed = Vec::new();
    let result = change_users(admin, statement, text, &me, &mut changed).await;
    leave_given(admin, result)?;
    forget_usage(admin.server, admin.login.account(), statement);
    Ok(changed)
}

/// With --skip-grant-tables there are no accounts before FLUSH PRIVILEGES.
fn refuse_without_grants(server: &Server) -> SqlResult<()> {
    match server.skips_grants() {
        true => Err(SqlError::option_prevents_statement("--skip-grant-tables")),
        false => Ok(()),
    }
}

/// An account that is unlocked, or gets other limits, begins anew.
fn forget_usage(server: &Server, me: &Account, statement: &Statement) {
    let (Statement::AlterUser(s) | Statement::CreateUser(s)) = statement else { return };
    let locks = ["FAILED_LOGIN_ATTEMPTS", "PASSWORD_LOCK_TIME"];
    let changed = s.account_locked == Some(false)
        || !s.resources.is_empty()
        || s.password.others.iter().any(|(name, _)| locks.contains(&name.as_str()));
    for spec in s.users.iter().filter(|_| changed) {
        let (user, host) = account::resolve(&spec.user, me);
        server.usage.begin_anew(&Account::new(&user, &host).plain());
    }
}

/// Tells which accounts have changed.
async fn change_users(
    admin: &mut Admin<'_>,
    statement: &Statement,
    text: &Bytes,
    me: &Account,
    changed: &mut Vec<AccountName>,
) -> SqlResult<()> {
    admin.commit_first().await?;
    admin.await_backups().await?;
    admin.sql.state.diagnostics.clear();
    if let Statement::Grant(grant) = statement
        && let GrantWhat::Privileges { privileges, target } = &grant.what
    {
        admin.sql.check_grant_target(target, privileges)?;
    }
    let mut notes = Vec::new();
    let (plugin, passwords) = (admin.server.default_plugin(), admin.server.globals.password_defaults());
    let database = admin.sql.state.database.clone();
    let (rules, mariadb) = (admin.server.accounts.rules(), admin.server.is_mariadb());
    let (mut warnings, catalog) = (Vec::new(), admin.server.database.catalog());
    let may_orphan = admin.login.access.has(Privileges::ALLOW_NONEXISTENT_DEFINER);
    let kill = admin.sql.state.budget.kill().clone();
    let plan = |table: &AccessTable| {
        let database = database.as_deref();
        let by = By { me, plugin: &plugin, passwords, database, rules: &rules, mariadb, kill: &kill };
        let (records, text) = plan_users(table, statement, text, &by, &mut notes)?;
        if !mariadb {
            warnings = look_for_definers(statement, (&records, table), &catalog, may_orphan)?;
        }
        changed.extend(records.iter().filter_map(|record| match record {
            Record::Put(account) => Some((account.user.clone(), account.host.as_str().to_owned())),
            Record::Delete { .. } => None,
        }));
        Ok((records, text))
    };
    change_accounts(admin, plan)?;
    warnings.into_iter().for_each(|warning| admin.sql.state.diagnostics.warn(warning));
    notes.into_iter().for_each(|note| admin.sql.state.diagnostics.note(note));
    Ok(())
}

/// Looks whether accounts that come, go or get other names are definers: whoever is the next to have the name has these objects then. Warnings
/// for who may leave objects without a definer.
///
/// # Errors
/// 4006.
fn look_for_definers(
    statement: &Statement,
    (records, before): (&[Record], &AccessTable),
    catalog: &Catalog,
    may_orphan: bool,
) -> SqlResult<Vec<SqlError>> {
    let verb = match statement {
        Statement::CreateUser(_) => "CREATE USER",
        Statement::DropUser { .. } => "DROP USER",
        Statement::RenameUser(_) => "RENAME USER",
        Statement::CreateRole(_) => "CREATE ROLE",
        Statement::DropRole { .. } => "DROP ROLE",
        _ => return Ok(Vec::new()),
    };
    let mut warnings = Vec::new();
    for record in records {
        let (user, host) = match record {
            Record::Put(account) => (account.user.as_str(), account.host.as_str()),
            Record::Delete { user, host } => (user.as_str(), host.as_str()),
        };
        // One that only follows another account's change stays as it is.
        if matches!(record, Record::Put(_)) && before.exact(user, host).is_some() {
            continue;
        }
        for kind in catalog.defined_by(user, host) {
            let account = Account::new(user, host).quoted();
            if !may_orphan {
                let message = format!(
                    "Operation {verb} failed for {account} as it is referenced as a definer account in {kind}."
                );
                return Err(SqlError::new(4006, b"HY000", message));
            }
            let message = format!("User {account} is referenced as a definer account in {kind}.");
            warnings.push(SqlError::new(4005, b"HY000", message));
        }
    }
    Ok(warnings)
}

pub(super) async fn set_password(
    admin: &mut Admin<'_>,
    user: Option<&UserName>,
    value: &PasswordValue,
    replaces: Option<&[u8]>,
    retain: bool,
) -> SqlResult<()> {
    let me = admin.login.account().clone();
    let own = user.is_none_or(|u| is_own(u, &me));
    if !own {
        admin.login.access.require(Privileges::CREATE_USER)?;
    }
    if retain {
        admin.login.access.require(SECOND_PASSWORDS)?;
    }
    refuse_without_grants(admin.server)?;
    let password = match value {
        PasswordValue::Text(p) | PasswordValue::Clear(p) => p.clone(),
        // A statement that says nothing else is run as ALTER USER.
        PasswordValue::Random => {
            return Err(SqlError::not_supported_yet("SET PASSWORD TO RANDOM beside others"));
        }
    };
    if !enter_given(admin)? {
        return Ok(());
    }
    // What MariaDB means is a hash, unless PASSWORD() makes one.
    let is_hash = admin.sql.state.settings.mariadb && matches!(value, PasswordValue::Text(_));
    let password = if is_hash { NewPassword::Hash(&password) } else { NewPassword::Clear(&password) };
    let (statement, defaults) =
        (SetPassword { user, replaces, retain }, admin.server.globals.password_defaults());
    let change = |table: &AccessTable| account::set_password(table, &me, &statement, &password, &defaults);
    let result = put_password(admin, change).await;
    leave_given(admin, result)
}

async fn put_password(
    admin: &mut Admin<'_>,
    set: impl Fn(&AccessTable) -> SqlResult<Vec<Record>>,
) -> SqlResult<()> {
    admin.commit_first().await?;
    let plan = |table: &AccessTable| {
        let records = set(table)?;
        let text = with_hashes("ALTER USER", &records, table);
        Ok((records, text))
    };
    change_accounts(admin, plan)
}

/// `gtid_next` may have something against the statement, or `false`: its transaction is here already.
pub(super) fn enter_given(admin: &mut Admin<'_>) -> SqlResult<bool> {
    admin.sql.gtid_next().enter_server_statement()
}

/// Where nothing has changed, a transaction with a given id is empty, and logged all the same.
pub(super) fn leave_given(admin: &mut Admin<'_>, result: SqlResult<()>) -> SqlResult<()> {
    let failed = result.is_err();
    let left = admin.sql.gtid_next().leave_server_statement(failed);
    result?;
    if left { admin.commit_now() } else { Ok(()) }
}

/// In this session's own transaction: `sql_log_bin`, `gtid_next` and the like apply.
fn change_accounts(
    admin: &mut Admin<'_>,
    plan: impl FnOnce(&AccessTable) -> SqlResult<(Vec<Record>, Vec<u8>)>,
) -> SqlResult<()> {
    let accounts = &admin.server.accounts;
    crate::net::blocking(|| accounts.change_in(admin.sql, plan).map(drop))
}

/// MariaDB's error where CURRENT_ROLE is nothing.
fn no_current_role(statement: &Statement) -> SqlError {
    let gives = |what: &GrantWhat| match what {
        GrantWhat::Roles(roles) => !roles.contains(&UserName::CurrentRole),
        _ => false,
    };
    match statement {
        Statement::Grant(grant) if gives(&grant.what) => errors::invalid_role("NONE"),
        Statement::Revoke(revoke) if gives(&revoke.what) => errors::invalid_role("NONE"),
        Statement::DropRole { .. } => errors::cannot_user("DROP ROLE", "CURRENT_ROLE".to_owned()),
        _ => SqlError::malformed_definer(),
    }
}

fn is_own(name: &UserName, me: &Account) -> bool {
    match name {
        UserName::CurrentUser => true,
        UserName::CurrentRole => false,
        UserName::Named { user, host } => me.is(user, host),
    }
}

/// ALTER USER of oneself, changing nothing but the password, needs no privilege.
fn alters_own(statement: &CreateUser, me: &Account) -> bool {
    statement.users.iter().all(|u| is_own(&u.user, me))
        && statement.account_locked.is_none()
        && statement.require.is_none()
        && statement.attribute.is_none()
        && statement.resources.is_empty()
        && statement.password == PasswordOptions::default()
        && statement.comment.is_none()
}
