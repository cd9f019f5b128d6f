//! CREATE USER, ALTER USER, DROP USER, RENAME USER, SET PASSWORD, GRANT, REVOKE: privileges to do so,
//! the change itself, and the statement for the log, which holds hashes and no clear password.

use crate::account::{self, AccessTable, Account, Privileges, Record, RoleContext, RoleRules};
use crate::session::{Parsed, Session};
use omnibus_parser::ast::{
    CreateUser, GrantWhat, PasswordOptions, PasswordValue, RoleSet, SetItem, Statement, UserName,
};
use omnibus_sql::{SqlError, SqlResult};
use std::sync::Arc;

/// On whose behalf accounts are changed.
pub(crate) struct By<'a> {
    /// Whose privileges count.
    pub me: &'a Account,
    /// The plugin of new accounts.
    pub plugin: &'a str,
    /// The default database.
    pub database: Option<&'a str>,
    /// What variables say of roles.
    pub rules: &'a RoleRules,
    /// Whether statements mean what they mean to a MariaDB.
    pub mariadb: bool,
}

/// What it takes to have, or to take away, a second password.
const SECOND_PASSWORDS: Privileges = Privileges::CREATE_USER.with(Privileges::APPLICATION_PASSWORD_ADMIN);

/// What a statement about accounts changes, and its text for the log.
pub(crate) fn plan_users(
    table: &AccessTable,
    statement: &Statement,
    text: &[u8],
    by: &By<'_>,
    notes: &mut Vec<omnibus_sql::SqlError>,
) -> SqlResult<(Vec<Record>, Vec<u8>)> {
    let By { me, plugin, database, rules, mariadb } = *by;
    let roles = RoleContext { table, me, rules, mariadb };
    let records = match statement {
        Statement::CreateUser(s) => {
            let mut records = account::create_user(table, me, s, plugin, notes)?;
            put_default_roles(&roles, s, &mut records)?;
            let mut text = with_hashes("CREATE USER", &records, table);
            text.extend_from_slice(account::clauses_of(s, true).as_bytes());
            return Ok((records, text));
        }
        Statement::AlterUser(s) => {
            let mut records = account::alter_user(table, me, s, plugin, notes)?;
            put_default_roles(&roles, s, &mut records)?;
            let mut text = with_hashes("ALTER USER", &records, table);
            text.extend_from_slice(account::clauses_of(s, false).as_bytes());
            return Ok((records, text));
        }
        Statement::DropUser { if_exists, users } => account::drop_user(table, me, users, *if_exists, notes)?,
        Statement::RenameUser(pairs) => account::rename_user(table, me, pairs)?,
        Statement::Set(items) if let Some((user, hash)) = password_hash(items) => {
            let records = account::set_password_hash(table, me, user, hash)?;
            let text = with_hashes("ALTER USER", &records, table);
            return Ok((records, text));
        }
        Statement::CreateRole(s) => account::create_role(&roles, s, plugin, notes)?,
        Statement::DropRole { if_exists, roles: names } => {
            account::drop_role(&roles, names, *if_exists, notes)?
        }
        Statement::SetDefaultRole(s) => {
            let records = account::set_default_role(&roles, s)?;
            let text = account::default_role_text(&records, mariadb);
            return Ok((records, text.into_bytes()));
        }
        Statement::Grant(s) => match &s.what {
            GrantWhat::Roles(names) => account::grant_roles(&roles, names, s)?,
            _ => account::grant(table, me, s, database)?,
        },
        Statement::Revoke(s) => match &s.what {
            GrantWhat::Roles(names) => account::revoke_roles(&roles, names, s)?,
            _ => account::revoke(table, me, s, database)?,
        },
        _ => return Err(SqlError::internal("a statement that is not about accounts")),
    };
    Ok((records, text.to_vec()))
}

