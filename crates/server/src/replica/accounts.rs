//! CREATE USER, GRANT and their kind from a source: changes of account tables in the transaction that brings them.

use crate::account::{Account, apply_record};
use crate::admin::{By, plan_users};
use crate::server::Server;
use bytes::Bytes;
use omnibus_commit::Ticket;
use omnibus_parser::ast::{Spanned, Statement};
use omnibus_sql::apply::ServerStatements;
use omnibus_sql::{ExecResult, Interrupt, Mode, Outcome, SqlError, SqlResult, SqlSession};
use std::sync::{Arc, Weak};

/// The server's statements for an applier.
pub(super) struct AccountStatements(pub(super) Weak<Server>);

impl ServerStatements for AccountStatements {
    fn execute(
        &mut self,
        session: &mut SqlSession,
        statement: &Arc<Spanned<Statement>>,
        text: &Bytes,
    ) -> Option<ExecResult<Outcome>> {
        let ours = matches!(
            statement.node,
            Statement::CreateUser(_)
                | Statement::AlterUser(_)
                | Statement::DropUser { .. }
                | Statement::RenameUser(_)
                | Statement::Grant(_)
                | Statement::Revoke(_)
        );
        let server = self.0.upgrade().filter(|_| ours)?;
        Some(change(&server, session, &statement.node, text).map_err(Interrupt::from))
    }
}

fn change(
    server: &Server,
    session: &mut SqlSession,
    statement: &Statement,
    text: &Bytes,
) -> SqlResult<Outcome> {
    let me = Account::root();
    let (plugin, database) = (server.default_plugin(), session.state.database.clone());
    let mut done = None;
    server.accounts.change_through(
        |table| {
            let by = By { me: &me, plugin: &plugin, database: database.as_deref() };
            plan_users(table, statement, text, &by, &mut Vec::new())
        },
        |records, logged| {
            let outcome = session.change_system_tables(&Bytes::from(logged), Mode::Blocking, |tables| {
                records.iter().try_for_each(|record| apply_record(tables, record))
            });
            let outcome = outcome.map_err(|interrupt| match interrupt {
                Interrupt::Error(error) => error,
                _ => SqlError::internal("account tables could not be changed"),
            })?;
            done = match outcome.wait {
                Some(ticket) => Some(ticket.wait().map_err(SqlError::error_during_commit)?),
                None => None,
            };
            Ok(())
        },
    )?;
    Ok(Outcome { wait: done.map(|number| Ticket::done(Ok(number))), ..Outcome::ok() })
}
