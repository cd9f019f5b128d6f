//! CREATE USER, GRANT and their kind from a source: changes of account tables in the transaction that brings them.

use super::Parts;
use crate::account::{Account, By, PasswordDefaults, password_hash, plan_users};
use bytes::Bytes;
use omnibus_commit::Ticket;
use omnibus_format::Dialect;
use omnibus_parser::ast::{Spanned, Statement};
use omnibus_sql::apply::ServerStatements;
use omnibus_sql::{ExecResult, Interrupt, Outcome, SqlResult, SqlSession};
use std::sync::Arc;

/// The server's statements for an applier.
pub(super) struct AccountStatements(pub(super) Parts);

impl ServerStatements for AccountStatements {
    fn execute(
        &mut self,
        session: &mut SqlSession,
        statement: &Arc<Spanned<Statement>>,
        text: &Bytes,
    ) -> Option<ExecResult<Outcome>> {
        let ours = statement.node.is_about_accounts()
            || matches!(&statement.node, Statement::Set(items) if password_hash(items).is_some());
        ours.then(|| change(&self.0, session, &statement.node, text).map_err(Interrupt::from))
    }
}

fn change(
    server: &Parts,
    session: &mut SqlSession,
    statement: &Statement,
    text: &Bytes,
) -> SqlResult<Outcome> {
    let me = Account::root();
    let plugin = server.globals.named("default_authentication_plugin");
    let (plugin, database) = (plugin.as_str(), session.state.database.clone());
    let (rules, mariadb) = (server.accounts.rules(), server.log.dialect() == Dialect::Mariadb);
    let kill = session.state.budget.kill().clone();
    let done = server.accounts.change_in(session, |table| {
        let by = By {
            me: &me,
            plugin,
            passwords: PasswordDefaults { enforced: false, ..server.globals.password_defaults() },
            database: database.as_deref(),
            rules: &rules,
            mariadb,
            kill: &kill,
        };
        plan_users(table, statement, text, &by, &mut Vec::new())
    })?;
    Ok(Outcome { wait: done.map(|number| Ticket::done(Ok(number))), ..Outcome::ok() })
}