/// DEFAULT ROLE of CREATE USER and ALTER USER. A new account gets the roles, too.
fn put_default_roles(
    roles: &RoleContext<'_>,
    statement: &CreateUser,
    records: &mut [Record],
) -> SqlResult<()> {
    let Some(set) = &statement.default_roles else { return Ok(()) };
    for record in records {
        let Record::Put(account) = record else { continue };
        if let (RoleSet::List(names), None) = (set, roles.table.exact(&account.user, account.host.as_str())) {
            account::give_roles(roles, account, names)?;
        }
        let chosen = account::choose(roles, account, set)?;
        account::put_defaults(account, chosen);
    }
    Ok(())
}

/// The statement SET PASSWORD of a MariaDB source, which has the hash.
pub(crate) fn password_hash(items: &[SetItem]) -> Option<(Option<&UserName>, &[u8])> {
    match items {
        [SetItem::Password { user, value: PasswordValue::Text(hash), .. }] => Some((user.as_ref(), hash)),
        _ => None,
    }
}

impl Session {
    pub(super) async fn users(&mut self, parsed: &Arc<Parsed>) -> SqlResult<()> {
        let statement = &parsed.statement.node;
        let me = self.account().clone();
        let own_only = matches!(statement, Statement::AlterUser(s) if alters_own(s, &me));
        if matches!(statement, Statement::AlterUser(_)) && !own_only {
            self.access.require(Privileges::CREATE_USER)?;
        }
        if let Statement::AlterUser(s) = statement
            && s.users.iter().any(|spec| spec.retain_current || spec.discard_old)
        {
            self.access.require(SECOND_PASSWORDS)?;
        }
        self.refuse_without_grants()?;
        if !self.enter_given()? {
            return Ok(());
        }
        let result = self.change_users(parsed, &me).await;
        self.leave_given(result)?;
        self.forget_usage(statement);
        Ok(())
    }

    /// With --skip-grant-tables there are no accounts before FLUSH PRIVILEGES.
    fn refuse_without_grants(&self) -> SqlResult<()> {
        match self.server.skips_grants() {
            true => Err(SqlError::option_prevents_statement("--skip-grant-tables")),
            false => Ok(()),
        }
    }

    /// An account that is unlocked, or gets other limits, begins anew.
    fn forget_usage(&self, statement: &Statement) {
        let (Statement::AlterUser(s) | Statement::CreateUser(s)) = statement else { return };
        let locks = ["FAILED_LOGIN_ATTEMPTS", "PASSWORD_LOCK_TIME"];
        let changed = s.account_locked == Some(false)
            || !s.resources.is_empty()
            || s.password.others.iter().any(|(name, _)| locks.contains(&name.as_str()));
        for spec in s.users.iter().filter(|_| changed) {
            let (user, host) = account::resolve(&spec.user, self.account());
            self.server.usage.begin_anew(&Account::new(&user, &host).plain());
        }
    }

    async fn change_users(&mut self, parsed: &Arc<Parsed>, me: &Account) -> SqlResult<()> {
        let statement = &parsed.statement.node;
        self.commit_first().await?;
        self.await_backups().await?;
        self.runner.state_mut().diagnostics.clear();
        if let (Statement::Grant(grant), Some(session)) = (statement, self.runner.sql_session())
            && let GrantWhat::Privileges { privileges, target } = &grant.what
        {
            session.check_grant_target(target, privileges)?;
        }
        let mut notes = Vec::new();
        let plugin = self.server.default_plugin();
        let database = self.runner.state().database.clone();
        let (rules, mariadb) = (self.server.accounts.rules(), self.is_mariadb());
        let text = parsed.text.clone();
        let plan = |table: &AccessTable| {
            let by = By { me, plugin: &plugin, database: database.as_deref(), rules: &rules, mariadb };
            plan_users(table, statement, &text, &by, &mut notes)
        };
        self.change_accounts(plan)?;
        for note in notes {
            self.runner.state_mut().diagnostics.note(note);
        }
        Ok(())
    }

