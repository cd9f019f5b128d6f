//! CREATE USER, ALTER USER, DROP USER, RENAME USER, SET PASSWORD, GRANT, REVOKE: privileges to do so,
//! the change itself, and the statement for the log, which holds hashes and no clear password.

use crate::account::{self, AccessTable, Account, By, Privileges, Record, plan_users, with_hashes};
use crate::runner::Parsed;
use crate::session::Session;
use omnibus_parser::ast::{CreateUser, GrantWhat, PasswordOptions, PasswordValue, Statement, UserName};
use omnibus_sql::{SqlError, SqlResult};
use std::sync::Arc;

/// What it takes to have, or to take away, a second password.
const SECOND_PASSWORDS: Privileges = Privileges::CREATE_USER.with(Privileges::APPLICATION_PASSWORD_ADMIN);

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