    pub(super) async fn set_password(
        &mut self,
        user: Option<&UserName>,
        value: &PasswordValue,
        replaces: Option<&[u8]>,
        retain: bool,
    ) -> SqlResult<()> {
        let me = self.account().clone();
        let own = user.is_none_or(|u| is_own(u, &me));
        if !own {
            self.access.require(Privileges::CREATE_USER)?;
        }
        if retain {
            self.access.require(SECOND_PASSWORDS)?;
        }
        self.refuse_without_grants()?;
        let password = match value {
            PasswordValue::Text(p) | PasswordValue::Clear(p) => p.clone(),
            PasswordValue::Random => return Err(SqlError::not_supported_yet("SET PASSWORD TO RANDOM")),
        };
        if !self.enter_given()? {
            return Ok(());
        }
        // What MariaDB means is a hash, unless PASSWORD() makes one.
        let is_hash = self.runner.state().settings.mariadb && matches!(value, PasswordValue::Text(_));
        let set = if is_hash { account::set_password_hash } else { account::set_password };
        let change = |table: &AccessTable| {
            let mut records = set(table, &me, user, &password)?;
            for record in &mut records {
                if let Record::Put(account) = record
                    && let Some(old) = table.exact(&account.user, account.host.as_str())
                {
                    account::check_replaced(&me, &old, replaces)?;
                    account::follow_password(&old, account, retain)?;
                }
            }
            Ok(records)
        };
        let result = self.put_password(change).await;
        self.leave_given(result)
    }

    async fn put_password(&mut self, set: impl Fn(&AccessTable) -> SqlResult<Vec<Record>>) -> SqlResult<()> {
        self.commit_first().await?;
        let plan = |table: &AccessTable| {
            let records = set(table)?;
            let text = with_hashes("ALTER USER", &records, table);
            Ok((records, text))
        };
        self.change_accounts(plan)
    }

    /// `gtid_next` may have something against the statement, or `false`: its transaction is here already.
    pub(super) fn enter_given(&mut self) -> SqlResult<bool> {
        self.runner.sql_session().map_or(Ok(true), omnibus_sql::SqlSession::enter_server_statement)
    }

    /// Where nothing has changed, a transaction with a given id is empty, and logged all the same.
    pub(super) fn leave_given(&mut self, result: SqlResult<()>) -> SqlResult<()> {
        let failed = result.is_err();
        let left = self.runner.sql_session().is_some_and(|session| session.leave_server_statement(failed));
        result?;
        if left { self.commit_now() } else { Ok(()) }
    }

    /// In this session's own transaction: `sql_log_bin`, `gtid_next` and the like apply.
    fn change_accounts(
        &mut self,
        plan: impl FnOnce(&AccessTable) -> SqlResult<(Vec<Record>, Vec<u8>)>,
    ) -> SqlResult<()> {
        let accounts = &self.server.accounts;
        tokio::task::block_in_place(|| match self.runner.sql_session() {
            Some(session) => accounts.change_in(session, plan).map(drop),
            None => accounts.change(plan),
        })
    }
}

fn is_own(name: &UserName, me: &Account) -> bool {
    match name {
        UserName::CurrentUser => true,
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

/// The statement that makes these accounts, for the log.
fn with_hashes(verb: &str, records: &[Record], before: &AccessTable) -> Vec<u8> {
    let mut text = String::new();
    for record in records {
        let Record::Put(account) = record else { continue };
        let separator = if text.is_empty() { verb.to_owned() + " " } else { ", ".into() };
        let old = before.exact(&account.user, account.host.as_str());
        text.push_str(&format!("{separator}{}", account.quoted()));
        if old.as_ref().is_some_and(|old| account::has_discarded(old, account)) {
            text.push_str(" DISCARD OLD PASSWORD");
            continue;
        }
        let hash = account::quote(&String::from_utf8_lossy(&account.auth));
        text.push_str(&format!(" IDENTIFIED WITH '{}' AS '{hash}'", account.plugin));
        if old.is_some_and(|old| account::has_retained(&old, account)) {
            text.push_str(" RETAIN CURRENT PASSWORD");
        }
    }
    text.into_bytes()
}
